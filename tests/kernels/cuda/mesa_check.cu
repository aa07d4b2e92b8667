// MesaNet's systems on CUDA against a loop in double, which solves them by elimination, then their time:
//   mesa_check [--quick] [--time] [--shape B T H K V BIAS GAP]
// A case draws gates log sigma(BIAS + normal); `equal` keys share nine tenths of their direction, so that the systems
// are badly conditioned. The states before each chunk are the loop's, in float. Outputs are filled with NaN before each
// run, and each case runs twice and must give the same bytes. The loop itself is held against d_t . o_t = y_t . q_t,
// which follows from both definitions. Bound: 1e-4, of y with equal keys 1e-3. Exit code 1 if anything fails.
#include "check.cuh"
#include "kernels/cuda/mesa.h"

using namespace sb::cuda;
using check::Doubles;
using check::expect;
using check::Memory;

namespace {

constexpr int kSteps = 30;

struct Case {
  int B, T, H, K, V;
  double bias = 2;
  int gap = 0;          // elements between heads, and three times as many between steps
  bool strong = false;  // some gates at -1e4
  bool equal = false;   // keys
  bool state = false;   // a first one
};

// ---- the truth: one sequence and head in double ----

struct Pair {
  int T, K, V;
  Doubles q, k, v, d_out;        // [T,K], [T,V]
  Doubles beta, g;               // [T]
  Doubles ridge;                 // [K]
  Doubles G, S;                  // [K,K], [K,V]: the first state, then the last
  Doubles x, out, y;             // [T,K], [T,V], [T,K]
  std::vector<Doubles> entered;  // states [K,K+V] before each chunk
};

// Both columns of the right side, by Gaussian elimination; the matrix is positive definite
void eliminate(Doubles A, int n, double* x, double* y) {
  for (int i = 0; i < n; ++i)
    for (int r = i + 1; r < n; ++r) {
      const double f = A[r * n + i] / A[i * n + i];
      for (int c = i; c < n; ++c) A[r * n + c] -= f * A[i * n + c];
      x[r] -= f * x[i], y[r] -= f * y[i];
    }
  for (int i = n; i-- > 0;) {
    for (int c = i + 1; c < n; ++c) x[i] -= A[i * n + c] * x[c], y[i] -= A[i * n + c] * y[c];
    x[i] /= A[i * n + i], y[i] /= A[i * n + i];
  }
}

void loop(Pair& p) {
  const int K = p.K, V = p.V;
  p.x = p.q, p.y.assign(p.T * K, 0), p.out.assign(p.T * V, 0);
  for (int t = 0; t < p.T; ++t) {
    if (t % kChunk == 0) {
      Doubles both;
      for (int i = 0; i < K; ++i) {
        both.insert(both.end(), &p.G[i * K], &p.G[i * K] + K);
        both.insert(both.end(), &p.S[i * V], &p.S[i * V] + V);
      }
      p.entered.push_back(both);
    }
    const double decay = std::exp(p.g[t]);
    for (int i = 0; i < K; ++i) {
      const double key = p.beta[t] * p.k[t * K + i];
      for (int j = 0; j < K; ++j) p.G[i * K + j] = decay * p.G[i * K + j] + key * p.k[t * K + j];
      for (int j = 0; j < V; ++j) p.S[i * V + j] = decay * p.S[i * V + j] + key * p.v[t * V + j];
    }
    Doubles A = p.G;
    double *x = &p.x[t * K], *y = &p.y[t * K];
    for (int i = 0; i < K; ++i) {
      A[i * K + i] += p.ridge[i];
      for (int j = 0; j < V; ++j) y[i] += p.S[i * V + j] * p.d_out[t * V + j];
    }
    eliminate(A, K, x, y);
    for (int i = 0; i < K; ++i)
      for (int j = 0; j < V; ++j) p.out[t * V + j] += p.S[i * V + j] * x[i];
  }
}

Doubles unit_rows(int T, int K, double shared, const Doubles& direction, std::mt19937_64& random) {
  Doubles x = check::normals(size_t(T) * K, random, false);
  for (int t = 0; t < T; ++t) {
    double square = 0;
    for (int i = 0; i < K; ++i) {
      double& e = x[t * K + i];
      e = shared * direction[i] + (1 - shared) * e;
      square += e * e;
    }
    for (int i = 0; i < K; ++i) x[t * K + i] = float(x[t * K + i] / std::sqrt(square));
  }
  return x;
}

Pair draw(const Case& c, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Pair p{c.T, c.K, c.V};
  const Doubles direction = check::normals(c.K, random, false);
  p.q = unit_rows(c.T, c.K, c.equal ? 0.9 : 0, direction, random);
  p.k = unit_rows(c.T, c.K, c.equal ? 0.9 : 0, direction, random);
  p.v = check::normals(size_t(c.T) * c.V, random, true);
  p.d_out = check::normals(size_t(c.T) * c.V, random, true);
  for (int t = 0; t < c.T; ++t) {
    p.beta.push_back(float(1 / (1 + std::exp(-normal(random)))));
    const double g = -std::log1p(std::exp(-c.bias - normal(random)));
    p.g.push_back(c.strong && normal(random) > 1.3 ? -1e4 : float(g));
  }
  for (int i = 0; i < c.K; ++i) p.ridge.push_back(float(0.25 + std::log1p(std::exp(normal(random)))));
  p.G.assign(c.K * c.K, 0), p.S.assign(c.K * c.V, 0);
  if (c.state) {
    const Doubles root = check::normals(size_t(c.K) * c.K, random, false);
    for (int i = 0; i < c.K; ++i)
      for (int j = 0; j < c.K; ++j)
        for (int n = 0; n < c.K; ++n) p.G[i * c.K + j] += root[i * c.K + n] * root[j * c.K + n] / c.K;
    p.S = check::normals(size_t(c.K) * c.V, random, false);
  }
  return p;
}

bool truth_holds() {
  std::mt19937_64 random(5);
  Pair p = draw({1, 20, 1, 9, 5}, random);
  loop(p);
  double worst = 0;
  for (int t = 0; t < p.T; ++t) {
    double left = 0, right = 0;
    for (int i = 0; i < p.V; ++i) left += p.d_out[t * p.V + i] * p.out[t * p.V + i];
    for (int i = 0; i < p.K; ++i) right += p.y[t * p.K + i] * p.q[t * p.K + i];
    worst = std::max(worst, std::abs(left - right) / (1 + std::abs(left)));
  }
  std::printf("loop in double, d . o against y . q: %.1e: %s\n", worst, worst < 1e-12 ? "PASS" : "FAIL");
  return worst < 1e-12;
}

// ---- device ----

// [B,T,H,width] of floats from pairs [B,H], with gaps; fewer pairs repeat
struct Tensor {
  const Case& c;
  check::Rows rows;
  Tensor(const Case& c, int width, bool gaps = false)
      : c(c), rows(size_t(c.B) * c.T, c.H, width, false, gaps ? c.gap : 0, gaps ? 3 * c.gap : 0) {}
  Doubles of(const std::vector<Pair>& pairs, Doubles Pair::*field) const {
    Doubles x(rows.tokens * rows.heads * rows.width);
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t token = i / (rows.heads * rows.width), h = i / rows.width % rows.heads, b = token / c.T;
      x[i] = (pairs[(b * c.H + h) % pairs.size()].*field)[token % c.T * rows.width + i % rows.width];
    }
    return x;
  }
  RowsOf<const float> view() const {
    return {rows.memory.floats(), int64_t(c.T * rows.token), int64_t(rows.token), int64_t(rows.head)};
  }
};

