#include "cli/dense.h"

namespace sb::cli {
namespace {

// One sample after the other, each padded to the split's longest.
template <class Use>
void for_each_sample(const GapTask& task, Split split, const SampleBlock& block, const Use& use) {
  Batch batch;
  for (size_t i = 0; i < block.count(); ++i) {
    task.fill(split, block, i, 1, batch, task.max_frames(split));
    use(batch);
  }
}

}  // namespace

uint64_t dense_sample_bytes(const GapTask& task, Split split) {
  const auto frames = static_cast<uint64_t>(task.max_frames(split));
  const auto vocab = static_cast<uint64_t>(task.shape().channels);
  return 4 * (frames * (vocab + 1) + static_cast<uint64_t>(task.shape().elements) + 1);
}

void write_dense(NpzWriter& npz, const GapTask& task, Split split, const SampleBlock& block) {
  const int vocab = task.shape().channels;
  const uint64_t samples = block.count(), frames = static_cast<uint64_t>(task.max_frames(split));
  std::vector<float> dense(frames * static_cast<uint64_t>(vocab));
  npz.begin_array<float>("frames", {samples, frames, static_cast<uint64_t>(vocab)});
  for_each_sample(task, split, block, [&](const Batch& batch) {
    expand_frames(batch, dense.data());
    npz.write(dense.data(), dense.size());
  });
  std::vector<int32_t> targets(frames);
  npz.begin_array<int32_t>("targets", {samples, frames});
  for_each_sample(task, split, block, [&](const Batch& batch) {
    task.targets(batch, targets.data());
    npz.write(targets.data(), targets.size());
  });
  npz.begin_array<int32_t>("starts", {samples, static_cast<uint64_t>(block.length) + 1});
  for_each_sample(task, split, block, [&](const Batch& batch) { npz.write(batch.start.data(), batch.start.size()); });
}

}  // namespace sb::cli
