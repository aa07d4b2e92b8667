// The recurrences on a CUDA device against the loop in double.
#include "cuda_claims.h"
#include "kernels/operations.h"

namespace sb::test {
namespace {

constexpr int64_t kLengths[] = {1, 2, 3, 63, 64, 65, 127, 200, 513, 2200};
// Keys and values of a head: those of the models' widths, and the edges.
constexpr int64_t kHeads[][2] = {{64, 128},  {72, 144},  {81, 162},  {96, 192},
                                 {120, 240}, {128, 256}, {256, 256}, {81, 81}};
const std::vector<Mode> kModes = {Mode::fp32, Mode::tf32, Mode::bf16};

// All of them `level` (<= 0), around -0.1 (1), or a mixture of all (2)
Tensor log_decays(at::IntArrayRef sizes, double level, uint64_t seed) {
  if (level <= 0) return at::full(sizes, level, at::kDouble);
  const Tensor mild = -0.1 * noise(sizes, seed).abs();
  if (level == 1) return mild;
  const Tensor choice = noise(sizes, seed + 1);
  return at::where(
      choice > 1.6, at::full_like(mild, -1e4),
      at::where(choice > 1.0, at::full_like(mild, -30.0), at::where(choice < -1, at::zeros_like(mild), mild)));
}
constexpr double kLevels[] = {1, 0, -30, -1e4, 2};

Tensor unit_rows(const Tensor& x) {
  return x / x.norm(2, {-1}, true);
}

struct DeltaCase {
  int64_t B, T, n, H, K, V;
  double level;  // 3: no decay
};
std::string text(const DeltaCase& c) {
  return c10::str("B ", c.B, " T ", c.T, " n ", c.n, " H ", c.H, " K ", c.K, " V ", c.V, " level ", c.level);
}
Givens given(const DeltaCase& c) {
  const auto seed = static_cast<uint64_t>(c.T * 1000 + c.K * 10 + c.V + c.n);
  return {{"q", noise({c.B, c.T, c.H, c.K}, seed + 1)},
          {"k", unit_rows(noise({c.B, c.T, c.n, c.H, c.K}, seed + 2))},
          {"v", noise({c.B, c.T, c.n, c.H, c.V}, seed + 3)},
          {"beta", at::sigmoid(noise({c.B, c.T, c.n, c.H}, seed + 7)), Kind::wide, "v"},
          {"g", c.level == 3 ? Tensor() : log_decays({c.B, c.T, c.H}, c.level, seed + 4), Kind::wide, "q"},
          {"state", c.T % 7 == 2 ? Tensor() : noise({c.B, c.H, c.K, c.V}, seed + 6), Kind::wide}};
}
Tensors delta(const Tensors& x) {
  const OutAndState r =
      gated_delta_rule(x[0], x[1], x[2], x[3], x[4], 1 / std::sqrt(static_cast<double>(x[0].size(3))), x[5]);
  return {r.out, r.state};
}

struct GeneralCase {
  int decay;  // axes of g: 0 (none), 3 or 4
  int64_t B, T, H, K, V;
  double level;
  EraseFrom from;
};
std::string text(const GeneralCase& c) {
  return c10::str("axes of g ", c.decay, " B ", c.B, " T ", c.T, " H ", c.H, " K ", c.K, " V ", c.V, " level ", c.level,
                  c.from == EraseFrom::before_decay ? " before" : " after");
}
// Unit vectors erase; writes are multiples of them below 1, plus a little of another direction.
Givens given(const GeneralCase& c) {
  const auto seed = static_cast<uint64_t>(c.T * 1000 + c.K * 10 + c.V + c.decay);
  const std::vector<int64_t> keys = {c.B, c.T, c.H, c.K};
  const Tensor erase = unit_rows(noise(keys, seed + 2));
  Tensor g;
  if (c.decay == 3) g = log_decays({c.B, c.T, c.H}, c.level, seed + 4);
  if (c.decay == 4) g = log_decays(keys, c.level, seed + 4);
  return {{"q", noise(keys, seed + 1)},
          {"k", 0.5 * unit_rows(noise(keys, seed + 8))},
          {"v", noise({c.B, c.T, c.H, c.V}, seed + 3)},
          {"erase", erase, Kind::operand, "q"},
          {"write", erase * at::sigmoid(noise(keys, seed + 7)) + 0.05 * unit_rows(noise(keys, seed + 9)), Kind::operand,
           "q"},
          {"g", g, Kind::wide, "q"},
          {"state", c.T % 7 == 2 ? Tensor() : noise({c.B, c.H, c.K, c.V}, seed + 6), Kind::wide}};
}
Operation general(EraseFrom from) {
  return [from](const Tensors& x) -> Tensors {
    const OutAndState r = general_delta_rule({x[0], x[1], x[2], x[3], x[4], x[5]},
                                             1 / std::sqrt(static_cast<double>(x[0].size(3))), from, x[6]);
    return {r.out, r.state};
  };
}

struct AttentionCase {
  int decay;  // axes of g: 0 (none), 1, 3 or 4
  int64_t B, T, H, G, K, V;
  double level;
};
std::string text(const AttentionCase& c) {
  return c10::str("axes of g ", c.decay, " B ", c.B, " T ", c.T, " H ", c.H, " G ", c.G, " K ", c.K, " V ", c.V,
                  " level ", c.level);
}
Givens given(const AttentionCase& c) {
  const auto seed = static_cast<uint64_t>(c.T * 1000 + c.K * 10 + c.V + c.decay);
  Tensor g;
  if (c.decay == 1) g = log_decays({c.H}, c.level, seed + 4);
  if (c.decay == 3) g = log_decays({c.B, c.T, c.H}, c.level, seed + 4);
  if (c.decay == 4) g = log_decays({c.B, c.T, c.H, c.K}, c.level, seed + 4);
  return {{"q", noise({c.B, c.T, c.G, c.K}, seed + 1)},
          {"k", noise({c.B, c.T, c.G, c.K}, seed + 2)},
          {"v", noise({c.B, c.T, c.H, c.V}, seed + 3)},
          {"g", g, Kind::wide, "q"},
          {"state", c.T % 7 == 2 ? Tensor() : noise({c.B, c.H, c.K, c.V}, seed + 6), Kind::wide}};
}
Tensors attention(const Tensors& x) {
  const OutAndState r =
      decayed_attention(x[0], x[1], x[2], x[3], 1 / std::sqrt(static_cast<double>(x[0].size(3))), x[4]);
  return {r.out, r.state};
}

// q, k, x, g, write, skip, state
Givens given_writes(const AttentionCase& c) {
  Givens x = given(c);
  x[2].name = "x";
  const auto seed = static_cast<uint64_t>(c.T + c.V);
  x.insert(x.begin() + 4, {Given{"write", noise({c.B, c.T, c.H}, seed + 7), Kind::wide, "q"},
                           Given{"skip", noise({c.H}, seed + 8), Kind::wide, "x"}});
  return x;
}
Tensors writes(const Tensors& x) {
  const OutAndState r =
      written_attention(x[0], x[1], x[2], x[3], x[4], x[5], 1 / std::sqrt(static_cast<double>(x[0].size(3))), x[6]);
  return {r.out, r.state};
}

struct ScanCase {
  int64_t B, T, D, N;
  bool decoupled;
  double a_min;
};
std::string text(const ScanCase& c) {
  return c10::str("B ", c.B, " T ", c.T, " D ", c.D, " N ", c.N, c.decoupled ? " decoupled" : "", " a_min ", c.a_min);
}
Givens given(const ScanCase& c) {
  const auto rows = [&](int64_t width, uint64_t seed) { return noise({c.B, c.T, width}, seed); };
  return {{"x", rows(c.D, 1)},
          {"delta", at::softplus(rows(c.D, 2) - 1), Kind::wide},
          {"A_log", at::arange(1, c.N + 1, at::kDouble).log().expand({c.D, c.N}) * 0.7 + 0.1 * noise({c.D, c.N}, 3),
           Kind::wide},
          {"B", rows(c.N, 4)},
          {"C", rows(c.N, 5)},
          {"skip", noise({c.D}, 6), Kind::wide},
          {"state", c.T % 7 == 2 ? Tensor() : noise({c.B, c.D, c.N}, 7), Kind::wide},
          {"write", c.decoupled ? rows(c.D, 8) : Tensor(), Kind::wide}};
}
Operation scan(double a_min) {
  return [a_min](const Tensors& x) -> Tensors {
    const OutAndState r = selective_scan(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], a_min);
    return {r.out, r.state};
  };
}

struct MesaCase {
  int64_t B, T, H, K, V;
  double level;
  Kind keys;  // of keys and queries: float32 beside values in bf16, as the model has them, or as the values
};
// The state is as a sequence leaves it: G is symmetric and positive.
Givens given(const MesaCase& c) {
  const auto seed = static_cast<uint64_t>(c.T * 1000 + c.K * 10 + c.V);
  const Tensor root = noise({c.B, c.H, c.K, c.K}, seed + 6);
  const Tensor G = at::matmul(root, root.transpose(-1, -2)) / static_cast<double>(c.K);
  return {{"q", unit_rows(noise({c.B, c.T, c.H, c.K}, seed + 1)), c.keys},
          {"k", unit_rows(noise({c.B, c.T, c.H, c.K}, seed + 2)), c.keys},
          {"v", noise({c.B, c.T, c.H, c.V}, seed + 3)},
          {"beta", at::sigmoid(noise({c.B, c.T, c.H}, seed + 7)), Kind::wide, "v"},
          {"g", log_decays({c.B, c.T, c.H}, c.level, seed + 4), Kind::wide, "q"},
          {"ridge", 0.25 + noise({c.H, c.K}, seed + 5).abs(), Kind::wide},
          {"state", c.T % 7 == 2 ? Tensor() : at::cat({G, noise({c.B, c.H, c.K, c.V}, seed + 8)}, -1), Kind::wide}};
}
Tensors mesa(const Tensors& x) {
  Tensor state = x[6];
  if (state.defined()) {
    const int64_t K = x[0].size(3), V = x[2].size(3);
    const Tensor G = state.narrow(-1, 0, K);
    state = at::cat({(G + G.transpose(-1, -2)) / 2, state.narrow(-1, K, V)}, -1);
  }
  const OutAndState r = mesa_attention(x[0], x[1], x[2], x[3], x[4], x[5], 30, state);
  return {r.out, r.state};
}

// x[i] for i in `timed` are cut along time; the last of them is the state.
Operation in_two(const Operation& f, int64_t cut, std::vector<size_t> timed, size_t state) {
  return [=](const Tensors& x) -> Tensors {
    Tensors first = x, second = x;
    for (const size_t i : timed) {
      if (!x[i].defined()) continue;
      first[i] = x[i].slice(1, 0, cut);
      second[i] = x[i].slice(1, cut);
    }
    const Tensors one = f(first);
    second[state] = one[1];
    const Tensors two = f(second);
    return {at::cat({one[0], two[0]}, 1), two[1]};
  };
}

class CudaRecurrences : public CudaTest {};

TEST_F(CudaRecurrences, GatedDeltaEqualsTheLoop) {
  size_t head = 0, level = 0;
  const double levels[] = {1, 0, -30, -1e4, 2, 3};
  for (const int64_t T : kLengths) {
    for (const int64_t n : {1, 1, 4}) {
      const auto& [K, V] = kHeads[head++ % 8];
      const DeltaCase c{T > 1000 ? 1 : 2, T, n, 2, K, V, levels[level++ % 6]};
      expect_on_device("gated_delta_rule", text(c), delta, with(kernels::Backend::naive, delta), given(c), kModes);
    }
  }
  for (const double each : levels) {
    for (const int64_t n : {1, 2, 3}) {
      const DeltaCase c{2, 130, n, 2, 72, 144, each};
      expect_on_device("gated_delta_rule", text(c), delta, with(kernels::Backend::naive, delta), given(c), kModes);
    }
  }
}

TEST_F(CudaRecurrences, GeneralDeltaEqualsTheLoop) {
  size_t head = 0, level = 0;
  const auto expect = [](const GeneralCase& c) {
    expect_on_device("general_delta_rule", text(c), general(c.from), with(kernels::Backend::naive, general(c.from)),
                     given(c), kModes);
  };
  for (const EraseFrom from : {EraseFrom::after_decay, EraseFrom::before_decay}) {
    for (const int64_t T : kLengths) {
      const auto& [K, V] = kHeads[head++ % 8];
      expect({4, T > 1000 ? 1 : 2, T, 2, K, V, kLevels[level++ % 5], from});
    }
    for (const int axes : {0, 3, 4})
      for (const double each : kLevels) expect({axes, 2, 130, 2, 72, 144, each, from});
  }
}

TEST_F(CudaRecurrences, DecayedAttentionEqualsTheLoop) {
  size_t head = 0, level = 0;
  for (const int64_t T : kLengths) {
    for (const int axes : {0, 1, 3, 4}) {
      const auto& [K, V] = kHeads[head++ % 8];
      const AttentionCase c{axes, T > 1000 ? 1 : 2, T, 4, axes == 4 || T % 2 ? 4 : 1, K, V, kLevels[level++ % 5]};
      expect_on_device("decayed_attention", text(c), attention, with(kernels::Backend::naive, attention), given(c),
                       kModes);
    }
  }
  for (const double each : kLevels) {
    for (const int axes : {1, 3, 4}) {
      const AttentionCase c{axes, 2, 130, 4, 2, 64, 96, each};
      expect_on_device("decayed_attention", text(c), attention, with(kernels::Backend::naive, attention), given(c),
                       kModes);
    }
  }
}

// Head sizes that its bf16 kernels support, and one that they do not.
TEST_F(CudaRecurrences, WrittenAttentionEqualsTheLoop) {
  const int64_t heads[][2] = {{128, 88}, {128, 64}, {96, 96}, {72, 72}, {128, 8}, {128, 81}};
  size_t head = 0, level = 0;
  for (const int64_t T : kLengths) {
    const auto& [K, V] = heads[head++ % 6];
    const AttentionCase c{3, T > 1000 ? 1 : 2, T, 6, T % 2 ? 2 : 1, K, V, kLevels[level++ % 5]};
    expect_on_device("written_attention", text(c), writes, with(kernels::Backend::naive, writes), given_writes(c),
                     kModes);
    const Tensor q = at::empty({c.B, T, c.G, K}, at::TensorOptions(kDevice).dtype(at::kBFloat16)),
                 x = at::empty({c.B, T, c.H, V}, q.options()),
                 g = at::empty({c.B, T, c.H}, q.options().dtype(at::kFloat));
    EXPECT_EQ(attention_writes(q, q, x, g, g, g[0][0]), V % 8 == 0) << text(c);
  }
  for (const int64_t cut : {1, 16, 63, 64, 77, 149}) {
    const AttentionCase c{3, 2, 150, 4, 1, 128, 88, 1};
    expect_on_device("written_attention", c10::str("cut at ", cut), in_two(writes, cut, {0, 1, 2, 3, 4}, 6),
                     with(kernels::Backend::naive, writes), given_writes(c), kModes);
  }
  // q, k and x as slices of one tensor, as Mamba2's projection gives them
  const AttentionCase c{3, 2, 100, 4, 1, 128, 88, 1};
  const Operation sliced = [](const Tensors& x) -> Tensors {
    const Tensor wide = at::cat({x[2].flatten(2), x[1].flatten(2), x[0].flatten(2)}, 2);
    const int64_t k = x[1][0][0].numel(), v = x[2][0][0].numel();
    return writes({wide.narrow(2, v + k, k).view(x[0].sizes()), wide.narrow(2, v, k).view(x[1].sizes()),
                   wide.narrow(2, 0, v).view(x[2].sizes()), x[3], x[4], x[5], x[6]});
  };
  expect_on_device("written_attention", "slices", sliced, with(kernels::Backend::naive, writes), given_writes(c),
                   kModes);
}

// Mamba-3's shapes have one kernel in bf16; float32, other shapes and sequences in pieces use several.
TEST_F(CudaRecurrences, TrapezoidAttentionEqualsTheLoop) {
  const std::pair<int64_t, int64_t> heads[] = {{128, 64}, {128, 80}, {72, 96}, {64, 64}, {128, 81}};
  size_t head = 0, level = 0;
  for (const int64_t T : kLengths)
    for (const bool carried : {false, true}) {
      const auto& [K, V] = heads[head++ % 5];
      const int64_t B = T > 1000 ? 1 : 2, H = 3;
      const auto gate = [&](uint64_t seed) { return noise({B, T, H}, seed).abs(); };
      const Givens given{{"q", noise({B, T, H, K}, 1)},
                         {"k", noise({B, T, H, K}, 2)},
                         {"v", noise({B, T, H, V}, 3)},
                         {"g", log_decays({B, T, H}, kLevels[level++ % 5], 4), Kind::wide, "here"},
                         {"here", gate(5), Kind::wide},
                         {"before", gate(6), Kind::wide, "here"},
                         {"skip", noise({H}, 7), Kind::wide},
                         {"state", T % 3 ? noise({B, H, K, V}, 8) : Tensor(), Kind::wide},
                         {"last k", carried ? noise({B, H, K}, 9) : Tensor()},
                         {"last v", carried ? noise({B, H, V}, 10) : Tensor()}};
      const Operation f = [](const Tensors& x) -> Tensors {
        const OutAndState r = trapezoid_attention(x[0], x[1], x[2], x[3], x[4], x[5], x[6], 0.1, {x[7], x[8], x[9]});
        return {r.out, r.state};
      };
      expect_on_device("trapezoid_attention", c10::str("T ", T, " ", K, " x ", V, carried ? " carried" : ""), f,
                       with(kernels::Backend::naive, f), given, kModes);
      if (T == 200) expect_same_on_device("trapezoid_attention", f, given, Mode::bf16);
    }
}

// Whole sequences have a kernel; those in pieces run in ATen operations.
TEST_F(CudaRecurrences, LogLinearAttentionEqualsTheLoop) {
  const std::pair<int64_t, int64_t> heads[] = {{128, 78}, {64, 64}, {128, 72}, {16, 8}, {81, 162}, {256, 256}};
  size_t head = 0, level = 0;
  for (const int64_t T : kLengths) {
    const auto& [K, V] = heads[head++ % 6];
    const int64_t B = T > 1000 ? 1 : 2, H = 4, G = T % 2 ? 1 : 2, L = T % 3 ? 15 : 8;
    const Givens given{{"q", noise({B, T, G, K}, 1)},
                       {"k", noise({B, T, G, K}, 2)},
                       {"v", noise({B, T, H, V}, 3)},
                       {"g", log_decays({B, T, H}, kLevels[level++ % 5], 4), Kind::wide, "q"},
                       {"weights", at::softplus(noise({B, T, H, L}, 5)), Kind::wide}};
    const Operation f = [](const Tensors& x) -> Tensors {
      return {log_linear_attention(x[0], x[1], x[2], x[3], x[4], 0, {}, /*final_state=*/false).out};
    };
    expect_on_device("log_linear_attention", c10::str("T ", T, " ", K, " x ", V), f, with(kernels::Backend::naive, f),
                     given, kModes);
    if (T == 200) expect_same_on_device("log_linear_attention", f, given, Mode::bf16);
    const Tensor q = at::empty({B, T, G, K}, at::TensorOptions(kDevice).dtype(at::kBFloat16)),
                 v = at::empty({B, T, H, V}, q.options()), g = at::empty({B, T, H}, q.options().dtype(at::kFloat)),
                 weights = at::empty({B, T, H, L}, g.options());
    EXPECT_TRUE(kernels::has_kernel(op::LogLinearAttention{0, false}, {q, q, v, g, weights, Tensor()})) << T;
    EXPECT_FALSE(kernels::has_kernel(op::LogLinearAttention{0, true}, {q, q, v, g, weights, Tensor()})) << T;
  }
  // q, k and v as slices of one tensor, as the model's convolution gives them
  const Givens given{{"q", noise({2, 100, 1, 64}, 1)},
                     {"k", noise({2, 100, 1, 64}, 2)},
                     {"v", noise({2, 100, 4, 72}, 3)},
                     {"g", log_decays({2, 100, 4}, 1, 4), Kind::wide, "q"},
                     {"weights", at::softplus(noise({2, 100, 4, 15}, 5)), Kind::wide}};
  const auto out = [](const Tensor& q, const Tensor& k, const Tensor& v, const Tensors& x) -> Tensors {
    return {log_linear_attention(q, k, v, x[3], x[4], 0, {}, /*final_state=*/false).out};
  };
  const Operation whole = [&](const Tensors& x) { return out(x[0], x[1], x[2], x); };
  const Operation sliced = [&](const Tensors& x) {
    const Tensor wide = at::cat({x[2].flatten(2), x[1].flatten(2), x[0].flatten(2)}, 2);
    return out(wide.narrow(2, 352, 64).unsqueeze(2), wide.narrow(2, 288, 64).unsqueeze(2),
               wide.narrow(2, 0, 288).view({2, 100, 4, 72}), x);
  };
  expect_on_device("log_linear_attention", "slices", sliced, with(kernels::Backend::naive, whole), given, kModes);
}

// bf16 and TF32 have a kernel for heads up to 128 wide; float32 and wider heads run in ATen.
TEST_F(CudaRecurrences, MesaAttentionEqualsTheLoop) {
  const std::pair<int64_t, int64_t> heads[] = {{100, 100}, {72, 72},   {64, 64}, {81, 33},
                                               {96, 96},   {128, 128}, {17, 40}, {136, 136}};
  size_t head = 0, level = 0;
  for (const int64_t T : {1, 2, 16, 17, 63, 64, 65, 127, 200, 310})
    for (const Kind keys : {Kind::wide, Kind::operand}) {
      const auto& [K, V] = heads[head++ % 8];
      const MesaCase c{2, T, 3, K, V, kLevels[level++ % 5], keys};
      expect_on_device("mesa_attention",
                       c10::str("T ", T, " ", K, " x ", V, " level ", c.level, keys == Kind::wide ? " wide" : ""), mesa,
                       with(kernels::Backend::naive, mesa), given(c), kModes);
      if (T == 200) expect_same_on_device("mesa_attention", mesa, given(c), Mode::bf16);
    }
  for (const int64_t cut : {1, 16, 64, 77})
    expect_on_device("mesa_attention", c10::str("cut at ", cut), in_two(mesa, cut, {0, 1, 2, 3, 4}, 6),
                     with(kernels::Backend::naive, mesa), given(MesaCase{2, 100, 2, 100, 100, 1, Kind::wide}), kModes);
}

TEST_F(CudaRecurrences, SelectiveScanEqualsTheLoop) {
  const int64_t channels[] = {64, 72, 81, 96, 120, 128, 256}, states[] = {16, 64, 13, 128, 1, 256};
  size_t i = 0;
  for (const int64_t T : kLengths) {
    for (const bool decoupled : {false, true}) {
      const ScanCase c{T > 1000 ? 1 : 3, T, channels[i % 7], states[i % 6], decoupled, i % 3 == 0 ? 0.3 : 0.0};
      ++i;
      const Operation f = scan(c.a_min);
      expect_on_device("selective_scan", text(c), f, with(kernels::Backend::naive, f), given(c),
                       {Mode::fp32, Mode::bf16});
    }
  }
}

// Divided into segments, with decays and strengths so small that states last for several of them.
TEST_F(CudaRecurrences, FewLongSequencesEqualTheLoop) {
  constexpr double level = -0.001;
  const auto expect = [](const char* what, const std::string& where, const Operation& f, const Givens& x) {
    expect_on_device(what, where, f, with(kernels::Backend::naive, f), x, kModes);
    expect_same_on_device(what, f, x, Mode::bf16);
  };
  for (const auto& [T, K, V] : {std::array<int64_t, 3>{4099, 72, 144}, {2500, 128, 88}, {32768, 16, 24}}) {
    const DeltaCase rule{1, T, T == 2500 ? 4 : 1, 2, K, V, level};
    Givens x = given(rule);
    x[3].value = 0.02 * x[3].value;
    expect("gated_delta_rule", text(rule), delta, x);
    for (const EraseFrom from : {EraseFrom::after_decay, EraseFrom::before_decay}) {
      const GeneralCase c{4, 1, T, 2, K, V, level, from};
      Givens y = given(c);
      y[4].value = 0.02 * y[4].value;
      expect("general_delta_rule", text(c), general(from), y);
    }
    for (const int axes : {3, 4}) {
      const AttentionCase c{axes, 1, T, 2, 2, K, V, level};
      expect("decayed_attention", text(c), attention, given(c));
    }
    const AttentionCase c{3, 1, T, 2, 1, K, V, level};
    expect("written_attention", text(c), writes, given_writes(c));
  }
}

TEST_F(CudaRecurrences, SequenceCutAnywhereEqualsTheLoop) {
  for (const int64_t cut : {1, 16, 63, 64, 77, 149}) {
    const std::string where = c10::str("cut at ", cut);
    const DeltaCase d{2, 150, 1, 2, 72, 144, 1};
    expect_on_device("gated_delta_rule", where, in_two(delta, cut, {0, 1, 2, 3, 4}, 5),
                     with(kernels::Backend::naive, delta), given(d), kModes);
    for (const EraseFrom from : {EraseFrom::after_decay, EraseFrom::before_decay})
      expect_on_device("general_delta_rule", where, in_two(general(from), cut, {0, 1, 2, 3, 4, 5}, 6),
                       with(kernels::Backend::naive, general(from)), given(GeneralCase{4, 2, 150, 2, 72, 144, 1, from}),
                       kModes);
    for (const int axes : {3, 4}) {
      const AttentionCase a{axes, 2, 150, 2, 2, 81, 162, 1};
      expect_on_device("decayed_attention", where, in_two(attention, cut, {0, 1, 2, 3}, 4),
                       with(kernels::Backend::naive, attention), given(a), kModes);
    }
    const ScanCase s{2, 150, 96, 64, true, 0};
    expect_on_device("selective_scan", where, in_two(scan(0), cut, {0, 1, 3, 4, 7}, 6),
                     with(kernels::Backend::naive, scan(0)), given(s), {Mode::fp32, Mode::bf16});
  }
}

// q, k and v are slices of one tensor, as projections return them.
TEST_F(CudaRecurrences, SlicesOfWiderTensorsGiveTheSameBytes) {
  const auto sliced = [](const Tensors& x) -> Tensors {
    const Tensor wide = at::cat({x[0].flatten(2), x[1].flatten(2), x[2].flatten(2)}, 2);
    const int64_t q = x[0][0][0].numel(), k = x[1][0][0].numel(), v = x[2][0][0].numel();
    return delta({wide.narrow(2, 0, q).view(x[0].sizes()), wide.narrow(2, q, k).view(x[1].sizes()),
                  wide.narrow(2, q + k, v).view(x[2].sizes()), x[3], x[4], x[5]});
  };
  for (const Mode mode : {Mode::fp32, Mode::bf16}) {
    const Givens x = given(DeltaCase{2, 100, 2, 3, 81, 162, 1});
    const Results plain = run_on_device(delta, x, mode), slices = run_on_device(sliced, x, mode);
    for (size_t i = 0; i < plain.size(); ++i)
      EXPECT_TRUE(at::equal(plain[i].value, slices[i].value)) << test::text(mode) << " " << plain[i].name;
  }
}

TEST_F(CudaRecurrences, GiveSameBytesOnEveryRun) {
  for (const Mode mode : kModes) {
    expect_same_on_device("gated_delta_rule", delta, given(DeltaCase{4, 300, 2, 4, 72, 144, 1}), mode);
    for (const EraseFrom from : {EraseFrom::after_decay, EraseFrom::before_decay})
      expect_same_on_device("general_delta_rule", general(from), given(GeneralCase{4, 4, 300, 4, 72, 144, 1, from}),
                            mode);
    for (const int axes : {0, 1, 3, 4})
      expect_same_on_device("decayed_attention", attention, given(AttentionCase{axes, 4, 300, 4, 2, 72, 144, 1}), mode);
    if (mode != Mode::tf32)
      expect_same_on_device("selective_scan", scan(0), given(ScanCase{4, 300, 200, 64, false, 0}), mode);
  }
}

// Without gradients, nothing is saved: a different path through the same kernels.
TEST_F(CudaRecurrences, ForwardAloneGivesTheSameBytes) {
  const auto expect = [](const char* what, const Operation& f, const Givens& x) {
    for (const Mode mode : {Mode::fp32, Mode::bf16}) {
      const Results with_gradients = run_on_device(f, x, mode);
      Tensors inputs;
      for (const Given& each : x)
        inputs.push_back(each.value.defined() ? each.value.to(each.kind == Kind::operand ? at::kBFloat16 : at::kFloat)
                                                    .to(kDevice)
                                                    .to(type_of(mode, each.kind))
                                              : Tensor());
      const Tensors alone = f(inputs);
      for (size_t i = 0; i < alone.size(); ++i)
        EXPECT_TRUE(at::equal(alone[i], with_gradients[i].value)) << what << " " << test::text(mode) << " " << i;
    }
  };
  expect("gated_delta_rule", delta, given(DeltaCase{2, 130, 1, 2, 72, 144, 1}));
  for (const EraseFrom from : {EraseFrom::after_decay, EraseFrom::before_decay})
    expect("general_delta_rule", general(from), given(GeneralCase{4, 2, 130, 2, 72, 144, 1, from}));
  for (const int axes : {0, 1, 3, 4})
    expect("decayed_attention", attention, given(AttentionCase{axes, 2, 130, 2, 2, 72, 144, 1}));
  expect("selective_scan", scan(0), given(ScanCase{2, 130, 96, 64, false, 0}));
  // In segments
  expect("gated_delta_rule", delta, given(DeltaCase{1, 2500, 1, 2, 72, 144, 1}));
  for (const int axes : {3, 4})
    expect("decayed_attention", attention, given(AttentionCase{axes, 1, 2500, 2, 2, 72, 144, 0}));
}

// A NaN as the device writes it (all bits of the mantissa set), neither rounded to 0 nor bounded away.
TEST_F(CudaRecurrences, NanReachesEveryLaterFrame) {
  const auto expect = [](const char* what, const Operation& f, const Givens& given, size_t input, Mode mode) {
    const int64_t frame = 70, chunk = 64;
    const Operation with_nan = [&](const Tensors& x) -> Tensors {
      Tensors inputs = x;
      const Tensor zero = at::zeros({}, x[input].options());
      inputs[input] = at::cat({x[input].slice(1, 0, frame), x[input].slice(1, frame, frame + 1) + zero / zero,
                               x[input].slice(1, frame + 1)},
                              1);
      return f(inputs);
    };
    const Tensor out = run_on_device(with_nan, given, mode)[0].value;
    EXPECT_TRUE(out.slice(1, 0, chunk).isfinite().all().item<bool>()) << what << " " << test::text(mode);
    EXPECT_TRUE(out.slice(1, frame).isnan().all().item<bool>()) << what << " " << test::text(mode);
  };
  for (const Mode mode : kModes) {
    expect("values of gated_delta_rule", delta, given(DeltaCase{2, 130, 1, 2, 72, 144, 1}), 2, mode);
    for (const int axes : {3, 4})
      expect("decays of decayed_attention", attention, given(AttentionCase{axes, 2, 130, 2, 2, 72, 144, 1}), 3, mode);
    if (mode != Mode::tf32)
      expect("steps of selective_scan", scan(1e-3), given(ScanCase{2, 130, 96, 64, false, 1e-3}), 1, mode);
  }
}

// Cases that the kernels do not support run in ATen operations.
TEST_F(CudaRecurrences, DoubleAndManyFactorsRunInAten) {
  const Givens x = given(DeltaCase{1, 20, 6, 2, 16, 24, 1});
  expect_on_device("gated_delta_rule, 6 factors", "", delta, with(kernels::Backend::naive, delta), x, {Mode::fp32});
  const Results whole = run_on_device(delta, x, Mode::truth);
  EXPECT_EQ(whole[0].value.scalar_type(), at::kDouble);
}

}  // namespace
}  // namespace sb::test
