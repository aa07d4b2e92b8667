#include "tasks/stack_filter.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"
#include "base/format.h"
#include "tasks/filter_core.h"

namespace sb {
namespace {

constexpr double kPrune = 1e-30;       // as in the exact filter: even the sum of what is dropped is lost in a double
constexpr int32_t kBottom = 0;         // the node below every stack: nonterminal 0, any number of times
constexpr size_t kFewNodes = 1 << 12;  // are not worth collecting

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

struct Position {
  int32_t element = -1;  // -1 before the first frame
  int32_t gap = 0;       // gap frames since the element
  int32_t top = 0;       // nonterminal on top of the stack
};

struct Stack : Position {
  int32_t below;  // node
  double weight;
  auto key() const { return std::tie(element, gap, top, below); }
};

// The same hypotheses with the pre-terminal of their element, summed over what is below the top.
struct Naming : Position {
  int32_t preterminal;
  double weight;
  auto key() const { return std::tie(element, gap, top, preterminal); }
};

struct Push {
  int32_t element, first, second, below;
  double weight;
  auto key() const { return std::tie(element, first, second, below); }
  bool same_node(const Push& other) const {
    return std::tie(element, first, second) == std::tie(other.element, other.first, other.second);
  }
};

struct Pop {
  int32_t element, below;
  double weight;
  auto key() const { return std::tie(element, below); }
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
  int elements;
  bool exact;
  std::vector<std::vector<double>> wrong = {};  // [nonterminals][classes]: probability of a wrong symbol
  std::vector<char> may_gap = {};               // [nonterminals]: wrong symbols exist

  std::vector<Node> nodes = {};  // edges lead to nodes with smaller numbers, except that of kBottom to itself
  std::vector<Stack> live = {}, next = {};
  std::vector<Naming> named = {}, next_named = {};
  std::vector<Push> pushes = {};
  std::vector<Pop> pops = {};
  size_t collect_at = kFewNodes;
  double log_likelihood = 0;
  int frames = 0;

  void reset() {
    nodes.assign(1, {Pcfg::kEnd, {{kBottom, 1.0}}});
    live.assign(1, {{-1, 0, Pcfg::kStart}, kBottom, 1.0});
    named.clear();
    collect_at = kFewNodes;
    log_likelihood = 0;
    frames = 0;
  }

  bool gapped(const Position& p) const {
    return p.element >= hazard.start &&
           (content == GapContent::blank || may_gap[static_cast<size_t>(p.top)] != 0);
  }
  double gap_stops(const Position& p) const {
    return p.element >= 0 && gapped(p) ? hazard.stop[static_cast<size_t>(p.gap)] : 1;
  }
  // Probability that a gap frame follows and shows this symbol.
  double gap_shows(const Position& p, int16_t symbol) const {
    if (p.element < 0 || !gapped(p)) return 0;
    const double on = hazard.on[static_cast<size_t>(p.gap)];
    if (content == GapContent::blank) return symbol == kBlankFrame ? on : 0;
    return symbol < 0 ? 0 : on * wrong[static_cast<size_t>(p.top)][static_cast<size_t>(symbol)];
  }

  template <class Entry>
  void continue_gaps(const std::vector<Entry>& from, int16_t symbol, std::vector<Entry>& to) const {
    for (Entry entry : from) {
      const double shows = gap_shows(entry, symbol);
      if (shows <= 0) continue;
      entry.weight *= shows;
      ++entry.gap;
      to.push_back(entry);
    }
  }

  // Every rule of the top that emits the symbol, for every stack whose gap ends here.
  void apply_rules(int16_t symbol) {
    const auto symbols = grammar->symbols();
    for (const Stack& stack : live) {
      const double stops = gap_stops(stack);
      if (stops <= 0 || stack.element + 1 >= elements) continue;
      const int32_t element = stack.element + 1;
      for (const Pcfg::Rule& rule : grammar->rules(stack.top)) {
        if (symbols[static_cast<size_t>(rule.preterminal)] != symbol || rule.probability <= 0) continue;
        const double weight = stack.weight * stops * rule.probability;
        int32_t top = rule.first;
        if (rule.first == Pcfg::kNoChild) {
          pops.push_back({element, stack.below, weight});
          top = nodes[static_cast<size_t>(stack.below)].top;
        } else if (rule.second == Pcfg::kNoChild) {
          next.push_back({{element, 0, top}, stack.below, weight});
        } else {
          pushes.push_back({element, rule.first, rule.second, stack.below, weight});
        }
        next_named.push_back({{element, 0, top}, rule.preterminal, weight});
      }
    }
  }

