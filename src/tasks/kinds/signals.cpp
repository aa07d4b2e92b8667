// Signals: states of a random automaton emit vectors under autoregressive noise, with pauses between them. At every
// frame the model names the current state.
//   m_t = mu(symbol of the state) in the first frame of an element, 0 in the pause after it
//   e_1 = noise u_1,  e_t = correlation e_(t-1) + sqrt(1 - correlation^2) noise u_t     runs on through pauses
//   y_t = m_t + e_t                                                                     what a frame shows
// u_t and mu are vectors of independent standard normal numbers. Strings follow one another, as in gaps, but samples
// are cut at a number of frames, and nothing is conditioned on their length.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "grammar/build.h"
#include "random/normal.h"
#include "random/word_stream.h"
#include "tasks/filter_core.h"
#include "tasks/task_registry.h"

namespace sb {
namespace {

struct SignalConfig {
  GrammarConfig grammar;
  int dimensions = 0;
  double noise = 0, correlation = 0;

  int64_t states() const {
    return int64_t{grammar.vocab} - grammar.ambiguities + int64_t{grammar.ambiguities} * grammar.depth;
  }
  // Whether both give the same automaton: start_states follows from these keys, and density is never set.
  bool has_automaton_of(const SignalConfig& other) const {
    const GrammarConfig &a = grammar, &b = other.grammar;
    return std::tie(a.vocab, a.ambiguities, a.depth, a.seed) == std::tie(b.vocab, b.ambiguities, b.depth, b.seed);
  }
};

// Rounds up to an even number, since normal numbers are drawn in pairs.
size_t in_pairs(size_t count) {
  return (count + 1) / 2 * 2;
}

// The automaton as a Markov chain, and the vector of each symbol.
struct Emitter {
  Emitter(const SignalConfig& config, std::shared_ptr<const Automaton> drawn)
      : c(config),
        automaton(std::move(drawn)),
        means(in_pairs(static_cast<size_t>(automaton->vocab * config.dimensions))) {
    // Samples do not use this purpose.
    WordStream words(PhiloxStream(c.grammar.seed, 0, 0, Purpose::noise));
    normal_pairs(words, means.size() / 2, means.data());
  }

  // Calls visit(state, probability) for each successor; after the end of a string, for each start.
  template <class Visit>
  void successors(int32_t state, const Visit& visit) const {
    const Automaton& a = *automaton;
    if (state == a.end) {
      for (const int32_t s : a.start) visit(s, 1.0 / static_cast<double>(a.start.size()));
      return;
    }
    for (int edge = a.row[state]; edge < a.row[state + 1]; ++edge) visit(a.dst[edge], a.prob[edge]);
  }

  int32_t next_state(int32_t state, WordStream& words) const {
    const double u = unit_double(words.next());
    int32_t chosen = -1;
    double sum = 0;
    successors(state, [&](int32_t s, double p) {
      if (chosen >= 0 && sum > u) return;
      sum += p;
      chosen = s;
    });
    return chosen;
  }

  const double* mean(int symbol) const { return means.data() + static_cast<size_t>(symbol * c.dimensions); }
  int symbol(int32_t state) const { return automaton->symbol[static_cast<size_t>(state)]; }
  int32_t id(int32_t state) const { return automaton->id[static_cast<size_t>(state)]; }

  SignalConfig c;
  std::shared_ptr<const Automaton> automaton;
  std::vector<double> means;  // [symbols][dimensions], and one more if their number is odd
};

// Forward filter over hypotheses (state, frames of the pause so far). Given the state and whether a frame is in a
// pause, m_t is known, and so is e_t = y_t - m_t. The noise is a Markov process, hence
//   p(y_t | y_(t-1), m_(t-1), m_t) = N(y_t; m_t + correlation (y_(t-1) - m_(t-1)), (1 - correlation^2) noise^2).
class SignalFilter final : public Oracle {
 public:
  SignalFilter(std::shared_ptr<const Emitter> emitter, const GapConfig& pauses)
      : emitter_(std::move(emitter)),
        hazard_(pauses),
        symbols_(emitter_->automaton->vocab),
        before_(static_cast<size_t>(emitter_->c.dimensions)),
        distances_(static_cast<size_t>((symbols_ + 1) * (symbols_ + 1))) {
    reset();
  }
  int states() const override { return emitter_->automaton->states(); }
  int classes() const override { return symbols_; }
  void reset() override {
    live_.clear();
    first_ = true;
  }
  void dense_frame(const float* y) override {
    next_.clear();
    measured_.assign(static_cast<size_t>(symbols_) + 1, 0);
    const int none = symbols_;  // index for no symbol: a pause, or before the first frame
    if (first_) {
      start(none, 1, emitter_->automaton->end, y);
    } else {
      for (const Hypothesis& h : live_) {
        const int shown = h.pause == 0 ? emitter_->symbol(h.state) : none;
        const auto pause = static_cast<size_t>(h.pause);
        if (hazard_.on[pause] > 0)
          next_.push_back({h.state, h.pause + 1, h.weight * hazard_.on[pause], distance(shown, none, y)});
        if (hazard_.stop[pause] > 0) start(shown, h.weight * hazard_.stop[pause], h.state, y);
      }
    }
    weigh();
    std::copy_n(y, before_.size(), before_.begin());
    first_ = false;
  }
  using Oracle::posterior;
  void posterior(std::vector<StateProbability>& out, int) const override {
    out.clear();
    std::vector<double> sums(static_cast<size_t>(states()));
    for (const Hypothesis& h : live_) sums[static_cast<size_t>(emitter_->id(h.state))] += h.weight;
    for (size_t id = 0; id < sums.size(); ++id)
      if (sums[id] > 0) out.push_back({static_cast<int32_t>(id), sums[id]});
  }

