// Loader makes batches of symbols and gap flags in advance on a worker thread; to_tensors() converts them for the
// trainer. The contents of a batch depend only on its index, never on timing.
#pragma once
#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "config/data.h"
#include "random/order.h"

namespace sb {

// Parameters for making dense frames from symbols (tasks/batch.h).
struct NoiseOfFrames {
  int64_t channels = 0;
  double size = 0;
  uint64_t seed = 0;
  Split split = Split::train;
};

struct TensorBatch {
  Batch frames;
  at::Tensor input;           // [batch, frames, channels]; undefined if a GPU makes the frames from symbol and noise
  at::Tensor symbol;          // [batch, frames] int16; undefined if `input` is defined
  NoiseOfFrames noise;        // of the frames that a GPU makes
  at::Tensor target;          // [batch * frames] int64: the target of the frame; -1: none
  at::Tensor samples;         // [batch] int64: index of each row's sample
  int64_t real_frames = 0;    // frames with a target, counted on the host to avoid waiting for a device
  at::Tensor value = {};      // [batch, frames, answers]: wanted outputs under squared error; else undefined
  at::Tensor positions = {};  // [batch, frames] int32: of train.position_stretch; undefined: 0, 1, …
};

// Returns frames [from, to) as [batch, to - from, channels]. `type` is float or double. The noise is drawn in float, so
// both types get the same data. `pinned`: in pinned memory.
at::Tensor dense_frames(const Batch& batch, int from, int to, at::ScalarType type, bool pinned = false);
// Throws check_failed if a target is not a valid answer of the task. `for_gpu`: all in pinned memory, which a GPU
// copies asynchronously, and symbols instead of one-hot frames.
TensorBatch to_tensors(Batch frames, const Task& task, at::ScalarType type, bool for_gpu = false);

// Random positions of the frames of each row, [batch, frames] int32 (train.position_stretch). A sample of T frames gets
// a range of T to stretch × T positions, all sizes equally likely, and a random subset of T of them in ascending order.
// So positions are spread, but plain ones stay among them. They depend on the seed and on the sample; padding has 0.
at::Tensor random_positions(const Batch& batch, int stretch, uint64_t seed, bool pinned = false);

// Returns rows [first, last) of a batch, with the frame count of the whole batch.
Batch rows_of(const Batch& batch, int first, int last);
// Number of frames of a batch that have a target.
int64_t asked_frames(const Batch& batch, const Task& task);

// Indices of the samples of an update.
std::vector<uint64_t> samples_of_update(const SampleOrder& order, int batch, int64_t update);

class Loader {
 public:
  static constexpr size_t kAhead = 3;  // batches that wait for next(); the worker makes one more and then waits
  // Yields the batches of updates first..last - 1, each with `batch` samples. `pad_to` > 0 fixes their frame count.
  Loader(const RunData& data, Split split, int batch, int64_t first, int64_t last, const SampleOrder& order = {},
         int pad_to = 0);
  ~Loader();
  // Returns the next batch. If the worker failed, throws its exception after all earlier batches have been returned.
  // Throws check_failed after the last batch.
  Batch next();

 private:
  void work();

  RunData data_;
  Split split_;
  int batch_;
  int64_t first_, last_;
  SampleOrder order_;
  int pad_to_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  std::exception_ptr failure_;
  bool stop_ = false, ended_ = false;
  std::thread worker_;
};

}  // namespace sb