struct Tensors {
  const Case& c;
  Tensor q, k, v, d_out, beta, g, x, out, y;
  Memory ridge, states;
  int chunks, row;
  Tensors(const Case& c, const std::vector<Pair>& pairs)
      : c(c),
        q(c, c.K, true),
        k(c, c.K, true),
        v(c, c.V, true),
        d_out(c, c.V, true),
        beta(c, 1),
        g(c, 1),
        x(c, c.K),
        out(c, c.V),
        y(c, c.K),
        ridge(size_t(c.H) * c.K * 4),
        states(size_t(c.B) * c.H * ((c.T + kChunk - 1) / kChunk) * c.K * ((c.K + c.V + 7) / 8 * 8) * 4),
        chunks((c.T + kChunk - 1) / kChunk),
        row((c.K + c.V + 7) / 8 * 8) {
    q.rows.put(q.of(pairs, &Pair::q)), k.rows.put(k.of(pairs, &Pair::k)), v.rows.put(v.of(pairs, &Pair::v));
    d_out.rows.put(d_out.of(pairs, &Pair::d_out)), beta.rows.put(beta.of(pairs, &Pair::beta));
    g.rows.put(g.of(pairs, &Pair::g));
    std::vector<float> ridges, all(states.bytes / 4, NAN);
    for (int h = 0; h < c.H; ++h) {
      const Doubles& one = pairs[h % pairs.size()].ridge;
      ridges.insert(ridges.end(), one.begin(), one.end());
    }
    for (size_t pair = 0; pair < size_t(c.B) * c.H; ++pair)
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const Doubles& one = pairs[pair % pairs.size()].entered[chunk];
        float* to = &all[(pair * chunks + chunk) * c.K * row];
        for (int i = 0; i < c.K; ++i)
          for (int j = 0; j < c.K + c.V; ++j) to[i * row + j] = float(one[i * (c.K + c.V) + j]);
      }
    expect(cudaMemcpy(ridge.data, ridges.data(), ridges.size() * 4, cudaMemcpyHostToDevice), "ridge");
    expect(cudaMemcpy(states.data, all.data(), all.size() * 4, cudaMemcpyHostToDevice), "states");
  }
  Mesa problem() const {
    return {c.B,
            c.T,
            c.H,
            c.K,
            c.V,
            kSteps,
            k.view(),
            v.view(),
            beta.rows.memory.floats(),
            g.rows.memory.floats(),
            ridge.floats(),
            states.floats()};
  }
  cudaError_t forward() const {
    return mesa_forward(problem(), q.view(), x.rows.memory.floats(), out.rows.memory.floats(), nullptr);
  }
  cudaError_t backward() const { return mesa_backward(problem(), d_out.view(), y.rows.memory.floats(), nullptr); }
};

