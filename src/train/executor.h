// Executors run the updates of a run in order. The host passes batches to step() and gets handles. Reading a handle
// waits for its update; until then a GPU works asynchronously.
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
  // False: the loss or gradient norm of this or an earlier update was not finite. The parameters are those before that
  // update.
  bool finite = true;
};

// Result of one update; read() waits for it.
class StepHandle {
 public:
  // figures [3] float64: loss, norm of the gradients, and 1 if the update was made; valid after `wait` returns.
  StepHandle(at::Tensor figures, double lr, std::function<void()> wait = {})
      : figures_(std::move(figures)), lr_(lr), wait_(std::move(wait)) {}
  StepFigures read() const;

 private:
  at::Tensor figures_;
  double lr_;
  std::function<void()> wait_;
};

class Executor {
 public:
  virtual ~Executor() = default;
  // Runs forward, backward, clipping and Adam after all earlier updates. `update` counts from 0.
  virtual StepHandle step(const TensorBatch& batch, int64_t update) = 0;
  // Maximum updates in flight before the caller must read the oldest handle; 0: read each handle at once.
  virtual size_t max_in_flight() const = 0;
  // Whether updates run asynchronously, so that the host can write checkpoints at the same time.
  virtual bool is_asynchronous() const { return false; }
  // Call before the first update, with the size of the longest batch. Ensures that an update of this size fits into the
  // device's memory; may split it into micro-batches (Trainer::may_split). Throws bad_input if it does not fit.
  virtual void expect(int64_t /*rows*/, int64_t /*frames*/, const TaskShape&) {}
  // Frees the memory that only steps need; the next step allocates it again.
  virtual void release() {}
};

// Runs each update synchronously on the CPU.
class CpuExecutor final : public Executor {
 public:
  explicit CpuExecutor(Trainer& trainer) : trainer_(trainer) {}
  StepHandle step(const TensorBatch& batch, int64_t update) override;
  size_t max_in_flight() const override { return 0; }

 private:
  Trainer& trainer_;
};

}  // namespace sb
