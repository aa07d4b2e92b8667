// Recall: key-value pairs are shown, then keys ask for their values. Without keys, values are asked for in their order.
//   layout "first"      shown  k1 v1 k2 v2  .  . k2  . k1  .        multi-query associative recall
//                       asked   -  -  -  -  -  - v2  - v1  -
//   layout "scattered"  shown  .  k1 v1  .  .  k2 v2  . k2 k1       with one key: induction
//                       asked  -   -  -  -  -   -  -  - v2 v1
//   without keys        shown  .  v1  .  . v2  .  ?  ?              selective copying
//                       asked  -   -  -  -  -  - v1 v2
// Symbols 0 .. values-1 are values, the next ones are keys; without keys, one symbol "?" asks.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/portable.h"
#include "random/word_stream.h"
#include "tasks/task_registry.h"

namespace sb {
namespace {

enum class Filler { blank, values, any };
constexpr const char* kFillers[] = {"blank", "values", "any"};

struct RecallConfig {
  uint64_t seed = 1;
  int length = 64;
  int keys = 64, values = 64;
  int pairs = 0, spacing = 16;  // pairs 0: one per `spacing` frames
  int queries = 0;              // 0: one per pair
  int passes = 1;               // times that every pair is shown
  double wrong = 0;             // probability that a shown value is wrong
  bool scattered = false;
  double power = 0.01;
  Filler filler = Filler::blank;

  int shown_pairs() const { return pairs > 0 ? pairs : std::max(1, length / spacing); }
  int asked_pairs() const { return queries > 0 ? queries : shown_pairs(); }
  int pair_frames() const { return keys > 0 ? 2 : 1; }
  int64_t showings() const { return int64_t{shown_pairs()} * passes; }
  int64_t stored_frames() const { return showings() * pair_frames(); }
  // Frames of a sample without filler. In the layout "first", a frame follows each query, as in Zoology.
  int64_t needed_frames() const { return stored_frames() + int64_t{asked_pairs()} * (scattered ? 1 : 2); }
};

void check(const RecallConfig& c) {
  const auto at_most = [](const char* key, int value, const char* bound, int most) {
    if (value > most)
      throw bad_input(formatted("task.{}", key), formatted("expected at most {} ({}), got {}", bound, most, value));
  };
  const auto need = [](bool good, const char* key, const std::string& expected, const std::string& got) {
    if (!good) throw bad_input(formatted("task.{}", key), formatted("expected {}, got {}", expected, got));
  };
  const std::string filler = kFillers[static_cast<size_t>(c.filler)];
  if (c.keys > 0) at_most("pairs", c.shown_pairs(), "keys", c.keys);
  at_most("queries", c.asked_pairs(), "pairs", c.shown_pairs());
  need(c.filler != Filler::any || !c.scattered, "filler", "blank or values with layout = scattered", filler);
  if (c.keys == 0) {
    need(c.scattered, "layout", "scattered with keys = 0", "first");
    need(c.filler == Filler::blank, "filler", "blank with keys = 0", filler);
    need(c.asked_pairs() == c.shown_pairs(), "queries", "0 with keys = 0, which asks for every value",
         std::to_string(c.queries));
    need(c.passes == 1, "passes", "1 with keys = 0", std::to_string(c.passes));
  }
  if (c.needed_frames() > c.length)
    throw bad_input("task.length", formatted("{} pairs and {} queries, expected at least {} frames, got {}",
                                             c.shown_pairs(), c.asked_pairs(), c.needed_frames(), c.length));
}

// Draws from 0 .. size-1 without replacement: the first entries of a Fisher-Yates shuffle.
class Deck {
 public:
  explicit Deck(int64_t size) : order_(static_cast<size_t>(size)) { std::iota(order_.begin(), order_.end(), 0); }
  void draw(int64_t count, WordStream& words, std::vector<int>& out) {
    const auto n = static_cast<size_t>(count);
    for (size_t i = 0; i < n; ++i)
      std::swap(order_[i], order_[i + static_cast<size_t>(words.below(static_cast<int>(order_.size() - i)))]);
    out.assign(order_.begin(), order_.begin() + count);
    std::iota(order_.begin(), order_.begin() + count, 0);  // undoes the swaps, so that a draw leaves no trace
    for (const int drawn : out) order_[static_cast<size_t>(drawn)] = drawn;
  }

