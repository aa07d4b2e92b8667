// Forward filtering of the element that a frame belongs to. The model of the hidden states provides
//   end() and id(state);
//   may_gap(state): whether a wrong symbol exists;
//   wrong(state, class): probability of the class in a gap frame;
//   successors(state, used, class, emit(next, probability)): next elements of the class; after end(), first elements.
#pragma once
#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "tasks/batch.h"
#include "tasks/oracle.h"
#include "tasks/task_config.h"

namespace sb {

constexpr double kPrune = 1e-30;  // even the sum of hypotheses with a smaller weight is lost in a double

// on[m] = P(the gap continues | m gap frames so far), stop[m] = P(it ends there), for m = 0 .. longest.
struct GapHazard {
  explicit GapHazard(const GapConfig& gap) : start(gap.start) {
    const std::vector<double> law = gap_length_law(gap);
    const double share = gap.law == GapLaw::none ? 0 : gap.probability;
    std::vector<double> exactly(law.size());
    for (size_t n = 0; n < law.size(); ++n) exactly[n] = share * law[n] + (n == 0 ? 1 - share : 0);
    on.assign(law.size(), 0.0);
    stop.assign(law.size(), 1.0);
    double beyond = 0;
    for (size_t m = law.size(); m-- > 0;) {
      const double at_least = beyond + exactly[m];
      if (at_least > 0) {
        on[m] = beyond / at_least;
        stop[m] = exactly[m] / at_least;
      }
      beyond = at_least;
    }
  }
  int start;
  std::vector<double> on, stop;
};

struct Hypothesis {
  int32_t state;
  int32_t used;     // elements of the current string so far; 0 after '#'
  int32_t element;  // -1 before the first frame
  int32_t gap;      // gap frames since the element
  double weight;

  bool operator<(const Hypothesis& other) const {
    return std::tie(state, used, element, gap) < std::tie(other.state, other.used, other.element, other.gap);
  }
  bool same(const Hypothesis& other) const { return !(*this < other) && !(other < *this); }
};

template <class Model>
class FilterCore {
 public:
  // `elements`: elements of a sample; 0 for a model without length, where `used` stays 0 and all elements from
  // gap.start on share one index. Hypotheses with a weight below `prune` are dropped. The model must outlive the
  // filter.
  FilterCore(const Model& model, const GapConfig& gap, int elements, double prune)
      : model_(model), content_(gap.content), hazard_(gap), elements_(elements), prune_(prune) {
    reset();
  }
  FilterCore(const Model&&, const GapConfig&, int, double) = delete;

  void reset() {
    live_.assign(1, {model_.end(), 0, -1, 0, 1.0});
    log_likelihood_ = 0;
  }

  // Returns false if no hypothesis explains the frame; the filter then needs reset() or frame_without_law().
  bool frame(int16_t symbol) {
    next_.clear();
    bool began = false;  // some hypothesis starts a new element
    for (const Hypothesis& h : live_) {
      const double on = gap_goes_on(h);
      const double wrong = on > 0 ? gap_emits(h.state, symbol) : 0;
      if (wrong > 0) next_.push_back({h.state, h.used, h.element, h.gap + 1, h.weight * on * wrong});
      if (symbol < 0 || (elements_ > 0 && h.element + 1 >= elements_)) continue;
      const double stop = gap_stops(h);
      if (stop <= 0) continue;
      model_.successors(h.state, h.used, symbol, [&](int32_t state, double probability) {
        const bool counted = elements_ > 0;
        const int32_t used = counted && state != model_.end() ? h.used + 1 : 0;
        const int32_t element = counted ? h.element + 1 : std::min(h.element + 1, hazard_.start);
        next_.push_back({state, used, element, 0, h.weight * stop * probability});
        began = true;
      });
    }
    if (began && next_.size() > 1) merge();
    live_.swap(next_);
    return normalise();
  }

  // Call after frame() returned false. Takes the symbol as a new element of every hypothesis, whatever the length of
  // the gap before it. This is the limit of a vanishing probability that the gap is absent or ends there. Returns false
  // if no state of the class can follow.
  bool frame_without_law(int16_t symbol) {
    live_.clear();
    live_.swap(next_);  // the hypotheses before the failed frame
    if (symbol < 0) return !live_.empty();
    for (const Hypothesis& h : live_) {
      model_.successors(h.state, h.used, symbol, [&](int32_t state, double probability) {
        const int32_t element = elements_ > 0 ? h.element + 1 : std::min(h.element + 1, hazard_.start);
        const int32_t used = elements_ > 0 && state != model_.end() ? h.used + 1 : 0;
        next_.push_back({state, used, element, 0, h.weight * probability});
      });
    }
    if (next_.size() > 1) merge();
    live_.swap(next_);
    return normalise();
  }