  void pop() {
    merge(pops);
    for (const Pop& each : pops) {
      const Node& node = nodes[static_cast<size_t>(each.below)];
      for (const Edge& edge : node.edges)
        next.push_back({{each.element, 0, node.top}, edge.below, each.weight * edge.probability});
    }
    pops.clear();
  }

  void push() {
    merge(pushes);
    for (size_t begin = 0, end = 0; begin < pushes.size(); begin = end) {
      double total = 0;
      for (end = begin; end < pushes.size() && pushes[end].same_node(pushes[begin]); ++end) total += pushes[end].weight;
      Node node{pushes[begin].second, {}};
      for (size_t i = begin; i < end; ++i) node.edges.push_back({pushes[i].below, pushes[i].weight / total});
      next.push_back({{pushes[begin].element, 0, pushes[begin].first}, static_cast<int32_t>(nodes.size()), total});
      nodes.push_back(std::move(node));
    }
    pushes.clear();
  }

  bool frame(int16_t symbol) {
    next.clear();
    next_named.clear();
    continue_gaps(live, symbol, next);
    continue_gaps(named, symbol, next_named);
    if (symbol >= 0) {
      apply_rules(symbol);
      pop();
      push();
      merge(next);
      merge(next_named);
    }
    live.swap(next);
    named.swap(next_named);
    return normalise();
  }

  bool normalise() {
    double total = 0;
    for (const Stack& stack : live) total += stack.weight;
    if (!(total > 0)) return false;
    log_likelihood += std::log(total);
    for (Stack& stack : live) stack.weight /= total;
    for (Naming& naming : named) naming.weight /= total;
    std::erase_if(live, [](const Stack& stack) { return stack.weight < kPrune; });
    if (nodes.size() >= collect_at) collect_nodes();
    return true;
  }

  // Removes nodes that no live stack contains.
  void collect_nodes() {
    std::vector<int32_t> number(nodes.size(), -1);  // new number, first 0 if the node is kept
    number[kBottom] = 0;
    for (const Stack& stack : live) number[static_cast<size_t>(stack.below)] = 0;
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
    for (Stack& stack : live) stack.below = number[static_cast<size_t>(stack.below)];
    collect_at = std::max(kFewNodes, 2 * nodes.size());
  }
};

StackFilter::StackFilter(std::shared_ptr<const Pcfg> grammar, const TaskConfig& task, Split split, int elements) {
  check(task);
  const GapConfig& gap = split == Split::train ? task.train : task.test;
  impl_ = std::make_unique<Impl>(Impl{std::move(grammar), gap.content, GapHazard(gap), elements, task.noise <= 1});
  for (const std::vector<int32_t>& forbidden : impl_->grammar->forbidden_classes()) {
    impl_->may_gap.push_back(forbidden.empty() ? 0 : 1);
    std::vector<double>& wrong = impl_->wrong.emplace_back(static_cast<size_t>(classes()));
    for (const int32_t c : forbidden) wrong[static_cast<size_t>(c)] = 1.0 / static_cast<double>(forbidden.size());
  }
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
  if (symbol >= classes() || !impl_->frame(symbol)) {
    throw check_failed("ceiling", formatted("frame {} shows {}, which this task cannot produce there", impl_->frames,
                                            symbol < 0 ? std::string("a blank") : formatted("class {}", symbol)));
  }
  ++impl_->frames;
}

void StackFilter::posterior(std::vector<StateProbability>& out, int gap_frames) const {
  std::vector<double> sums(static_cast<size_t>(states()));
  double total = 0;
  for (const Naming& each : impl_->named) {
    if (gap_frames >= 0 && each.gap != gap_frames) continue;
    const double weight = each.weight * (gap_frames < 0 ? 1 : impl_->gap_stops(each));
    sums[static_cast<size_t>(each.preterminal)] += weight;
    total += weight;
  }
  out.clear();
  for (size_t t = 0; t < sums.size(); ++t)
    if (sums[t] > 0) out.push_back({static_cast<int32_t>(t), sums[t] / total});
}

std::optional<double> StackFilter::log_likelihood() const {
  return impl_->log_likelihood;
}
size_t StackFilter::live() const {
  return impl_->live.size();
}
size_t StackFilter::nodes() const {
  return impl_->nodes.size();
}

}  // namespace sb
