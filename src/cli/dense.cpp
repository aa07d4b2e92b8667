#include "cli/dense.h"

namespace sb::cli {
namespace {

// One sample after the other, each padded to the split's longest.
template <class Use>
void for_each_sample(const BatchMaker& maker, Split split, const SampleBlock& block, const std::function<void()>& tick,
                     const Use& use) {
  Batch batch;
  for (size_t i = 0; i < block.count(); ++i) {
    tick();
    maker.make(split, block, i, 1, batch, maker.longest(split));
    use(batch);
  }
}

std::vector<int32_t> targets(const Batch& batch, Objective objective) {
  if (objective == Objective::state) return batch.target;
  std::vector<int32_t> out(batch.target.size(), -1);
  for (size_t t = 0; t < out.size(); ++t) {
    const int32_t e = batch.element[t];
    if (e >= 0 && e + 1 < batch.elements) out[t] = batch.symbol[static_cast<size_t>(batch.start[e + 1])];
  }
  return out;
}

}  // namespace

uint64_t dense_sample_bytes(const BatchMaker& maker, Split split) {
  const auto frames = static_cast<uint64_t>(maker.longest(split));
  const auto vocab = static_cast<uint64_t>(maker.sampler().automaton().vocab);
  return 4 * (frames * (vocab + 1) + static_cast<uint64_t>(maker.sampler().config().length) + 1);
}

void write_dense(NpzWriter& npz, const BatchMaker& maker, Split split, const SampleBlock& block,
                 const std::function<void()>& tick) {
  const int vocab = maker.sampler().automaton().vocab;
  const uint64_t samples = block.count(), frames = static_cast<uint64_t>(maker.longest(split));
  std::vector<float> dense(frames * static_cast<uint64_t>(vocab));
  npz.begin_array<float>("frames", {samples, frames, static_cast<uint64_t>(vocab)});
  for_each_sample(maker, split, block, tick, [&](const Batch& batch) {
    expand_frames(batch, dense.data());
    npz.write(dense.data(), dense.size());
  });
  npz.begin_array<int32_t>("targets", {samples, frames});
  for_each_sample(maker, split, block, tick, [&](const Batch& batch) {
    const std::vector<int32_t> row = targets(batch, maker.task().objective);
    npz.write(row.data(), row.size());
  });
  npz.begin_array<int32_t>("starts", {samples, static_cast<uint64_t>(block.length) + 1});
  for_each_sample(maker, split, block, tick,
                  [&](const Batch& batch) { npz.write(batch.start.data(), batch.start.size()); });
}

}  // namespace sb::cli
