#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <array>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/number.h"
#include "train/gpu.h"
#include "train/trainer.h"

namespace sb {
namespace {

std::string gibibytes(double bytes) {
  return fixed(bytes / (1024.0 * 1024 * 1024), 1) + " GiB";
}

// Key of a captured graph: the batch shape, whether dropout is active, and the amplitude of the noise, which a graph
// holds as a constant.
struct Shape {
  int64_t rows = 0, frames = 0;
  bool dropout = false;
  double noise = 0;
  auto operator<=>(const Shape&) const = default;
};

// With train.schedule, shapes change over the updates. When there are this many graphs, all are released.
constexpr size_t kMaxGraphs = 64;

// Buffers of a batch that is copied to the device while the previous update runs.
struct Arrival {
  TensorBatch batch;
  at::cuda::CUDAEvent copied, taken;
};

// The tensors of a batch that have rows of frames, with the value of padding. A batch has symbols or input.
constexpr struct {
  at::Tensor TensorBatch::*part;
  int padding;
} kFrameParts[] = {{&TensorBatch::symbol, kPaddingFrame},
                   {&TensorBatch::input, 0},
                   {&TensorBatch::target, -1},
                   {&TensorBatch::value, 0},
                   {&TensorBatch::positions, 0}};

int64_t rows_in(const TensorBatch& batch) {
  return batch.samples.size(0);
}
int64_t frames_in(const TensorBatch& batch) {
  return batch.target.numel() / rows_in(batch);
}

struct Recorded {
  TensorBatch batch;   // at fixed addresses
  at::Tensor figures;  // [3]
  std::array<Arrival, 2> arrivals;
  size_t next = 0;
  at::cuda::CUDAGraph graph;
  // With several ranks, `graph` computes the gradients, they are summed over the ranks, and `rest` applies them.
  at::Tensor loss;  // [1]
  std::optional<at::cuda::CUDAGraph> rest;
};

class GraphExecutor final : public Executor {
 public:
  explicit GraphExecutor(Trainer& trainer)
      : trainer_(trainer), copies_(c10::cuda::getStreamFromPool(false, 0)), pool_(at::cuda::graph_pool_handle()) {}

  ~GraphExecutor() override { cudaDeviceSynchronize(); }

  StepHandle step(const TensorBatch& batch, int64_t update) override {
    const Shape shape{rows_in(batch), trainer_.padded(frames_in(batch)), trainer_.dropout_acts(update),
                      batch.noise.size};
    if (!recorded_.contains(shape)) {
      if (recorded_.size() >= kMaxGraphs) release();
      auto made = record(shape, batch, update);  // may release other graphs
      recorded_[shape] = std::move(made);
    }
    Recorded& recorded = *recorded_[shape];
    feed(recorded, batch);
    trainer_.prepare(batch.real_frames, update);
    recorded.graph.replay();
    if (recorded.rest) {
      trainer_.sum_over_ranks(recorded.loss);
      recorded.rest->replay();
    }
    const at::Tensor figures = at::empty({3}, at::TensorOptions().dtype(at::kDouble).pinned_memory(true));
    figures.copy_(recorded.figures, true);
    return StepHandle(figures, trainer_.learning_rate_of(update), gpu_marker());
  }

  // Several ranks must continue, stop or diverge at the same update.
  size_t max_in_flight() const override { return trainer_.together() ? 0 : 3; }
  bool is_asynchronous() const override { return true; }

  void expect(int64_t rows, int64_t most_frames, const TaskShape& task) override {
    try {
      const at::TensorOptions here = at::TensorOptions().device(trainer_.device());
      const int64_t frames = trainer_.padded(most_frames);
      TensorBatch longest;
      if (task.dense) {
        longest.input =
            at::zeros({rows, frames, task.channels}, here.dtype(trainer_.network().parameters().flat().scalar_type()));
      } else {
        longest.symbol = at::zeros({rows, frames}, here.dtype(at::kShort));
      }
      if (task.loss == Loss::squared_error) {
        longest.value = at::zeros({rows, frames, task.answers}, here.dtype(at::kFloat));
      }
      if (trainer_.randomises_positions()) longest.positions = at::zeros({rows, frames}, here.dtype(at::kInt));
      longest.noise.channels = task.channels;
      longest.target = at::zeros({rows * frames}, here.dtype(at::kLong));
      longest.samples = at::zeros({rows}, here.dtype(at::kLong));
      trainer_.prepare(rows * frames, 0);
      const bool dropout = trainer_.dropout_acts(0);
      if (!fits(longest, dropout, trainer_.micro_batches())) {
        const int64_t more = trainer_.may_split() ? more_that_fit(longest, dropout) : 0;
        if (more == 0) throw full(longest, dropout);
        trainer_.split(more);
      }
    } catch (const c10::OutOfMemoryError&) {
      throw no_room();
    }
    c10::cuda::CUDACachingAllocator::emptyCache();
  }

  void release() override {
    wait_for_gpu();
    recorded_.clear();
    pool_ = at::cuda::graph_pool_handle();  // the old pool is freed with its graphs
    c10::cuda::CUDACachingAllocator::emptyCache();
  }

