// What forgetting_attention adds to a flash attention on CUDA, against a loop in double, then its time:
//   forgetting_attention_check [--quick] [--time] [--shape B T H WIDTH BIAS GAP]
// A case draws gates log sigma(BIAS + normal). The kernel of the columns must write q' and k' as the header says, with
// the cumulative sums to 24 bits. The kernel of the gates' gradient gets the loop's output, rounded to bf16, and the
// loop's log-sum-exps, as a flash attention gives them. Outputs are filled with NaN before each run, and each case runs
// twice and must give the same bytes. The loop's own gradient is first compared with central differences. Bound: 1e-2.
// Exit code 1 if anything fails.
#include "check.cuh"
#include "kernels/cuda/forgetting_attention.h"

using namespace sb::cuda;
using check::Doubles;
using check::expect;
using check::Memory;

namespace {

constexpr double kBound = 1e-2;

// ---- the truth: one sequence and head in double ----

struct Pair {
  int T, w;
  double scale;
  Doubles q, k, v, d_out;  // [T,w]
  Doubles g;               // [T]
  Doubles c, lse, out, dg;
};

double dot(const double* x, const double* y, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += x[i] * y[i];
  return sum;
}

// Weights of frame i
Doubles weights(const Pair& p, int i, double& lse) {
  Doubles x(i + 1);
  for (int j = 0; j <= i; ++j) x[j] = p.scale * dot(&p.q[i * p.w], &p.k[j * p.w], p.w) - p.c[j];
  const double most = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double& e : x) sum += e = std::exp(e - most);
  for (double& e : x) e /= sum;
  lse = most + std::log(sum);
  return x;
}

void loop(Pair& p) {
  p.c.assign(p.T, 0), p.lse.assign(p.T, 0), p.dg.assign(p.T, 0), p.out.assign(p.T * p.w, 0);
  double sum = 0;
  for (int t = 0; t < p.T; ++t) p.c[t] = sum += std::max(p.g[t], -100.);
  Doubles dc(p.T);
  for (int i = 0; i < p.T; ++i) {
    const Doubles weight = weights(p, i, p.lse[i]);
    for (int j = 0; j <= i; ++j)
      for (int d = 0; d < p.w; ++d) p.out[i * p.w + d] += weight[j] * p.v[j * p.w + d];
    const double D = dot(&p.d_out[i * p.w], &p.out[i * p.w], p.w);
    for (int j = 0; j <= i; ++j) {
      const double dS = weight[j] * (dot(&p.d_out[i * p.w], &p.v[j * p.w], p.w) - D);
      dc[i] += dS, dc[j] -= dS;
    }
  }
  sum = 0;
  for (int t = p.T; t-- > 0;) sum += dc[t], p.dg[t] = p.g[t] < -100 ? 0 : sum;
}

double loss(Pair p) {
  loop(p);
  return dot(p.out.data(), p.d_out.data(), p.T * p.w);
}

struct Case {
  int B, T, H, w;
  double bias = 3;
  int gap = 0;          // elements between heads, and three times as many between steps; a multiple of 8
  bool strong = false;  // some gates at -1e4
};

Pair draw(const Case& c, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  const size_t size = size_t(c.T) * c.w;
  Pair p{c.T, c.w, float(1 / std::sqrt(double(c.w)))};
  for (Doubles* x : {&p.q, &p.k, &p.v, &p.d_out}) *x = check::normals(size, random, true);
  for (int t = 0; t < c.T; ++t) {
    const double x = -std::log1p(std::exp(-c.bias - normal(random)));
    p.g.push_back(c.strong && normal(random) > 1.3 ? -1e4 : float(x));
  }
  return p;
}

bool truth_holds() {
  std::mt19937_64 random(5);
  Pair p = draw({1, 9, 1, 4, 1}, random);
  loop(p);
  double worst = 0;
  for (int t = 0; t < p.T; ++t) {
    Pair above = p, below = p;
    above.g[t] += 1e-5, below.g[t] -= 1e-5;
    worst = std::max(worst, std::abs((loss(above) - loss(below)) / 2e-5 - p.dg[t]) / (1 + std::abs(p.dg[t])));
  }
  std::printf("loop in double against central differences: %.1e: %s\n", worst, worst < 1e-6 ? "PASS" : "FAIL");
  return worst < 1e-6;
}

