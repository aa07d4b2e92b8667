#include "kernels/bench_cases.h"

#include <ATen/ATen.h>

#include <cmath>

#include "kernels/fused.h"
#include "kernels/recurrence.h"

namespace sb {
namespace {

using at::Tensor;
using Inputs = std::vector<Tensor>;

constexpr double kFloat = 4;  // bytes
constexpr int64_t kClasses = 1601;

double number(int64_t n) {
  return static_cast<double>(n);
}
int64_t heads(int64_t width) {
  return width <= 512 ? 4 : 8;
}
Tensor noise(at::IntArrayRef sizes) {
  return at::randn(sizes, at::kDouble);
}
Tensor decay(at::IntArrayRef sizes) {
  return -0.05 * at::rand(sizes, at::kDouble);
}

BenchCase selective_scan_case() {
  constexpr int64_t N = 64;
  return {"selective_scan",
          [](int64_t b, int64_t t, int64_t d) -> Inputs {
            return {noise({b, t, 2 * d}),
                    at::rand({b, t, 2 * d}, at::kDouble) * 0.1,
                    at::arange(1, N + 1, at::kDouble).log().expand({2 * d, N}).contiguous(),
                    noise({b, t, N}),
                    noise({b, t, N}),
                    noise({2 * d})};
          },
          [](const Inputs& x) { return selective_scan(x[0], x[1], x[2], x[3], x[4], x[5]).out; },
          true,
          [](int64_t b, int64_t t, int64_t d) -> BenchWork {
            const double states = number(b * t * 2 * d * N);
            return {{9 * states}, {18 * states}};
          },
          [](int64_t b, int64_t d) { return 3.0 * number(b * 2 * d * N); }};
}

// Mamba2's form (one decay per head, keys shared by all heads) or GLA's (one decay per key channel)
BenchCase decayed_attention_case(bool vector_decay) {
  struct Shape {
    int64_t G, H, K, V;
  };
  const auto shape = [vector_decay](int64_t d) -> Shape {
    const int64_t h = heads(d);
    return vector_decay ? Shape{h, h, d / h, 2 * d / h} : Shape{1, 2 * h, 128, d / h};
  };
  const auto with = [](auto f) {
    return
        [f](const Inputs& x) { return f(x[0], x[1], x[2], x[3], 1 / std::sqrt(number(x[0].size(3))), Tensor()).out; };
  };
  return {vector_decay ? "decayed_attention_vector" : "decayed_attention_scalar",
          [=](int64_t b, int64_t t, int64_t d) -> Inputs {
            const Shape s = shape(d);
            return {noise({b, t, s.G, s.K}), noise({b, t, s.G, s.K}), noise({b, t, s.H, s.V}),
                    vector_decay ? decay({b, t, s.H, s.K}) : decay({b, t, s.H})};
          },
          with(sb::decayed_attention),
          true,
          [=](int64_t b, int64_t t, int64_t d) -> BenchWork {
            const Shape s = shape(d);
            const double each = number(b * t * s.H) * (4 * number(s.K * s.V) + 64 * number(s.K + s.V));
            return {{each}, {2 * each}};
          },
          [=](int64_t b, int64_t d) { return 3.0 * number(b * shape(d).H * shape(d).K * shape(d).V); }};
}

BenchCase gated_delta_case() {
  const auto with = [](auto f) {
    return [f](const Inputs& x) {
      return f(x[0], x[1], x[2], x[3], x[4], 1 / std::sqrt(number(x[0].size(3))), Tensor()).out;
    };
  };
  return {"gated_delta_rule",
          [](int64_t b, int64_t t, int64_t d) -> Inputs {
            const int64_t h = heads(d), K = d / h;
            return {l2_normalise(noise({b, t, h, K})), l2_normalise(noise({b, t, 1, h, K})), noise({b, t, 1, h, 2 * K}),
                    at::rand({b, t, 1, h}, at::kDouble), decay({b, t, h})};
          },
          with(sb::gated_delta_rule),
          true,
          [](int64_t b, int64_t t, int64_t d) -> BenchWork {
            const double h = number(heads(d)), K = number(d) / h, V = 2 * K, C = 64;
            const double each = number(b * t) * h * (6 * K * V + 2 * C * (K + V) + C * K + C * C / 3);
            return {{each}, {2 * each}};
          },
          [](int64_t b, int64_t d) { return 5.0 * number(b * d * 2 * d / heads(d)); }};
}

// Arithmetic per element in vector instructions. Each counts as two operations, also if it is not a multiply-add, since
// it takes the place of one. e^x takes 16 instructions (range 6, polynomial 8, scaling 2), a sigmoid 7 more,
// log(1 + e^x) 32, a half word of Philox with its comparison 14 (of 91 for 32 half words: 36 products, 36 to split
// them, 19 exclusive or).
constexpr double kSigmoid = 46, kLog = 64, kPhilox = 28;

// `forward`, `backward`: operations and bytes of one element.
BenchCase streaming_case(const std::string& name, const Pass& forward, const Pass& backward,
                         std::function<Inputs(int64_t, int64_t, int64_t)> inputs, BenchForm form) {
  return {name,
          std::move(inputs),
          std::move(form),
          false,
          [=](int64_t b, int64_t t, int64_t d) -> BenchWork {
            const double n = number(b * t * d);
            return {{n * forward.operations, n * forward.bytes}, {n * backward.operations, n * backward.bytes}};
          },
          [](int64_t b, int64_t d) { return 8.0 * number(b * d); }};
}

std::vector<BenchCase> streaming_cases() {
  const auto rows = [](int tensors, bool gain) {
    return [=](int64_t b, int64_t t, int64_t d) {
      Inputs in;
      for (int i = 0; i < tensors; ++i) in.push_back(noise({b, t, d}));
      if (gain) in.push_back(noise({d}));
      return in;
    };
  };
  const auto conv_inputs = [](int64_t b, int64_t t, int64_t d) -> Inputs {
    return {noise({b, t, d}), noise({d, 1, 4}), noise({d})};
  };
  const auto norm_inputs = [](int64_t b, int64_t t, int64_t d) -> Inputs {
    return {noise({b, t, d}), noise({b, t, d}), noise({d}), noise({d})};
  };
  const auto head_inputs = [](int64_t b, int64_t t, int64_t d) -> Inputs {
    return {noise({b, t, heads(d), d / heads(d)})};
  };
  const auto key = [](const Tensor& x) {
    return DropoutKey{1, 2, at::zeros({1}, at::kLong), at::arange(x.size(0), at::kLong)};
  };
  std::vector<BenchCase> all;
  all.push_back(streaming_case("conv4_silu", {10 + kSigmoid, 2 * kFloat}, {34 + kSigmoid, 3 * kFloat}, conv_inputs,
                               [](const Inputs& x) { return conv4(x[0], x[1], x[2], true); }));
  all.push_back(streaming_case("rms_norm", {6, 2 * kFloat}, {14, 3 * kFloat}, rows(1, true),
                               [](const Inputs& x) { return rms_norm(x[0], x[1], 1e-5); }));
  all.push_back(streaming_case("rms_norm_then_gate", {10 + kSigmoid, 3 * kFloat}, {30 + kSigmoid, 5 * kFloat},
                               rows(2, true),
                               [](const Inputs& x) { return rms_norm_then_gate(x[0], x[2], x[1], 1e-5); }));
  all.push_back(streaming_case("gate_then_rms_norm", {10 + kSigmoid, 3 * kFloat}, {30 + kSigmoid, 5 * kFloat},
                               rows(2, true),
                               [](const Inputs& x) { return gate_then_rms_norm(x[0], x[2], x[1], 1e-5); }));
  all.push_back(streaming_case("l2_normalise", {4, 2 * kFloat}, {10, 3 * kFloat}, head_inputs,
                               [](const Inputs& x) { return l2_normalise(x[0]); }));
  all.push_back(streaming_case("gate_silu", {4 + kSigmoid, 3 * kFloat}, {14 + kSigmoid, 5 * kFloat}, rows(2, false),
                               [](const Inputs& x) { return gate_silu(x[0], x[1]); }));
  all.push_back(streaming_case("softplus_bias", {10 + kLog, 2 * kFloat}, {10 + kSigmoid, 3 * kFloat}, rows(1, true),
                               [](const Inputs& x) { return softplus_bias(x[0], x[1]); }));
  all.push_back(streaming_case("log_sigmoid", {6 + kLog, 2 * kFloat}, {4 + kSigmoid, 3 * kFloat}, rows(1, false),
                               [](const Inputs& x) { return log_sigmoid(x[0], 1.0 / 16); }));
  all.push_back(
      streaming_case("residual_layer_norm", {12, 3 * kFloat}, {18, 4 * kFloat}, norm_inputs,
                     [](const Inputs& x) { return residual_layer_norm(x[0], x[1], x[2], x[3], 0, std::nullopt); }));
  all.push_back(
      streaming_case("residual_layer_norm_dropout", {14 + kPhilox, 3 * kFloat}, {20 + kPhilox, 5 * kFloat}, norm_inputs,
                     [=](const Inputs& x) { return residual_layer_norm(x[0], x[1], x[2], x[3], 0.2, key(x[0])); }));
  all.push_back(streaming_case("rope", {8, 2 * kFloat}, {8, 2 * kFloat}, head_inputs,
                               [](const Inputs& x) { return rope(x[0], 1000, 1); }));
  return all;
}

BenchCase attention_case() {
  return {"causal_attention",
          [](int64_t b, int64_t t, int64_t d) -> Inputs {
            const int64_t h = heads(d);
            return {noise({b, t, h, d / h}), noise({b, t, h, d / h}), noise({b, t, h, d / h})};
          },
          [](const Inputs& x) { return causal_attention(x[0], x[1], x[2]); },
          false,
          [](int64_t b, int64_t t, int64_t d) -> BenchWork {
            const double product = number(b * t) * number(t + 1) * number(d);
            return {{2 * product}, {5 * product}};
          },
          [](int64_t b, int64_t d) { return 8000.0 * number(b * heads(d)); }};
}

BenchCase loss_case() {
  const auto with = [](auto f) {
    return [f](const Inputs& x) {
      const Tensor target = at::remainder(at::arange(x[0].size(0), at::kLong) * 7919, kClasses);
      return f(x[0], x[1], x[2], target, Tensor(), Tensor());
    };
  };
  return {"decoder_cross_entropy",
          [](int64_t b, int64_t t, int64_t d) -> Inputs {
            return {noise({b * t, d}), noise({kClasses, d}) / std::sqrt(number(d)), noise({kClasses})};
          },
          with(sb::decoder_cross_entropy),
          false,
          [](int64_t b, int64_t t, int64_t d) -> BenchWork {
            const double product = 2 * number(b * t) * number(d * kClasses);
            return {{product}, {2 * product}};
          },
          [](int64_t b, int64_t) { return 3.0 * number(b * kClasses); }};
}

}  // namespace

std::vector<BenchCase> bench_cases() {
  std::vector<BenchCase> all{selective_scan_case(), decayed_attention_case(false), decayed_attention_case(true),
                             gated_delta_case()};
  for (BenchCase& streaming : streaming_cases()) all.push_back(std::move(streaming));
  all.push_back(attention_case());
  all.push_back(loss_case());
  return all;
}

}  // namespace sb
