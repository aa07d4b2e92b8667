// Rows, gates, losses and products on a CUDA device against the same in double.
#include <chrono>

#include "base/error.h"
#include "cuda_claims.h"
#include "kernels/adam_update.h"
#include "kernels/frame_rows.h"
#include "kernels/matmul.h"
#include "kernels/operations.h"

namespace sb::test {
namespace {

const std::vector<Mode> kModes = {Mode::fp32, Mode::bf16};
constexpr int64_t kLengths[] = {1, 2, 3, 63, 64, 65, 127, 200, 513};

// The truth is the same formula in ATen's operations.
void expect(const std::string& what, const std::string& where, const Operation& f, const Givens& given,
            const std::vector<Mode>& modes = kModes, const Bounds& bounds = {}) {
  expect_on_device(what, where, f, with(kernels::Backend::aten, f), given, modes, bounds);
}

DropoutKey device_key(uint64_t seed, uint32_t place, int64_t update, const std::vector<int64_t>& samples) {
  DropoutKey key = dropout_key(seed, place, update, samples);
  key.update = key.update.to(kDevice);
  key.samples = key.samples.to(kDevice);
  return key;
}

class CudaFused : public CudaTest {};

TEST_F(CudaFused, Conv4) {
  const int64_t channels[] = {1, 8, 64, 72, 81, 200, 512};
  size_t i = 0;
  for (const int64_t time : kLengths) {
    for (const bool silu : {false, true}) {
      const int64_t C = channels[i++ % 7];
      const Givens x{{"x", noise({3, time, C}, 1)},
                     {"weight", noise({C, 1, 4}, 2), Kind::wide},
                     {"bias", noise({C}, 3), Kind::wide},
                     {"tail", noise({3, 3, C}, 4)}};
      const std::string where = c10::str("T ", time, " C ", C);
      expect(
          "conv4", where, [&](const Tensors& in) -> Tensors { return {conv4(in[0], in[1], in[2], silu, in[3])}; }, x);
      if (time == 200)
        expect_same_on_device(
            "conv4", [&](const Tensors& in) -> Tensors { return {conv4(in[0], in[1], in[2], silu, in[3])}; }, x,
            Mode::bf16);
      expect("conv4", where + " bare", [&](const Tensors& in) -> Tensors { return {conv4(in[0], in[1], {}, silu)}; },
             {x[0], x[1]});
      // columns of a wider tensor
      expect(
          "conv4", where + " slice",
          [&](const Tensors& in) -> Tensors {
            const Tensor wide = at::cat({in[0], in[0], in[0]}, 2);
            return {conv4(wide.narrow(2, C, C), in[1], in[2], silu, in[3])};
          },
          x);
    }
  }
}

TEST_F(CudaFused, TokenShift) {
  const int64_t channels[] = {4, 64, 81, 320, 1472};
  size_t i = 0;
  for (const int64_t time : kLengths) {
    const int64_t C = channels[i++ % 5];
    Givens x{{"x", noise({3, time, C}, 1)}, {"last", noise({3, 1, C}, 2)}};
    for (uint64_t mu = 0; mu < 6; ++mu) x.push_back({c10::str("mu ", mu), noise({1, 1, C}, 3 + mu), Kind::wide});
    const Operation f = [](const Tensors& in) { return token_shift(in[0], in[1], {in.begin() + 2, in.end()}); };
    expect("token_shift", c10::str("T ", time, " C ", C), f, x);
    if (time == 200) expect_same_on_device("token_shift", f, x, Mode::bf16);
    x.erase(x.begin() + 1);
    expect(
        "token_shift", c10::str("T ", time, " C ", C, " slice"),
        [&](const Tensors& in) {
          return token_shift(at::cat({in[0], in[0]}, 2).narrow(2, C, C), {}, {in.begin() + 1, in.end()});
        },
        x);
  }
}

TEST_F(CudaFused, Rwkv7KeysAndRead) {
  for (const int64_t K : {2, 64, 72, 81, 92, 128, 200, 256}) {  // 81: in ATen
    const int64_t h = 3, d = h * K, time = 37;
    const auto flat = [&](const char* name, uint64_t seed) { return Given{name, noise({2, time, d}, seed)}; };
    const auto by_head = [&](const char* name, uint64_t seed) { return Given{name, noise({2, time, h, K}, seed)}; };
    const auto wide = [](const char* name, at::IntArrayRef sizes, uint64_t seed) {
      return Given{name, noise(sizes, seed), Kind::wide};
    };
    const Operation keys = [&](const Tensors& in) -> Tensors {
      const auto [g, k, erase, write] = rwkv7_keys(in[0], in[1], in[2], in[3], in[4], h);
      return {g, k, erase, write};
    };
    const Givens key_inputs{flat("decay", 1), flat("rate", 2), flat("key", 3), wide("key_scale", {d}, 4),
                            wide("key_rate", {d}, 5)};
    expect("rwkv7_keys", c10::str("K ", K), keys, key_inputs);
    const Operation read = [](const Tensors& in) -> Tensors {
      return {rwkv7_read(in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], 1e-3)};
    };
    const Givens read_inputs{by_head("o", 1),          by_head("r", 2),      by_head("k", 3),      by_head("v", 4),
                             wide("bonus", {h, K}, 5), wide("gain", {d}, 6), wide("bias", {d}, 7), flat("gate", 8)};
    expect("rwkv7_read", c10::str("K ", K), read, read_inputs);
    if (K != 92) continue;
    expect_same_on_device("rwkv7_keys", keys, key_inputs, Mode::bf16);
    expect_same_on_device("rwkv7_read", read, read_inputs, Mode::bf16);
  }
}

TEST_F(CudaFused, Hgrn2Keys) {
  const Operation keys = [](const Tensors& in) -> Tensors {
    const auto [q, k, g] = hgrn2_keys(in[0], in[1]);
    return {q, k, g};
  };
  for (const int64_t width : {1, 8, 81, 100, 1584}) {
    const Givens x{{"query", noise({2, 37, width}, 1)}, {"forget", 3 * noise({2, 37, width}, 2)}};
    expect("hgrn2_keys", c10::str("width ", width), keys, x);
    expect(
        "hgrn2_keys", c10::str("width ", width, " slices"),
        [&](const Tensors& in) {
          return keys(slices(at::cat({in[0], in[1]}, 2), {width, width}));
        },
        x);
    if (width == 100) expect_same_on_device("hgrn2_keys", keys, x, Mode::bf16);
  }
}

TEST_F(CudaFused, DeltaKeys) {
  const Operation keys = [](const Tensors& in) -> Tensors {
    const auto [erase, key] = delta_keys(in[0], in[1]);
    return {erase, key};
  };
  for (const int64_t width : {1, 8, 81, 96, 256, 300}) {  // 300: in ATen
    const Givens x{{"k", noise({2, 37, 3, width}, 1)}, {"beta", noise({2, 37, 3}, 2), Kind::wide}};
    expect("delta_keys", c10::str("width ", width), keys, x);
    expect(
        "delta_keys", c10::str("width ", width, " slice"),
        [&](const Tensors& in) {
          return keys({slices(at::cat({in[0], in[0]}, 2), {3, 3}, 2)[1], in[1]});
        },
        x);
    if (width == 96) expect_same_on_device("delta_keys", keys, x, Mode::bf16);
  }
}

TEST_F(CudaFused, MlstmRead) {
  const int64_t shapes[][3] = {{3, 4, 5}, {14, 112, 120}, {2, 100, 101}, {5, 8, 16}, {1, 256, 264}, {3, 300, 301}};
  for (const auto& [h, V, W] : shapes) {  // 300: in ATen
    for (const int64_t time : {1, 37}) {
      const Tensor m = (2 * noise({2, time, h}, 9).abs()).to(at::kFloat).to(kDevice);
      const Givens x{{"read", noise({2, time, h, W}, 1)},
                     {"gain", noise({h * V}, 2), Kind::wide},
                     {"gate", noise({2, time, h * V}, 3)}};
      const auto m_as = [m](const Tensor& like) { return like.scalar_type() == at::kDouble ? m.to(at::kDouble) : m; };
      const Operation read = [&](const Tensors& in) -> Tensors {
        return {mlstm_read(in[0], m_as(in[0]), in[1], in[2])};
      };
      const std::string where = c10::str("h ", h, " V ", V, " W ", W, " T ", time);
      expect("mlstm_read", where, read, x);
      expect("mlstm_read", where + " bare",
             [&](const Tensors& in) -> Tensors { return {mlstm_read(in[0], m_as(in[0]), in[1], {})}; }, {x[0], x[1]});
      if (time == 37) expect_same_on_device("mlstm_read", read, x, Mode::bf16);
    }
  }
}

TEST_F(CudaFused, Mamba3GatesAndKeys) {
  const auto wide = [](const char* name, const Tensor& value) { return Given{name, value, Kind::wide}; };
  for (const int64_t H : {1, 8, 32, 300}) {  // 300: in ATen
    const auto row = [&](const char* name, uint64_t seed) { return Given{name, noise({2, 37, H}, seed)}; };
    const Operation gates = [](const Tensors& in) -> Tensors {
      const auto [step, decay, here, before] = mamba3_gates(in[0], in[1], in[2], in[3]);
      return {step, decay, here, before};
    };
    const Givens inputs{row("dt", 1), row("rate", 2), row("trap", 3), wide("bias", noise({H}, 4))};
    expect("mamba3_gates", c10::str("H ", H), gates, inputs);
    if (H == 32) expect_same_on_device("mamba3_gates", gates, inputs, Mode::bf16);
  }
  const int64_t shapes[][3] = {{37, 3, 4}, {1, 8, 64}, {50, 32, 128}, {20, 5, 256}, {20, 3, 30}};  // T, H, N; 30: ATen
  for (const auto& [time, H, N] : shapes) {
    const auto row = [&, T = time](const char* name, int64_t width, uint64_t seed) {
      return Given{name, noise({2, T, width}, seed)};
    };
    const Operation keys = [](const Tensors& in) -> Tensors {
      const auto angle = in[8].to(at::kDouble);
      const auto out = mamba3_keys({in[0], in[1], in[2], in[3], in[4], in[5]}, in[6], in[7], angle);
      return {out.k, out.q, out.angle};
    };
    const Givens inputs{row("key", N, 1),
                        row("query", N, 2),
                        wide("key_gain", noise({N}, 3)),
                        wide("query_gain", noise({N}, 4)),
                        wide("key_bias", noise({H, N}, 5)),
                        wide("query_bias", noise({H, N}, 6)),
                        row("turn", N / 4, 7),
                        wide("step", noise({2, time, H}, 8).abs()),
                        wide("angle", noise({2, H, N / 4}, 9))};
    expect("mamba3_keys", c10::str("T ", time, " H ", H, " N ", N), keys, inputs);
    if (H == 32) expect_same_on_device("mamba3_keys", keys, inputs, Mode::bf16);
  }
}

TEST_F(CudaFused, Norms) {
  for (const int64_t width : {3, 16, 64, 72, 81, 96, 120, 128, 144, 162, 256, 768, 1001, 2304, 2592, 5000}) {
    const int64_t heads = width > 256 ? 1 : 3;
    const Givens x{{"x", noise({2, 37, heads, width}, 1)},
                   {"gain", noise({width}, 2), Kind::wide},
                   {"gate", noise({2, 37, heads, width}, 3)}};
    const Givens no_gate{x[0], x[1]};
    const std::string where = c10::str("width ", width);
    expect(
        "rms_norm", where, [](const Tensors& in) -> Tensors { return {rms_norm(in[0], in[1], 1e-5)}; }, no_gate);
    expect(
        "rms_norm_outer_eps", where, [](const Tensors& in) -> Tensors { return {rms_norm_outer_eps(in[0], in[1])}; },
        no_gate);
    expect(
        "rms_norm_then_gate", where,
        [](const Tensors& in) -> Tensors { return {rms_norm_then_gate(in[0], in[1], in[2], 1e-5)}; }, x);
    expect(
        "rms_norm_then_sigmoid", where,
        [](const Tensors& in) -> Tensors { return {rms_norm_then_sigmoid(in[0], in[1], in[2], 1e-5)}; }, x);
    expect(
        "gate_then_rms_norm", where,
        [](const Tensors& in) -> Tensors { return {gate_then_rms_norm(in[0], in[1], in[2], 1e-5)}; }, x);
    expect("l2_normalise", where, [](const Tensors& in) -> Tensors { return {l2_normalise(in[0])}; }, {x[0]});
    expect("l2_normalise", where + " slice",
           [&](const Tensors& in) -> Tensors {
             const Tensor wide = at::cat({in[0].flatten(2), in[0].flatten(2)}, 2);
             return {l2_normalise(wide.narrow(2, heads * width, heads * width).view(in[0].sizes()))};
           },
           {x[0]});
  }
}

TEST_F(CudaFused, Gates) {
  for (const int64_t width : {1, 5, 16, 64, 81, 130, 1152}) {
    const std::string where = c10::str("width ", width);
    const Given y{"y", noise({3, 50, width}, 2)}, z{"z", 4 * noise({3, 50, width}, 1)},
        bias{"bias", noise({width}, 3), Kind::wide}, A_log{"A_log", noise({width}, 5), Kind::wide};
    expect("gate_silu", where, [](const Tensors& in) -> Tensors { return {gate_silu(in[0], in[1])}; }, {y, z});
    expect("gate_sigmoid", where, [](const Tensors& in) -> Tensors { return {gate_sigmoid(in[0], in[1], 2)}; }, {y, z});
    expect("gate_swish", where, [](const Tensors& in) -> Tensors { return {gate_swish(in[0], in[1])}; },
           {{"ab", noise({3, 50, 2 * width}, 6)}, {"beta", at::full({1}, 0.8, at::kDouble), Kind::wide, "ab"}});
    expect("softplus_bias", where, [](const Tensors& in) -> Tensors { return {softplus_bias(in[0], in[1])}; },
           {z, bias});
    expect("softplus_decay", where, [](const Tensors& in) -> Tensors { return {softplus_decay(in[0], in[1], in[2])}; },
           {z, bias, A_log});
    expect("softplus_gates", where,
           [](const Tensors& in) -> Tensors {
             const auto [step, decay] = softplus_gates(in[0], in[1], in[2]);
             return {step, decay};
           },
           {z, bias, A_log});
    expect("sigmoid_gate", where, [](const Tensors& in) -> Tensors { return {sigmoid_gate(in[0], 2)}; }, {z});
    expect("log_sigmoid", where, [](const Tensors& in) -> Tensors { return {log_sigmoid(in[0], 1.0 / 16)}; }, {z});
  }
}

TEST_F(CudaFused, ScaledHeadsAndReadOut) {
  for (const auto& [heads, width] :
       {std::array<int64_t, 2>{1, 8}, {4, 64}, {8, 64}, {32, 72}, {32, 81}, {6, 96}, {3, 256}}) {
    const std::string where = c10::str(heads, " heads of ", width);
    const Given x{"x", noise({2, 37, heads, width}, 1)}, read{"read", noise({2, 37, heads, width}, 2)};
    expect("scale_heads", where, [](const Tensors& in) -> Tensors { return {scale_heads(in[0], in[1])}; },
           {x, {"w", noise({2, 37, heads}, 3), Kind::wide}});
    const Operation read_out = [](const Tensors& in) -> Tensors {
      return {skip_then_gate_then_rms_norm(in[0], in[1], in[2], in[3], in[4], 1e-5)};
    };
    const Givens all{read,
                     x,
                     {"skip", noise({heads}, 4), Kind::wide, "x"},
                     {"gain", noise({heads * width}, 5), Kind::wide},
                     {"gate", noise({2, 37, heads * width}, 6)}};
    expect("skip_then_gate_then_rms_norm", where, read_out, all);
    // x and the gate as slices of wider tensors
    expect(
        "skip_then_gate_then_rms_norm", where + " slice",
        [&](const Tensors& in) -> Tensors {
          const Tensor wide = at::cat({in[4], in[1].flatten(2)}, 2);
          return read_out({in[0], wide.narrow(2, heads * width, heads * width).view(in[1].sizes()), in[2], in[3],
                           wide.narrow(2, 0, heads * width)});
        },
        all);
  }
}

TEST_F(CudaFused, ResidualNormAndDropout) {
  const DropoutKey key = device_key(0x123456789abcdef0, 0xabcdef, (int64_t{3} << 32) + 17, {5, 70000, 0});
  for (const int64_t width : {8, 81, 256, 768, 1152, 1296, 2048, 4001}) {
    for (const double p : {0.0, 0.3}) {
      const Givens x{{"z", noise({3, 33, width}, 1)},
                     {"residual", noise({3, 33, width}, 2)},
                     {"gain", noise({width}, 3), Kind::wide},
                     {"bias", noise({width}, 4), Kind::wide}};
      const std::string where = c10::str("width ", width, " p ", p);
      const Operation f = [&](const Tensors& in) -> Tensors {
        return {residual_layer_norm(in[0], in[1], in[2], in[3], p, key)};
      };
      expect("residual_layer_norm", where, f, x);
      Givens wide_stream = x;
      wide_stream[1].kind = Kind::wide;
      expect("residual_layer_norm", where + " float stream", f, wide_stream, {Mode::bf16});
      Givens far = x;  // a mean of 30 leaves fewer digits to the deviations
      far[1].value = far[1].value + 30;
      expect("residual_layer_norm", where + " mean 30", f, far, kModes, {.fp32 = 4e-5, .bf16 = 8e-2});
    }
    for (const bool tied : {false, true})
      expect("dropout", c10::str("width ", width, tied ? " tied" : ""),
             [&](const Tensors& in) -> Tensors { return {dropout(in[0], 0.3, key, tied)}; },
             {{"x", noise({3, 33, width}, 1)}});
  }
}

TEST_F(CudaFused, DropoutMasksMatchCpu) {
  const std::vector<int64_t> samples{5, (int64_t{1} << 40) + 70000, 0};
  const Tensor ones = at::ones({3, 17, 200});
  const Tensor expected = dropout(ones, 0.3, dropout_key(77, 12, 3, samples));
  EXPECT_TRUE(at::equal(dropout(ones.to(kDevice), 0.3, device_key(77, 12, 3, samples)).cpu(), expected));
}

TEST_F(CudaFused, Rope) {
  for (const int64_t width : {2, 6, 64, 72, 96, 120, 128})
    for (const int sense : {1, -1})
      for (const int64_t offset : {0, 9})
        expect("rope", c10::str("width ", width, " sense ", sense, " offset ", offset),
               [&](const Tensors& in) -> Tensors { return {rope(in[0], 1000, sense, offset)}; },
               {{"x", noise({2, 65, 3, width}, 1)}});
}

TEST_F(CudaFused, CausalAttention) {
  for (const int64_t time : kLengths) {
    for (const int64_t width : {46, 64, 81, 96, 128, 256}) {
      const Givens x{{"q", noise({2, time, 2, width}, 1), Kind::operand, "v"},
                     {"k", noise({2, time, 2, width}, 2), Kind::operand, "v"},
                     {"v", noise({2, time, 2, width}, 3)}};
      const Operation f = [](const Tensors& in) -> Tensors { return {causal_attention(in[0], in[1], in[2])}; };
      expect("causal_attention", c10::str("T ", time, " width ", width), f, x);
      if (time == 513 && (width == 46 || width == 96)) expect_same_on_device("causal_attention", f, x, Mode::bf16);
    }
  }
  expect("causal_attention", "offset 5",
         [](const Tensors& in) -> Tensors { return {causal_attention(in[0].narrow(1, 0, 30), in[1], in[2], 5)}; },
         {{"q", noise({2, 35, 2, 64}, 1)}, {"k", noise({2, 35, 2, 64}, 2)}, {"v", noise({2, 35, 2, 64}, 3)}});
}

// A carried cache: without gradients, in flash attention.
TEST_F(CudaFused, CausalAttentionBehindACache) {
  const at::NoGradGuard no_grad;
  for (const int64_t offset : {1, 70, 1024})
    for (const int64_t time : {1, 65, 513})
      for (const int64_t width : {12, 64, 81}) {
        const Tensor q = noise({2, time, 2, width}, 1), k = noise({2, offset + time, 2, width}, 2),
                     v = noise({2, offset + time, 2, width}, 3);
        const auto low = [](const Tensor& x) { return x.to(at::kBFloat16).to(kDevice); };
        const Tensor truth = causal_attention(q, k, v, offset);
        const Tensor found = causal_attention(low(q), low(k), low(v), offset);
        ASSERT_TRUE(kernels::has_kernel(op::CausalAttention{offset}, {low(q), low(k), low(v)}));
        EXPECT_LT((found.cpu().to(at::kDouble) - truth).abs().max().item<double>() / truth.abs().max().item<double>(),
                  2e-2)
            << "offset " << offset << " T " << time << " width " << width;
      }
}

// The same with decaying scores; gates near 1, near 1/2, and with some near 0. Without a cache: longer than the
// gradient of the gates supports.
TEST_F(CudaFused, ForgettingAttentionBehindACache) {
  const at::NoGradGuard no_grad;
  const auto expect = [](int64_t offset, int64_t time, int64_t width, double bias, bool strong) {
    const int64_t frames = offset + time;
    Tensor gates = at::log_sigmoid(noise({1, frames, 2}, 4) + bias);
    if (strong) gates = at::where(noise({1, frames, 2}, 5) > 1.3, at::full_like(gates, -1e4), gates);
    const auto low = [](const Tensor& x) { return x.to(at::kBFloat16); };
    const Tensor q = low(noise({1, time, 2, width}, 1)), k = low(noise({1, frames, 2, width}, 2)),
                 v = low(noise({1, frames, 2, width}, 3)), g = gates.to(at::kFloat);
    const auto on_device = [](const Tensor& x) { return x.to(kDevice); };
    const auto wide = [](const Tensor& x) { return x.to(kDevice).to(at::kDouble); };
    const Tensor truth = forgetting_attention(wide(q), wide(k), wide(v), wide(g), offset);
    const Tensors given{on_device(q), on_device(k), on_device(v), on_device(g)};
    ASSERT_TRUE(kernels::has_kernel(op::ForgettingAttention{offset}, given));
    const Tensor found = forgetting_attention(given[0], given[1], given[2], given[3], offset);
    EXPECT_LT((found.to(at::kDouble) - truth).norm().item<double>() / truth.norm().item<double>(), 2e-2)
        << "offset " << offset << " T " << time << " width " << width << " bias " << bias << (strong ? " strong" : "");
  };
  for (const int64_t offset : {1, 70, 1024})
    for (const int64_t time : {1, 65, 513})
      for (const int64_t width : {12, 64, 81, 100})
        for (const double bias : {0., 6.}) expect(offset, time, width, bias, false);
  for (const double bias : {0., 3., 6.}) {
    expect(1000, 200, 64, bias, true);
    expect(19000, 1200, 100, bias, false);
    expect(0, 20200, 64, bias, false);
  }
}

TEST_F(CudaFused, ForgettingAttention) {
  const Operation f = [](const Tensors& in) -> Tensors { return {forgetting_attention(in[0], in[1], in[2], in[3])}; };
  const auto given = [](int64_t time, int64_t width, double bias, bool strong) -> Givens {
    const Tensor gates = at::log_sigmoid(noise({2, time, 2}, 4) + bias);
    return {{"q", noise({2, time, 2, width}, 1), Kind::operand, "v"},
            {"k", noise({2, time, 2, width}, 2), Kind::operand, "v"},
            {"v", noise({2, time, 2, width}, 3)},
            {"g", strong ? at::where(noise({2, time, 2}, 5) > 1.3, at::full_like(gates, -1e4), gates) : gates,
             Kind::wide, "v"}};
  };
  for (const int64_t time : kLengths)
    for (const int64_t width : {46, 64, 81, 100, 128, 180, 248, 256})  // 256: in ATen
      for (const double bias : {0., 6.})
        expect("forgetting_attention", c10::str("T ", time, " width ", width, " bias ", bias), f,
               given(time, width, bias, false));
  expect("forgetting_attention", "strong", f, given(200, 100, 3, true));
  expect("forgetting_attention", "T 1300", f, given(1300, 64, 0, false));
  expect(
      "forgetting_attention", "offset 5",
      [](const Tensors& in) -> Tensors {
        return {forgetting_attention(in[0].narrow(1, 0, 30), in[1], in[2], in[3], 5)};
      },
      given(35, 64, 3, false));
  for (const int64_t width : {46, 100})
    expect_same_on_device("forgetting_attention", f, given(513, width, 3, false), Mode::bf16);
}

TEST_F(CudaFused, ProjectWithBf16Copy) {
  for (const bool biased : {false, true}) {
    for (const auto& [rows, in_width, out_width] :
         {std::array<int64_t, 3>{1, 8, 8}, {65, 72, 81}, {65, 81, 72}, {200, 1152, 256}, {513, 64, 1601}}) {
      // The weight is such as bf16 holds, so that its copy is it; its gradient is float32 all the same.
      const Givens x{{"x", noise({2, rows, in_width}, 1)},
                     {"weight", noise({out_width, in_width}, 2).to(at::kBFloat16).to(at::kDouble), Kind::wide},
                     {"bias", biased ? noise({out_width}, 3) : Tensor(), Kind::wide}};
      const auto f = [](const Tensors& in) -> Tensors {
        return {project(in[0], in[1], in[2], in[1].detach().to(at::kBFloat16))};
      };
      const auto truth = [](const Tensors& in) -> Tensors { return {at::linear(in[0], in[1], in[2])}; };
      expect_on_device("project", c10::str(rows, " rows, ", in_width, " to ", out_width), f, truth, x, {Mode::bf16});
      expect_on_device("project", c10::str(rows, " rows, ", in_width, " to ", out_width),
                       [](const Tensors& in) -> Tensors { return {project(in[0], in[1], in[2])}; }, truth, x,
                       {Mode::fp32, Mode::tf32});
      expect_same_on_device("project", f, x, Mode::bf16);
    }
  }
  const Tensor a = at::randn({3, 20, 31}), b = at::randn({3, 31, 17});
  EXPECT_LE(norm_error(batched_product(a.to(kDevice), b.to(kDevice)).cpu(), at::bmm(a, b), 0), 1e-5);
}

TEST_F(CudaFused, DecoderCrossEntropy) {
  for (const int64_t classes : {2, 5, 33, 200, 1601, 2500}) {
    for (const int64_t rows : {1, 63, 700}) {
      const int64_t width = classes == 200 ? 256 : 72;
      Tensor target = at::remainder(at::arange(rows, at::kLong) * 7919, classes);
      if (rows > 1) target.masked_fill_(at::remainder(at::arange(rows, at::kLong), 5).eq(3), -1);
      target = target.to(kDevice);
      const Givens x{{"h", noise({rows, width}, 1)},
                     {"weight", (0.2 * noise({classes, width}, 2)).to(at::kBFloat16).to(at::kDouble), Kind::wide},
                     {"bias", noise({classes}, 3), Kind::wide}};
      const std::string where = c10::str(classes, " classes, ", rows, " rows");
      const Operation plain = [&](const Tensors& in) -> Tensors {
        return {decoder_cross_entropy(in[0], in[1], in[2], target)};
      };
      const Operation copied = [&](const Tensors& in) -> Tensors {
        return {decoder_cross_entropy(in[0], in[1], in[2], target, {}, in[1].detach().to(at::kBFloat16))};
      };
      const Operation truth = with(kernels::Backend::aten, plain);
      expect_on_device("decoder_cross_entropy", where, plain, truth, x, {Mode::fp32, Mode::tf32});
      expect_on_device("decoder_cross_entropy", where, copied, truth, x, {Mode::bf16});
      if (rows == 700) expect_same_on_device("decoder_cross_entropy", copied, x, Mode::bf16);
    }
  }
}

TEST_F(CudaFused, GruWithFloatWeights) {
  for (const double a_min : {0.0, 0.6}) {
    // A bound of z is ATen's, and has a kink that rounding to bfloat16 crosses.
    const std::vector<Mode> modes = a_min > 0 ? std::vector{Mode::fp32} : kModes;
    for (const int64_t d : {1, 16, 81}) {
      for (const int64_t time : {1, 2, 65}) {
        const Givens x{{"gates", noise({3, time, 3 * d}, 1)},
                       {"weight", noise({3 * d, d}, 2) / std::sqrt(static_cast<double>(d)), Kind::wide},
                       {"bias", noise({3 * d}, 3), Kind::wide},
                       {"first", noise({3, d}, 4), Kind::wide}};
        const Operation f = [=](const Tensors& in) -> Tensors {
          return {gru_sequence(in[0], in[1], in[2], in[3], a_min)};
        };
        expect_on_device("gru_sequence", c10::str("d ", d, ", T ", time, ", a_min ", a_min), f,
                         with(kernels::Backend::naive, f), x, modes);
        if (time == 65) expect_same_on_device("gru_sequence", f, x, Mode::bf16);
        // Cut anywhere, with the state carried in float32.
        const Operation cut = [=](const Tensors& in) -> Tensors {
          const int64_t first = time / 2, rest = time - first;
          if (first == 0) return f(in);
          const Tensor before = gru_sequence(in[0].narrow(1, 0, first), in[1], in[2], in[3], a_min);
          const Tensor after =
              gru_sequence(in[0].narrow(1, first, rest), in[1], in[2], before.select(1, first - 1).contiguous(), a_min);
          return {at::cat({before, after}, 1)};
        };
        expect_on_device("gru_sequence", c10::str("cut, d ", d, ", T ", time), cut, with(kernels::Backend::naive, f), x,
                         modes);
      }
    }
  }
}

TEST_F(CudaFused, AdamMatchesFormulaAndStopsForGood) {
  const int64_t n = 1003;
  const auto doubles = [](const Tensor& x) { return x.to(at::kDouble); };
  const auto one = [](double x) { return at::full({1}, x, at::TensorOptions(kDevice).dtype(at::kDouble)); };
  const auto count = [](int64_t x) { return at::full({1}, x, at::TensorOptions(kDevice).dtype(at::kLong)); };
  const Tensor start = noise({n}, 1).to(at::kFloat).to(kDevice);
  kernels::FlatAdam adam;
  adam.parameters = start.clone();
  adam.first_moment = at::zeros_like(start);
  adam.second_moment = at::zeros_like(start);
  adam.copy = at::zeros_like(start, at::kBFloat16);
  adam.stretches = kernels::adam_stretches({{0, 500, 0, true}, {500, n - 500, 1e-4, false}}, kDevice);
  adam.lr = one(1e-3);
  adam.clip = one(1);
  adam.updates = count(0);
  adam.sound = count(1);
  adam.weight_decay = 0.1;
  Tensor p = doubles(start), m = at::zeros_like(p), v = at::zeros_like(p);
  Tensor rate = at::full_like(p, 1e-3), shrink = at::full_like(p, 1 - 1e-3 * 0.1);
  rate.slice(0, 500).fill_(1e-4);
  shrink.slice(0, 500).fill_(1);
  for (int t = 1; t <= 3; ++t) {
    const Tensor g = noise({n}, 10 + static_cast<uint64_t>(t)).to(at::kFloat).to(kDevice);
    const Tensor report = kernels::adam_update(adam, g, one(2.5)).cpu();
    const double norm = norm_of(g);
    EXPECT_NEAR(report[0].item<double>() / norm, 1, 1e-12);
    EXPECT_EQ(report[1].item<double>(), 1);
    const Tensor scaled = doubles(g) * std::min(1.0, 1 / (norm + 1e-6));
    m = 0.9 * m + 0.1 * scaled;
    v = 0.999 * v + 0.001 * scaled * scaled;
    p = p * shrink - rate * (m / (1 - std::pow(0.9, t))) / ((v / (1 - std::pow(0.999, t))).sqrt() + 1e-8);
  }
  EXPECT_LE(norm_error(adam.parameters, p, 0), 1e-6);
  EXPECT_LE(norm_error(adam.first_moment, m, 0), 1e-5);
  EXPECT_LE(norm_error(adam.second_moment, v, 0), 1e-5);
  EXPECT_TRUE(at::equal(adam.copy, adam.parameters.to(at::kBFloat16)));
  EXPECT_EQ(adam.updates.item<int64_t>(), 3);
  const Tensor before = adam.parameters.clone();
  for (const double loss : {std::nan(""), 1.0})  // the second is sound again, and too late
    EXPECT_EQ(kernels::adam_update(adam, at::ones_like(start), one(loss)).cpu()[1].item<double>(), 0);
  EXPECT_TRUE(at::equal(adam.parameters, before));
  EXPECT_EQ(adam.updates.item<int64_t>(), 3);
  EXPECT_EQ(adam.sound.item<int64_t>(), 0);
}

TEST_F(CudaFused, FramesAreOneHot) {
  const Tensor symbol = at::tensor({0, 3, -1, -2, 2, 1}, at::kShort).view({2, 3}).to(kDevice);
  Tensor expected = at::zeros({6, 4});
  for (const auto& [row, c] : {std::pair{0, 0}, {1, 3}, {4, 2}, {5, 1}}) expected[row][c] = 1;
  expected = expected.view({2, 3, 4});
  EXPECT_TRUE(at::equal(kernels::frame_rows(symbol, 4, at::kFloat).cpu(), expected));
  EXPECT_TRUE(at::equal(kernels::frame_rows(symbol, 4, at::kBFloat16).cpu(), expected.to(at::kBFloat16)));
  const Tensor samples = at::tensor({7, 9}, at::kLong).to(kDevice);
  const Tensor noisy = kernels::frame_rows(symbol, 4, at::kFloat, {0.25, 11, 0, samples}).cpu() - expected;
  EXPECT_TRUE(noisy.ge(0).all().item<bool>() && noisy.lt(0.25).all().item<bool>());
  EXPECT_EQ(noisy[1][0].abs().max().item<float>(), 0);  // padding
  EXPECT_GT(noisy[0][2].abs().max().item<float>(), 0);  // a blank frame
}

TEST(CudaAbsent, FunctionsReportMissingKernels) {
  if (kernels::cuda_kernels_are_built()) GTEST_SKIP() << "this build has CUDA kernels";
  try {
    kernels::frame_rows(at::zeros({1, 1}, at::kShort), 4, at::kFloat);
    FAIL() << "made frames without kernels";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "[frame_rows] no CUDA kernels, expected a build with nvcc and a PyTorch with CUDA, got one without");
  }
}

