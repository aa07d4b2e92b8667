#include "train/evaluate.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sb {
namespace {

constexpr int64_t kProbabilityBudget = int64_t{1} << 23;  // floats of probabilities held at a time

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

double divergence(const std::vector<double>& law, const std::vector<float>& sum, int frames) {
  double kl = 0;
  for (size_t c = 0; c < law.size(); ++c) {
    if (law[c] > 0) kl += law[c] * std::log(law[c] * frames / std::max(1e-30, static_cast<double>(sum[c])));
  }
  return kl;
}

// What one sample adds; kept apart until the end, so that the order of summation is that of the samples.
struct Row {
  Share elements;
  double loss = 0, kl = 0;
  int64_t frames = 0;
  int broken = -1;  // first frame whose output is not finite
  std::vector<Share> by_position, by_gap_frame, by_since_certain, by_entropy;
  std::vector<Confusion> confusion;

  std::vector<float> sum;  // [classes]
  std::vector<ElementBelief> beliefs;
};

class Tally {
 public:
  Tally(const TensorBatch& batch, const Automaton& automaton, const TaskConfig& task, int64_t classes)
      : batch_(batch), task_(task), classes_(classes), rows_(static_cast<size_t>(batch.frames.batch)) {
    state_of_id_.resize(static_cast<size_t>(automaton.states()));
    for (int s = 0; s < automaton.states(); ++s) state_of_id_[static_cast<size_t>(automaton.id[s])] = s;
    for (auto& row : rows_) {
      row.sum.assign(static_cast<size_t>(classes), 0.0F);
      row.by_position.resize(static_cast<size_t>(batch.frames.elements));
      row.by_gap_frame.resize(kGapFrameBins);
      row.by_since_certain.resize(kCertaintyBins);
      row.by_entropy.resize(kEntropyBins);
      if (task.objective == Objective::state) row.confusion.resize(static_cast<size_t>(automaton.vocab));
    }
    automaton_ = &automaton;
  }

  std::vector<Row>& rows() { return rows_; }

  void frame(int b, int t, const float* p) {
    const Batch& f = batch_.frames;
    Row& row = rows_[static_cast<size_t>(b)];
    const size_t at = static_cast<size_t>(b) * f.frames + t;
    const int32_t e = f.element[at];
    if (e < 0) return;
    float* sum = row.sum.data();
    int64_t best = 0;
    float all = 0;
    for (int64_t c = 0; c < classes_; ++c) {
      sum[c] += p[c];
      all += p[c];
      if (p[c] > p[best]) best = c;
    }
    if (!std::isfinite(all) && row.broken < 0) row.broken = t;
    const int64_t target = batch_.target.data_ptr<int64_t>()[at];
    const int32_t* start = f.start.data() + static_cast<size_t>(b) * (f.elements + 1);
    if (target >= 0) {
      row.loss -= std::log(std::max(1e-30, static_cast<double>(p[target])));
      ++row.frames;
      count(row.by_gap_frame, static_cast<size_t>(t - start[e]), best == target);
    }
    if (t + 1 == start[e + 1]) finish_element(b, e, start[e + 1] - start[e]);
  }

