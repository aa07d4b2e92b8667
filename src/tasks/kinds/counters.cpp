// Counters: a string of random length is shown in several passes, each with symbols of its own. The model names the
// next symbol. One type gives a^n b^n c^n, several types give cross-serial agreement.
//   types 1, passes 3   shown  a  a  b  b  c  c  a      types 3, passes 2   shown  a0 a2 b0 b2 a1
//                       asked  a  b  b  c  c  a  .                          asked  a2 b0 b2 a1  .
// docs/tasks.md#counters has the distribution.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/format.h"
#include "grammar/brackets.h"
#include "grammar/build.h"
#include "random/philox.h"
#include "tasks/split_task.h"
#include "tasks/wrapped_oracle.h"

namespace sb {
namespace {

struct CountersConfig {
  uint64_t seed = 1;
  int types = 1;
  int share = 1;     // types per symbol
  int children = 0;  // types that may follow a type; 0: a string has one type
  int passes = 3;
  int count = 10;  // maximum n
  int length = 100;

  int symbols() const { return (types + share - 1) / share; }  // of a pass
  int symbol(int pass, int type) const { return pass * symbols() + (pass % 2 == 0 ? type / share : type % symbols()); }
};

// Prefixes of strings are nodes of a trie, numbered by length; node 0 is empty. With n nodes, the states are
//   q < n    the last symbol of prefix q was shown in the first pass; state 0 precedes the first string;
//   then     a middle pass has shown i symbols of string q: by pass, q and i;
//   then     the last pass still has to show string r and has just shown symbol c: by r and c.
// Every suffix of a string is a string, so r is a node. A state's id is its index.
class CountersLanguage final : public Language {
 public:
  explicit CountersLanguage(const CountersConfig& config) : c_(config) {
    grow();
    number_states();
    ids_.resize(symbols_.size());
    std::iota(ids_.begin(), ids_.end(), 0);
  }

  int length() const override { return c_.length; }
  uint64_t seed() const override { return c_.seed; }
  int classes() const override { return c_.passes * c_.symbols(); }
  const std::vector<int32_t>& symbols() const override { return symbols_; }
  const std::vector<int32_t>& ids() const override { return ids_; }
  std::string canonical_text() const override {
    return formatted(
        "counters\nseed = {}\ntypes = {}\nshare = {}\nchildren = {}\npasses = {}\ncount = {}\nlength = {}\n", c_.seed,
        c_.types, c_.share, c_.children, c_.passes, c_.count, c_.length);
  }
  // Block e of the PhiloxStream (seed, split, index, symbol) decides element e of a first pass. After n > 0 symbols,
  // the string ends before e if (w * (count - n + 1) >> 32) is 0 for the first word w. Else the second selects a type.
  void draw(Split split, uint64_t first, size_t count, uint16_t* states) const override {
    for (size_t i = 0; i < count; ++i) {
      const PhiloxStream stream(c_.seed, static_cast<uint32_t>(split), first + i, Purpose::symbol);
      int32_t state = 0;
      for (int e = 0; e < c_.length; ++e) {
        if (is_determined(state)) {
          state = next_[static_cast<size_t>(state)];
        } else {
          const size_t node = node_of(state);
          const PhiloxBlock words = stream.block(static_cast<uint32_t>(e));
          const bool ends = node != 0 && uint64_t{words[0]} * lengths_left(node) >> 32 == 0;
          state = ends ? next_[node] : first_[node] + static_cast<int32_t>(uint64_t{words[1]} * choices(node) >> 32);
        }
        *states++ = static_cast<uint16_t>(state);
      }
    }
  }
  int32_t end() const override { return 0; }
  void successors(int32_t state, std::vector<Successor>& out) const override {
    out.clear();
    if (is_determined(state)) {
      out.push_back({next_[static_cast<size_t>(state)], 1.0});
      return;
    }
    const size_t node = node_of(state);
    const double ends = node == 0 ? 0 : 1.0 / static_cast<double>(lengths_left(node));
    if (ends > 0) out.push_back({next_[node], ends});
    const uint64_t n = choices(node);
    for (uint64_t i = 0; i < n; ++i)
      out.push_back({first_[node] + static_cast<int32_t>(i), (1 - ends) / static_cast<double>(n)});
  }
  double ends_within(int, int32_t) const override { return 1; }  // samples are cut, so strings need not end