 private:
  struct Hypothesis {
    int32_t state, pause;
    double weight;
    double distance;  // squared, of the frame from its mean
    bool operator<(const Hypothesis& other) const {
      return std::tie(state, pause) < std::tie(other.state, other.pause);
    }
  };

  void start(int shown, double weight, int32_t state, const float* y) {
    emitter_->successors(state, [&](int32_t next, double p) {
      next_.push_back({next, 0, weight * p, distance(shown, emitter_->symbol(next), y)});
    });
  }

  // Squared distance of y from its mean, if it shows symbol `now` and the frame before `shown`; either may be none.
  double distance(int shown, int now, const float* y) {
    double* row = distances_.data() + static_cast<size_t>(shown) * static_cast<size_t>(symbols_ + 1);
    if (measured_[static_cast<size_t>(shown)] == 0) {
      measured_[static_cast<size_t>(shown)] = 1;
      std::fill_n(row, symbols_ + 1, 0.0);
      for (size_t d = 0; d < before_.size(); ++d) {
        const double noise = first_ ? 0 : before_[d] - (shown < symbols_ ? emitter_->mean(shown)[d] : 0);
        const double rest = y[d] - emitter_->c.correlation * noise;
        for (int c = 0; c < symbols_; ++c) row[c] += (rest - emitter_->mean(c)[d]) * (rest - emitter_->mean(c)[d]);
        row[symbols_] += rest * rest;
      }
    }
    return row[now];
  }

  // Multiplies by likelihoods, relative to the largest, then merges and normalises.
  void weigh() {
    const double rho = first_ ? 0 : emitter_->c.correlation;
    const double scale = 1 / (2 * emitter_->c.noise * emitter_->c.noise * (1 - rho * rho));
    double nearest = next_.front().distance, total = 0;
    for (const Hypothesis& h : next_) nearest = std::min(nearest, h.distance);
    for (Hypothesis& h : next_) {
      h.weight *= std::exp((nearest - h.distance) * scale);
      total += h.weight;
    }
    std::erase_if(next_, [&](Hypothesis& h) { return (h.weight /= total) < kPrune; });
    std::stable_sort(next_.begin(), next_.end());
    live_.clear();
    for (const Hypothesis& h : next_) {
      if (!live_.empty() && live_.back().state == h.state && live_.back().pause == h.pause)
        live_.back().weight += h.weight;
      else
        live_.push_back(h);
    }
  }

  std::shared_ptr<const Emitter> emitter_;
  GapHazard hazard_;
  int symbols_;
  std::vector<Hypothesis> live_, next_;
  std::vector<double> before_;     // the last frame
  std::vector<double> distances_;  // [symbols + 1][symbols + 1]; valid in rows that are measured_
  std::vector<char> measured_;
  bool first_ = true;
};

// Frames of a sample with other pauses that hold as many elements, on average.
int scaled_frames(int frames, const GapConfig& from, const GapConfig& to) {
  const double scaled = frames * (mean_element_frames(to) / mean_element_frames(from));
  constexpr double most = 1e8;
  if (scaled > most)
    throw bad_input("task.length", formatted("frames per sample, expected at most {:g}, got {:g}", most, scaled));
  return std::max(1, static_cast<int>(std::lround(scaled)));
}

GapConfig pauses_of(int min, int max) {
  const GapLaw law = max == 0 ? GapLaw::none : min == max ? GapLaw::constant : GapLaw::uniform;
  return {.law = law, .min = min, .max = max};
}

class Signals final : public Task {
 public:
  // `test`: pauses of all splits but train.
  Signals(std::shared_ptr<const Emitter> emitter, int frames, const GapConfig& train, const GapConfig& test)
      : emitter_(std::move(emitter)), frames_(frames), train_(train), test_(test) {}