bool run_case(const Case& c, std::mt19937_64& random) {
  std::vector<Pair> pairs;
  for (int i = 0; i < c.B * c.H; ++i) {
    pairs.push_back(draw(c, random));
    if (i >= c.H) pairs.back().ridge = pairs[i - c.H].ridge;  // a head's
    loop(pairs.back());
  }
  Tensors x(c, pairs);
  std::vector<char> bytes[2];
  for (auto& one : bytes) {
    for (const Tensor* each : {&x.x, &x.out, &x.y})
      expect(cudaMemset(each->rows.memory.data, 0xff, each->rows.memory.bytes), "poison");
    expect(x.forward(), "forward");
    expect(x.backward(), "backward");
    expect(cudaDeviceSynchronize(), "solve");
    for (const Tensor* each : {&x.x, &x.out, &x.y}) {
      const auto found = check::download<char>(each->rows.memory.data, each->rows.memory.bytes);
      one.insert(one.end(), found.begin(), found.end());
    }
  }
  const double errors[] = {check::error(x.x.rows, x.x.of(pairs, &Pair::x)),
                           check::error(x.out.rows, x.out.of(pairs, &Pair::out)),
                           check::error(x.y.rows, x.y.of(pairs, &Pair::y))};
  bool good = bytes[0] == bytes[1] && errors[0] <= 1e-4 && errors[1] <= 1e-4 && errors[2] <= (c.equal ? 1e-3 : 1e-4);
  std::printf("B%d T%-4d H%d %3d x %3d bias %g%s%s%s%s  x %.1e  out %.1e  y %.1e%s  %s\n", c.B, c.T, c.H, c.K, c.V,
              c.bias, c.strong ? " strong" : "", c.equal ? " equal" : "", c.state ? " state" : "", c.gap ? " gaps" : "",
              errors[0], errors[1], errors[2], bytes[0] == bytes[1] ? "" : "  two runs differ", good ? "PASS" : "FAIL");
  std::fflush(stdout);
  return good;
}

std::vector<Case> matrix(bool quick) {
  std::vector<Case> cases = {
      {2, 70, 2, 100, 100}, {1, 40, 2, 61, 33, 0, 4, true}, {1, 130, 1, 64, 64, 6, 0, false, true, true}};
  if (quick) return cases;
  for (const int T : {1, 2, 15, 16, 17, 63, 64, 65, 128, 129, 400}) cases.push_back({2, T, 2, 72, 72, 3, 8});
  for (const int K : {8, 46, 64, 65, 80, 81, 96, 97, 100, 112, 113, 128})
    cases.push_back({1, 100, 2, K, K, 4, 0, K % 3 == 0, false, K % 2 == 0});
  cases.push_back({1, 100, 2, 128, 16}), cases.push_back({1, 100, 2, 16, 128});
  for (const double bias : {0., 4., 8.})
    for (const bool equal : {false, true}) cases.push_back({1, 400, 1, 100, 100, bias, 0, false, equal});
  return cases;
}

// ---- time ----

void time_case(const char* name, const Case& c) {
  std::mt19937_64 random(3);
  std::vector<Pair> one{draw(c, random)};
  loop(one[0]);
  const Tensors x(c, one);
  const double forward = check::median_ms([&](int) { return x.forward(); }, 10);
  const double backward = check::median_ms([&](int) { return x.backward(); }, 10);
  // Products with the state, and with the keys of the steps before, of which the kernel has whole blocks of 16
  const double frames = double(c.B) * c.H * c.T, flop = (kSteps + 1) * frames * (2. * c.K * c.K + 40. * 4 * c.K);
  std::printf("| %s | %d | %.2f | %.2f | %.0f |\n", name, c.T, forward, backward, flop / forward / 1e9);
  std::fflush(stdout);
}

void time_all() {
  std::printf("\n| batch 64 | T | forward ms | backward ms | TFLOP/s forward |\n|---|---|---|---|---|\n");
  time_case("85 M: 20 heads of 80", {64, 400, 20, 80, 80});
  time_case("85 M: 16 heads of 100", {64, 400, 16, 100, 100});
  time_case("16 heads of 96", {64, 400, 16, 96, 96});
  time_case("45 M: 16 heads of 72", {64, 400, 16, 72, 72});
  time_case("4 heads of 64", {64, 400, 4, 64, 64});
  time_case("16 heads of 128", {64, 400, 16, 128, 128});
  time_case("85 M: 16 heads of 100", {64, 1300, 16, 100, 100});
}

}  // namespace

int main(int argc, char** argv) {
  const check::Arguments<Case> arguments(argc, argv, 7, [](char** words) -> Case {
    const auto number = [&](int i) { return std::atoi(words[i]); };
    return {number(0), number(1), number(2), number(3), number(4), double(number(5)), number(6)};
  });
  return check::check_or_time(arguments, truth_holds, matrix, run_case, time_all);
}
