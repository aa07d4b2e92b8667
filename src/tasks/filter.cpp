#include "tasks/filter.h"

#include "base/error.h"
#include "tasks/filter_core.h"

namespace sb {

// The language with strings conditioned on fitting the length.
class FilterModel {
 public:
  explicit FilterModel(std::shared_ptr<const Language> language)
      : language_(std::move(language)),
        end_(language_->end()),
        classes_(language_->classes()),
        length_(language_->length()),
        ids_(language_->ids().data()) {
    const std::vector<int32_t>& symbols = language_->symbols();
    const auto states = static_cast<size_t>(language_->states());
    std::vector<Successor> next;
    language_->successors(end_, next);
    double likeliest = 0, fits = 0;
    for (const Successor& s : next) likeliest = std::max(likeliest, s.probability);
    // Relative to the most likely start, so that uniform starts have weight exactly 1.
    const auto weight = [&](const Successor& s) {
      return s.probability / likeliest * language_->ends_within(length_ - 1, s.state);
    };
    for (const Successor& s : next) fits += weight(s);
    for (const Successor& s : next) {
      starts_.push_back({symbols[static_cast<size_t>(s.state)], s.state, weight(s) / fits});
      own_starts_.push_back(s.probability);
    }
    row_.assign(states + 1, 0);
    for (size_t s = 0; s < states; ++s) {
      if (static_cast<int32_t>(s) != end_) {
        language_->successors(static_cast<int32_t>(s), next);
        for (const Successor& to : next) {
          edges_.push_back({symbols[static_cast<size_t>(to.state)], to.state, to.probability});
        }
      }
      std::stable_sort(edges_.begin() + row_[s], edges_.end(), by_class);
      row_[s + 1] = static_cast<int32_t>(edges_.size());
    }
    const std::vector<std::vector<int32_t>> forbidden = forbidden_classes(*language_);
    wrong_.assign(states * static_cast<size_t>(classes_), 0.0);
    may_gap_.resize(states);
    for (size_t s = 0; s < states; ++s) {
      may_gap_[s] = !forbidden[s].empty();
      for (const int32_t c : forbidden[s]) {
        wrong_[s * static_cast<size_t>(classes_) + static_cast<size_t>(c)] =
            1.0 / static_cast<double>(forbidden[s].size());
      }
    }
  }

  const Language& language() const { return *language_; }
  int32_t end() const { return end_; }
  int32_t id(int32_t state) const { return ids_[state]; }
  bool may_gap(int32_t state) const { return may_gap_[state]; }
  double wrong(int32_t state, int16_t symbol) const {
    return symbol < classes_ ? wrong_[static_cast<size_t>(state) * classes_ + symbol] : 0;
  }

  template <class Emit>
  void successors(int32_t state, int32_t used, int16_t symbol, const Emit& emit) const {
    if (state == end_) {
      for (const Edge& start : starts_) {
        if (start.symbol == symbol && start.probability > 0) emit(start.dst, start.probability);
      }
      return;
    }
    const int left = length_ - used;  // elements the string may still take
    if (left <= 0) return;
    const double fits = language_->ends_within(left, state);
    const auto begin = edges_.begin() + row_[state];
    const auto end = edges_.begin() + row_[state + 1];
    for (auto edge = std::lower_bound(begin, end, Edge{symbol, 0, 0}, by_class); edge != end && edge->symbol == symbol;
         ++edge) {
      const double weight = edge->probability * language_->ends_within(left - 1, edge->dst);
      if (weight > 0) emit(edge->dst, weight / fits);
    }
  }