  TaskShape shape() const override {
    return {.channels = emitter_->c.dimensions,
            .answers = emitter_->automaton->states(),
            .elements = frames_,
            .dense = true,
            .fixed_frames = true};
  }
  std::string canonical_text() const override {
    const SignalConfig& c = emitter_->c;
    return formatted(
        "signals\nseed = {}\nautomaton = {} {} {}\ndimensions = {}\nnoise = {}\ncorrelation = {}\nframes = {}\n"
        "train = {} {}\ntest = {} {}\n",
        c.grammar.seed, c.grammar.vocab, c.grammar.ambiguities, c.grammar.depth, c.dimensions, shortest(c.noise),
        shortest(c.correlation), frames_, train_.min, train_.max, test_.min, test_.max);
  }
  int max_frames(Split) const override { return frames_; }
  double mean_frames(Split) const override { return frames_; }
  const Emitter& emitter() const { return *emitter_; }

  using Task::fill;
  void fill(Split split, std::span<const uint64_t> samples, Batch& out, int pad_to) const override {
    begin_plain_batch(shape(), split, samples, pad_to, out);
    std::vector<int32_t> shown(static_cast<size_t>(frames_));  // symbol of each frame; -1 in a pause
    for (size_t b = 0; b < samples.size(); ++b) {
      draw_states(split, samples[b], b, out, shown);
      draw_frames(split, samples[b], b, out, shown);
    }
  }
  std::unique_ptr<Oracle> oracle(Split split) const override {
    return std::make_unique<SignalFilter>(emitter_, pauses(split));
  }
  std::shared_ptr<const Task> at(Split split, int pause) const override {
    const GapConfig other = pauses_of(pause, pause);
    const bool train = split == Split::train;
    return std::make_shared<const Signals>(emitter_, scaled_frames(frames_, pauses(split), other),
                                           train ? other : train_, train ? test_ : other);
  }

 private:
  const GapConfig& pauses(Split split) const { return split == Split::train ? train_ : test_; }

  void draw_states(Split split, uint64_t index, size_t b, Batch& out, std::vector<int32_t>& shown) const {
    WordStream words(PhiloxStream(emitter_->c.grammar.seed, static_cast<uint32_t>(split), index, Purpose::symbol));
    const GapConfig& law = pauses(split);
    const size_t row = b * static_cast<size_t>(out.frames), first = b * static_cast<size_t>(frames_);
    int32_t state = emitter_->automaton->end;
    int left = 0;  // frames of the pause to come
    for (size_t t = 0; t < shown.size(); ++t) {
      const bool paused = left > 0;
      if (paused) {
        --left;
      } else {
        state = emitter_->next_state(state, words);
        // Both ends of a uniform law have half the weight, as in gaps.
        left = law.min + (law.max > law.min ? (words.below(2 * (law.max - law.min)) + 1) / 2 : 0);
      }
      shown[t] = paused ? -1 : emitter_->symbol(state);
      out.gap[row + t] = paused ? 1 : 0;
      out.target[row + t] = out.state[first + t] = emitter_->id(state);
    }
  }

  void draw_frames(Split split, uint64_t index, size_t b, Batch& out, const std::vector<int32_t>& shown) const {
    const SignalConfig& c = emitter_->c;
    WordStream words(PhiloxStream(c.grammar.seed, static_cast<uint32_t>(split), index, Purpose::signal));
    const double spread = std::sqrt(1 - c.correlation * c.correlation) * c.noise;
    const auto dimensions = static_cast<size_t>(c.dimensions);
    const size_t width = in_pairs(dimensions);
    const size_t at_once = std::max<size_t>(1, kDrawnNumbers / width);  // frames
    std::vector<double> noise(width), drawn(at_once * width);
    float* y = out.dense.data() + b * static_cast<size_t>(out.frames) * dimensions;
    for (size_t t = 0; t < shown.size(); ++t, y += dimensions) {
      const double* u = drawn.data() + t % at_once * width;
      if (t % at_once == 0) normal_pairs(words, std::min(at_once, shown.size() - t) * width / 2, drawn.data());
      if (t == 0)
        for (size_t d = 0; d < dimensions; ++d) noise[d] = c.noise * u[d];
      else
        for (size_t d = 0; d < dimensions; ++d) noise[d] = c.correlation * noise[d] + spread * u[d];
      const double* mean = shown[t] < 0 ? nullptr : emitter_->mean(shown[t]);
      for (size_t d = 0; d < dimensions; ++d) y[d] = static_cast<float>(noise[d] + (mean ? mean[d] : 0));
    }
  }