 private:
  void feed(Recorded& recorded, const TensorBatch& batch) {
    Arrival& arrival = recorded.arrivals[recorded.next++ % recorded.arrivals.size()];
    const int64_t rows = rows_in(batch), frames = frames_in(batch);
    const auto first = [&](const at::Tensor& x) {
      return (x.dim() == 1 ? x.view({rows, -1}) : x).narrow(1, 0, frames);
    };
    {
      const c10::cuda::CUDAStreamGuard on_copies(copies_);
      arrival.taken.block(copies_);
      for (const auto& [part, padding] : kFrameParts) {
        if ((batch.*part).defined()) first(arrival.batch.*part).copy_(first(batch.*part), true);
      }
      arrival.batch.samples.copy_(batch.samples, true);
      arrival.copied.record(copies_);
    }
    arrival.copied.block(c10::cuda::getCurrentCUDAStream());
    for (const auto& [part, padding] : kFrameParts) {
      if (!(batch.*part).defined()) continue;
      if (frames < frames_in(recorded.batch)) (recorded.batch.*part).fill_(padding);
      first(recorded.batch.*part).copy_(first(arrival.batch.*part));
    }
    recorded.batch.samples.copy_(arrival.batch.samples);
    arrival.taken.record();
  }

  std::unique_ptr<Recorded> record(const Shape& shape, const TensorBatch& batch, int64_t update) {
    try {
      auto out = std::make_unique<Recorded>();
      const auto on = [&](at::ScalarType type) { return at::TensorOptions().dtype(type).device(trainer_.device()); };
      for (const auto& [part, padding] : kFrameParts) {
        const at::Tensor& like = batch.*part;
        if (!like.defined()) continue;
        std::vector<int64_t> sizes = like.sizes().vec();  // [rows * frames], or [rows, frames, …]
        if (sizes.size() == 1) {
          sizes[0] = shape.rows * shape.frames;
        } else {
          sizes[1] = shape.frames;
        }
        out->batch.*part = at::full(sizes, padding, on(like.scalar_type()));
        for (Arrival& arrival : out->arrivals) arrival.batch.*part = at::full(sizes, padding, on(like.scalar_type()));
      }
      out->batch.noise = batch.noise;
      out->batch.samples = at::zeros({shape.rows}, on(at::kLong));
      out->batch.real_frames = batch.real_frames;
      for (Arrival& arrival : out->arrivals) {
        arrival.batch.samples = at::zeros_like(out->batch.samples);
        arrival.taken.record();
      }
      feed(*out, batch);
      trainer_.prepare(batch.real_frames, update);
      // Warm-up without capture: lazy initialisation happens here. Its gradients are not used.
      if (!fits(out->batch, shape.dropout, trainer_.micro_batches())) {
        release();
        if (!fits(out->batch, shape.dropout, trainer_.micro_batches())) throw full(out->batch, shape.dropout);
      }
      c10::cuda::CUDACachingAllocator::emptyCache();
      out->graph.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
      if (trainer_.together()) {
        out->loss = trainer_.gradients(out->batch, shape.dropout);
      } else {
        out->figures = trainer_.operations(out->batch, shape.dropout);
      }
      out->graph.capture_end();
      if (trainer_.together()) {
        out->rest.emplace();
        out->rest->capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
        out->figures = trainer_.apply(out->loss);
        out->rest->capture_end();
      }
      return out;
    } catch (const c10::OutOfMemoryError&) {
      throw no_room();
    }
  }

  // Whether the gradients of a batch fit into memory with this number of micro-batches.
  bool fits(const TensorBatch& batch, bool dropout, int64_t micro_batches) {
    try {
      trainer_.gradients(batch, dropout, micro_batches, 1);
      wait_for_gpu();
      return true;
    } catch (const c10::OutOfMemoryError&) {
      c10::cuda::CUDACachingAllocator::emptyCache();
      return false;
    }
  }

  // The smallest number of micro-batches above the current one that fits into memory; 0: none does.
  int64_t more_that_fit(const TensorBatch& batch, bool dropout) {
    const int64_t rows = rows_in(batch);
    for (int64_t more = trainer_.micro_batches() + 1; more <= rows; ++more) {
      if (rows % more == 0 && trainer_.can_split(more) && fits(batch, dropout, more)) return more;
    }
    return 0;
  }

  Error full(const TensorBatch& batch, bool dropout) {
    if (const int64_t more = more_that_fit(batch, dropout); more > 0) {
      return bad_input("train.accumulate", "the GPU's " + memory() + " are full, expected " +
                                               std::to_string(more * trainer_.ranks()) +
                                               " or more micro-batches, got " + micro_batches());
    }
    return bad_input("model.width", "the GPU's " + memory() +
                                        " do not suffice for one sample at a time, expected a smaller "
                                        "network or shorter samples");
  }

  Error no_room() const {
    return bad_input("train.accumulate",
                     "the GPU's " + memory() + " are full, expected a larger number, got " + micro_batches());
  }

  // As `train.accumulate` counts them: of all ranks together.
  std::string micro_batches() const { return std::to_string(trainer_.micro_batches() * trainer_.ranks()); }

  // "139.8 GiB", or "139.8 GiB (of which other programs hold 97.2 GiB)".
  static std::string memory() {
    const std::string all = gibibytes(static_cast<double>(gpu_facts().bytes));
    size_t free = 0, total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) return all;
    const auto own = c10::cuda::CUDACachingAllocator::getDeviceStats(0).reserved_bytes[0].current;
    constexpr double context = 1 << 30;  // bytes of this process outside the allocator: kernels, libraries; at most
    const double others = static_cast<double>(total - free) - static_cast<double>(own) - context;
    return others < context ? all : all + " (of which other programs hold " + gibibytes(others) + ")";
  }

  Trainer& trainer_;
  c10::cuda::CUDAStream copies_;
  at::cuda::MempoolId_t pool_;
  std::map<Shape, std::unique_ptr<Recorded>> recorded_;
};

}  // namespace

std::unique_ptr<Executor> gpu_executor(Trainer& trainer) {
  return std::make_unique<GraphExecutor>(trainer);
}

}  // namespace sb