// ---- device ----

// [B,T,H,width], with gaps
struct Tensor {
  const Case& c;
  check::Rows rows;
  Tensor(const Case& c, int width, bool low)
      : c(c), rows(size_t(c.B) * c.T, c.H, width, low, low ? c.gap : 0, low ? 3 * c.gap : 0) {}
  template <class Void>
  RowsOf<Void> view() const {
    return {rows.memory.data, int64_t(c.T * rows.token), int64_t(rows.token), int64_t(rows.head)};
  }
  // Of the pairs, [B,H,T,from]; further columns are `behind`, fewer pairs repeat
  void put(const std::vector<Pair>& pairs, Doubles Pair::*field, int from, double behind) {
    Doubles x(rows.tokens * rows.heads * rows.width);
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t token = i / (rows.heads * rows.width), h = i / rows.width % rows.heads, b = token / c.T;
      const size_t column = i % rows.width;
      const Doubles& values = pairs[(b * c.H + h) % pairs.size()].*field;
      x[i] = column < size_t(from) ? values[token % c.T * from + column] : behind;
    }
    rows.put(x);
  }
};

struct Tensors {
  Tensor q, k, v, out, d_out, g, dg;
  Memory lse;
  Tensors(const Case& c, int padded, const std::vector<Pair>& pairs)
      : q(c, padded, true),
        k(c, padded, true),
        v(c, padded, true),
        out(c, padded, true),
        d_out(c, padded, true),
        g(c, 1, false),
        dg(c, 1, false),
        lse(size_t(c.B) * c.H * c.T * 4) {
    q.put(pairs, &Pair::q, c.w, NAN), k.put(pairs, &Pair::k, c.w, NAN);
    v.put(pairs, &Pair::v, c.w, 0), out.put(pairs, &Pair::out, c.w, 0), d_out.put(pairs, &Pair::d_out, c.w, 0);
    g.put(pairs, &Pair::g, 1, 0);
    std::vector<float> all;
    for (int i = 0; i < c.B * c.H; ++i) {
      const Doubles& x = pairs[i % pairs.size()].lse;
      all.insert(all.end(), x.begin(), x.end());
    }
    expect(cudaMemcpy(lse.data, all.data(), all.size() * 4, cudaMemcpyHostToDevice), "lse");
  }
  ForgettingAttention problem(const Case& c) const {
    return {c.B,
            c.T,
            c.H,
            c.w,
            int64_t(q.rows.width),
            float(1 / std::sqrt(double(c.w))),
            g.rows.memory.floats(),
            int64_t(c.T) * c.H,
            c.H,
            1};
  }
  ForgettingGradient gradient(const Case& c) const {
    return {q.view<const void>(),
            k.view<const void>(),
            v.view<const void>(),
            out.view<const void>(),
            d_out.view<const void>(),
            lse.floats(),
            dg.rows.memory.floats(),
            int64_t(c.T) * c.H,
            c.H,
            1};
  }
};

int padded_width(int w) {
  return (w + kForgettingColumns + 7) / 8 * 8;
}

// Largest error of the sums in k', relative to 1 + |sum|; infinite if another column is wrong
double columns_error(const Case& c, const Tensors& x, const std::vector<Pair>& pairs) {
  const Doubles q = x.q.rows.get(), k = x.k.rows.get();
  const size_t padded = x.q.rows.width;
  double worst = 0;
  for (size_t row = 0; row < q.size() / padded; ++row) {
    const size_t token = row / c.H, h = row % c.H, b = token / c.T;
    const Pair& p = pairs[(b * c.H + h) % pairs.size()];
    const double wanted = -p.c[token % c.T] / p.scale;
    double sum = 0;
    for (size_t i = c.w; i < padded; ++i) {
      const bool used = i < size_t(c.w + kForgettingColumns);
      if (q[row * padded + i] != (used ? 1 : 0) || (!used && k[row * padded + i] != 0)) return INFINITY;
      sum += k[row * padded + i];
    }
    worst = std::max(worst, std::isnan(sum) ? INFINITY : std::abs(sum - wanted) / (1 + std::abs(wanted)));
  }
  return worst;
}

