#include "base/error.h"
#include "tasks/filter_core.h"

namespace sb {
namespace {

constexpr double kPrune = 1e-30;
constexpr double kCertain = 1 - 1e-9;

// The grammar with strings conditioned on fitting the length.
class GrammarModel {
 public:
  explicit GrammarModel(std::shared_ptr<const Sampler> sampler)
      : sampler_(std::move(sampler)), automaton_(&sampler_->automaton()), length_(sampler_->config().length) {
    const Automaton& a = *automaton_;
    double fits = 0;
    for (const int32_t s : a.start) fits += sampler_->reach(length_ - 1, s);
    for (const int32_t s : a.start) starts_.push_back({a.symbol[s], s, sampler_->reach(length_ - 1, s) / fits});
    edges_.reserve(a.dst.size());
    for (int s = 0; s < a.states(); ++s) {
      for (int edge = a.row[s]; edge < a.row[s + 1]; ++edge) {
        edges_.push_back({a.symbol[a.dst[edge]], a.dst[edge], a.prob[edge]});
      }
      std::stable_sort(edges_.begin() + a.row[s], edges_.end(), by_class);
    }
    const std::vector<std::vector<int32_t>> forbidden = forbidden_classes(a);
    wrong_.assign(static_cast<size_t>(a.states()) * a.vocab, 0.0);
    may_gap_.resize(static_cast<size_t>(a.states()));
    for (int s = 0; s < a.states(); ++s) {
      may_gap_[s] = !forbidden[s].empty();
      for (const int32_t c : forbidden[s]) {
        wrong_[static_cast<size_t>(s) * a.vocab + c] = 1.0 / static_cast<double>(forbidden[s].size());
      }
    }
  }

  int32_t end() const { return automaton_->end; }
  int32_t id(int32_t state) const { return automaton_->id[state]; }
  bool may_gap(int32_t state) const { return may_gap_[state]; }
  double wrong(int32_t state, int16_t symbol) const {
    return symbol < automaton_->vocab ? wrong_[static_cast<size_t>(state) * automaton_->vocab + symbol] : 0;
  }

  template <class Emit>
  void successors(int32_t state, int32_t used, int16_t symbol, const Emit& emit) const {
    if (state == automaton_->end) {
      for (const Edge& start : starts_) {
        if (start.symbol == symbol && start.probability > 0) emit(start.dst, start.probability);
      }
      return;
    }
    const int left = length_ - used;  // elements the string may still take
    if (left <= 0) return;
    const double fits = sampler_->reach(left, state);
    const auto begin = edges_.begin() + automaton_->row[state];
    const auto end = edges_.begin() + automaton_->row[state + 1];
    for (auto edge = std::lower_bound(begin, end, Edge{symbol, 0, 0}, by_class); edge != end && edge->symbol == symbol;
         ++edge) {
      const double weight = edge->probability * sampler_->reach(left - 1, edge->dst);
      if (weight > 0) emit(edge->dst, weight / fits);
    }
  }

  // emit(class, probability) of the element after `state`, the used-th of its string. conditioned: strings fit the
  // length; otherwise the grammar's own law.
  template <class Emit>
  void next_classes(int32_t state, int32_t used, bool conditioned, const Emit& emit) const {
    const int left = length_ - used;
    if (state == automaton_->end) {
      const double share = 1.0 / static_cast<double>(starts_.size());
      for (const Edge& start : starts_) emit(start.symbol, conditioned ? start.probability : share);
      return;
    }
    const double fits = conditioned ? sampler_->reach(left, state) : 1;
    for (int edge = automaton_->row[state]; edge < automaton_->row[state + 1]; ++edge) {
      const Edge& to = edges_[static_cast<size_t>(edge)];
      emit(to.symbol, conditioned ? to.probability * sampler_->reach(left - 1, to.dst) / fits : to.probability);
    }
  }

  const Automaton& automaton() const { return *automaton_; }

 private:
  struct Edge {
    int32_t symbol;
    int32_t dst;
    double probability;
  };
  static bool by_class(const Edge& a, const Edge& b) { return a.symbol < b.symbol; }

  std::shared_ptr<const Sampler> sampler_;
  const Automaton* automaton_;
  int length_;
  std::vector<Edge> starts_;
  std::vector<Edge> edges_;  // rows of the automaton, each ascending by class
  std::vector<double> wrong_;
  std::vector<char> may_gap_;
};

}  // namespace

struct ExactFilter::Impl {
  FilterCore<GrammarModel> core;
  int frames = 0;