 private:
  std::vector<int> order_;
};

// Draws slots 0 .. size-1 one after the other without replacement, slot i with weight (i + 1)^(power - 1): the order in
// which exponential clocks of these rates ring.
class Slots {
 public:
  Slots(int64_t size, double power) : clocks_(static_cast<size_t>(size)) {
    for (int64_t i = 0; i < size; ++i)
      mean_.push_back(portable::exp((1 - power) * portable::log(static_cast<double>(i + 1))));
  }
  void draw(int count, WordStream& words, std::vector<int>& out) {
    for (size_t i = 0; i < mean_.size(); ++i) {
      const double u = (static_cast<double>(words.next()) + 0.5) * 0x1p-32;
      clocks_[i] = {-portable::log(u) * mean_[i], static_cast<int>(i)};
    }
    std::partial_sort(clocks_.begin(), clocks_.begin() + count, clocks_.end());
    out.clear();
    for (int i = 0; i < count; ++i) out.push_back(clocks_[static_cast<size_t>(i)].second);
  }

 private:
  std::vector<double> mean_;
  std::vector<std::pair<double, int>> clocks_;
};

// Draws what a sample shows, in this order: keys, values, which pairs are asked for, frames of pairs and of queries.
class Drawer {
 public:
  explicit Drawer(const RecallConfig& c)
      : c_(c),
        keys_(c.keys),
        pairs_(c.shown_pairs()),
        cells_(c.scattered ? c.length - c.asked_pairs() - c.showings() * (c.pair_frames() - 1) : 0),
        slots_(c.scattered ? 0 : (c.length - c.stored_frames()) / 2, c.power) {}

  std::vector<int> key, value;  // [pairs]
  std::vector<int> shown_at;    // [passes * pairs]: first frame of each showing
  std::vector<int> asked;       // [queries]: a pair
  std::vector<int> asked_at;    // [queries]: its frame

  void draw(WordStream& words) {
    if (c_.keys > 0) keys_.draw(c_.shown_pairs(), words, key);
    value.resize(static_cast<size_t>(c_.shown_pairs()));
    for (int& each : value) each = words.below(c_.values);
    pairs_.draw(c_.asked_pairs(), words, asked);
    if (c_.keys == 0 || !c_.scattered) std::sort(asked.begin(), asked.end());
    if (c_.scattered)
      scatter(words);
    else
      pairs_first(words);
  }

 private:
  // All placements of the pairs before the queries are equally likely.
  void scatter(WordStream& words) {
    cells_.draw(c_.showings(), words, shown_at);
    std::sort(shown_at.begin(), shown_at.end());
    for (size_t i = 0; i < shown_at.size(); ++i) shown_at[i] += static_cast<int>(i) * (c_.pair_frames() - 1);
    asked_at.resize(asked.size());
    std::iota(asked_at.begin(), asked_at.end(), c_.length - c_.asked_pairs());
  }

  void pairs_first(WordStream& words) {
    shown_at.resize(static_cast<size_t>(c_.showings()));
    for (size_t i = 0; i < shown_at.size(); ++i) shown_at[i] = 2 * static_cast<int>(i);
    slots_.draw(c_.asked_pairs(), words, asked_at);
    for (int& frame : asked_at) frame = static_cast<int>(c_.stored_frames()) + 2 * frame;
  }

