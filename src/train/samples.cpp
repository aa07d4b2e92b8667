#include "train/samples.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "train/network_predictor.h"

namespace sb {
namespace {

constexpr size_t held = size_t{1} << 22;  // maximum probabilities in memory

// Mean prediction over the frames of each recorded element, [samples][elements][classes].
struct Means {
  std::vector<std::vector<std::vector<double>>> of;
};

int recorded(const Batch& batch) {
  return std::min(batch.elements, recorded_elements);
}

// Number of leading frames that contain the recorded elements of every row.
int frames_needed(const Batch& batch) {
  int most = 0;
  for (int b = 0; b < batch.batch; ++b) {
    most = std::max(most, batch.start[static_cast<size_t>(b) * (batch.elements + 1) + recorded(batch)]);
  }
  return most;
}

Means mean_predictions(Predictor& predictor, const Batch& f, int chunk, const std::function<bool()>& stop) {
  const auto classes = static_cast<size_t>(predictor.answers());
  Means out;
  out.of.assign(static_cast<size_t>(f.batch),
                std::vector(static_cast<size_t>(recorded(f)), std::vector<double>(classes, 0.0)));
  std::vector<float> probabilities;
  predictor.begin(f);
  const int frames = frames_needed(f);
  const auto fitting = static_cast<int>(std::max<size_t>(1, held / (static_cast<size_t>(f.batch) * classes)));
  const int step = std::min(chunk, fitting);
  for (int from = 0; from < frames; from += step) {
    if (stop && stop()) throw Stopped{};
    const int to = std::min(frames, from + step);
    probabilities.resize(static_cast<size_t>(f.batch) * (to - from) * classes);
    predictor.predict(f, from, to, probabilities.data());
    for (int b = 0; b < f.batch; ++b) {
      for (int t = from; t < to; ++t) {
        const int32_t e = f.element[static_cast<size_t>(b) * f.frames + t];
        if (e < 0 || e >= recorded(f)) continue;
        const float* p = probabilities.data() + (static_cast<size_t>(b) * (to - from) + (t - from)) * classes;
        std::vector<double>& sum = out.of[static_cast<size_t>(b)][static_cast<size_t>(e)];
        for (size_t c = 0; c < classes; ++c) sum[c] += p[c];
      }
    }
  }
  for (int b = 0; b < f.batch; ++b) {
    const int32_t* start = f.start.data() + static_cast<size_t>(b) * (f.elements + 1);
    for (int e = 0; e < recorded(f); ++e) {
      for (double& p : out.of[static_cast<size_t>(b)][static_cast<size_t>(e)])
        p /= std::max(1, start[e + 1] - start[e]);
    }
  }
  return out;
}

// The most likely entries, sorted by decreasing probability, then by index; rounded to six decimals.
std::vector<StateShare> likeliest(const std::vector<double>& p) {
  std::vector<int32_t> order(p.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  const size_t kept = std::min<size_t>(recorded_states, order.size());
  // NaN counts as 0, so that the order is defined.
  const auto share = [&](int32_t i) {
    return std::isfinite(p[static_cast<size_t>(i)]) ? p[static_cast<size_t>(i)] : 0;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                    [&](int32_t a, int32_t b) { return share(a) != share(b) ? share(a) > share(b) : a < b; });
  std::vector<StateShare> out;
  for (size_t i = 0; i < kept; ++i) {
    const double rounded = std::min(1.0, std::round(share(order[i]) * 1e6) / 1e6);
    if (rounded > 0) out.push_back({order[i], rounded});
  }
  return out;
}

// Distribution of the next symbol, [vocab], from that of the state, [states] by id.
std::vector<double> next_symbols(const std::vector<float>& law_by_id, int vocab, const std::vector<double>& states) {
  std::vector<double> out(static_cast<size_t>(vocab), 0.0);
  for (size_t s = 0; s < states.size(); ++s) {
    if (states[s] <= 0) continue;
    for (int c = 0; c < vocab; ++c) out[static_cast<size_t>(c)] += states[s] * law_by_id[s * vocab + c];
  }
  return out;
}

// The task's law of every state, [states][answers], by id.
std::vector<float> law_table(const Task& task) {
  const auto answers = static_cast<size_t>(task.shape().answers);
  std::vector<double> law(answers);
  std::vector<float> out;
  for (int32_t state = 0; state < task.states(); ++state) {
    task.law(state, law.data());
    out.insert(out.end(), law.begin(), law.end());
  }
  return out;
}

}  // namespace

std::vector<SampleRecord> record_samples(const Network& network, const Task& task, Split split, int chunk,
                                         const std::function<bool()>& stop) {
  if (task.shape().loss == Loss::squared_error) return {};
  Batch f;
  task.fill(split, 0, recorded_samples, f);
  NetworkPredictor predictor(network);
  const Means ours = mean_predictions(predictor, f, chunk, stop);
  std::optional<Means> exact;
  if (task.oracle(split)) {
    OraclePredictor filter(task, split, at::get_num_threads());
    exact = mean_predictions(filter, f, chunk, stop);
  }
  const bool predict = task.has_law();
  const std::vector<float> law = predict ? law_table(task) : std::vector<float>();
  std::vector<SampleRecord> out;
  std::vector<int32_t> answers(static_cast<size_t>(f.elements));
  for (int b = 0; b < f.batch; ++b) {
    task.answers(f, b, answers.data());
    SampleRecord& sample =
        out.emplace_back(SampleRecord{static_cast<int64_t>(f.samples[static_cast<size_t>(b)]), f.elements, {}});
    const int32_t* start = f.start.data() + static_cast<size_t>(b) * (f.elements + 1);
    const int16_t* symbols = f.symbol.data() + static_cast<size_t>(b) * f.frames;
    for (int e = 0; e < recorded(f); ++e) {
      ElementRecord& element = sample.elements.emplace_back();
      element.symbol = symbols[start[e]];
      // With a law, predictions are compared with the law of the state.
      element.state = predict ? f.state[static_cast<size_t>(b) * f.elements + e] : answers[static_cast<size_t>(e)];
      element.gap_frames = start[e + 1] - start[e] - 1;
      for (int t = start[e] + 1; t < start[e + 1] && t <= start[e] + recorded_gap; ++t)
        element.gap.push_back(symbols[t]);
      if (element.state < 0) continue;  // nothing is asked
      element.network = likeliest(ours.of[static_cast<size_t>(b)][static_cast<size_t>(e)]);
      if (!exact) continue;
      const std::vector<double>& states = exact->of[static_cast<size_t>(b)][static_cast<size_t>(e)];
      element.filter = likeliest(predict ? next_symbols(law, task.shape().answers, states) : states);
    }
  }
  return out;
}

}  // namespace sb
