#include <limits>

#include "native/common.h"
#include "native/memory.h"
#include "native/task.h"
#include "tasks/baselines.h"
#include "tasks/ceiling.h"

namespace sb::python {
namespace {

CeilingRequest request_of(const std::string& split, uint64_t start, uint64_t samples, int threads) {
  CeilingRequest out;
  out.split = parse_split(split);
  out.first = start;
  out.samples = samples;
  out.threads = threads;
  out.progress = [](uint64_t) { end_if_interrupted(); };
  return out;
}

// What the ceilings of both objectives have.
template <class AnyCeiling>
py::dict ceiling_figures(const AnyCeiling& c, double counted, double counted_stderr) {
  py::dict out;
  out["accuracy"] = c.accuracy;
  out["stderr"] = c.stderr_;
  out["upper_bound"] = c.upper_bound;
  out["counted"] = counted;
  out["counted_stderr"] = counted_stderr;
  out["exact"] = c.exact;
  out["samples"] = c.samples;
  out["by_position"] = copied(c.by_position);
  return out;
}

py::dict state_ceiling(const PyTask& task, const CeilingRequest& request) {
  const Ceiling c = unlocked([&] { return exact_ceiling(task.task(), request); });
  expect_asked(c);
  py::dict out = ceiling_figures(c, c.filter_accuracy, c.filter_stderr);
  out["mean_entropy"] = c.mean_entropy;
  out["entropy_rate"] = c.entropy_rate;
  out["entropy_by_position"] = copied(c.entropy_by_position);
  return out;
}

py::dict class_ceiling(const PyTask& task, const CeilingRequest& request) {
  const PredictCeiling c = unlocked([&] { return predict_ceiling(task.task(), request); });
  py::dict out = ceiling_figures(c, c.counted, c.counted_stderr);
  out["kl"] = c.kl;
  out["kl_stderr"] = c.kl_stderr;
  out["kl_bound"] = c.kl_bound;
  out["kl_counted"] = c.kl_counted;
  out["kl_by_position"] = copied(c.kl_by_position);
  return out;
}

py::dict squared_ceiling(const PyTask& task, const CeilingRequest& request) {
  const ErrorCeiling c = unlocked([&] { return error_ceiling(task.task(), request); });
  py::dict out;
  out["mse"] = c.mse;
  out["stderr"] = c.stderr_;
  out["counted"] = c.counted;
  out["counted_stderr"] = c.counted_stderr;
  out["samples"] = c.samples;
  out["by_position"] = copied(c.by_position);
  return out;
}

py::dict ceiling_of(const PyTask& task, const std::string& split, uint64_t start, uint64_t samples, int threads) {
  const CeilingRequest request = request_of(split, start, samples, threads);
  if (task.task().shape().loss == Loss::squared_error) return squared_ceiling(task, request);
  return !task.task().has_law() ? state_ceiling(task, request) : class_ceiling(task, request);
}

// Baselines of another kind than gaps: n-grams of its frames.
py::dict frame_baselines(const PyTask& task, const NgramSource& source, NgramRequest request) {
  request.valid_samples = request.test_samples;
  request.poll = &end_if_interrupted;
  const NgramFigures found = unlocked([&] { return count_ngrams(source, request); });
  py::dict out;
  out["chance"] = 1.0 / task.task().shape().answers;
  out["majority"] = found.majority;
  out["n_gram"] = std::vector<double>(found.test.begin(), found.test.end());
  out["n"] = found.n;
  out["n_gram_stderr"] = found.stderr_;
  out["table_learner"] = std::numeric_limits<double>::quiet_NaN();
  out["train_samples"] = request.train_samples;
  out["test_samples"] = request.test_samples;
  return out;
}

py::dict baselines_of(const PyTask& task, const std::string& split, uint64_t start, uint64_t samples,
                      uint64_t train_samples, int threads) {
  const Split of = parse_split(split);
  const auto* gaps = dynamic_cast<const GapTask*>(&task.task());
  if (gaps == nullptr || gaps->config().objective != Objective::state) {
    NgramRequest request;
    request.train_samples = train_samples;
    request.test = of;
    request.first_test = start;
    request.test_samples = samples;
    request.threads = threads;
    if (const auto source = task.task().ngrams()) return frame_baselines(task, *source, request);
    const std::string& kind = task.row().name;
    throw bad_input("baselines", kind == kGapsKind ? "they name states, expected objective state, got predict"
                                                   : "n-grams cannot answer tasks of kind " + kind);
  }
  const Baselines b = unlocked([&] {
    return baselines(gaps->shared_language(), gaps->config(), train_samples, samples, threads, of, start,
                     &end_if_interrupted);
  });
  py::dict out;
  out["chance"] = b.chance;
  out["majority"] = b.majority;
  out["n_gram"] = std::vector<double>(b.n_gram.begin(), b.n_gram.end());
  out["n"] = b.n;
  out["n_gram_stderr"] = b.n_gram_stderr;
  out["table_learner"] = b.table_learner;
  out["train_samples"] = b.train_samples;
  out["test_samples"] = b.test_samples;
  return out;
}

// [elements] of each field of ElementBelief.
py::dict columns(const std::vector<ElementBelief>& beliefs) {
  const auto column = [&](auto field) {
    std::vector<decltype(field(beliefs.front()))> out;
    for (const ElementBelief& each : beliefs) out.push_back(field(each));
    return copied(out);
  };
  py::dict out;
  out["states"] = column([](const ElementBelief& b) { return b.state; });
  const auto belief = [&](const std::string& prefix, auto of) {
    out[py::str(prefix + "best")] = column([of](const ElementBelief& b) { return (b.*of).best; });
    out[py::str(prefix + "probability")] = column([of](const ElementBelief& b) { return (b.*of).probability; });
    out[py::str(prefix + "entropy")] = column([of](const ElementBelief& b) { return (b.*of).entropy; });
  };
  belief("", &ElementBelief::given_segment);
  belief("causal_", &ElementBelief::causal);
  out["named"] = column([](const ElementBelief& b) { return b.summed_best; });
  out["named_probability"] = column([](const ElementBelief& b) { return b.summed_probability; });
  out["since_certain"] = column([](const ElementBelief& b) { return b.since_certain; });
  return out;
}

py::dict beliefs_of(const PyTask& task, const std::string& split, uint64_t index) {
  const Split of = parse_split(split);
  return columns(unlocked([&] {
    Batch batch;
    task.task().fill(of, index, 1, batch);
    return follow(*expect_oracle(task.task(), of), batch, 0);
  }));
}

// Posterior of each frame's state given the frames so far, [frames][states] by state id.
py::array_t<double> posterior_of(const PyTask& task, const std::string& split, uint64_t index) {
  const Split of = parse_split(split);
  Batch batch;
  std::unique_ptr<Oracle> oracle;
  {
    const Unlocked here;
    task.task().fill(of, index, 1, batch);
    oracle = expect_oracle(task.task(), of);
  }
  expect_memory("filter", "posteriors", 8.0 * batch.frames * oracle->states(), "ask for them without posterior=True");
  py::array_t<double> out(Shape{batch.frames, oracle->states()});
  double* rows = out.mutable_data();
  const Unlocked here;
  oracle->reset();
  for (int t = 0; t < batch.frames; ++t) {
    if (t % 64 == 63) end_if_interrupted();
    oracle->batch_frame(batch, 0, t);
    oracle->posterior(rows + static_cast<size_t>(t) * static_cast<size_t>(oracle->states()));
  }
  return out;
}

}  // namespace

void bind_truth(py::module_& m) {
  m.def("ceiling", &ceiling_of);
  m.def("baselines", &baselines_of);
  m.def("beliefs", &beliefs_of);
  m.def("posterior", &posterior_of);
}

}  // namespace sb::python
