#include "tasks/stack_filter.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"
#include "base/format.h"
#include "tasks/filter_core.h"

namespace sb {
namespace {

constexpr int32_t kBottom = 0;     // the node below every stack: nonterminal 0, any number of times
constexpr int16_t kEndSymbol = 0;  // '#'
constexpr size_t kFewNodes = 64;   // with fewer nodes, none are removed

// Sorts, and adds the weights of entries with equal keys.
template <class Entry>
void merge(std::vector<Entry>& entries) {
  if (entries.empty()) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.key() < b.key(); });
  size_t last = 0;
  for (size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].key() == entries[last].key()) {
      entries[last].weight += entries[i].weight;
    } else {
      entries[++last] = entries[i];
    }
  }
  entries.resize(last + 1);
}

// A stack: its top nonterminal, and the node of what is below.
struct Stack {
  int32_t gap;  // gap frames since the element
  int32_t top, below;
  double weight;
  auto key() const { return std::tie(gap, top, below); }
};

struct Push {
  int32_t first, second, below;
  double weight;
  auto key() const { return std::tie(first, second, below); }
};

struct Pop {
  int32_t below;
  double weight;
  auto key() const { return std::tie(below); }
};

struct Edge {
  int32_t below;
  double probability;
};

struct Node {
  int32_t top = 0;  // the nonterminal it holds
  std::vector<Edge> edges = {};
};

}  // namespace

struct StackFilter::Impl {
  std::shared_ptr<const Pcfg> grammar;
  GapContent content;
  GapHazard hazard;
  bool exact;
  std::vector<std::vector<double>> wrong = {};  // [nonterminals][classes]: probability of a wrong symbol
  std::vector<char> may_gap = {};               // [nonterminals]: wrong symbols exist
  std::vector<std::vector<std::vector<Pcfg::Rule>>> rules = {};  // [nonterminals][classes]: rules that emit the class

  std::vector<Node> nodes = {};  // edges lead to nodes with smaller numbers, except that of kBottom to itself
  std::vector<Stack> live = {}, next = {};
  std::vector<Push> pushes = {};
  std::vector<Pop> pops = {};
  std::vector<double> named = {};  // [pre-terminals]: weight as the answer of the last frame with a symbol
  size_t collect_at = kFewNodes;
  double log_likelihood = 0;
  int frames = 0, shown = 0;  // shown: frames with a symbol

  void reset() {
    begin_sentence();
    std::fill(named.begin(), named.end(), 0.0);
    log_likelihood = 0;
    frames = shown = 0;
  }
  void begin_sentence() {
    nodes.assign(1, {Pcfg::kEnd, {{kBottom, 1.0}}});
    live.assign(1, {0, Pcfg::kStart, kBottom, 1.0});
    collect_at = kFewNodes;
  }

  // No symbol is wrong before element `start`, so the number of shown frames tells whether it was reached.
  bool gapped(const Stack& s) const {
    return shown > hazard.start && (content == GapContent::blank || may_gap[static_cast<size_t>(s.top)] != 0);
  }
  double gap_stops(const Stack& s) const { return gapped(s) ? hazard.stop[static_cast<size_t>(s.gap)] : 1; }
  // Probability that a gap frame follows and shows this symbol.
  double gap_shows(const Stack& s, int16_t symbol) const {
    if (!gapped(s)) return 0;
    const double on = hazard.on[static_cast<size_t>(s.gap)];
    if (content == GapContent::blank) return symbol == kBlankFrame ? on : 0;
    return symbol < 0 ? 0 : on * wrong[static_cast<size_t>(s.top)][static_cast<size_t>(symbol)];
  }

  void continue_gaps(int16_t symbol) {
    for (const Stack& s : live) {
      const double shows = gap_shows(s, symbol);
      if (shows > 0) next.push_back({s.gap + 1, s.top, s.below, s.weight * shows});
    }
  }

  // Expands every stack whose gap ends here by the rules of its top that emit the symbol.
  void apply_rules(int16_t symbol) {
    std::fill(named.begin(), named.end(), 0.0);
    for (const Stack& s : live) {
      const double stops = gap_stops(s);
      if (stops <= 0) continue;
      for (const Pcfg::Rule& rule : rules[static_cast<size_t>(s.top)][static_cast<size_t>(symbol)]) {
        const double weight = s.weight * stops * rule.probability;
        named[static_cast<size_t>(rule.preterminal)] += weight;
        if (rule.first == Pcfg::kNoChild) {
          pops.push_back({s.below, weight});
        } else if (rule.second == Pcfg::kNoChild) {
          next.push_back({0, rule.first, s.below, weight});
        } else {
          pushes.push_back({rule.first, rule.second, s.below, weight});
        }
      }
    }
  }

  void pop() {
    merge(pops);
    for (const Pop& each : pops) {
      const Node& node = nodes[static_cast<size_t>(each.below)];
      for (const Edge& edge : node.edges) next.push_back({0, node.top, edge.below, each.weight * edge.probability});
    }
    pops.clear();
  }