  static constexpr size_t kDrawnNumbers = 512;  // maximum numbers drawn at a time, unless a frame has more
  std::shared_ptr<const Emitter> emitter_;
  int frames_;
  GapConfig train_, test_;
};

SignalConfig config_of(const TaskSetup& setup) {
  SignalConfig out;
  out.grammar = {.vocab = setup.integer("vocab"),
                 .ambiguities = setup.integer("ambiguities"),
                 .depth = setup.integer("depth"),
                 .seed = setup.seed};
  out.dimensions = setup.integer("dimensions");
  out.noise = setup.real("sensor_noise");
  out.correlation = setup.real("correlation");
  if (out.grammar.ambiguities >= out.grammar.vocab)
    throw bad_input("task.ambiguities", formatted("expected at most vocab - 1 ({}), got {}", out.grammar.vocab - 1,
                                                  out.grammar.ambiguities));
  if (out.states() > kMaxStates)
    throw bad_input("task.depth", formatted("{} states, expected at most {}", out.states(), kMaxStates));
  out.grammar.start_states = static_cast<int>(std::min<int64_t>(out.grammar.start_states, out.states() - 1));
  return out;
}

GapConfig train_pauses(const TaskSetup& setup) {
  const int min = setup.integer("pause_min"), max = setup.integer("pause_max");
  if (min > max) throw bad_input("task.pause_min", formatted("expected at most pause_max ({}), got {}", max, min));
  return pauses_of(min, max);
}

// Shares the automaton of `known` unless it is null or keys of the automaton differ.
std::shared_ptr<const Task> signals_with(const Emitter* known, const TaskSetup& setup, const Poll& poll) {
  const SignalConfig config = config_of(setup);
  const GapConfig pauses = train_pauses(setup);
  const bool shares = known != nullptr && config.has_automaton_of(known->c);
  auto emitter =
      std::make_shared<const Emitter>(config, shares ? known->automaton : build_automaton(config.grammar, poll));
  return std::make_shared<const Signals>(std::move(emitter), setup.length, pauses, pauses);
}

std::shared_ptr<const Task> make_signals(const TaskSetup& setup, const Poll& poll) {
  return signals_with(nullptr, setup, poll);
}

std::shared_ptr<const Task> make_signals_stage(const Task& configured, const TaskSetup& setup, const Poll& poll) {
  return signals_with(&dynamic_cast<const Signals&>(configured).emitter(), setup, poll);
}

// Without building the automaton, which takes long if it is large.
TaskSize signals_size(const TaskSetup& setup, std::optional<int> pause) {
  const SignalConfig config = config_of(setup);
  const GapConfig pauses = train_pauses(setup);
  const int test = pause ? scaled_frames(setup.length, pauses, pauses_of(*pause, *pause)) : setup.length;
  return {config.dimensions, config.states(), setup.length, static_cast<double>(setup.length),
          static_cast<double>(test)};
}

}  // namespace

TaskRow signals_row() {
  constexpr int most_symbols = 1000, most_pause = 10000;
  return {
      .name = "signals",
      .about =
          {"Signals",
           "Every symbol of a random automaton is a vector. Frames show the vectors with pauses between them, under "
           "noise that is correlated in time and continues through the pauses. Several states share a symbol. The "
           "model names the current state at every frame. A pause shows the noise alone, which helps to separate "
           "vectors from noise before and after it. The exact filter of this process is the ceiling."},
      .keys = {{"vocab", int64_t{12}, 2, most_symbols, "symbols of the automaton, as in grammar.vocab"},
               {"ambiguities", int64_t{8}, 0, most_symbols, "symbols that several states share"},
               {"depth", int64_t{6}, 1, most_symbols, "states of each of these symbols"},
               {"dimensions", int64_t{8}, 1, 1024, "channels of a frame"},
               {"sensor_noise", 1.5, 0.01, 100, "standard deviation of the noise"},
               {"correlation", 0.9, 0, 0.999, "correlation of the noise between frames"},
               {"pause_min", int64_t{1}, 0, most_pause, "shortest pause after an element, frames"},
               {"pause_max", int64_t{10}, 0, most_pause, "longest pause after an element, frames"}},
      .length = 200,
      .length_meaning = "frames per sample",
      .axis = TestAxis{"pause", "pauses", 0, most_pause, "frames of every pause, tested without retraining",
                       "frames of every pause of the test"},
      .make = make_signals,
      .make_stage = make_signals_stage,
      .size = signals_size,
      .has_grammars = true};
}

}  // namespace sb