 private:
  void finish_element(int b, int e, int frames) {
    const Batch& f = batch_.frames;
    Row& row = rows_[static_cast<size_t>(b)];
    const int32_t id = f.state[static_cast<size_t>(b) * f.elements + e];
    const auto best = std::max_element(row.sum.begin(), row.sum.end()) - row.sum.begin();
    const int64_t target = batch_.target.data_ptr<int64_t>()[static_cast<size_t>(b) * f.frames +
                                                             f.start[static_cast<size_t>(b) * (f.elements + 1) + e]];
    if (target >= 0) {
      const bool right = best == target;
      row.elements.right += right;
      ++row.elements.total;
      count(row.by_position, static_cast<size_t>(e), right);
      if (!row.confusion.empty()) confuse(row, static_cast<int32_t>(best), id, right);
      if (!row.beliefs.empty()) {
        const ElementBelief& belief = row.beliefs[static_cast<size_t>(e)];
        count(row.by_since_certain, static_cast<size_t>(belief.since_certain), right);
        count(row.by_entropy, static_cast<size_t>(belief.given_segment.entropy / kEntropyBin), right);
      }
    }
    if (task_.objective == Objective::predict) {
      std::vector<double> law(static_cast<size_t>(classes_));
      next_symbol_law(*automaton_, state_of_id_[static_cast<size_t>(id)], law.data());
      row.kl += divergence(law, row.sum, frames);
    }
    std::fill(row.sum.begin(), row.sum.end(), 0.0F);
  }

  int32_t symbol_of(int32_t id) const { return automaton_->symbol[state_of_id_[static_cast<size_t>(id)]]; }

  void confuse(Row& row, int32_t named, int32_t id, bool right) const {
    Confusion& at = row.confusion[static_cast<size_t>(symbol_of(id))];
    if (right) ++at.right;
    if (!right) ++(symbol_of(named) == symbol_of(id) ? at.same_symbol : at.other_symbol);
  }

  const TensorBatch& batch_;
  const TaskConfig& task_;
  const Automaton* automaton_ = nullptr;
  int64_t classes_;
  std::vector<int> state_of_id_;
  std::vector<Row> rows_;
};

void predict_batch(Predictor& predictor, const TensorBatch& batch, const EvaluationRequest& request, Tally& tally) {
  const int rows = batch.frames.batch, frames = batch.frames.frames;
  const int64_t classes = predictor.classes();
  const auto fitting = static_cast<int>(std::max<int64_t>(1, kProbabilityBudget / (rows * classes)));
  const int step = std::min({request.chunk, fitting, frames});
  std::vector<float> probabilities(static_cast<size_t>(rows) * step * classes);
  predictor.begin(batch);
  for (int from = 0; from < frames; from += step) {
    if (request.stop && request.stop()) throw Stopped{};
    const int to = std::min(frames, from + step);
    predictor.predict(batch, from, to, probabilities.data());
    at::parallel_for(0, rows, 1, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        for (int t = from; t < to; ++t) {
          tally.frame(static_cast<int>(b), t, probabilities.data() + (b * (to - from) + (t - from)) * classes);
        }
      }
    });
    for (size_t b = 0; b < tally.rows().size(); ++b) {
      const int broken = tally.rows()[b].broken;
      if (broken >= 0) throw NotFinite(request.split, static_cast<int64_t>(batch.frames.samples[b]), broken);
    }
  }
}

// Under the objective `predict` the last element has frames and no target: it is not padding.
int64_t elements_without_frames(const Batch& batch, size_t row) {
  const int32_t* start = batch.start.data() + row * static_cast<size_t>(batch.elements + 1);
  int64_t out = 0;
  for (int e = 0; e < batch.elements; ++e) out += start[e] == start[e + 1];
  return out;
}

struct Totals {
  Evaluation result;
  double loss = 0, kl = 0;
  int64_t laws = 0;
  double sum = 0, squares = 0;  // of per-sample accuracies
  int64_t samples = 0;

  void take(const Row& row, int elements) {
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
    result.confusion.resize(row.confusion.size());
    for (size_t c = 0; c < row.confusion.size(); ++c) {
      result.confusion[c].right += row.confusion[c].right;
      result.confusion[c].same_symbol += row.confusion[c].same_symbol;
      result.confusion[c].other_symbol += row.confusion[c].other_symbol;
    }
    sum += row.elements.value();
    squares += row.elements.value() * row.elements.value();
    ++samples;
  }