  RecallConfig c_;
  Deck keys_, pairs_, cells_;
  Slots slots_;
};

// Remembers the values shown with each key. With wrong values, the posterior of a pair's value is
//   P(v | shown) ~ prod over showings s of (1 - wrong) if s = v, else wrong / (values - 1).
class RecallOracle final : public Oracle {
 public:
  explicit RecallOracle(const RecallConfig& c)
      : c_(c), shown_(static_cast<size_t>(c.keys > 0 ? c.keys : c.shown_pairs())) {}
  int states() const override { return c_.values; }
  int classes() const override { return c_.values + std::max(1, c_.keys); }
  void reset() override {
    for (auto& values : shown_) values.clear();
    showings_ = 0;
    key_ = asked_ = kNone;
    queries_ = 0;
  }
  void frame(int16_t symbol) override {
    asked_ = kNone;
    if (showings_ == c_.showings()) {
      if (symbol >= c_.values) asked_ = c_.keys > 0 ? symbol - c_.values : queries_++;
    } else if (symbol >= c_.values) {
      key_ = symbol - c_.values;
    } else if (symbol >= 0 && (c_.keys == 0 || key_ != kNone)) {
      shown_[static_cast<size_t>(c_.keys > 0 ? key_ : showings_)].push_back(symbol);
      key_ = kNone;
      ++showings_;
    }
  }
  using Oracle::posterior;
  void posterior(std::vector<StateProbability>& out, int) const override {
    out.clear();
    if (asked_ == kNone) return;  // nothing is asked here
    const std::vector<int16_t>& shown = shown_.at(static_cast<size_t>(asked_));
    if (c_.wrong == 0 && !shown.empty()) {
      out.push_back({shown.front(), 1.0});
      return;
    }
    std::vector<int> counts(static_cast<size_t>(c_.values));
    for (const int16_t value : shown) ++counts[static_cast<size_t>(value)];
    const int most = *std::max_element(counts.begin(), counts.end());
    const double odds = (1 - c_.wrong) * (c_.values - 1) / c_.wrong;  // of one showing
    const int best = odds >= 1 ? most : 0;                            // the largest weight is 1
    double total = 0;
    for (int v = 0; v < c_.values; ++v) {
      const int count = counts[static_cast<size_t>(v)] - best;
      double weight = 1;  // odds to the power of count
      for (int i = 0; i < std::abs(count); ++i) weight = count > 0 ? weight * odds : weight / odds;
      total += weight;
      if (weight > 0) out.push_back({v, weight});
    }
    for (StateProbability& each : out) each.probability /= total;
  }

 private:
  static constexpr int kNone = -1;
  RecallConfig c_;
  std::vector<std::vector<int16_t>> shown_;  // [keys], or [pairs] without keys
  int64_t showings_ = 0;
  int key_ = kNone, asked_ = kNone;
  int queries_ = 0;
};

class Recall final : public Task {
 public:
  explicit Recall(const RecallConfig& config) : c_(config) { check(c_); }

  TaskShape shape() const override {
    return {.channels = c_.values + std::max(1, c_.keys),
            .answers = c_.values,
            .elements = c_.length,
            .fixed_frames = true};
  }
  std::string canonical_text() const override {
    return formatted(
        "recall\nseed = {}\nlength = {}\nkeys = {}\nvalues = {}\npairs = {}\nqueries = {}\npasses = {}\nwrong = {}\n"
        "scattered = {}\npower = {}\nfiller = {}\nspacing = {}\nall asked = {}\n",
        c_.seed, c_.length, c_.keys, c_.values, c_.shown_pairs(), c_.asked_pairs(), c_.passes, shortest(c_.wrong),
        c_.scattered, c_.scattered ? "none" : shortest(c_.power), static_cast<int>(c_.filler),
        c_.pairs > 0 ? 0 : c_.spacing, c_.queries == 0);
  }
  int max_frames(Split) const override { return c_.length; }
  double mean_frames(Split) const override { return c_.length; }

  using Task::fill;
  void fill(Split split, std::span<const uint64_t> samples, Batch& out, int pad_to) const override {
    begin_plain_batch(shape(), split, samples, pad_to, out);
    Drawer drawer(c_);
    for (size_t b = 0; b < samples.size(); ++b) {
      WordStream words(PhiloxStream(c_.seed, static_cast<uint32_t>(split), samples[b], Purpose::symbol));
      drawer.draw(words);
      const size_t row = b * static_cast<size_t>(out.frames);
      const Row frames{out.symbol.data() + row, out.gap.data() + row};
      fill_in(words, frames);
      show_pairs(drawer, words, frames);
      for (size_t q = 0; q < drawer.asked.size(); ++q) {
        const auto pair = static_cast<size_t>(drawer.asked[q]), at = static_cast<size_t>(drawer.asked_at[q]);
        frames.show(at, c_.values + (c_.keys > 0 ? drawer.key[pair] : 0));
        out.target[row + at] = out.state[b * static_cast<size_t>(out.elements) + at] = drawer.value[pair];
      }
    }
  }
  std::unique_ptr<Oracle> oracle(Split) const override { return std::make_unique<RecallOracle>(c_); }
  std::shared_ptr<const Task> at(Split, int length) const override {
    RecallConfig other = c_;
    other.length = length;
    return std::make_shared<const Recall>(other);
  }

