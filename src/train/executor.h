// Runs the updates of a run in order. The host hands over batches and learns what came of an update when it reads its
// handle, not before: on a device nothing waits for it.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "train/loader.h"

namespace sb {

class Trainer;

struct StepFigures {
  double loss = 0, norm = 0, lr = 0;
  bool finite = true;  // false: this update or one before it was not, and the parameters are as that one found them
};

// What came of one update, where the parameters live.
class StepHandle {
 public:
  // figures [3] float64: loss, norm of the gradients, 1 where the update was made; there once `wait` has returned
  StepHandle(at::Tensor figures, double lr, std::function<void()> wait = {})
      : figures_(std::move(figures)), lr_(lr), wait_(std::move(wait)) {}
  StepFigures read() const;  // waits for the update

 private:
  at::Tensor figures_;
  double lr_;
  std::function<void()> wait_;
};

class Executor {
 public:
  virtual ~Executor() = default;
  // Forward, backward, clip, Adam, behind all earlier ones; `update` counts from 0.
  virtual StepHandle step(const TensorBatch& batch, int64_t update) = 0;
  // Updates that may be under way before the oldest is read; 0: step() returns when it is done.
  virtual size_t ahead() const = 0;
  // Whether updates run beside the host, which writes checkpoints meanwhile.
  virtual bool beside_host() const { return false; }
  // Before the first update: sees to it that the device's memory holds updates of batches as long as these, by
  // splitting them where the trainer may; throws bad_input where it does not.
  virtual void expect(int64_t, int64_t, int64_t) {}  // rows, frames, channels
  // Gives back the memory that steps alone need; the next step takes it again.
  virtual void release() {}
};

// One operation after the other on the CPU.
class CpuExecutor final : public Executor {
 public:
  explicit CpuExecutor(Trainer& trainer) : trainer_(trainer) {}
  StepHandle step(const TensorBatch& batch, int64_t update) override;
  size_t ahead() const override { return 0; }

 private:
  Trainer& trainer_;
};

}  // namespace sb