// Not a test: milliseconds of forward and backward through the public functions, batch 64, T 400, in bf16.
class DISABLED_CudaTimes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!device_is_there()) GTEST_SKIP() << "no CUDA kernels in this build, or no CUDA device";
  }
  static Tensor random(at::IntArrayRef sizes, at::ScalarType type = at::kBFloat16) {
    return at::randn(sizes, at::TensorOptions(kDevice).dtype(at::kFloat)).to(type).requires_grad_();
  }
  static void time(const std::string& what, const Operation& f, Tensors in) {
    const auto wait = [&] { at::zeros({1}, at::TensorOptions(kDevice)).item<float>(); };
    Tensors leaves;
    for (const Tensor& x : in)
      if (x.defined() && x.requires_grad()) leaves.push_back(x);
    Tensor cotangent;
    const auto once = [&] {
      const Tensor out = f(in)[0];
      if (!cotangent.defined()) cotangent = at::randn(out.sizes(), out.options());
      torch::autograd::grad({out}, leaves, {cotangent});
    };
    const auto forward = [&] {
      const at::NoGradGuard none;
      f(in);
    };
    const auto measure = [&](const std::function<void()>& body) {
      for (int i = 0; i < 3; ++i) body();
      wait();
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < 20; ++i) body();
      wait();
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 20 * 1e3;
    };
    const double both = measure(once), alone = measure(forward);
    std::printf("| %-44s | %8.3f | %8.3f |\n", what.c_str(), alone, both);
  }
};

