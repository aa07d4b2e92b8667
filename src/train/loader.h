// Batches as tensors, made ahead of the trainer by a worker thread. Contents depend on the index alone, never on
// timing.
#pragma once
#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "tasks/batch.h"

namespace sb {

struct TensorBatch {
  Batch frames;
  at::Tensor input;    // [batch, frames, vocab], one-hot plus noise
  at::Tensor target;   // [batch * frames] int64: state id, or class of the next element; -1 where there is none
  at::Tensor samples;  // [batch] int64: the rows' numbers in their split
};

// Width of the network's output for this objective.
int64_t output_classes(const Automaton& automaton, Objective objective);

// `type` is float or double; noise is drawn in float either way, so that both see the same data.
TensorBatch to_tensors(Batch frames, const BatchMaker& maker, at::ScalarType type);

class Loader {
 public:
  // Yields the samples of update `first`, first + 1, …, last - 1 of the split, `batch` samples each.
  Loader(std::shared_ptr<const BatchMaker> maker, Split split, int batch, int64_t first, int64_t last,
         at::ScalarType type);
  ~Loader();
  TensorBatch next();
  double wait_seconds() const { return waited_; }  // how long the trainer stood waiting

 private:
  void work();

  std::shared_ptr<const BatchMaker> maker_;
  Split split_;
  int batch_;
  int64_t next_, last_;
  at::ScalarType type_;
  double waited_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<TensorBatch> ready_;
  std::exception_ptr failure_;
  bool stop_ = false;
  std::thread worker_;
};

}  // namespace sb
