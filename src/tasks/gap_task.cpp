#include "tasks/gap_task.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "tasks/filter.h"
#include "tasks/ngram_source.h"

namespace sb {
namespace {

constexpr int kWide = 16;  // frames written at once; those beyond the run are overwritten by the next run

struct Row {
  int16_t* symbol;
  uint8_t* gap;
  int32_t* target;
  int32_t* element;
};

// Writes frames [at, at + frames) of element e, and up to kWide frames if `room` allows it.
inline void lay_run(const Row& row, int at, int frames, int room, int16_t symbol, int32_t id, int32_t e) {
  const int width = frames <= kWide && room >= kWide ? kWide : frames;
  if (width == kWide) {
    for (int i = 0; i < kWide; ++i) row.symbol[at + i] = kBlankFrame;
    for (int i = 0; i < kWide; ++i) row.gap[at + i] = 1;
    for (int i = 0; i < kWide; ++i) row.target[at + i] = id;
    for (int i = 0; i < kWide; ++i) row.element[at + i] = e;
  } else {
    std::fill_n(row.symbol + at, frames, kBlankFrame);
    std::fill_n(row.gap + at, frames, uint8_t{1});
    std::fill_n(row.target + at, frames, id);
    std::fill_n(row.element + at, frames, e);
  }
  row.symbol[at] = symbol;
  row.gap[at] = 0;
}

void lay_row(const int32_t* symbols, const int32_t* ids, const uint16_t* states, const Gaps& gaps, Batch& out, int b) {
  const size_t offset = static_cast<size_t>(b) * out.frames;
  const Row row{out.symbol.data() + offset, out.gap.data() + offset, out.target.data() + offset,
                out.element.data() + offset};
  int32_t* start = out.start.data() + static_cast<size_t>(b) * (out.elements + 1);
  int32_t* state = out.state.data() + static_cast<size_t>(b) * out.elements;
  const int32_t* wrong = gaps.wrong.empty() ? nullptr : gaps.wrong.data();
  int at = 0;
  for (int e = 0; e < out.elements; ++e) {
    const int frames = 1 + gaps.length[e];
    start[e] = at;
    state[e] = ids[states[e]];
    lay_run(row, at, frames, out.frames - at, static_cast<int16_t>(symbols[states[e]]), state[e], e);
    if (wrong != nullptr) {
      for (int i = 1; i < frames; ++i) row.symbol[at + i] = static_cast<int16_t>(*wrong++);
    }
    at += frames;
  }
  start[out.elements] = at;
  const int padding = out.frames - at;
  std::fill_n(row.symbol + at, padding, kPaddingFrame);
  std::fill_n(row.gap + at, padding, uint8_t{0});
  std::fill_n(row.target + at, padding, -1);
  std::fill_n(row.element + at, padding, -1);
}

int frames_of(const Gaps& gaps) {
  int64_t frames = static_cast<int64_t>(gaps.length.size());
  for (const int32_t n : gaps.length) frames += n;
  return static_cast<int>(frames);
}

}  // namespace

void assemble(const Language& language, const uint16_t* states, int length, const Gaps* gaps, int count, Batch& out,
              int pad_to) {
  assemble(language.classes(), language.symbols(), language.ids(), states, length, gaps, count, out, pad_to);
}

void assemble(int classes, std::span<const int32_t> symbols, std::span<const int32_t> ids, const uint16_t* states,
              int length, const Gaps* gaps, int count, Batch& out, int pad_to) {
  int longest = 0;
  for (int b = 0; b < count; ++b) longest = std::max(longest, frames_of(gaps[b]));
  if (pad_to > 0 && pad_to < longest) {
    throw bad_input("batch", "pad_to, expected at least the longest sample's " + std::to_string(longest) +
                                 " frames, got " + std::to_string(pad_to));
  }
  out.batch = count;
  out.elements = length;
  out.channels = classes;
  out.frames = std::max(longest, pad_to);
  const size_t cells = static_cast<size_t>(count) * out.frames;
  out.symbol.resize(cells);
  out.gap.resize(cells);
  out.target.resize(cells);
  out.element.resize(cells);
  out.start.resize(static_cast<size_t>(count) * (length + 1));
  out.state.resize(static_cast<size_t>(count) * length);
  out.dense.clear();
  out.value.clear();
  for (int b = 0; b < count; ++b) {
    lay_row(symbols.data(), ids.data(), states + static_cast<size_t>(b) * length, gaps[b], out, b);
  }
}

GapTask::GapTask(std::shared_ptr<const Language> language, const TaskConfig& config)
    : language_(std::move(language)),
      config_(config),
      gaps_(*language_, config),
      state_of_(static_cast<size_t>(language_->states())),
      shown_(state_of_.size()) {
  const int64_t limit = std::numeric_limits<int32_t>::max();
  for (const GapConfig* gap : {&config_.train, &config_.test}) {
    const int64_t frames = (1 + static_cast<int64_t>(longest_gap(*gap))) * language_->length();
    if (frames > limit) {
      throw bad_input("task.gap", "frames of a sample, expected at most " + std::to_string(limit) + ", got " +
                                      std::to_string(frames));
    }
  }
  if (language_->classes() > std::numeric_limits<int16_t>::max()) {
    throw bad_input("batch", "vocab, expected at most 32767, got " + std::to_string(language_->classes()));
  }
  for (size_t s = 0; s < state_of_.size(); ++s) {
    const auto id = static_cast<size_t>(language_->ids()[s]);
    state_of_[id] = static_cast<int32_t>(s);
    shown_[id] = language_->symbols()[s];
  }
}

TaskShape GapTask::shape() const {
  const int states = language_->states(), classes = language_->classes();
  return {.channels = classes,
          .answers = answer_count(config_.objective, states, classes),
          .elements = language_->length(),
          .fixed_frames = has_fixed_frames(config_.train)};
}

std::string GapTask::canonical_text() const {
  return language_->canonical_text() + sb::canonical_text(config_);
}

int GapTask::max_frames(Split split) const {
  return (1 + longest_gap(gaps_.law(split))) * language_->length();
}

double GapTask::mean_frames(Split split) const {
  return mean_element_frames(gaps_.law(split)) * language_->length();
}

void GapTask::fill(Split split, const SampleBlock& block, size_t first_row, int count, Batch& out, int pad_to) const {
  if (count < 0 || block.length != language_->length() || first_row + static_cast<size_t>(count) > block.count()) {
    throw bad_input("batch", "rows " + std::to_string(first_row) + " to " +
                                 std::to_string(first_row + static_cast<size_t>(count)) +
                                 ", expected rows of a block of " + std::to_string(block.count()));
  }
  out.samples.resize(static_cast<size_t>(count));
  std::iota(out.samples.begin(), out.samples.end(), block.first + first_row);
  lay_out(split, block.sample(first_row), out, pad_to);
}

void GapTask::fill(Split split, std::span<const uint64_t> samples, Batch& out, int pad_to) const {
  const auto length = static_cast<size_t>(language_->length());
  thread_local std::vector<uint16_t> states;
  states.resize(samples.size() * length);
  for (size_t b = 0; b < samples.size();) {  // consecutive samples are drawn together
    size_t end = b + 1;
    while (end < samples.size() && samples[end] == samples[b] + (end - b)) ++end;
    language_->draw(split, samples[b], end - b, states.data() + b * length);
    b = end;
  }
  out.samples.assign(samples.begin(), samples.end());
  lay_out(split, states.data(), out, pad_to);
}

// Lays out the samples out.samples. `states`: [samples][length].
void GapTask::lay_out(Split split, const uint16_t* states, Batch& out, int pad_to) const {
  const int length = language_->length();
  const size_t count = out.samples.size();
  thread_local std::vector<Gaps> gaps;
  if (gaps.size() < count) gaps.resize(count);
  out.split = split;
  out.noise = config_.noise;
  out.seed = language_->seed();
  for (size_t b = 0; b < count; ++b) {
    gaps_.draw(split, out.samples[b], states + b * static_cast<size_t>(length), length, gaps[b]);
  }
  assemble(*language_, states, length, gaps.data(), static_cast<int>(count), out, pad_to);
}

void GapTask::answers(const Batch& batch, int row, int32_t* out) const {
  const int32_t* state = batch.state.data() + static_cast<size_t>(row) * batch.elements;
  if (config_.objective == Objective::state) {
    std::copy_n(state, batch.elements, out);
    return;
  }
  // Every element asks for the class of the one after it; nothing follows the last.
  for (int e = 0; e < batch.elements; ++e) out[e] = e + 1 < batch.elements ? shown_[state[e + 1]] : -1;
}

std::span<const int32_t> GapTask::shown() const {
  return config_.objective == Objective::state ? std::span<const int32_t>(shown_) : std::span<const int32_t>();
}

void GapTask::law(int32_t state, double* over_answers) const {
  next_symbol_law(*language_, state_of_[static_cast<size_t>(state)], over_answers);
}

std::unique_ptr<Oracle> GapTask::oracle(Split split) const {
  std::call_once(filter_made_, [&] { filter_ = filter_model(language_); });
  return std::make_unique<ExactFilter>(filter_, config_, split);
}

std::unique_ptr<NgramSource> GapTask::ngrams() const {
  return config_.objective == Objective::state ? gap_ngrams(language_, config_) : nullptr;
}

std::shared_ptr<const Task> GapTask::at(Split split, int gap) const {
  return std::make_shared<const GapTask>(language_, with_gap(config_, split, gap));
}

}  // namespace sb