TEST_F(DISABLED_CudaTimes, Table) {
  const int64_t B = 64, T = 400;
  const double key_scale = 0.1;
  for (const int64_t width : {256, 1152}) {
    const int64_t H = width == 256 ? 4 : 16, K = width / H, V = 2 * K, d = width, inner = 2 * d;
    const auto name = [&](const char* what) { return c10::str(what, ", width ", width); };
    const auto wide = at::kFloat;
    const Tensor g = -0.1 * random({B, T, H}, wide).detach().abs(),
                 beta = random({B, T, 1, H}, wide).detach().sigmoid();
    time(name("gated_delta_rule"),
         [&](const Tensors& x) -> Tensors { return {gated_delta_rule(x[0], x[1], x[2], x[3], x[4], 1, {}).out}; },
         {random({B, T, H, K}), (key_scale * random({B, T, 1, H, K}).detach()).requires_grad_(),
          random({B, T, 1, H, V}), beta.clone().requires_grad_(), g.clone().requires_grad_()});
    time(name("decayed_attention, vector"),
         [&](const Tensors& x) -> Tensors { return {decayed_attention(x[0], x[1], x[2], x[3], 1).out}; },
         {random({B, T, H, K}), random({B, T, H, K}), random({B, T, H, V}),
          (-0.1 * random({B, T, H, K}, wide).detach().abs()).requires_grad_()});
    time(name("decayed_attention, scalar, 128 states"),
         [&](const Tensors& x) -> Tensors { return {decayed_attention(x[0], x[1], x[2], x[3], 1).out}; },
         {random({B, T, 1, 128}), random({B, T, 1, 128}), random({B, T, 2 * H, K}),
          (-0.1 * random({B, T, 2 * H}, wide).detach().abs()).requires_grad_()});
    time(name("selective_scan, 64 states"),
         [&](const Tensors& x) -> Tensors { return {selective_scan(x[0], x[1], x[2], x[3], x[4], x[5]).out}; },
         {random({B, T, inner}), random({B, T, inner}, wide).detach().sigmoid().requires_grad_(),
          random({inner, 64}, wide), random({B, T, 64}), random({B, T, 64}), random({inner}, wide)});
    time(name("conv4, 4 d"), [](const Tensors& x) -> Tensors { return {conv4(x[0], x[1], {}, true)}; },
         {random({B, T, 4 * d}), random({4 * d, 1, 4}, wide)});
    time(name("l2_normalise, q"), [](const Tensors& x) -> Tensors { return {l2_normalise(x[0])}; },
         {random({B, T, H, K})});
    time(name("rms_norm_then_gate"),
         [](const Tensors& x) -> Tensors { return {rms_norm_then_gate(x[0], x[1], x[2], 1e-5)}; },
         {random({B, T, H, V}), random({V}, wide), random({B, T, H, V})});
    time(name("gate_then_rms_norm"),
         [](const Tensors& x) -> Tensors { return {gate_then_rms_norm(x[0], x[1], x[2], 1e-5)}; },
         {random({B, T, inner}), random({inner}, wide), random({B, T, inner})});
    time(name("scale_heads"), [](const Tensors& x) -> Tensors { return {scale_heads(x[0], x[1])}; },
         {random({B, T, 2 * H, K}), random({B, T, 2 * H}, wide)});
    time(name("skip_then_gate_then_rms_norm"),
         [](const Tensors& x) -> Tensors { return {skip_then_gate_then_rms_norm(x[0], x[1], x[2], x[3], x[4], 1e-5)}; },
         {random({B, T, 2 * H, K}), random({B, T, 2 * H, K}), random({2 * H}, wide), random({inner}, wide),
          random({B, T, inner})});
    time(name("softplus_decay, heads"), [](const Tensors& x) -> Tensors { return {softplus_decay(x[0], x[1], x[2])}; },
         {random({B, T, H}), random({H}, wide), random({H}, wide)});
    time(name("gate_silu"), [](const Tensors& x) -> Tensors { return {gate_silu(x[0], x[1])}; },
         {random({B, T, inner}), random({B, T, inner})});
    time(name("gate_swish"), [](const Tensors& x) -> Tensors { return {gate_swish(x[0], x[1])}; },
         {random({B, T, 2 * d}), random({1}, wide)});
    time(name("softplus_bias, 2 d"), [](const Tensors& x) -> Tensors { return {softplus_bias(x[0], x[1])}; },
         {random({B, T, inner}), random({inner}, wide)});
    time(name("residual_layer_norm"),
         [](const Tensors& x) -> Tensors { return {residual_layer_norm(x[0], x[1], x[2], x[3], 0, std::nullopt)}; },
         {random({B, T, d}), random({B, T, d}), random({d}, wide), random({d}, wide)});
    std::vector<Tensor> shifts{random({B, T, d})};
    for (int mu = 0; mu < 6; ++mu) shifts.push_back(random({1, 1, d}, wide));
    time(
        name("token_shift"),
        [](const Tensors& x) -> Tensors {
          return {at::stack(token_shift(x[0], {}, {x.begin() + 1, x.end()}))};
        },
        shifts);
    time(name("rope"), [](const Tensors& x) -> Tensors { return {rope(x[0], 1e4, 1)}; }, {random({B, T, H, K})});
    time(name("causal_attention, 8 heads"),
         [](const Tensors& x) -> Tensors { return {causal_attention(x[0], x[1], x[2])}; },
         {random({B, T, 8, d / 8}), random({B, T, 8, d / 8}), random({B, T, 8, d / 8})});
    time(name("forgetting_attention"),
         [](const Tensors& x) -> Tensors { return {forgetting_attention(x[0], x[1], x[2], x[3])}; },
         {random({B, T, H, K}), random({B, T, H, K}), random({B, T, H, K}), g.clone().requires_grad_()});
    const auto unit_rows = [&] { return l2_normalise(random({B, T, H, K}, wide).detach()).requires_grad_(); };
    time(name("mesa_attention"),
         [](const Tensors& x) -> Tensors { return {mesa_attention(x[0], x[1], x[2], x[3], x[4], x[5], 30).out}; },
         {unit_rows(), unit_rows(), random({B, T, H, K}), random({B, T, H}, wide).detach().sigmoid().requires_grad_(),
          g.clone().requires_grad_(), random({H, K}, wide).detach().abs().add(0.25).requires_grad_()});
    const Tensor in_weight = random({6 * d, d}, wide);
    time(name("project to 6 d"), [](const Tensors& x) -> Tensors { return {project(x[0], x[1], {}, x[2])}; },
         {random({B, T, d}), in_weight, in_weight.detach().to(at::kBFloat16)});
    const Tensor weight = random({200, d}, wide),
                 target = at::randint(200, {B * T}, at::TensorOptions(kDevice).dtype(at::kLong));
    time(name("decoder_cross_entropy, 200 classes"),
         [&](const Tensors& x) -> Tensors { return {decoder_cross_entropy(x[0], x[1], x[2], target, {}, x[3])}; },
         {random({B * T, d}), weight, random({200}, wide), weight.detach().to(at::kBFloat16)});
  }
}

}  // namespace
}  // namespace sb::test
