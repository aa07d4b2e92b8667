// What every fused function promises, checked in one call.
#pragma once
#include "kernels/fused.h"
#include "recurrence_run.h"

namespace sb::test {

inline DropoutKey dropout_key(uint64_t seed, uint32_t place, int64_t update, const std::vector<int64_t>& samples) {
  return {seed, place, at::full({1}, update, at::kLong), at::tensor(samples, at::kLong)};
}

using Fused = std::function<Tensor(const Tensors&)>;

inline Recurrence without_state(const Fused& f) {
  return [f](const Tensors& x) { return OutAndState{f(x), at::zeros({1}, x[0].options())}; };
}

inline std::vector<std::string> numbered(const Tensors& inputs) {
  std::vector<std::string> names;
  for (size_t i = 0; i < inputs.size(); ++i) names.push_back("input " + std::to_string(i));
  return names;
}

// Values and gradients equal those of `truth` (double, and float against double), gradients follow finite differences,
// and the bytes are the same for 1, 2 and 4 threads.
inline void expect_fused(const std::string& what, const Fused& fused, const Fused& truth_form, const Tensors& inputs,
                         double float_tolerance = 2e-6) {
  SCOPED_TRACE(what);
  const std::vector<std::string> names = numbered(inputs);
  const Recurrence f = without_state(fused);
  const Results truth = run(without_state(truth_form), inputs, names, at::kDouble);
  expect_close(run(f, inputs, names, at::kDouble), truth, 1e-12, what);
  expect_slopes_match(f, inputs, names, 1e-6);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const Results one = run(f, inputs, names, at::kFloat);
  expect_close(one, truth, float_tolerance, what + ", float");
  for (int threads : {2, 4}) {
    at::set_num_threads(threads);
    expect_same_bytes(run(f, inputs, names, at::kFloat), one, what + ", threads " + std::to_string(threads));
  }
  at::set_num_threads(before);
}
// The truth: the same in ATen operations.
inline void expect_fused(const std::string& what, const Fused& fused, const Tensors& inputs,
                         double float_tolerance = 2e-6) {
  const Fused in_aten = [&](const Tensors& in) {
    return kernels::on(kernels::Backend::aten, [&] { return fused(in); });
  };
  expect_fused(what, fused, in_aten, inputs, float_tolerance);
}

}  // namespace sb::test
