#include "tasks/batch.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace sb {
namespace {

constexpr int kWide = 16;  // frames written at once; what goes past a run is overwritten by the next one

struct Row {
  int16_t* symbol;
  uint8_t* gap;
  int32_t* target;
  int32_t* element;
};

// Frames [at, at + frames) of element e; writes up to kWide frames past `at` where `room` allows it.
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

void lay_row(const Automaton& automaton, const uint16_t* states, const Gaps& gaps, Batch& out, int b) {
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
    state[e] = automaton.id[states[e]];
    lay_run(row, at, frames, out.frames - at, static_cast<int16_t>(automaton.symbol[states[e]]), state[e], e);
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

void assemble(const Automaton& automaton, const uint16_t* states, int length, const Gaps* gaps, int count, Batch& out,
              int pad_to) {
  int longest = 0;
  for (int b = 0; b < count; ++b) longest = std::max(longest, frames_of(gaps[b]));
  if (pad_to > 0 && pad_to < longest) {
    throw bad_input("batch", "pad_to, expected at least the longest sample's " + std::to_string(longest) +
                                 " frames, got " + std::to_string(pad_to));
  }
  out.batch = count;
  out.elements = length;
  out.vocab = automaton.vocab;
  out.frames = std::max(longest, pad_to);
  const size_t cells = static_cast<size_t>(count) * out.frames;
  out.symbol.resize(cells);
  out.gap.resize(cells);
  out.target.resize(cells);
  out.element.resize(cells);
  out.start.resize(static_cast<size_t>(count) * (length + 1));
  out.state.resize(static_cast<size_t>(count) * length);
  for (int b = 0; b < count; ++b) {
    lay_row(automaton, states + static_cast<size_t>(b) * length, gaps[b], out, b);
  }
}

BatchMaker::BatchMaker(std::shared_ptr<const Sampler> sampler, const TaskConfig& task)
    : sampler_(std::move(sampler)),
      task_(task),
      // The automaton lives as long as the sampler, which the alias keeps.
      gaps_(std::shared_ptr<const Automaton>(sampler_, &sampler_->automaton()), task, sampler_->config().seed) {
  const int64_t limit = std::numeric_limits<int32_t>::max();
  for (const GapConfig* gap : {&task_.train, &task_.test}) {
    const int64_t frames = (1 + static_cast<int64_t>(longest_gap(*gap))) * sampler_->config().length;
    if (frames > limit) {
      throw bad_input("task.gap", "frames of a sample, expected at most " + std::to_string(limit) + ", got " +
                                      std::to_string(frames));
    }
  }
  if (sampler_->automaton().vocab > std::numeric_limits<int16_t>::max()) {
    throw bad_input("batch", "vocab, expected at most 32767, got " + std::to_string(sampler_->automaton().vocab));
  }
}

int BatchMaker::longest(Split split) const {
  return (1 + longest_gap(gaps_.law(split))) * sampler_->config().length;
}

void BatchMaker::make(Split split, const SampleBlock& block, size_t first_row, int count, Batch& out,
                      int pad_to) const {
  if (count < 0 || block.length != sampler_->config().length ||
      first_row + static_cast<size_t>(count) > block.count()) {
    throw bad_input("batch", "rows " + std::to_string(first_row) + " to " +
                                 std::to_string(first_row + static_cast<size_t>(count)) +
                                 ", expected rows of a block of " + std::to_string(block.count()));
  }
  out.samples.resize(static_cast<size_t>(count));
  std::iota(out.samples.begin(), out.samples.end(), block.first + first_row);
  lay_out(split, block.sample(first_row), out, pad_to);
}

void BatchMaker::make(Split split, std::span<const uint64_t> indices, Batch& out, int pad_to) const {
  const auto length = static_cast<size_t>(sampler_->config().length);
  thread_local std::vector<uint16_t> states;
  states.resize(indices.size() * length);
  for (size_t b = 0; b < indices.size(); ++b) sampler_->sample(split, indices[b], states.data() + b * length);
  out.samples.assign(indices.begin(), indices.end());
  lay_out(split, states.data(), out, pad_to);
}

void BatchMaker::make(Split split, uint64_t first, int count, Batch& out, int pad_to) const {
  std::vector<uint64_t> indices(static_cast<size_t>(std::max(0, count)));
  std::iota(indices.begin(), indices.end(), first);
  make(split, indices, out, pad_to);
}

// States [samples][length] of out.samples.
void BatchMaker::lay_out(Split split, const uint16_t* states, Batch& out, int pad_to) const {
  const int length = sampler_->config().length;
  const size_t count = out.samples.size();
  thread_local std::vector<Gaps> gaps;
  if (gaps.size() < count) gaps.resize(count);
  out.split = split;
  out.noise = task_.noise;
  out.seed = sampler_->config().seed;
  for (size_t b = 0; b < count; ++b) {
    gaps_.draw(split, out.samples[b], states + b * static_cast<size_t>(length), length, gaps[b]);
  }
  assemble(sampler_->automaton(), states, length, gaps.data(), static_cast<int>(count), out, pad_to);
}

void next_symbol_law(const Automaton& automaton, int state, double* law) {
  std::fill_n(law, automaton.vocab, 0.0);
  if (state == automaton.end) {
    for (const int32_t s : automaton.start)
      law[automaton.symbol[s]] += 1.0 / static_cast<double>(automaton.start.size());
    return;
  }
  for (int edge = automaton.row[state]; edge < automaton.row[state + 1]; ++edge) {
    law[automaton.symbol[automaton.dst[edge]]] += automaton.prob[edge];
  }
}

void next_symbol_law(const Sampler& sampler, int state, int used, double* law) {
  const Automaton& automaton = sampler.automaton();
  const int length = sampler.config().length;
  std::fill_n(law, automaton.vocab, 0.0);
  double total = 0;
  const auto add = [&](int s, double weight) {
    law[automaton.symbol[s]] += weight;
    total += weight;
  };
  if (state == automaton.end) {
    for (const int32_t s : automaton.start) add(s, sampler.reach(length - 1, s));
  } else if (used < length) {
    for (int edge = automaton.row[state]; edge < automaton.row[state + 1]; ++edge) {
      add(automaton.dst[edge], automaton.prob[edge] * sampler.reach(length - used - 1, automaton.dst[edge]));
    }
  }
  if (total == 0) {
    throw bad_input("task.predict", "state " + std::to_string(state) + " cannot end within the length after " +
                                        std::to_string(used) + " elements");
  }
  for (int c = 0; c < automaton.vocab; ++c) law[c] /= total;
}

std::vector<float> symbol_law_table(const Automaton& automaton) {
  const auto vocab = static_cast<size_t>(automaton.vocab);
  std::vector<float> table(static_cast<size_t>(automaton.states()) * vocab);
  std::vector<double> law(vocab);
  for (int s = 0; s < automaton.states(); ++s) {
    next_symbol_law(automaton, s, law.data());
    std::transform(law.begin(), law.end(), table.begin() + static_cast<ptrdiff_t>(automaton.id[s] * vocab),
                   [](double p) { return static_cast<float>(p); });
  }
  return table;
}

}  // namespace sb
