// Batches of symbols and gap flags, made ahead of the trainer by a worker thread, and the tensors made of them where
// they are consumed. Contents depend on the index alone, never on timing.
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

#include "random/order.h"
#include "tasks/task.h"

namespace sb {

// How dense frames are made of symbols (tasks/batch.h).
struct NoiseOfFrames {
  int64_t channels = 0;
  double size = 0;
  uint64_t seed = 0;
  Split split = Split::train;
};

struct TensorBatch {
  Batch frames;
  at::Tensor input;         // [batch, frames, channels], one-hot plus noise; on the way to a GPU undefined,
  at::Tensor symbol;        // [batch, frames] int16 instead, and
  NoiseOfFrames noise;      // what is made of them there
  at::Tensor target;        // [batch * frames] int64: what the frame asks for, -1 where it asks for nothing
  at::Tensor samples;       // [batch] int64: index of each row's sample
  int64_t real_frames = 0;  // with a target: counted here, so that nobody has to ask a device
};

// Frames [from, to), [batch, to - from, channels]. `type` is float or double; noise is drawn in float either way, so
// that both see the same data.
at::Tensor dense_frames(const Batch& batch, int from, int to, at::ScalarType type, bool pinned = false);
// Throws check_failed where a target is no answer of the task, or no frame has one. `for_gpu`: symbols instead of dense
// frames, all in memory from which a GPU copies while others work.
TensorBatch to_tensors(Batch frames, const Task& task, at::ScalarType type, bool for_gpu = false);

// Rows [first, last) of a batch, as long as it is.
Batch rows_of(const Batch& batch, int first, int last);
// How many frames of a batch have a target.
int64_t asked_frames(const Batch& batch, const Task& task);

// Indices of the samples of an update.
std::vector<uint64_t> samples_of_update(const SampleOrder& order, int batch, int64_t update);

class Loader {
 public:
  // Yields the samples of update `first`, first + 1, …, last - 1 of the split, `batch` samples each. `pad_to` > 0 fixes
  // the frame count of every batch.
  Loader(std::shared_ptr<const Task> task, Split split, int batch, int64_t first, int64_t last,
         const SampleOrder& order = {}, int pad_to = 0);
  ~Loader();
  // Throws what making the batch threw, behind all batches before it; and at the end.
  Batch next();
  double wait_seconds() const { return waited_; }  // how long the trainer stood waiting

 private:
  void work();

  std::shared_ptr<const Task> task_;
  Split split_;
  int batch_;
  int64_t first_, last_;
  SampleOrder order_;
  int pad_to_;
  double waited_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  std::exception_ptr failure_;
  bool stop_ = false, ended_ = false;
  std::thread worker_;
};

}  // namespace sb