 private:
  struct Row {
    int16_t* symbol;
    uint8_t* gap;
    void show(size_t at, int what) const {
      symbol[at] = static_cast<int16_t>(what);
      gap[at] = 0;
    }
  };

  void fill_in(WordStream& words, const Row& frames) const {
    std::fill_n(frames.gap, c_.length, 1);
    if (c_.filler == Filler::blank) return;
    const int symbols = c_.values + (c_.filler == Filler::any ? c_.keys : 0);
    for (int t = 0; t < c_.length; ++t) frames.symbol[t] = static_cast<int16_t>(words.below(symbols));
  }

  void show_pairs(const Drawer& drawer, WordStream& words, const Row& frames) const {
    for (size_t i = 0; i < drawer.shown_at.size(); ++i) {
      const size_t pair = i % drawer.value.size();
      auto at = static_cast<size_t>(drawer.shown_at[i]);
      if (c_.keys > 0) frames.show(at++, c_.values + drawer.key[pair]);
      int value = drawer.value[pair];
      if (c_.wrong > 0 && unit_double(words.next()) < c_.wrong)
        value = (value + 1 + words.below(c_.values - 1)) % c_.values;
      frames.show(at, value);
    }
  }

  RecallConfig c_;
};

std::shared_ptr<const Task> make_recall(const TaskSetup& setup, const Poll&) {
  const auto* filler = std::find(std::begin(kFillers), std::end(kFillers), setup.text("filler"));
  return std::make_shared<const Recall>(RecallConfig{.seed = setup.seed,
                                                     .length = setup.length,
                                                     .keys = setup.integer("keys"),
                                                     .values = setup.integer("values"),
                                                     .pairs = setup.integer("pairs"),
                                                     .spacing = setup.integer("spacing"),
                                                     .queries = setup.integer("queries"),
                                                     .passes = setup.integer("passes"),
                                                     .wrong = setup.real("wrong"),
                                                     .scattered = setup.text("layout") == "scattered",
                                                     .power = setup.real("power"),
                                                     .filler = static_cast<Filler>(filler - kFillers)});
}

}  // namespace

TaskRow recall_row() {
  constexpr int most_symbols = 16384, most_frames = 100000;  // symbols have 16 bits
  return {.name = "recall",
          .about = {"Recall",
                    "Pairs of a key and a value are shown. Later, keys ask for their values. The model has to store "
                    "every pair, and to find the value that belongs to a key."},
          .keys = {{"keys", int64_t{64}, 0, most_symbols, "different keys; 0: no keys, values are asked for in order"},
                   {"values", int64_t{64}, 2, most_symbols, "different values"},
                   {"pairs", int64_t{0}, 0, most_frames, "pairs per sample; 0: length / spacing"},
                   {"spacing", int64_t{16}, 1, most_frames, "frames per pair if pairs is 0"},
                   {"queries", int64_t{0}, 0, most_frames, "pairs asked for per sample; 0: all"},
                   {"passes", int64_t{1}, 1, 1000, "times that every pair is shown"},
                   {"wrong", 0.0, 0, 0.99, "probability that a shown value is wrong"},
                   {"layout",
                    std::string("first"),
                    0,
                    0,
                    "pairs in the first frames, or scattered before the queries",
                    {"first", "scattered"}},
                   {"power", 0.01, 0, 10, "exponent a of the distances of queries, p(i) ~ i^(a-1); 1: uniform"},
                   {"filler",
                    std::string("blank"),
                    0,
                    0,
                    "frames without pair or query: blank, or random symbols",
                    {std::begin(kFillers), std::end(kFillers)}}},
          .length = 64,
          .length_meaning = "frames per sample",
          .axis = TestAxis{"length", "lengths", 4, most_frames, "frames per sample, tested without retraining",
                           "frames per sample of the test"},
          .make = make_recall};
}

}  // namespace sb