  // emit(class, probability) of the element after `state`, the used-th of its string. conditioned: strings fit the
  // length; otherwise the language's own law.
  template <class Emit>
  void next_classes(int32_t state, int32_t used, bool conditioned, const Emit& emit) const {
    const int left = length_ - used;
    if (state == end_) {
      for (size_t i = 0; i < starts_.size(); ++i) {
        emit(starts_[i].symbol, conditioned ? starts_[i].probability : own_starts_[i]);
      }
      return;
    }
    const double fits = conditioned ? language_->ends_within(left, state) : 1;
    for (int edge = row_[state]; edge < row_[state + 1]; ++edge) {
      const Edge& to = edges_[static_cast<size_t>(edge)];
      emit(to.symbol, conditioned ? to.probability * language_->ends_within(left - 1, to.dst) / fits : to.probability);
    }
  }

 private:
  struct Edge {
    int32_t symbol;
    int32_t dst;
    double probability;
  };
  static bool by_class(const Edge& a, const Edge& b) { return a.symbol < b.symbol; }

  std::shared_ptr<const Language> language_;
  int32_t end_;
  int classes_, length_;
  const int32_t* ids_;  // of the language
  std::vector<Edge> starts_;
  std::vector<double> own_starts_;  // of starts_, without length conditioning
  std::vector<Edge> edges_;         // of state s: [row_[s], row_[s+1]), ascending by class
  std::vector<int32_t> row_;
  std::vector<double> wrong_;  // [states][classes]
  std::vector<char> may_gap_;
};

std::shared_ptr<const FilterModel> filter_model(std::shared_ptr<const Language> language) {
  return std::make_shared<const FilterModel>(std::move(language));
}

struct ExactFilter::Impl {
  std::shared_ptr<const FilterModel> model;
  FilterCore<FilterModel> core;
  bool exact;
  int frames = 0;

  void next(double* over_classes, int gap_frames, bool conditioned) const {
    std::fill_n(over_classes, model->language().classes(), 0.0);
    core.visit_hypotheses(gap_frames, [&](int32_t state, int32_t used, double p) {
      model->next_classes(state, used, conditioned, [&](int32_t c, double q) { over_classes[c] += p * q; });
    });
  }
};

ExactFilter::ExactFilter(std::shared_ptr<const FilterModel> model, const TaskConfig& task, Split split) {
  check(task);
  const GapConfig& gap = split == Split::train ? task.train : task.test;
  const FilterModel& of = *model;
  impl_ = std::make_unique<Impl>(Impl{std::move(model), {of, gap, of.language().length(), kPrune}, task.noise <= 1});
}
ExactFilter::ExactFilter(std::shared_ptr<const Language> language, const TaskConfig& task, Split split)
    : ExactFilter(filter_model(std::move(language)), task, split) {}
ExactFilter::~ExactFilter() = default;
ExactFilter::ExactFilter(ExactFilter&&) noexcept = default;

int ExactFilter::states() const {
  return impl_->model->language().states();
}
int ExactFilter::classes() const {
  return impl_->model->language().classes();
}
bool ExactFilter::exact() const {
  return impl_->exact;
}

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

Belief ExactFilter::belief(int gap_frames) const {
  return impl_->core.belief(gap_frames);
}
void ExactFilter::posterior(std::vector<StateProbability>& out, int gap_frames) const {
  out.clear();
  impl_->core.visit(gap_frames, [&](int32_t state, double p) { out.push_back({impl_->model->id(state), p}); });
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
}
double ExactFilter::probability(int32_t id, int gap_frames) const {
  double out = 0;
  impl_->core.visit(gap_frames, [&](int32_t state, double p) { out += impl_->model->id(state) == id ? p : 0; });
  return out;
}
void ExactFilter::next_classes(double* over_classes, int gap_frames) const {
  impl_->next(over_classes, gap_frames, true);
}
void ExactFilter::mean_law(double* over_classes, int gap_frames) const {
  impl_->next(over_classes, gap_frames, false);
}
std::optional<double> ExactFilter::log_likelihood() const {
  return impl_->core.log_likelihood();
}
size_t ExactFilter::live() const {
  return impl_->core.live();
}

}  // namespace sb
