// Benchmark of whole training steps on the CPU, against the machine's matrix-product rate and plain torch operations.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "config/config.h"

namespace sb {

struct TrainBenchRequest {
  std::vector<std::string> models;
  std::vector<RunConfig> configs;  // also measured, with their own sizes
  int width = 256, layers = 8, batch = 8;
  int elements = 200;  // per sequence of task 1; two frames each
  int repeats = 5;
  bool plain = true;  // also measure the network in plain torch operations
  std::function<void(const std::string& model)> progress;
};

struct TrainBenchRow {
  std::string model;
  int64_t params = 0, frames = 0;
  double step_seconds = 0, tokens_per_second = 0;
  double flops = 0;          // per step: matrix and mixing operations, forward and backward
  double share_of_gemm = 0;  // flops per second / the machine's matrix-product rate
  double plain_ratio = 0;    // time of plain torch operations / our time; 0: not measured
  double data_share = 0;     // time to make a batch / time of a step; in training, batches are made in advance
  double forward_share = 0, backward_share = 0, optimiser_share = 0;
  double peak_bytes = 0;        // peak memory of a step, without what was allocated before the first step
  double peak_bytes_twice = 0;  // the same for sequences twice as long
  double loss_difference = 0;   // relative difference between our loss and that of plain operations
};

struct TrainBench {
  double gemm_flops = 0;  // per second, for a product of 1024 x 1024 matrices
  std::vector<TrainBenchRow> rows;
};

TrainBench bench_train(const TrainBenchRequest& request);

}  // namespace sb
