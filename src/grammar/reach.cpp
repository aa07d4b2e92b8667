#include "grammar/reach.h"

namespace sb {
namespace {

double start_mean(const Automaton& a, const double* reach) {
  double sum = 0;
  for (const int32_t s : a.start) sum += reach[s];
  return sum / static_cast<double>(a.start.size());
}

}  // namespace

void reach_step(const Automaton& a, const double* before, double* after) {
  for (int s = 0; s < a.states(); ++s) {
    double sum = 0;
    for (int e = a.row[s]; e < a.row[s + 1]; ++e) sum += a.prob[e] * before[a.dst[e]];
    after[s] = sum;
  }
  after[a.end] = 1;
}

ReachTable::ReachTable(const Automaton& a, int steps)
    : states_(a.names.size()), values_((static_cast<size_t>(steps) + 1) * states_, 0.0) {
  values_[static_cast<size_t>(a.end)] = 1;
  for (size_t k = 1; k <= static_cast<size_t>(steps); ++k) {
    reach_step(a, values_.data() + (k - 1) * states_, values_.data() + k * states_);
  }
}

double fit_probability(const Automaton& a, int length, double enough) {
  std::vector<double> now(a.names.size(), 0.0), next(a.names.size());
  now[static_cast<size_t>(a.end)] = 1;
  double fit = start_mean(a, now.data());
  for (int k = 1; k < length && fit <= enough; ++k) {
    reach_step(a, now.data(), next.data());
    std::swap(now, next);
    fit = start_mean(a, now.data());
  }
  return fit;
}

}  // namespace sb
