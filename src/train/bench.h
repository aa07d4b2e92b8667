// How fast a whole train step is, against this machine's matrix products and against plain torch operations.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "runs/config.h"

namespace sb {

struct TrainBenchRequest {
  std::vector<std::string> models;
  int width = 256, layers = 8, batch = 8;
  int elements = 200;  // of task 1: two frames each
  int repeats = 5;
  bool plain = true;  // also the same network in plain torch operations
  std::function<void(const std::string& model)> progress;
};

struct TrainBenchRow {
  std::string model;
  int64_t params = 0, frames = 0;
  double step_seconds = 0, tokens_per_second = 0;
  double flops = 0;          // matrix and mixing operations of a step, forward and backward
  double share_of_gemm = 0;  // flops / seconds over the machine's matrix-product rate
  double plain_ratio = 0;    // time of plain torch operations over ours; 0: not measured
  double data_share = 0;     // of the step, if batches were not made ahead
  double forward_share = 0, backward_share = 0, optimiser_share = 0;
  double peak_bytes = 0;        // above what stood before the first step
  double peak_bytes_twice = 0;  // the same for sequences twice as long
  double loss_difference = 0;   // ours against plain, relative: speed counts only where the numbers agree
};

struct TrainBench {
  double gemm_flops = 0;  // a second, 1024 x 1024 x 1024
  std::vector<TrainBenchRow> rows;
};

TrainBench bench_train(const TrainBenchRequest& request);

}  // namespace sb
