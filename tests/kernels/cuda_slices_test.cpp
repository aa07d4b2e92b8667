// Gradients of slices and of weights on a CUDA device, where our kernels write them to their places.
#include "cuda_claims.h"
#include "kernels/matmul.h"
#include "slices_claims.h"

namespace sb::test {
namespace {

class CudaSlices : public CudaTest {};

TEST_F(CudaSlices, MatchGradientsOfSplitWithoutCopies) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    expect_slices_hold(at::TensorOptions().device(kDevice).dtype(type));
}

// A chain of operations rounds several times; a gradient in a wrong place is another number altogether.
void expect(const std::string& where, const Operation& f, const Givens& given) {
  expect_on_device("slices", where, f, with(kernels::Backend::aten, f), given, {Mode::fp32, Mode::bf16},
                   {.fp32 = 5e-5, .bf16 = 6e-2});
  expect_same_on_device("slices " + where, f, given, Mode::bf16);
}

// Mixers, sliced as in the models, with aligned (16 bytes) and unaligned widths.
TEST_F(CudaSlices, DeltaRuleMatchesSplit) {
  for (const auto& [K, V, n] : {std::array<int64_t, 3>{16, 24, 1}, {9, 18, 1}, {88, 168, 1}, {16, 24, 3}}) {
    const int64_t B = 2, T = 130, h = 2, qk = (n + 1) * h * K, v = n * h * V;
    const Operation mixer = [K = K, V = V, n = n, qk, v](const Tensors& in) -> Tensors {
      const Tensors parts = slices(in[0] * 1, {qk + v, h * V, n * h, h});
      const Tensors qk_v = slices(conv4(parts[0], in[1], {}, true), {qk, v});
      const Tensors q_k = slices(l2_normalise(qk_v[0].view({B, T, (n + 1) * h, K})), {h, n * h}, 2);
      const Tensor strengths = sigmoid_gate(parts[2], 1).view({B, T, n, h});
      const Tensor decay = softplus_decay(parts[3], in[2], in[3]);
      const auto out = gated_delta_rule(q_k[0], q_k[1].view({B, T, n, h, K}), qk_v[1].view({B, T, n, h, V}), strengths,
                                        decay, 1 / std::sqrt(static_cast<double>(K)));
      return {rms_norm_then_gate(out.out, in[4], parts[1].view({B, T, h, V}), 1e-5)};
    };
    expect(c10::str("delta rule ", n, " x ", K, " x ", V), mixer,
           {{"x", noise({B, T, qk + v + h * V + n * h + h}, 1)},
            {"taps", noise({qk + v, 1, 4}, 2), Kind::wide},
            {"bias", noise({h}, 3), Kind::wide, "x"},
            {"A_log", noise({h}, 4), Kind::wide, "x"},
            {"gain", noise({V}, 5), Kind::wide}});
  }
}

TEST_F(CudaSlices, DecayedAttentionMatchesSplit) {
  for (const auto& [K, V] : {std::array<int64_t, 2>{16, 24}, {9, 18}, {72, 144}}) {
    const int64_t B = 2, T = 130, h = 2, qkv = 2 * h * K + h * V, rank = 16;
    const Operation mixer = [K = K, V = V, qkv](const Tensors& in) -> Tensors {
      const Tensors parts = slices(in[0] * 1, {qkv, h * V, rank});
      const Tensors cut = slices(conv4(parts[0], in[1], {}, true), {h * K, h * K, h * V});
      const Tensor copy = in[2].scalar_type() == at::kFloat && in[0].scalar_type() == at::kBFloat16
                              ? in[2].detach().to(at::kBFloat16)
                              : Tensor();
      const Tensor decay = log_sigmoid(project(parts[2], in[2], {}, copy), 1.0 / 16).view({B, T, h, K});
      const auto heads = [&](const Tensor& x) { return x.view({B, T, h, x.size(2) / h}); };
      const auto out = decayed_attention(heads(cut[0]), heads(cut[1]), heads(cut[2]), decay, 0.3);
      return {rms_norm_then_gate(out.out, in[3], heads(parts[1]), 1e-5)};
    };
    expect(c10::str("decayed attention ", K, " x ", V), mixer,
           {{"x", noise({B, T, qkv + h * V + rank}, 1)},
            {"taps", noise({qkv, 1, 4}, 2), Kind::wide},
            {"weight", noise({h * K, rank}, 3), Kind::wide},
            {"gain", noise({V}, 4), Kind::wide}});
  }
}

TEST_F(CudaSlices, Mamba2MatchesSplit) {
  for (const auto& [N, P, h] : {std::array<int64_t, 3>{128, 88, 4}, {16, 24, 4}, {16, 9, 4}}) {
    const int64_t B = 2, T = 130, D = h * P;
    const Operation mixer = [N = N, P = P, h = h, D](const Tensors& in) -> Tensors {
      const Tensors parts = slices(in[0] * 1, {D, D + 2 * N, h});
      const Tensors xBC = slices(conv4(parts[1], in[1], {}, true), {D, N, N});
      const Tensor x = xBC[0].view({B, T, h, P}), k = xBC[1].unsqueeze(2), q = xBC[2].unsqueeze(2);
      const auto [step, decay] = softplus_gates(parts[2], in[2], in[3]);
      const Tensor skip = in[5];
      if (attention_writes(q, k, x, decay, step, skip, {})) {
        const auto read = written_attention(q, k, x, decay, step, skip, 1);
        return {gate_then_rms_norm(read.out.flatten(2), in[4], parts[0], 1e-5)};
      }
      const auto read = decayed_attention(q, k, scale_heads(x, step), decay, 1);
      return {skip_then_gate_then_rms_norm(read.out, x, skip, in[4], parts[0], 1e-5)};
    };
    expect(c10::str("mamba2 ", N, " x ", P), mixer,
           {{"x", noise({B, T, 2 * D + 2 * N + h}, 1)},
            {"taps", 0.3 * noise({D + 2 * N, 1, 4}, 2), Kind::wide},
            {"bias", noise({h}, 3), Kind::wide, "x"},
            {"A_log", noise({h}, 4), Kind::wide, "x"},
            {"gain", noise({D}, 5), Kind::wide},
            {"skip", noise({h}, 6), Kind::wide, "x"}});
  }
}

// backward() adds to an existing gradient; grad() returns the gradient and adds nothing.
TEST_F(CudaSlices, WeightGradientsAccumulate) {
  const auto options = at::TensorOptions().device(kDevice);
  const Tensor x = noise({50, 72}, 1).to(options.dtype(at::kBFloat16));
  Tensor weight = noise({40, 72}, 2).to(options.dtype(at::kFloat)).set_requires_grad(true);
  const Tensor copy = weight.detach().to(at::kBFloat16), cotangent = noise({50, 40}, 3).to(x.options());
  const Tensor alone = torch::autograd::grad({project(x, weight, {}, copy)}, {weight}, {cotangent})[0];
  EXPECT_FALSE(weight.grad().defined());
  weight.mutable_grad() = at::ones_like(weight);
  const Tensor memory = weight.grad();
  EXPECT_TRUE(at::equal(torch::autograd::grad({project(x, weight, {}, copy)}, {weight}, {cotangent})[0], alone));
  EXPECT_TRUE(at::equal(memory, at::ones_like(memory)));
  project(x, weight, {}, copy).backward(cotangent);
  EXPECT_TRUE(weight.grad().is_same(memory));
  EXPECT_LE(norm_error(memory, alone + 1, 0), 1e-6);
  project(x, weight, {}, copy).backward(cotangent, true);  // the graph is kept: by way of autograd
  EXPECT_LE(norm_error(memory, 2 * alone + 1, 0), 1e-6);
}

}  // namespace
}  // namespace sb::test