  void dense(double* over_ids, int gap_frames) const {
    std::fill_n(over_ids, core.model().automaton().states(), 0.0);
    core.visit(gap_frames, [&](int32_t state, double p) { over_ids[core.model().id(state)] = p; });
  }

  void next(double* over_classes, int gap_frames, bool conditioned) const {
    std::fill_n(over_classes, core.model().automaton().vocab, 0.0);
    core.visit_hypotheses(gap_frames, [&](int32_t state, int32_t used, double p) {
      core.model().next_classes(state, used, conditioned, [&](int32_t c, double q) { over_classes[c] += p * q; });
    });
  }
};

ExactFilter::ExactFilter(std::shared_ptr<const Sampler> sampler, const TaskConfig& task, Split split) {
  check(task);
  const int elements = sampler->config().length;
  const GapConfig& gap = split == Split::train ? task.train : task.test;
  impl_ = std::make_unique<Impl>(Impl{{GrammarModel(std::move(sampler)), gap, elements, kPrune}});
}
ExactFilter::~ExactFilter() = default;
ExactFilter::ExactFilter(ExactFilter&&) noexcept = default;

void ExactFilter::reset() {
  impl_->core.reset();
  impl_->frames = 0;
}

void ExactFilter::frame(int16_t symbol) {
  if (!impl_->core.frame(symbol)) {
    throw check_failed("ceiling", "frame " + std::to_string(impl_->frames) + " shows " +
                                      (symbol < 0 ? "a blank" : "class " + std::to_string(symbol)) +
                                      ", which this task cannot produce there");
  }
  ++impl_->frames;
}

Belief ExactFilter::belief() const {
  return impl_->core.belief(-1);
}
Belief ExactFilter::belief(int gap_frames) const {
  return impl_->core.belief(gap_frames);
}
void ExactFilter::posterior(double* over_ids) const {
  impl_->dense(over_ids, -1);
}
void ExactFilter::posterior(double* over_ids, int gap_frames) const {
  impl_->dense(over_ids, gap_frames);
}
void ExactFilter::posterior(std::vector<StateProbability>& out) const {
  out.clear();
  impl_->core.visit(-1, [&](int32_t state, double p) { out.push_back({impl_->core.model().id(state), p}); });
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
}
double ExactFilter::probability(int32_t id, int gap_frames) const {
  double out = 0;
  impl_->core.visit(gap_frames, [&](int32_t state, double p) { out += impl_->core.model().id(state) == id ? p : 0; });
  return out;
}
void ExactFilter::next_classes(double* over_classes, int gap_frames) const {
  impl_->next(over_classes, gap_frames, true);
}
void ExactFilter::mean_law(double* over_classes, int gap_frames) const {
  impl_->next(over_classes, gap_frames, false);
}
double ExactFilter::log_likelihood() const {
  return impl_->core.log_likelihood();
}
size_t ExactFilter::live() const {
  return impl_->core.live();
}
int ExactFilter::states() const {
  return impl_->core.model().automaton().states();
}

std::vector<ElementBelief> follow(ExactFilter& filter, const Batch& batch, int row) {
  std::vector<ElementBelief> out(static_cast<size_t>(batch.elements));
  std::vector<StateProbability> now;
  SummedPosterior summed(filter.states());
  const int16_t* symbol = batch.symbol.data() + static_cast<size_t>(row) * batch.frames;
  const int32_t* start = batch.start.data() + static_cast<size_t>(row) * (batch.elements + 1);
  int32_t since_certain = 0;
  filter.reset();
  for (int e = 0; e < batch.elements; ++e) {
    for (int t = start[e]; t < start[e + 1]; ++t) {
      filter.frame(symbol[t]);
      filter.posterior(now);
      for (const StateProbability& s : now) summed.add(s.id, s.probability);
    }
    ElementBelief& element = out[e];
    const int gap_frames = start[e + 1] - start[e] - 1;
    element.given_segment = filter.belief(gap_frames);
    element.causal = filter.belief();
    element.state = batch.state[static_cast<size_t>(row) * batch.elements + static_cast<size_t>(e)];
    element.summed_best = summed.take_best();
    element.summed_probability = filter.probability(element.summed_best, gap_frames);
    since_certain = element.given_segment.probability >= kCertain ? 0 : since_certain + 1;
    element.since_certain = since_certain;
  }
  return out;
}

}  // namespace sb