  // Calls visit(state, probability) for each possible state, ascending by state index. gap_frames < 0: causal
  // posterior. Otherwise: given that the element has exactly this many gap frames and ends here.
  template <class Visit>
  void visit(int gap_frames, const Visit& visit) const {
    double total = gap_frames < 0 ? 1 : 0;
    if (gap_frames >= 0) {
      for (const Hypothesis& h : live_) total += h.gap == gap_frames ? h.weight * gap_stops(h) : 0;
    }
    if (total <= 0) return;
    for (size_t i = 0; i < live_.size();) {
      const int32_t state = live_[i].state;
      double sum = 0;
      for (; i < live_.size() && live_[i].state == state; ++i) {
        const Hypothesis& h = live_[i];
        if (gap_frames < 0) sum += h.weight;
        if (h.gap == gap_frames) sum += h.weight * gap_stops(h);
      }
      if (sum > 0) visit(state, sum / total);
    }
  }

  // Calls visit(state, used, probability) for each hypothesis; `gap_frames` as above.
  template <class Visit>
  void visit_hypotheses(int gap_frames, const Visit& visit) const {
    double total = gap_frames < 0 ? 1 : 0;
    for (const Hypothesis& h : live_) total += gap_frames >= 0 && h.gap == gap_frames ? h.weight * gap_stops(h) : 0;
    if (total <= 0) return;
    for (const Hypothesis& h : live_) {
      if (gap_frames < 0) visit(h.state, h.used, h.weight);
      if (h.gap == gap_frames) visit(h.state, h.used, h.weight * gap_stops(h) / total);
    }
  }

  Belief belief(int gap_frames) const {
    Belief out;
    visit(gap_frames, [&](int32_t state, double p) {
      const int32_t id = model_.id(state);
      if (p > out.probability || (p == out.probability && id < out.best)) {
        out.best = id;
        out.probability = p;
      }
      out.entropy -= p * std::log(p);
    });
    out.entropy = std::max(out.entropy, 0.0);
    return out;
  }

  double log_likelihood() const { return log_likelihood_; }
  size_t live() const { return live_.size(); }

 private:
  bool gapped(const Hypothesis& h) const {
    return h.element >= hazard_.start && (content_ == GapContent::blank || model_.may_gap(h.state));
  }
  double gap_goes_on(const Hypothesis& h) const { return h.element >= 0 && gapped(h) ? hazard_.on[h.gap] : 0; }
  double gap_stops(const Hypothesis& h) const { return h.element >= 0 && gapped(h) ? hazard_.stop[h.gap] : 1; }
  double gap_emits(int32_t state, int16_t symbol) const {
    if (content_ == GapContent::blank) return symbol == kBlankFrame ? 1 : 0;
    return symbol < 0 ? 0 : model_.wrong(state, symbol);
  }

  void merge() {
    std::sort(next_.begin(), next_.end());
    size_t last = 0;
    for (size_t i = 1; i < next_.size(); ++i) {
      if (next_[i].same(next_[last])) {
        next_[last].weight += next_[i].weight;
      } else {
        next_[++last] = next_[i];
      }
    }
    next_.resize(last + 1);
  }

  bool normalise() {
    double total = 0;
    for (const Hypothesis& h : live_) total += h.weight;
    if (!(total > 0)) return false;
    log_likelihood_ += std::log(total);
    bool faint = false, clear = false;  // if all are faint, none is dropped
    for (Hypothesis& h : live_) {
      h.weight /= total;
      (h.weight < prune_ ? faint : clear) = true;
    }
    if (faint && clear) std::erase_if(live_, [this](const Hypothesis& h) { return h.weight < prune_; });
    return true;
  }

  const Model& model_;
  GapContent content_;
  GapHazard hazard_;
  int elements_;
  double prune_;
  std::vector<Hypothesis> live_, next_;
  double log_likelihood_ = 0;
};

}  // namespace sb