 private:
  size_t nodes() const { return type_.size(); }
  bool is_determined(int32_t state) const {
    return static_cast<size_t>(state) >= nodes() && next_[static_cast<size_t>(state)] != 0;
  }
  // The prefix after which a symbol of the first pass may follow; a string that is complete leaves the empty one.
  size_t node_of(int32_t state) const { return static_cast<size_t>(state) < nodes() ? static_cast<size_t>(state) : 0; }
  uint64_t lengths_left(size_t node) const { return static_cast<uint64_t>(c_.count - size_[node] + 1); }
  uint64_t choices(size_t node) const {
    return node + 1 < first_.size() ? static_cast<uint64_t>(first_[node + 1] - first_[node]) : 0;
  }
  void expect_room(size_t states) const {
    if (states > static_cast<size_t>(kMaxStates))
      throw bad_input("task.count", formatted("count {} with {} types, {} children and {} passes needs more than {} "
                                              "states, expected a smaller count, or fewer types, children or passes",
                                              c_.count, c_.types, c_.children, c_.passes, kMaxStates));
  }

  void grow() {
    std::vector<std::vector<int>> rules =
        bracket_rules({.seed = c_.seed, .types = c_.types, .children = std::max(1, c_.children)});
    for (int t = 0; c_.children == 0 && t < c_.types; ++t) rules[static_cast<size_t>(t) + 1] = {t};
    add_node(-1, 0, 0);
    for (size_t node = 0; size_[node] < c_.count;) {
      first_.push_back(static_cast<int32_t>(nodes()));
      for (const int type : rules[static_cast<size_t>(type_[node] + 1)]) add_node(type, node, size_[node] + 1);
      expect_room(nodes());
      ++node;
    }
    first_.push_back(static_cast<int32_t>(nodes()));
  }

  void add_node(int type, size_t prefix, int size) {
    type_.push_back(type);
    prefix_.push_back(static_cast<int32_t>(prefix));
    size_.push_back(size);
    head_.push_back(size == 1 ? type : head_.empty() ? -1 : head_[prefix]);
    rest_.push_back(size <= 1 ? 0 : child(static_cast<size_t>(rest_[prefix]), type));
  }
  // The node of `prefix` with one more type. It exists if `prefix` is empty, or ends like a node that got this type.
  int32_t child(size_t prefix, int type) const {
    int32_t node = first_[prefix];
    while (type_[static_cast<size_t>(node)] != type) ++node;
    return node;
  }

  void number_states() {
    const auto each = static_cast<size_t>(c_.symbols()), rests = first_.size() - 1;
    const size_t positions = std::accumulate(size_.begin(), size_.end(), size_t{0});  // of a middle pass
    last_ = nodes() + (static_cast<size_t>(c_.passes) - 2) * positions;
    expect_room(last_ + rests * each);
    symbols_.resize(last_ + rests * each);
    next_.resize(symbols_.size());
    for (size_t node = 1; node < nodes(); ++node) symbols_[node] = c_.symbol(0, type_[node]);
    std::vector<size_t> ends(nodes());  // the state that ends the pass before, by string
    std::iota(ends.begin(), ends.end(), size_t{0});
    size_t state = nodes();
    for (int pass = 1; pass + 1 < c_.passes; ++pass)
      for (size_t node = 1; node < nodes(); ++node) state = number_middle(pass, node, state, ends[node]);
    for (size_t node = 1; node < nodes(); ++node) next_[ends[node]] = in_last(node);
    for (size_t rest = 0; rest < rests; ++rest) {
      for (size_t shown = 0; shown < each; ++shown, ++state) {
        symbols_[state] = (c_.passes - 1) * c_.symbols() + static_cast<int>(shown);
        next_[state] = rest == 0 ? 0 : in_last(rest);
      }
    }
  }
  // Numbers the states of a string in a middle pass from `state` on. Returns the next free number.
  size_t number_middle(int pass, size_t string, size_t state, size_t& end) {
    next_[end] = static_cast<int32_t>(state);
    end = state + static_cast<size_t>(size_[string]) - 1;
    for (size_t s = end, node = string; node != 0; --s, node = static_cast<size_t>(prefix_[node])) {
      symbols_[s] = c_.symbol(pass, type_[node]);
      next_[s] = static_cast<int32_t>(s) + 1;
    }
    return end + 1;
  }
  // The state that shows the first symbol of a string in the last pass.
  int32_t in_last(size_t node) const {
    const auto each = static_cast<size_t>(c_.symbols());
    const auto shown = static_cast<size_t>(c_.symbol(c_.passes - 1, head_[node])) % each;
    return static_cast<int32_t>(last_ + static_cast<size_t>(rest_[node]) * each + shown);
  }

