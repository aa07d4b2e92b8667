// Runs a recurrence with gradients and compares all that comes out of it.
#pragma once
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <cstring>

#include <functional>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/poison.h"
#include "kernels/recurrence.h"

namespace sb::test {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Recurrence = std::function<OutAndState(const Tensors&)>;

struct Named {
  std::string name;
  Tensor value;
};
using Results = std::vector<Named>;

// A random tensor that depends on the seed only.
inline Tensor noise(at::IntArrayRef sizes, uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn(sizes, generator, at::kDouble);
}

// out, state, and the gradients of <out, cot> + <state, cot'> in every defined input; cotangents are keyed by shape.
inline Results run(const Recurrence& f, const Tensors& inputs, const std::vector<std::string>& names,
                   at::ScalarType type) {
  Tensors leaves;
  for (const Tensor& x : inputs) {
    leaves.push_back(x.defined() ? x.to(type).detach().clone().set_requires_grad(true) : Tensor());
  }
  const OutAndState scan = f(leaves);
  const Tensor out_cot = noise(scan.out.sizes(), 101).to(type), state_cot = noise(scan.state.sizes(), 102).to(type);
  ((scan.out * out_cot).sum() + (scan.state * state_cot).sum()).backward();
  Results results{{"out", scan.out.detach()}, {"state", scan.state.detach()}};
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].defined()) results.push_back({"d " + names[i], leaves[i].grad()});
  }
  return results;
}

// Largest difference relative to the largest expected value.
inline double relative_error(const Tensor& got, const Tensor& expected) {
  if (!got.defined() || got.sizes() != expected.sizes()) return std::numeric_limits<double>::infinity();
  if (expected.numel() == 0) return 0;
  const Tensor e = expected.to(at::kDouble), difference = (got.to(at::kDouble) - e).abs();
  if (!at::isfinite(difference).all().item<bool>()) return std::numeric_limits<double>::infinity();
  const double largest = difference.max().item<double>(), scale = e.abs().max().item<double>();
  return largest == 0 ? 0 : largest / std::max(scale, 1e-290);
}

inline void expect_close(const Results& got, const Results& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_LE(relative_error(got[i].value, expected[i].value), tolerance) << what << ": " << got[i].name;
  }
}

inline void expect_same_bytes(const Results& got, const Results& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const Tensor a = got[i].value.contiguous(), b = expected[i].value.contiguous();
    ASSERT_EQ(a.nbytes(), b.nbytes());
    EXPECT_EQ(std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()), 0) << what << ": " << got[i].name;
  }
}

// Any number of threads gives the bytes of one.
inline void expect_same_on_threads(const Recurrence& f, const Tensors& inputs, const std::vector<std::string>& names) {
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const Results one = run(f, inputs, names, at::kFloat);
  for (const int threads : {2, 4}) {
    at::set_num_threads(threads);
    expect_same_bytes(run(f, inputs, names, at::kFloat), one, std::to_string(threads) + " threads");
  }
  at::set_num_threads(before);
}

// Central differences of the same scalar along a random direction of each input, in double.
inline void expect_slopes_match(const Recurrence& f, const Tensors& inputs, const std::vector<std::string>& names,
                                double tolerance) {
  const Results results = run(f, inputs, names, at::kDouble);
  const auto value = [&](const Tensors& at_inputs) {
    const at::NoGradGuard no_grad;
    const OutAndState scan = f(at_inputs);
    return ((scan.out * noise(scan.out.sizes(), 101)).sum() + (scan.state * noise(scan.state.sizes(), 102)).sum())
        .item<double>();
  };
  size_t result = 2;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) continue;
    const Tensor direction = noise(inputs[i].sizes(), 200 + i);
    const double slope = (results[result++].value * direction).sum().item<double>();
    const double step = 1e-5;
    Tensors ahead = inputs, behind = inputs;
    ahead[i] = inputs[i] + step * direction;
    behind[i] = inputs[i] - step * direction;
    const double measured = (value(ahead) - value(behind)) / (2 * step);
    EXPECT_NEAR(slope, measured, tolerance * std::max(1.0, std::abs(measured))) << names[i];
  }
}

// The same with the plain loop, or with ATen operations.
inline Recurrence on_naive(const Recurrence& f) {
  return [f](const Tensors& x) { return kernels::on(kernels::Backend::naive, [&] { return f(x); }); };
}
inline Recurrence on_aten(const Recurrence& f) {
  return [f](const Tensors& x) { return kernels::on(kernels::Backend::aten, [&] { return f(x); }); };
}

// Fresh buffers hold NaN while a test of this kind runs.
class RecurrenceTest : public ::testing::Test {
 protected:
  void SetUp() override { kernels::poison_buffers(true); }
  void TearDown() override { kernels::poison_buffers(false); }
};

}  // namespace sb::test