  void push() {
    merge(pushes);
    for (size_t begin = 0, end = 0; begin < pushes.size(); begin = end) {
      const Push& one = pushes[begin];
      double total = 0;
      for (; end < pushes.size() && pushes[end].first == one.first && pushes[end].second == one.second; ++end)
        total += pushes[end].weight;
      Node node{one.second, {}};
      for (size_t i = begin; i < end; ++i) node.edges.push_back({pushes[i].below, pushes[i].weight / total});
      next.push_back({0, one.first, static_cast<int32_t>(nodes.size()), total});
      nodes.push_back(std::move(node));
    }
    pushes.clear();
  }

  // Returns false if no stack explains the frame.
  bool frame(int16_t symbol) {
    next.clear();
    continue_gaps(symbol);
    if (symbol >= 0) {
      apply_rules(symbol);
      pop();
      push();
      merge(next);
      ++shown;
    }
    ++frames;
    live.swap(next);
    if (!normalise()) return false;
    if (symbol == kEndSymbol) begin_sentence();  // '#' is never wrong, and all stacks are equal after it
    if (nodes.size() >= collect_at) collect_nodes();
    return true;
  }

  bool normalise() {
    double total = 0;
    for (const Stack& s : live) total += s.weight;
    if (!(total > 0)) return false;
    log_likelihood += std::log(total);
    for (Stack& s : live) s.weight /= total;
    std::erase_if(live, [](const Stack& s) { return s.weight < kPrune; });
    return true;
  }

  // Removes nodes that no live stack contains.
  void collect_nodes() {
    std::vector<int32_t> number(nodes.size(), -1);  // 0 if the node is kept, later its new number
    number[kBottom] = 0;
    for (const Stack& s : live) number[static_cast<size_t>(s.below)] = 0;
    for (size_t i = nodes.size(); i-- > 0;)
      if (number[i] == 0)
        for (const Edge& edge : nodes[i].edges) number[static_cast<size_t>(edge.below)] = 0;
    int32_t kept = 0;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (number[i] < 0) continue;
      for (Edge& edge : nodes[i].edges) edge.below = number[static_cast<size_t>(edge.below)];
      number[i] = kept;
      if (static_cast<size_t>(kept) != i) nodes[static_cast<size_t>(kept)] = std::move(nodes[i]);
      ++kept;
    }
    nodes.resize(static_cast<size_t>(kept));
    for (Stack& s : live) s.below = number[static_cast<size_t>(s.below)];
    collect_at = std::max(kFewNodes, 2 * nodes.size());
  }
};

StackFilter::StackFilter(std::shared_ptr<const Pcfg> grammar, const TaskConfig& task, Split split) {
  check(task);
  const GapConfig& gap = split == Split::train ? task.train : task.test;
  impl_ = std::make_unique<Impl>(Impl{std::move(grammar), gap.content, GapHazard(gap), task.noise <= 1});
  const Pcfg& of = *impl_->grammar;
  for (const std::vector<int32_t>& forbidden : of.forbidden_classes()) {
    impl_->may_gap.push_back(forbidden.empty() ? 0 : 1);
    std::vector<double>& wrong = impl_->wrong.emplace_back(static_cast<size_t>(classes()));
    for (const int32_t c : forbidden) wrong[static_cast<size_t>(c)] = 1.0 / static_cast<double>(forbidden.size());
  }
  for (int32_t a = 0; a <= of.config().nonterminals; ++a) {
    auto& emitting = impl_->rules.emplace_back(static_cast<size_t>(classes()));
    for (const Pcfg::Rule& rule : of.rules(a))
      if (rule.probability > 0) emitting[static_cast<size_t>(of.symbol(rule.preterminal))].push_back(rule);
  }
  impl_->named.resize(static_cast<size_t>(states()));
  impl_->reset();
}
StackFilter::~StackFilter() = default;

int StackFilter::states() const {
  return impl_->grammar->config().preterminals + 1;
}
int StackFilter::classes() const {
  return impl_->grammar->classes();
}
bool StackFilter::exact() const {
  return impl_->exact;
}
void StackFilter::reset() {
  impl_->reset();
}

void StackFilter::frame(int16_t symbol) {
  const int frame = impl_->frames;
  if (symbol >= classes() || !impl_->frame(symbol)) {
    throw check_failed("ceiling", formatted("frame {} shows {}, which this task cannot produce there", frame,
                                            symbol < 0 ? std::string("a blank") : formatted("class {}", symbol)));
  }
}

void StackFilter::posterior(std::vector<StateProbability>& out, int) const {
  double total = 0;
  for (const double weight : impl_->named) total += weight;
  out.clear();
  for (size_t t = 0; t < impl_->named.size(); ++t)
    if (impl_->named[t] > 0) out.push_back({static_cast<int32_t>(t), impl_->named[t] / total});
}

std::optional<double> StackFilter::log_likelihood() const {
  return impl_->log_likelihood;
}
size_t StackFilter::live() const {
  return impl_->live.size();
}

}  // namespace sb