  CountersConfig c_;
  std::vector<int32_t> type_, prefix_, size_;  // [nodes]: last type, the node without it, length
  std::vector<int32_t> head_, rest_;           // [nodes]: first type, the node without it
  std::vector<int32_t> first_;                 // [nodes shorter than `count`, and one more]: first child of each
  size_t last_ = 0;                            // first state of the last pass
  std::vector<int32_t> symbols_, ids_;
  std::vector<int32_t> next_;  // [states]: next state once the first pass has ended; 0: a new string begins
};

// The exact filter's distribution of the next symbol.
class NextOracle final : public WrappedOracle {
 public:
  explicit NextOracle(std::unique_ptr<Oracle> filter) : WrappedOracle(std::move(filter)) {}
  int states() const override { return classes(); }
  using Oracle::posterior;
  void posterior(std::vector<StateProbability>& out, int gap_frames) const override {
    std::vector<double> next(static_cast<size_t>(classes()));
    inner().next_classes(next.data(), gap_frames);
    list(next, out);
  }
};

class Counters final : public SplitTask<CountersLanguage, CountersConfig> {
 public:
  using SplitTask::SplitTask;

  TaskShape shape() const override {
    TaskShape shape = of(Split::train).task.shape();
    shape.answers = shape.channels;
    return shape;
  }

  using Task::fill;
  void fill(Split split, std::span<const uint64_t> samples, Batch& out, int pad_to) const override {
    const GapTask& task = of(split).task;
    task.fill(split, samples, out, pad_to);
    const std::vector<int32_t>& symbols = task.language().symbols();
    for (size_t row = 0; row < samples.size(); ++row) {
      int32_t* state = out.state.data() + row * static_cast<size_t>(out.elements);
      for (int e = 0; e + 1 < out.elements; ++e) state[e] = symbols[static_cast<size_t>(state[e + 1])];
      state[out.elements - 1] = -1;  // nothing follows the last element
      const size_t begin = row * static_cast<size_t>(out.frames), end = begin + static_cast<size_t>(out.frames);
      for (size_t t = begin; t < end; ++t) out.target[t] = out.element[t] < 0 ? -1 : state[out.element[t]];
    }
  }
  std::unique_ptr<Oracle> oracle(Split split) const override {
    return std::make_unique<NextOracle>(of(split).task.oracle(split));
  }
  std::shared_ptr<const Task> at(Split split, int count) const override {
    return changed<Counters>(split, &CountersConfig::count, count);
  }
};

std::shared_ptr<const Task> make_counters(const TaskSetup& setup, const Poll&) {
  const CountersConfig config{.seed = setup.seed,
                              .types = setup.integer("types"),
                              .share = setup.integer("share"),
                              .children = setup.integer("children"),
                              .passes = setup.integer("passes"),
                              .count = setup.integer("count"),
                              .length = setup.length};
  for (const char* name : {"share", "children"}) setup.expect_at_most("types", name);
  return make_split_task<Counters>(setup, config);
}

}  // namespace

TaskRow counters_row() {
  return {.name = "counters",
          .about = {"Counters",
                    "A string of random length is shown several times, each time with other symbols. The model names "
                    "the next symbol, for which it has to count, and with several types to remember the string."},
          .keys = {{"types", int64_t{1}, 1, 1000, "types of symbols; 1: a^n b^n c^n"},
                   {"share", int64_t{1}, 1, 1000, "types per symbol; 1: every symbol shows its type"},
                   {"children", int64_t{0}, 0, 1000, "types that may follow a type; 0: a string has one type"},
                   {"passes", int64_t{3}, 2, 10, "times that a string is shown, each with other symbols"},
                   {"count", int64_t{10}, 1, 1000, "maximum length n of a string"},
                   {"test_length", int64_t{0}, 0, 100000, "symbols per sample at the points of eval.counts; 0: length"},
                   as_task_key()},
          .length = 100,
          .length_meaning = "symbols per sample",
          .axis = TestAxis{"count", "counts", 1, 1000, "maximum lengths of a string, tested without retraining",
                           "maximum length of a string in the test"},
          .make = make_counters};
}

}  // namespace sb
