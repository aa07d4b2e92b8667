#include "tasks/task.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "tasks/ngram_source.h"

namespace sb {

std::string Task::objective() const {
  return shape().loss == Loss::squared_error ? "value" : "answer";
}

std::unique_ptr<NgramSource> Task::ngrams() const {
  return counts_frames() ? frame_ngrams(*this) : nullptr;
}

std::shared_ptr<const Task> Task::at(Split, int) const {
  throw bad_input("task", "this task has no test axis");
}

void Task::answers(const Batch& batch, int row, int32_t* out) const {
  std::copy_n(batch.state.data() + static_cast<size_t>(row) * batch.elements, batch.elements, out);
}

void Task::fill(Split split, uint64_t first, int count, Batch& out, int pad_to) const {
  std::vector<uint64_t> samples(static_cast<size_t>(std::max(0, count)));
  std::iota(samples.begin(), samples.end(), first);
  fill(split, samples, out, pad_to);
}

void begin_plain_batch(const TaskShape& shape, Split split, std::span<const uint64_t> samples, int pad_to, Batch& out) {
  if (pad_to > 0 && pad_to < shape.elements) {
    throw bad_input("batch", "pad_to, expected at least the longest sample's " + std::to_string(shape.elements) +
                                 " frames, got " + std::to_string(pad_to));
  }
  out.batch = static_cast<int>(samples.size());
  out.frames = std::max(shape.elements, pad_to);
  out.elements = shape.elements;
  out.channels = shape.channels;
  out.split = split;
  out.noise = 0;
  out.seed = 0;
  out.samples.assign(samples.begin(), samples.end());
  const auto frames = static_cast<size_t>(out.frames), elements = static_cast<size_t>(out.elements);
  const size_t cells = samples.size() * frames;
  out.symbol.assign(cells, kPaddingFrame);
  out.gap.assign(cells, 0);
  out.target.assign(cells, -1);
  out.element.assign(cells, -1);
  out.state.assign(samples.size() * elements, -1);
  out.start.resize(samples.size() * (elements + 1));
  out.dense.assign(shape.dense ? cells * static_cast<size_t>(shape.channels) : 0, 0.0F);
  const bool valued = shape.loss == Loss::squared_error;
  out.value.assign(valued ? cells * static_cast<size_t>(shape.answers) : 0, 0.0F);
  for (size_t b = 0; b < samples.size(); ++b) {
    std::fill_n(out.symbol.begin() + static_cast<std::ptrdiff_t>(b * frames), elements, kBlankFrame);
    std::iota(out.element.begin() + static_cast<std::ptrdiff_t>(b * frames),
              out.element.begin() + static_cast<std::ptrdiff_t>(b * frames + elements), 0);
    const auto start = out.start.begin() + static_cast<std::ptrdiff_t>(b * (elements + 1));
    std::iota(start, start + static_cast<std::ptrdiff_t>(elements) + 1, 0);
  }
}

}  // namespace sb
