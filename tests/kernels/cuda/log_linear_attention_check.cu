// Log-linear attention on CUDA against a loop in double, forward and all gradients, then its time:
//   log_linear_attention_check [--quick] [--time] [--shape PRECISION B T H G K V L GAP]
// Outputs and workspaces are filled with NaN before each run. Each case runs twice and must give the same bytes, and
// gaps between rows must stay NaN. The loop's own gradients are first compared with central differences. Bounds of the
// relative errors: bf16 1e-2, tf32 3e-3, fp32 1e-5. Exit code 1 if anything fails.
#include "check.cuh"
#include "kernels/cuda/log_linear_attention.h"

using namespace sb::cuda;
using check::Doubles;
using check::expect;
using check::Memory;

namespace {

const char* const kPrecisions[] = {"bf16", "tf32", "fp32"};
constexpr double kBounds[] = {1e-2, 3e-3, 1e-5};

struct Case {
  Precision precision;
  int B, T, H, G, K, V;
  int L = 15;
  int gap = 0;         // elements between heads, and three times as many between steps
  double decay = 0.1;  // of the log-decays; 0: none, < 0: some of them at -1e4, some at -30
};

// ---- the truth: the loop in double ----

enum Tensor { kQ, kK, kV, kG, kW, kInputs };
const char* const kNames[] = {"out", "dq", "dk", "dv", "dg", "dw"};
struct Problem {
  Case c;
  Doubles in[kInputs], d_out;
  Doubles out, d[kInputs];
};

int width(const Case& c, int tensor) {
  return tensor == kQ || tensor == kK ? c.K : tensor == kV ? c.V : tensor == kG ? 1 : c.L;
}
int heads(const Case& c, int tensor) {
  return tensor == kQ || tensor == kK ? c.G : c.H;
}

Problem draw(const Case& c, std::mt19937_64& random) {
  Problem p{c};
  const bool low = c.precision == Precision::bf16;
  const auto size = [&](int tensor) { return size_t(c.B) * c.T * heads(c, tensor) * width(c, tensor); };
  p.in[kQ] = check::normals(size(kQ), random, low, 1 / std::sqrt(double(c.K)));
  for (const int tensor : {kK, kV}) p.in[tensor] = check::normals(size(tensor), random, low);
  p.in[kG] = check::normals(size(kG), random, false, std::abs(c.decay));
  std::uniform_real_distribution<double> uniform;
  for (double& g : p.in[kG]) {
    const double choice = uniform(random);
    g = c.decay >= 0 || choice > 0.1 ? -std::abs(g) : choice > 0.05 ? -30 : -1e4;
  }
  p.in[kW] = check::normals(size(kW), random, false, 0.5, 0.7);
  p.d_out = check::normals(size(kV), random, low);
  return p;
}

void loop(Problem& p) {
  const Case& c = p.c;
  p.out.assign(p.in[kV].size(), 0);
  for (int i = 0; i < kInputs; ++i) p.d[i].assign(p.in[i].size(), 0);
  for (int b = 0; b < c.B; ++b)
    for (int h = 0; h < c.H; ++h) {
      const auto at = [&](int tensor, int t) {
        const int head = heads(c, tensor) == c.H ? h : h / (c.H / c.G);
        return ((size_t(b) * c.T + t) * heads(c, tensor) + head) * width(c, tensor);
      };
      Doubles sum(c.T), of_sum(c.T);
      for (int t = 0; t < c.T; ++t) sum[t] = (t ? sum[t - 1] : 0) + p.in[kG][at(kG, t)];
      for (int i = 0; i < c.T; ++i)
        for (int j = 0; j <= i; ++j) {
          const int level = i == j ? 0 : std::min(c.L - 1, 32 - __builtin_clz(unsigned(i ^ j)));
          const double decay = std::exp(sum[i] - sum[j]), weight = p.in[kW][at(kW, i) + level];
          const size_t q = at(kQ, i), k = at(kK, j), v = at(kV, j), o = at(kV, i);
          double score = 0, gradient = 0;
          for (int d = 0; d < c.K; ++d) score += p.in[kQ][q + d] * p.in[kK][k + d];
          for (int d = 0; d < c.V; ++d) gradient += p.d_out[o + d] * p.in[kV][v + d];
          const double pair = weight * decay * score, of_score = weight * decay * gradient;
          for (int d = 0; d < c.V; ++d) {
            p.out[o + d] += pair * p.in[kV][v + d];
            p.d[kV][v + d] += pair * p.d_out[o + d];
          }
          for (int d = 0; d < c.K; ++d) {
            p.d[kQ][q + d] += of_score * p.in[kK][k + d];
            p.d[kK][k + d] += of_score * p.in[kQ][q + d];
          }
          p.d[kW][at(kW, i) + level] += decay * score * gradient;
          if (i == j) continue;
          of_sum[i] += pair * gradient;
          of_sum[j] -= pair * gradient;
        }
      double behind = 0;
      for (int t = c.T; t-- > 0;) {
        behind += of_sum[t];
        p.d[kG][at(kG, t)] = p.in[kG][at(kG, t)] < -200 ? 0 : behind;
      }
    }
}

bool truth_holds() {
  std::mt19937_64 random(1);
  Problem p = draw({Precision::fp32, 1, 70, 4, 2, 5, 6, 8}, random);
  loop(p);
  double worst = 0;
  for (int tensor = 0; tensor < kInputs; ++tensor)
    for (int n = 0; n < 5; ++n) {
      const size_t i = random() % p.in[tensor].size();
      const auto loss = [&](double by) {
        Problem moved = p;
        moved.in[tensor][i] += by;
        loop(moved);
        double sum = 0;
        for (size_t e = 0; e < moved.out.size(); ++e) sum += moved.out[e] * p.d_out[e];
        return sum;
      };
      const double got = p.d[tensor][i], wanted = (loss(1e-5) - loss(-1e-5)) / 2e-5;
      worst = std::max(worst, std::abs(got - wanted) / (1 + std::abs(wanted)));
    }
  std::printf("loop in double against central differences: %.1e: %s\n", worst, worst < 1e-6 ? "PASS" : "FAIL");
  return worst < 1e-6;
}

// ---- device ----

struct Device {
  const Case& c;
  std::vector<check::Rows> in, out;  // q, k, v, d_out; out, dq, dk, dv
  Memory g, weights, dg, d_weights, workspace;
  explicit Device(const Problem& p)
      : c(p.c),
        g(check::upload(std::vector<float>(p.in[kG].begin(), p.in[kG].end()))),
        weights(check::upload(std::vector<float>(p.in[kW].begin(), p.in[kW].end()))),
        dg(p.in[kG].size() * 4),
        d_weights(p.in[kW].size() * 4),
        workspace(log_linear_attention_workspace_bytes(problem_sizes(), true)) {
    const auto rows = [&](int tensor) {
      return check::Rows(size_t(c.B) * c.T, heads(c, tensor), width(c, tensor), c.precision == Precision::bf16, c.gap,
                         3 * c.gap);
    };
    for (const int tensor : {kQ, kK, kV, kV}) in.push_back(rows(tensor));
    for (const int tensor : {kV, kQ, kK, kV}) out.push_back(rows(tensor));
    for (const int tensor : {kQ, kK, kV}) in[tensor].put(p.in[tensor]);
    in[3].put(p.d_out);
  }
  LogLinearAttention problem_sizes() const {
    LogLinearAttention p{};
    p.batch = c.B, p.time = c.T, p.heads = c.H, p.groups = c.G, p.key_width = c.K, p.value_width = c.V;
    p.levels = c.L, p.precision = c.precision;
    return p;
  }
  template <class Void>
  RowsOf<Void> view(const check::Rows& x) const {
    return {x.memory.data, int64_t(c.T * x.token), int64_t(x.token), int64_t(x.head)};
  }
  LogLinearAttention problem() const {
    LogLinearAttention p = problem_sizes();
    p.q = view<const void>(in[0]), p.k = view<const void>(in[1]), p.v = view<const void>(in[2]);
    p.g = g.floats(), p.weights = weights.floats();
    return p;
  }
  cudaError_t forward() const {
    return log_linear_attention_forward(problem(), view<void>(out[0]), workspace.data, nullptr);
  }
  cudaError_t backward() const {
    return log_linear_attention_backward(problem(),
                                         {view<const void>(in[3]), view<void>(out[1]), view<void>(out[2]),
                                          view<void>(out[3]), dg.floats(), d_weights.floats()},
                                         workspace.data, nullptr);
  }
  void poison() {
    for (check::Rows& x : out) x.memory.poison();
    for (Memory* x : {&dg, &d_weights, &workspace}) x->poison();
  }
  std::vector<char> bytes() const {
    std::vector<char> all;
    const auto add = [&](const Memory& x) {
      const auto more = check::download<char>(x.data, x.bytes);
      all.insert(all.end(), more.begin(), more.end());
    };
    for (const check::Rows& x : out) add(x.memory);
    add(dg), add(d_weights);
    return all;
  }
};

bool gaps_are_kept(const check::Rows& x) {
  size_t kept = 0;
  for (const double e : x.all()) kept += std::isnan(e);
  return kept == x.tokens * (x.token - x.heads * x.width);
}

bool run_case(const Case& c, std::mt19937_64& random) {
  Problem p = draw(c, random);
  loop(p);
  Device x(p);
  if (!log_linear_attention_fits(x.problem())) return std::printf("does not fit  FAIL\n"), false;
  std::vector<char> bytes[2];
  for (auto& one : bytes) {
    x.poison();
    expect(x.forward(), "forward");
    expect(cudaDeviceSynchronize(), "forward");
    x.workspace.poison();
    expect(x.backward(), "backward");
    expect(cudaDeviceSynchronize(), "backward");
    one = x.bytes();
  }
  bool good = bytes[0] == bytes[1];
  std::printf("%s B%d T%-4d H%d G%d K%-3d V%-3d L%-2d decay %-4g gap %d ", kPrecisions[int(c.precision)], c.B, c.T, c.H,
              c.G, c.K, c.V, c.L, c.decay, c.gap);
  const Doubles* const wanted[] = {&p.out, &p.d[kQ], &p.d[kK], &p.d[kV], &p.d[kG], &p.d[kW]};
  for (int i = 0; i < 6; ++i) {
    // The gradient of the decays is a sum that may cancel, and is 0 with one frame.
    double least = 1e-30;
    if (i == 4)
      for (const double e : p.d[kW]) least = std::max(least, 0.1 * std::abs(e));
    const double error = i < 4    ? check::error(x.out[i], *wanted[i])
                         : i == 4 ? check::error(Doubles([&] {
                                                   const auto raw = check::download<float>(x.dg.data, p.d[kG].size());
                                                   return Doubles(raw.begin(), raw.end());
                                                 }()),
                                                 *wanted[i], least)
                                  : check::error(x.d_weights, *wanted[i]);
    std::printf(" %s %.1e", kNames[i], error);
    good = good && error <= kBounds[int(c.precision)];
  }
  for (const check::Rows& rows : x.out) good = good && gaps_are_kept(rows);
  std::printf("%s  %s\n", bytes[0] == bytes[1] ? "" : "  two runs differ", good ? "PASS" : "FAIL");
  std::fflush(stdout);
  return good;
}

std::vector<Case> matrix(bool quick) {
  constexpr Precision bf16 = Precision::bf16, tf32 = Precision::tf32, fp32 = Precision::fp32;
  std::vector<Case> cases = {{bf16, 1, 200, 4, 1, 128, 78, 15, 2},     {bf16, 2, 70, 2, 2, 40, 33, 8},
                             {fp32, 1, 150, 4, 2, 70, 72, 9, 4},       {tf32, 1, 130, 2, 1, 64, 64, 8},
                             {bf16, 1, 130, 2, 1, 64, 96, 8, 8, -0.1}, {fp32, 1, 130, 2, 1, 16, 8, 8, 0, -0.1}};
  if (quick) return cases;
  // With one or two frames there are few scores: more groups, lest all of them cancel and TF32's error looks large
  for (const int T : {1, 2, 3, 63, 64, 65, 127, 128, 129, 400, 513, 1300})
    for (const Precision precision : {bf16, tf32, fp32})
      cases.push_back({precision, T < 4 ? 4 : 1, T, T < 4 ? 4 : 2, T < 4 ? 2 : 1, 128, 78});
  for (const int V : {8, 31, 64, 66, 72, 80, 81, 96, 97, 128, 160, 162, 200, 256})
    for (const Precision precision : {bf16, fp32}) cases.push_back({precision, 1, 130, 2, 1, 64, V, 15, V % 8});
  for (const int K : {1, 16, 63, 65, 96, 128, 192, 256}) cases.push_back({bf16, 1, 130, 2, 2, K, 64});
  for (const int L : {8, 9, 10, 12, 20}) cases.push_back({fp32, 1, 700, 2, 1, 16, 16, L});
  for (const double decay : {0., 0.01, 1., -0.1})
    for (const Precision precision : {bf16, fp32}) cases.push_back({precision, 1, 400, 2, 1, 64, 64, 15, 0, decay});
  return cases;
}

// ---- time ----

void time_case(const char* name, const Case& c) {
  std::mt19937_64 random(3);
  Case one = c;
  one.B = 1;
  Problem p = draw(one, random);
  p.c = c;
  for (int i = 0; i < kInputs; ++i) {
    const Doubles first = p.in[i];
    for (int b = 1; b < c.B; ++b) p.in[i].insert(p.in[i].end(), first.begin(), first.end());
  }
  const Doubles first = p.d_out;
  for (int b = 1; b < c.B; ++b) p.d_out.insert(p.d_out.end(), first.begin(), first.end());
  const Device x(p);
  const double forward = check::median_ms([&](int) { return x.forward(); });
  const double backward = check::median_ms([&](int) { return x.backward(); });
  std::printf("| %s | %d | %.3f | %.3f | %.2f |\n", name, c.T, forward, backward,
              double(log_linear_attention_workspace_bytes(x.problem(), true)) / 1e9);
  std::fflush(stdout);
}

void time_all() {
  std::printf("\n| batch 64 | T | forward ms | backward ms | GB of workspace |\n|---|---|---|---|---|\n");
  time_case("85 M: 32 heads of 78, rows of 80", {Precision::bf16, 64, 400, 32, 1, 128, 78, 15, 2});
  time_case("32 heads of 72", {Precision::bf16, 64, 400, 32, 1, 128, 72});
  time_case("32 heads of 72", {Precision::bf16, 16, 1300, 32, 1, 128, 72});
  time_case("32 heads of 72, tf32", {Precision::tf32, 64, 400, 32, 1, 128, 72});
  time_case("32 heads of 72, fp32", {Precision::fp32, 64, 400, 32, 1, 128, 72});
  time_case("8 heads of 64", {Precision::bf16, 64, 400, 8, 1, 64, 64});
}

}  // namespace

int main(int argc, char** argv) {
  const check::Arguments<Case> arguments(argc, argv, 9, [](char** words) -> Case {
    const auto number = [&](int i) { return std::atoi(words[i]); };
    const auto precision = std::find(kPrecisions, kPrecisions + 3, std::string(words[0])) - kPrecisions;
    if (precision == 3)
      std::printf("[--shape] precision, expected bf16, tf32 or fp32, got %s\n", words[0]), std::exit(2);
    return {static_cast<Precision>(precision),
            number(1),
            number(2),
            number(3),
            number(4),
            number(5),
            number(6),
            number(7),
            number(8)};
  });
  return check::check_or_time(arguments, truth_holds, matrix, run_case, time_all);
}
