#include "tasks/oracle.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tasks/summed_posterior.h"

namespace sb {
namespace {

constexpr double kCertain = 1 - 1e-9;

}  // namespace

void Oracle::frame(int16_t) {
  throw check_failed("oracle", "this oracle follows dense frames");
}

void Oracle::dense_frame(const float*) {
  throw check_failed("oracle", "this oracle follows symbols");
}

void Oracle::batch_frame(const Batch& batch, int row, int t) {
  const size_t at = static_cast<size_t>(row) * static_cast<size_t>(batch.frames) + static_cast<size_t>(t);
  if (batch.dense.empty())
    frame(batch.symbol[at]);
  else
    dense_frame(batch.dense.data() + at * static_cast<size_t>(batch.channels));
}

Belief Oracle::belief(int gap_frames) const {
  std::vector<StateProbability> possible;
  posterior(possible, gap_frames);
  Belief out;
  for (const StateProbability& s : possible) {
    if (s.probability > out.probability) {
      out.best = s.id;
      out.probability = s.probability;
    }
    out.entropy -= s.probability * std::log(s.probability);
  }
  return out;
}

double Oracle::probability(int32_t id, int gap_frames) const {
  std::vector<StateProbability> possible;
  posterior(possible, gap_frames);
  for (const StateProbability& s : possible)
    if (s.id == id) return s.probability;
  return 0;
}

void Oracle::next_classes(double*, int) const {
  throw check_failed("oracle", "this oracle predicts no symbols");
}

void Oracle::mean_law(double*, int) const {
  throw check_failed("oracle", "this oracle has no law of symbols");
}

void Oracle::posterior(double* over_ids, int gap_frames) const {
  std::vector<StateProbability> possible;
  posterior(possible, gap_frames);
  std::fill_n(over_ids, states(), 0.0);
  for (const StateProbability& s : possible) over_ids[s.id] = s.probability;
}

std::vector<ElementBelief> follow(Oracle& oracle, const Batch& batch, int row) {
  std::vector<ElementBelief> out(static_cast<size_t>(batch.elements));
  std::vector<StateProbability> now;
  SummedPosterior summed(oracle.states());
  const int32_t* start = batch.start.data() + static_cast<size_t>(row) * (batch.elements + 1);
  int32_t since_certain = 0;
  oracle.reset();
  for (int e = 0; e < batch.elements; ++e) {
    for (int t = start[e]; t < start[e + 1]; ++t) {
      oracle.batch_frame(batch, row, t);
      oracle.posterior(now);
      for (const StateProbability& s : now) summed.add(s.id, s.probability);
    }
    ElementBelief& element = out[e];
    const int gap_frames = start[e + 1] - start[e] - 1;
    element.given_segment = oracle.belief(gap_frames);
    element.causal = oracle.belief();
    element.state = batch.state[static_cast<size_t>(row) * batch.elements + static_cast<size_t>(e)];
    element.summed_best = summed.take_best();
    element.summed_probability = oracle.probability(element.summed_best, gap_frames);
    since_certain = element.given_segment.probability >= kCertain ? 0 : since_certain + 1;
    element.since_certain = since_certain;
  }
  return out;
}

}  // namespace sb