  Evaluation finish(bool predict) {
    result.samples = samples;
    result.loss = result.frames == 0 ? 0 : loss / static_cast<double>(result.frames);
    result.kl = predict && laws > 0 ? kl / static_cast<double>(laws) : 0;
    if (samples > 1) {
      const double n = static_cast<double>(samples), mean = sum / n;
      result.stderr_ = std::sqrt(std::max(0.0, squares / n - mean * mean) / (n - 1));
    }
    return result;
  }
};

}  // namespace

NotFinite::NotFinite(Split split_, int64_t sample_, int frame_)
    : Error(Exit::bad_input, "[evaluation] output of the network, expected finite numbers, got others, " +
                                 std::string(to_string(split_)) + " sample " + std::to_string(sample_) + ", frame " +
                                 std::to_string(frame_)),
      split(split_),
      sample(sample_),
      frame(frame_) {}

Evaluation evaluate(Predictor& predictor, std::shared_ptr<const Sampler> sampler, const TaskConfig& task,
                    const EvaluationRequest& request) {
  const BatchMaker maker(sampler, task);
  const Automaton& automaton = sampler->automaton();
  Totals totals;
  totals.result.by_position.resize(static_cast<size_t>(sampler->config().length));
  totals.result.by_gap_frame.resize(kGapFrameBins);
  totals.result.by_since_certain.resize(kCertaintyBins);
  totals.result.by_entropy.resize(kEntropyBins);
  for (int64_t first = 0; first < request.samples; first += request.batch) {
    if (request.stop && request.stop()) throw Stopped{};
    const int rows = static_cast<int>(std::min<int64_t>(request.batch, request.samples - first));
    Batch frames;
    maker.make(request.split, static_cast<uint64_t>(first), rows, frames);
    const TensorBatch batch = to_tensors(std::move(frames), maker, request.type);
    Tally tally(batch, automaton, task, predictor.classes());
    if (request.breakdowns) {
      at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
        ExactFilter filter(sampler, task, request.split);
        for (int64_t b = begin; b < end; ++b) {
          tally.rows()[static_cast<size_t>(b)].beliefs = follow(filter, batch.frames, static_cast<int>(b));
        }
      });
    }
    predict_batch(predictor, batch, request, tally);
    for (size_t b = 0; b < tally.rows().size(); ++b) {
      Row& row = tally.rows()[b];
      if (request.padding_correct) {
        const int64_t padded = elements_without_frames(batch.frames, b);
        row.elements.right += padded;
        row.elements.total += padded;
      }
      totals.take(row, batch.frames.elements);
    }
  }
  return totals.finish(task.objective == Objective::predict);
}

FilterPredictor::FilterPredictor(std::shared_ptr<const Sampler> sampler, const TaskConfig& task, Split split)
    : sampler_(std::move(sampler)), task_(task), split_(split) {}

int64_t FilterPredictor::classes() const {
  return sampler_->automaton().states();
}

void FilterPredictor::begin(const TensorBatch& batch) {
  filters_.clear();
  for (int b = 0; b < batch.frames.batch; ++b) filters_.emplace_back(sampler_, task_, split_);
}

void FilterPredictor::predict(const TensorBatch& batch, int from, int to, float* probabilities) {
  const int64_t states = classes();
  at::parallel_for(0, batch.frames.batch, 1, [&](int64_t first, int64_t last) {
    std::vector<double> posterior(static_cast<size_t>(states));
    for (int64_t b = first; b < last; ++b) {
      for (int t = from; t < to; ++t) {
        float* out = probabilities + (b * (to - from) + (t - from)) * states;
        const int16_t symbol = batch.frames.symbol[static_cast<size_t>(b) * batch.frames.frames + t];
        if (symbol == kPaddingFrame) {
          std::fill(out, out + states, 0.0F);
          continue;
        }
        filters_[static_cast<size_t>(b)].frame(symbol);
        filters_[static_cast<size_t>(b)].posterior(posterior.data());
        std::copy(posterior.begin(), posterior.end(), out);
      }
    }
  });
}

}  // namespace sb
