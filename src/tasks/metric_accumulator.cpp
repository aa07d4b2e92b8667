#include "tasks/metric_accumulator.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"

namespace sb {
namespace {

void count(std::vector<Share>& bins, size_t bin, bool right) {
  bin = std::min(bin, bins.size() - 1);
  bins[bin].right += right;
  ++bins[bin].total;
}

void add(std::vector<Share>& into, const std::vector<Share>& from) {
  for (size_t i = 0; i < into.size(); ++i) {
    into[i].right += from[i].right;
    into[i].total += from[i].total;
  }
}

double divergence(const std::vector<double>& law, const float* sum, int frames) {
  double kl = 0;
  for (size_t c = 0; c < law.size(); ++c) {
    if (law[c] > 0) kl += law[c] * std::log(law[c] * frames / std::max(1e-30, static_cast<double>(sum[c])));
  }
  return kl;
}

void softmax(const float* logits, size_t answers, std::vector<float>& out) {
  out.resize(answers);
  const double top = *std::max_element(logits, logits + answers);
  double total = 0;
  for (size_t c = 0; c < answers; ++c) total += std::exp(logits[c] - top);
  for (size_t c = 0; c < answers; ++c) out[c] = static_cast<float>(std::exp(logits[c] - top) / total);
}

// Elements that are only padding; an element with frames but without an answer is not.
int64_t elements_without_frames(const Batch& batch, int row) {
  const int32_t* start = batch.starts(row);
  int64_t out = 0;
  for (int e = 0; e < batch.elements; ++e) out += start[e] == start[e + 1];
  return out;
}

}  // namespace

NotFinite::NotFinite(Split split_, int64_t sample_, int frame_)
    : Error(Exit::bad_input, "[evaluation] network output is not finite, " + std::string(to_string(split_)) +
                                 " sample " + std::to_string(sample_) + ", frame " + std::to_string(frame_)),
      split(split_),
      sample(sample_),
      frame(frame_) {}

double MetricAccumulator::Row::score(Loss task_loss) const {
  if (task_loss == Loss::cross_entropy) return elements.value();
  return frames == 0 ? 0 : loss / static_cast<double>(frames);
}

double MetricAccumulator::Row::weight(Loss task_loss) const {
  return static_cast<double>(task_loss == Loss::cross_entropy ? elements.total : frames);
}

void MetricAccumulator::Totals::take(const Row& row, int elements, Loss task_loss) {
  result.elements.right += row.elements.right;
  result.elements.total += row.elements.total;
  loss += row.loss;
  kl += row.kl;
  laws += elements;
  result.frames += row.frames;
  add(result.by_position, row.by_position);
  add(result.by_gap_frame, row.by_gap_frame);
  add(result.by_since_certain, row.by_since_certain);
  add(result.by_entropy, row.by_entropy);
  for (size_t c = 0; c < row.confusion.size(); ++c) {
    result.confusion[c].right += row.confusion[c].right;
    result.confusion[c].same_symbol += row.confusion[c].same_symbol;
    result.confusion[c].other_symbol += row.confusion[c].other_symbol;
  }
  const double score = row.score(task_loss);
  sum += score;
  squares += score * score;
  scores.add(score, row.weight(task_loss));
  ++samples;
}

MetricAccumulator::MetricAccumulator(const Task& task, MetricOptions options)
    : task_(task), options_(options), shape_(task.shape()), has_law_(task.has_law()), shown_(task.shown()) {
  Evaluation& result = totals_.result;
  result.by_position.resize(static_cast<size_t>(shape_.elements));
  result.by_gap_frame.resize(kGapFrameBins);
  result.by_since_certain.resize(kCertaintyBins);
  result.by_entropy.resize(kEntropyBins);
  if (!shown_.empty()) result.confusion.resize(static_cast<size_t>(shape_.channels));
}

void MetricAccumulator::begin(const Batch& batch) {
  batch_ = &batch;
  seen_ = 0;
  rows_.assign(static_cast<size_t>(batch.batch), {});
  named_.assign(rows_.size() * static_cast<size_t>(batch.elements), -1);
  for (int b = 0; b < batch.batch; ++b) {
    Row& row = rows_[static_cast<size_t>(b)];
    row.sum.assign(static_cast<size_t>(shape_.answers), 0.0F);
    row.by_position.resize(static_cast<size_t>(batch.elements));
    row.by_gap_frame.resize(kGapFrameBins);
    row.by_since_certain.resize(kCertaintyBins);
    row.by_entropy.resize(kEntropyBins);
    row.confusion.resize(totals_.result.confusion.size());
    row.answers.resize(static_cast<size_t>(batch.elements));
    task_.answers(batch, b, row.answers.data());
  }
  if (!options_.breakdowns || shape_.loss == Loss::squared_error) return;
  // One oracle per thread, since preparing one may take longer than following a sample.
  const auto threads = static_cast<size_t>(thread_count(options_.threads, rows_.size()));
  parallel_for(rows_.size(), (rows_.size() + threads - 1) / threads, options_.threads, [&](size_t first, size_t last) {
    const std::unique_ptr<Oracle> oracle = task_.oracle(batch.split);
    if (!oracle) return;
    for (size_t b = first; b < last; ++b) rows_[b].beliefs = follow(*oracle, batch, static_cast<int>(b));
  });
}

void MetricAccumulator::expect_from(int from, int to) {
  if (batch_ == nullptr || from != seen_ || to < from || to > batch_->frames) {
    throw check_failed("metrics", "frames " + std::to_string(from) + " to " + std::to_string(to) +
                                      ", expected them from " + std::to_string(seen_) + " on, up to " +
                                      std::to_string(batch_ == nullptr ? 0 : batch_->frames));
  }
  seen_ = to;
}

void MetricAccumulator::expect_finite() const {
  for (size_t b = 0; b < rows_.size(); ++b) {
    if (rows_[b].broken >= 0) {
      throw NotFinite(batch_->split, static_cast<int64_t>(batch_->samples[b]), rows_[b].broken);
    }
  }
}

// rows(b, t, scratch): the prediction for frame t of row b.
template <class Rows>
void MetricAccumulator::take(int from, int to, const Rows& rows) {
  expect_from(from, to);
  parallel_for(rows_.size(), 1, options_.threads, [&](size_t first, size_t last) {
    std::vector<float> scratch;
    for (size_t b = first; b < last; ++b) {
      for (int t = from; t < to; ++t) frame(static_cast<int>(b), t, rows(b, t, scratch));
    }
  });
  expect_finite();
}

void MetricAccumulator::probabilities(int from, int to, const float* values) {
  const auto answers = static_cast<size_t>(shape_.answers), frames = static_cast<size_t>(to - from);
  take(from, to, [&](size_t b, int t, std::vector<float>&) {
    return values + (b * frames + static_cast<size_t>(t - from)) * answers;
  });
}

void MetricAccumulator::logits(int from, int to, const float* values) {
  if (shape_.loss == Loss::squared_error) return probabilities(from, to, values);
  const auto answers = static_cast<size_t>(shape_.answers), frames = static_cast<size_t>(to - from);
  take(from, to, [&](size_t b, int t, std::vector<float>& scratch) {
    softmax(values + (b * frames + static_cast<size_t>(t - from)) * answers, answers, scratch);
    return scratch.data();
  });
}

void MetricAccumulator::predictions(const ReducedPredictions& reduced) {
  constexpr size_t worth_a_thread = 1 << 16;  // frames
  expect_from(0, batch_ == nullptr ? 0 : batch_->frames);
  const Batch& f = *batch_;
  const auto frames = static_cast<size_t>(f.frames), elements = static_cast<size_t>(f.elements);
  const auto answers = static_cast<size_t>(shape_.answers);
  const size_t grain = std::max<size_t>(1, worth_a_thread / std::max<size_t>(1, frames));
  parallel_for(rows_.size(), grain, options_.threads, [&](size_t first, size_t last) {
    for (size_t b = first; b < last; ++b) {
      const int32_t* start = f.starts(static_cast<int>(b));
      for (int e = 0; e < f.elements; ++e) {
        for (int t = start[e]; t < start[e + 1]; ++t) {
          const size_t at = b * frames + static_cast<size_t>(t);
          settle_frame(static_cast<int>(b), t, reduced.best[at], reduced.target_probability[at],
                       std::isfinite(reduced.target_probability[at]));
        }
        if (start[e] == start[e + 1]) continue;
        const size_t at = b * elements + static_cast<size_t>(e);
        settle_element(static_cast<int>(b), e, reduced.named[at], has_law_ ? reduced.sum + at * answers : nullptr);
      }
    }
  });
  expect_finite();
}

void MetricAccumulator::frame(int b, int t, const float* p) {
  const Batch& f = *batch_;
  Row& row = rows_[static_cast<size_t>(b)];
  const int32_t e = f.element[static_cast<size_t>(b) * f.frames + t];
  if (e < 0) return;
  if (shape_.loss == Loss::squared_error) return add_error(b, t, p);
  float* sum = row.sum.data();
  int best = 0;
  float all = 0;
  for (int c = 0; c < shape_.answers; ++c) {
    sum[c] += p[c];
    all += p[c];
    if (p[c] > p[best]) best = c;
  }
  const int32_t answer = row.answers[static_cast<size_t>(e)];
  settle_frame(b, t, best, p[std::max(0, answer)], std::isfinite(all));
  if (t + 1 != f.starts(b)[e + 1]) return;
  const auto named = static_cast<int32_t>(std::max_element(row.sum.begin(), row.sum.end()) - row.sum.begin());
  settle_element(b, e, named, sum);
  std::fill(row.sum.begin(), row.sum.end(), 0.0F);
}

void MetricAccumulator::add_error(int b, int t, const float* outputs) {
  const Batch& f = *batch_;
  Row& row = rows_[static_cast<size_t>(b)];
  const size_t at = static_cast<size_t>(b) * f.frames + static_cast<size_t>(t), answers = row.sum.size();
  double error = 0;
  for (size_t c = 0; c < answers; ++c) {
    const double off = static_cast<double>(outputs[c]) - f.value[at * answers + c];
    error += off * off / static_cast<double>(answers);
  }
  if (!std::isfinite(error) && row.broken < 0) row.broken = t;
  const auto e = static_cast<size_t>(f.element[at]);
  if (row.answers[e] < 0) return;
  row.loss += error;
  ++row.frames;
  if (t + 1 == f.starts(b)[e + 1]) ++row.elements.total;
}

void MetricAccumulator::settle_frame(int b, int t, int best, float target_probability, bool finite) {
  const Batch& f = *batch_;
  Row& row = rows_[static_cast<size_t>(b)];
  const int32_t e = f.element[static_cast<size_t>(b) * f.frames + t];
  if (!finite && row.broken < 0) row.broken = t;
  const int32_t answer = row.answers[static_cast<size_t>(e)];
  if (answer < 0) return;
  row.loss -= std::log(std::max(1e-30, static_cast<double>(target_probability)));
  ++row.frames;
  count(row.by_gap_frame, static_cast<size_t>(t - f.starts(b)[e]), best == answer);
}

void MetricAccumulator::settle_element(int b, int e, int32_t best, const float* sum) {
  const Batch& f = *batch_;
  Row& row = rows_[static_cast<size_t>(b)];
  named_[static_cast<size_t>(b) * static_cast<size_t>(f.elements) + static_cast<size_t>(e)] = best;
  const int32_t answer = row.answers[static_cast<size_t>(e)];
  if (answer >= 0) {
    const bool right = best == answer;
    row.elements.right += right;
    ++row.elements.total;
    count(row.by_position, static_cast<size_t>(e), right);
    if (!row.confusion.empty()) confuse(row, best, answer);
    if (!row.beliefs.empty()) {
      const ElementBelief& belief = row.beliefs[static_cast<size_t>(e)];
      count(row.by_since_certain, static_cast<size_t>(belief.since_certain), right);
      count(row.by_entropy, static_cast<size_t>(belief.given_segment.entropy / kEntropyBin), right);
    }
  }
  if (!has_law_) return;
  std::vector<double> law(static_cast<size_t>(shape_.answers));
  task_.law(f.state[static_cast<size_t>(b) * f.elements + e], law.data());
  row.kl += divergence(law, sum, f.starts(b)[e + 1] - f.starts(b)[e]);
}

void MetricAccumulator::confuse(Row& row, int32_t named, int32_t answer) const {
  const int32_t symbol = shown_[static_cast<size_t>(answer)];
  Confusion& at = row.confusion[static_cast<size_t>(symbol)];
  if (named == answer) {
    ++at.right;
  } else {
    ++(shown_[static_cast<size_t>(named)] == symbol ? at.same_symbol : at.other_symbol);
  }
}

void MetricAccumulator::end() {
  for (size_t b = 0; b < rows_.size(); ++b) {
    const int frames = batch_->real_frames(static_cast<int>(b));
    if (seen_ < frames) {
      throw check_failed("metrics", "predictions of sample " + std::to_string(batch_->samples[b]) + ", expected " +
                                        std::to_string(frames) + " frames, got " + std::to_string(seen_));
    }
  }
  for (size_t b = 0; b < rows_.size(); ++b) {
    Row& row = rows_[b];
    if (options_.padding_correct) {
      const int64_t padded = elements_without_frames(*batch_, static_cast<int>(b));
      row.elements.right += padded;
      row.elements.total += padded;
    }
    totals_.take(row, batch_->elements, shape_.loss);
  }
  rows_.clear();
  batch_ = nullptr;
}

Evaluation MetricAccumulator::result() const {
  Evaluation out = totals_.result;
  out.samples = totals_.samples;
  out.loss = out.frames == 0 ? 0 : totals_.loss / static_cast<double>(out.frames);
  out.kl = has_law_ && totals_.laws > 0 ? totals_.kl / static_cast<double>(totals_.laws) : 0;
  // Samples may have different weights, and a sample that asks for nothing has no score.
  if (!totals_.scores.even() || totals_.scores.count() != static_cast<double>(totals_.samples)) {
    out.stderr_ = totals_.scores.error();
  } else if (totals_.samples > 1) {
    const double n = static_cast<double>(totals_.samples), mean = totals_.sum / n;
    out.stderr_ = std::sqrt(std::max(0.0, totals_.squares / n - mean * mean) / (n - 1));
  }
  return out;
}

}  // namespace sb