bool run_case(const Case& c, std::mt19937_64& random) {
  std::vector<Pair> pairs;
  for (int i = 0; i < c.B * c.H; ++i) pairs.push_back(draw(c, random)), loop(pairs.back());
  Tensors x(c, padded_width(c.w), pairs);
  const ForgettingAttention p = x.problem(c);
  expect(forgetting_attention_columns(p, x.q.view<void>(), x.k.view<void>(), nullptr), "columns");
  expect(cudaDeviceSynchronize(), "columns");
  const double columns = columns_error(c, x, pairs);
  std::vector<char> bytes[2];
  for (auto& one : bytes) {
    x.dg.rows.memory.poison();
    expect(forgetting_attention_gates(p, x.gradient(c), nullptr), "gates");
    expect(cudaDeviceSynchronize(), "gates");
    one = check::download<char>(x.dg.rows.memory.data, x.dg.rows.memory.bytes);
  }
  Doubles wanted(size_t(c.B) * c.T * c.H);
  for (size_t i = 0; i < wanted.size(); ++i)
    wanted[i] = pairs[i / (size_t(c.T) * c.H) * c.H + i % c.H].dg[i / c.H % c.T];
  // With one frame the gradient is 0.
  const double gates = check::error(x.dg.rows.get(), wanted, c.T == 1 ? 1 : 1e-30);
  const bool good = bytes[0] == bytes[1] && columns < 1e-7 && gates <= kBound;
  std::printf("B%d T%-4d H%d width %3d bias %g%s%s  columns %.1e  dg %.1e%s  %s\n", c.B, c.T, c.H, c.w, c.bias,
              c.strong ? " strong" : "", c.gap ? " gaps" : "", columns, gates,
              bytes[0] == bytes[1] ? "" : "  two runs differ", good ? "PASS" : "FAIL");
  std::fflush(stdout);
  return good;
}

std::vector<Case> matrix(bool quick) {
  std::vector<Case> cases = {{2, 130, 2, 100}, {1, 70, 2, 64, 0, 8}, {1, 200, 1, 72, 3, 0, true}};
  if (quick) return cases;
  for (const int T : {1, 2, 3, 63, 64, 65, 127, 128, 129, 400}) cases.push_back({2, T, 2, 100, 0});
  for (const int w : {8, 46, 61, 64, 81, 96, 120, 125, 128, 180, 189, 248, 253}) cases.push_back({1, 150, 2, w});
  for (const double bias : {0., 3., 6.})
    for (const int T : {64, 400, 1300}) cases.push_back({1, T, 1, 64, bias});
  return cases;
}

// ---- time ----

void time_case(const char* name, const Case& c) {
  std::mt19937_64 random(3);
  std::vector<Pair> one{draw(c, random)};
  loop(one[0]);
  Tensors x(c, padded_width(c.w), one);
  const ForgettingAttention p = x.problem(c);
  const double columns = check::median_ms(
      [&](int) { return forgetting_attention_columns(p, x.q.view<void>(), x.k.view<void>(), nullptr); });
  const double gates = check::median_ms([&](int) { return forgetting_attention_gates(p, x.gradient(c), nullptr); });
  // Two products of all pairs (i, j) with j <= i
  const double flop = double(c.B) * c.H * c.T * (c.T + 1.) / 2 * 4 * double(x.q.rows.width);
  std::printf("| %s | %d | %.3f | %.3f | %.0f |\n", name, c.T, columns, gates, flop / gates / 1e9);
  std::fflush(stdout);
}

void time_all() {
  std::printf("\n| batch 64 | T | columns ms | gates ms | TFLOP/s |\n|---|---|---|---|---|\n");
  time_case("81 M: 13 heads of 120", {64, 400, 13, 120});
  time_case("85 M: 16 heads of 100", {64, 400, 16, 100});
  time_case("85 M: 16 heads of 100", {64, 1300, 16, 100});
  time_case("with an MLP: 8 heads of 100", {64, 400, 8, 100});
  time_case("4.7 M: 4 heads of 94", {64, 400, 4, 94});
  time_case("8 heads of 250", {64, 400, 8, 250});
}

}  // namespace

int main(int argc, char** argv) {
  const check::Arguments<Case> arguments(argc, argv, 6, [](char** words) -> Case {
    const auto number = [&](int i) { return std::atoi(words[i]); };
    return {number(0), number(1), number(2), number(3), double(number(4)), number(5)};
  });
  return check::check_or_time(arguments, truth_holds, matrix, run_case, time_all);
}
