// Operations on a CUDA device against the same in double, forward and every gradient.
#pragma once
#include <ATen/Context.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "fused_claims.h"

namespace sb::test {

inline const at::Device kDevice(at::kCUDA, 0);

// Of an operand's values: what is rounded to bf16 in half precision, and what is float32 always (states, log-decays,
// steps, strengths, parameters).
enum class Kind { operand, wide };

struct Given {
  std::string name;
  Tensor value;  // double, on the CPU
  Kind kind = Kind::operand;
  // Where the gradient is a sum that may cancel to nothing (and is nothing behind e^-30): the input whose gradient has
  // the size of its terms, against which it is held then.
  std::string terms = "";
};
using Givens = std::vector<Given>;

enum class Mode { truth, fp32, tf32, bf16 };
inline const char* text(Mode mode) {
  return mode == Mode::fp32 ? "fp32" : mode == Mode::tf32 ? "tf32" : mode == Mode::bf16 ? "bf16" : "truth";
}

inline at::ScalarType type_of(Mode mode, Kind kind) {
  return mode == Mode::truth ? at::kDouble : mode == Mode::bf16 && kind == Kind::operand ? at::kBFloat16 : at::kFloat;
}

using Operation = std::function<Tensors(const Tensors&)>;

// Outputs, and gradients of their products with random numbers. Values are such as every precision holds.
inline Results run_on_device(const Operation& f, const Givens& given, Mode mode) {
  Tensors leaves;
  for (const Given& x : given) {
    if (!x.value.defined()) {
      leaves.emplace_back();
      continue;
    }
    const Tensor held = x.value.to(x.kind == Kind::operand ? at::kBFloat16 : at::kFloat);
    leaves.push_back(held.to(kDevice).to(type_of(mode, x.kind)).detach().clone().set_requires_grad(true));
  }
  const bool tf32 = kernels::tf32_is_allowed();
  kernels::allow_tf32(mode == Mode::tf32);
  const Tensors out = f(leaves);
  Tensors cotangents;
  uint64_t seed = 101;
  for (const Tensor& x : out)
    cotangents.push_back(noise(x.sizes(), seed++).to(at::kBFloat16).to(kDevice).to(x.scalar_type()));
  torch::autograd::backward(out, cotangents);
  kernels::allow_tf32(tf32);
  Results results;
  for (size_t i = 0; i < out.size(); ++i) results.push_back({"out " + std::to_string(i), out[i].detach()});
  for (size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i].defined()) results.push_back({"d " + given[i].name, leaves[i].grad()});
  return results;
}

inline double norm_of(const Tensor& x) {
  return x.to(at::kDouble).norm().item<double>();
}

// ||got - expected|| / ||expected||, or over `least` where that is more.
inline double norm_error(const Tensor& got, const Tensor& expected, double least) {
  if (!got.defined() || got.sizes() != expected.sizes()) return std::numeric_limits<double>::infinity();
  if (expected.numel() == 0) return 0;
  const double difference = norm_of(got.to(at::kDouble) - expected.to(at::kDouble));
  if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
  return difference == 0 ? 0 : difference / std::max({norm_of(expected), least, 1e-30});
}

// The largest error of each operation and precision, printed when the program ends.
class Worst {
 public:
  void note(const std::string& what, Mode mode, double error, const std::string& where) {
    Entry& entry = entries_[what + ", " + text(mode)];
    ++entry.count;
    if (error < entry.error) return;
    entry.error = error;
    entry.where = where;
  }
  ~Worst() {
    for (const auto& [name, entry] : entries_)
      std::printf("%-40s %5d values, worst %.1e at %s\n", name.c_str(), entry.count, entry.error, entry.where.c_str());
  }

 private:
  struct Entry {
    int count = 0;
    double error = -1;
    std::string where;
  };
  std::map<std::string, Entry> entries_;
};
inline Worst worst;

struct Bounds {
  double fp32 = 1e-5, bf16 = 2e-2, tf32 = 2e-2;
  double of(Mode mode) const { return mode == Mode::fp32 ? fp32 : mode == Mode::bf16 ? bf16 : tf32; }
};

inline double least_norm(const Results& truth, const std::string& name, const Givens& given) {
  for (const Given& x : given) {
    if (name != "d " + x.name || x.terms.empty()) continue;
    for (const Named& other : truth)
      if (other.name == "d " + x.terms) return norm_of(other.value);
  }
  return 0;
}

inline void expect_on_device(const std::string& what, const std::string& where, const Operation& f,
                             const Operation& truth_form, const Givens& given, const std::vector<Mode>& modes,
                             const Bounds& bounds = {}) {
  const Results truth = run_on_device(truth_form, given, Mode::truth);
  for (const Mode mode : modes) {
    const Results got = run_on_device(f, given, mode);
    ASSERT_EQ(got.size(), truth.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const double error = norm_error(got[i].value, truth[i].value, least_norm(truth, got[i].name, given));
      worst.note(what, mode, error, where + ": " + got[i].name);
      EXPECT_LE(error, bounds.of(mode)) << what << " " << text(mode) << " " << where << ": " << got[i].name;
    }
  }
}

// The truth: the same in the back end's operations in double.
inline Operation with(kernels::Backend backend, const Operation& f) {
  return [backend, f](const Tensors& x) { return kernels::on(backend, [&] { return f(x); }); };
}

inline void expect_same_on_device(const std::string& what, const Operation& f, const Givens& given, Mode mode) {
  const Results first = run_on_device(f, given, mode), second = run_on_device(f, given, mode);
  for (size_t i = 0; i < first.size(); ++i)
    EXPECT_TRUE(at::equal(first[i].value, second[i].value)) << what << " " << text(mode) << ": " << first[i].name;
}

inline bool device_is_there() {
  return kernels::cuda_kernels_are_built() && at::globalContext().hasCUDA();
}

// Fresh buffers hold NaN while a test of this kind runs.
class CudaTest : public RecurrenceTest {
 protected:
  void SetUp() override {
    if (!device_is_there()) GTEST_SKIP() << "no CUDA kernels in this build, or no CUDA device";
    RecurrenceTest::SetUp();
  }
};

}  // namespace sb::test
