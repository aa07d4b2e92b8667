// The CUDA generalised delta rule against a loop in double with a backward pass of its own, then its time.
//   general_delta_check [--quick | --long] [--time [--model TEXT]] [--shape bf16|tf32|fp32 B T H K V DECAY
//   before|after|keys-before|keys-after]
// DECAY: none, 0, mild, mixed, -30, -1e4, head or slow. keys: with writes_keys. Every case prints ||kernel - loop|| /
// ||loop|| of every output and gradient and PASS, or FAIL beside an error above its bound: 1e-5 in fp32, 2e-2 in tf32
// and bf16. Outputs and workspaces are filled with NaN before each run, and each case runs twice and must give the same
// bytes. The loop's own gradients are first compared with central differences. Exit code 1 if anything fails.
#include <cstring>
#include <thread>

#include "check.cuh"
#include "kernels/cuda/general_delta.h"

using namespace sb::cuda;
using check::Doubles;
using check::expect;
using check::median_ms;
using check::Memory;

namespace {

// ---- the truth: one (sequence, head) pair in double ----

struct Pair {
  int T, K, V;
  double scale;
  bool erase_first;
  Doubles q, k, e, w, g, v, state;  // [T,K] five times, [T,V], [K,V]
  Doubles d_out, d_final;           // [T,V], [K,V]
  Doubles out, final_state, dq, dk, de, dw, dg, dv, d_state;
};

// One step: S <- diag(a) S - w (e^T S') + k v^T; `erased` is e^T S'
void step(const Pair& p, int t, Doubles& S, Doubles& erased) {
  const double *e = &p.e[t * p.K], *w = &p.w[t * p.K], *k = &p.k[t * p.K], *v = &p.v[t * p.V];
  erased.assign(p.V, 0);
  for (int i = 0; i < p.K; ++i) {
    const double a = std::exp(p.g[t * p.K + i]);
    for (int j = 0; j < p.V; ++j) {
      double& s = S[i * p.V + j];
      erased[j] += e[i] * (p.erase_first ? s : a * s);
      s *= a;
    }
  }
  for (int i = 0; i < p.K; ++i)
    for (int j = 0; j < p.V; ++j) S[i * p.V + j] += k[i] * v[j] - w[i] * erased[j];
}

void forward_loop(Pair& p, std::vector<Doubles>* every) {
  Doubles S = p.state, erased;
  p.out.assign(p.T * p.V, 0);
  for (int t = 0; t < p.T; ++t) {
    if (every && t % 64 == 0) every->push_back(S);
    step(p, t, S, erased);
    for (int i = 0; i < p.K; ++i)
      for (int j = 0; j < p.V; ++j) p.out[t * p.V + j] += p.scale * p.q[t * p.K + i] * S[i * p.V + j];
  }
  p.final_state = S;
}

void backward_loop(Pair& p) {
  std::vector<Doubles> every;
  forward_loop(p, &every);
  for (Doubles* d : {&p.dq, &p.dk, &p.de, &p.dw, &p.dg}) d->assign(p.T * p.K, 0);
  p.dv.assign(p.T * p.V, 0);
  Doubles dS = p.d_final;
  for (int block = static_cast<int>(every.size()) - 1; block >= 0; --block) {
    const int begin = 64 * block, end = std::min(p.T, begin + 64);
    std::vector<Doubles> before, erased(end - begin);  // S before each step, and what it erased
    Doubles S = every[block];
    for (int t = begin; t < end; ++t) {
      before.push_back(S);
      step(p, t, S, erased[t - begin]);
    }
    for (int t = end - 1; t >= begin; --t) {
      const Doubles &S0 = before[t - begin], &r = erased[t - begin];
      const double* d_out = &p.d_out[t * p.V];
      Doubles dr(p.V, 0);
      for (int i = 0; i < p.K; ++i) {
        const int at = t * p.K + i;
        for (int j = 0; j < p.V; ++j) {
          double& d = dS[i * p.V + j];
          p.dq[at] += p.scale * S[i * p.V + j] * d_out[j];
          d += p.scale * p.q[at] * d_out[j];
          p.dk[at] += d * p.v[t * p.V + j];
          p.dv[t * p.V + j] += d * p.k[at];
          p.dw[at] -= d * r[j];
          dr[j] -= d * p.w[at];
        }
      }
      for (int i = 0; i < p.K; ++i) {
        const int at = t * p.K + i;
        const double a = std::exp(p.g[at]);
        for (int j = 0; j < p.V; ++j) {
          const double s = S0[i * p.V + j];
          double& d = dS[i * p.V + j];
          p.de[at] += dr[j] * (p.erase_first ? s : a * s);
          if (!p.erase_first) d += p.e[at] * dr[j];
          p.dg[at] += a * d * s;
          d *= a;
          if (p.erase_first) d += p.e[at] * dr[j];
        }
      }
      S = S0;
    }
  }
  p.d_state = dS;
}

double loss(Pair& p) {
  forward_loop(p, nullptr);
  double sum = 0;
  for (size_t i = 0; i < p.out.size(); ++i) sum += p.out[i] * p.d_out[i];
  for (size_t i = 0; i < p.final_state.size(); ++i) sum += p.final_state[i] * p.d_final[i];
  return sum;
}

// ---- inputs ----

// head: one mild log-decay per head; slow: decays and writes so small that states last for thousands of steps
enum class Logs { none, zero, mild, mixed, strong, cut, head, slow };
const char* const kLogNames[] = {"none", "0", "mild", "mixed", "-30", "-1e4", "head", "slow"};
const char* const kPrecisionNames[] = {"bf16", "tf32", "fp32"};

struct Case {
  Precision precision;
  int B, T, H, K, V;
  Logs logs = Logs::mild;
  bool erase_first = false;
  bool states = true;  // initial state, gradient of the final one
  int gap = 0;         // elements between heads, and three times as many between steps
  bool writes_keys = false;
  bool low() const { return precision == Precision::bf16; }
};

std::string text(const Case& c) {
  char line[160];
  std::snprintf(line, sizeof line, "%s B%d T%-3d H%d %3dx%-3d g %-5s %-6s%s%s", kPrecisionNames[int(c.precision)], c.B,
                c.T, c.H, c.K, c.V, kLogNames[int(c.logs)], c.erase_first ? "before" : "after", c.gap ? " gaps" : "",
                c.writes_keys ? " keys" : "");
  return line;
}

// Unit vectors erase; writes are multiples of them below 1, which keeps the state bounded, plus a little of another
// direction, so that no symmetry hides a mistake.
Pair draw(const Case& c, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  const auto keep = [&](double x) { return check::rounded(x, c.low()); };
  Pair p{c.T, c.K, c.V, float(1 / std::sqrt(double(c.K))), c.erase_first};
  for (Doubles* x : {&p.q, &p.k, &p.e, &p.w, &p.g}) x->resize(size_t(c.T) * c.K);
  p.v = check::normals(size_t(c.T) * c.V, random, c.low());
  p.d_out = check::normals(size_t(c.T) * c.V, random, c.low());
  p.state = check::normals(size_t(c.K) * c.V, random, false);
  p.d_final = check::normals(size_t(c.K) * c.V, random, false);
  if (!c.states) std::fill(p.state.begin(), p.state.end(), 0.), std::fill(p.d_final.begin(), p.d_final.end(), 0.);
  for (int t = 0; t < c.T; ++t) {
    Doubles direction(c.K);
    double norm = 0;
    for (double& x : direction) x = normal(random), norm += x * x;
    const double of_head = -0.1 * uniform(random);
    for (int i = 0; i < c.K; ++i) {
      const int at = t * c.K + i;
      const double unit = direction[i] / std::sqrt(norm), u = uniform(random);
      p.q[at] = keep(normal(random));
      p.k[at] = keep(.5 * normal(random) / std::sqrt(double(c.K)));
      p.e[at] = keep(unit);
      p.w[at] = keep(unit * uniform(random) + .05 * normal(random) / std::sqrt(double(c.K)));
      double g = -0.2 * uniform(random);
      if (c.logs == Logs::none || c.logs == Logs::zero) g = 0;
      if (c.logs == Logs::mixed) g = u < .05 ? -30 : u < .1 ? -1e4 : u < .12 ? -INFINITY : u < .3 ? 0 : g;
      if (c.logs == Logs::strong) g = -30;
      if (c.logs == Logs::cut) g = -1e4;
      if (c.logs == Logs::head) g = of_head;
      if (c.logs == Logs::slow) g *= 0.01, p.w[at] = keep(0.02 * p.w[at]);
      p.g[at] = float(g);
    }
  }
  if (c.writes_keys) p.k = p.w;
  return p;
}

// The loop's gradients against central differences
bool truth_holds() {
  std::mt19937_64 random(5);
  bool good = true;
  for (const bool first : {false, true}) {
    Pair p = draw({Precision::fp32, 1, 7, 1, 5, 4, Logs::mild, first}, random);
    backward_loop(p);
    const auto probe = [&](Doubles& x, const Doubles& gradient, const char* name) {
      double worst = 0;
      for (size_t at = 0; at < x.size(); ++at) {
        const double expected = check::central_difference(x[at], 1e-5, [&] { return loss(p); });
        worst = std::max(worst, std::abs(expected - gradient[at]) / (1 + std::abs(gradient[at])));
      }
      if (worst > 1e-6)
        std::printf("loop, d%s: differs from central differences by %.1e: FAIL\n", name, worst), good = false;
    };
    probe(p.q, p.dq, "q"), probe(p.k, p.dk, "k"), probe(p.v, p.dv, "v"), probe(p.e, p.de, "erase");
    probe(p.w, p.dw, "write"), probe(p.g, p.dg, "g"), probe(p.state, p.d_state, "state");
  }
  std::printf("loop in double against central differences: %s\n", good ? "PASS" : "FAIL");
  return good;
}

// ---- device ----

// [B,T,H,width] with gaps
struct Tensor {
  const Case& c;
  check::Rows rows;
  Tensor(const Case& c, int width, bool low)
      : c(c), rows(size_t(c.B) * c.T, c.H, width, low, c.gap, 3 * size_t(c.gap)) {}
  template <class Void>
  RowsOf<Void> view() const {
    return {rows.memory.data, int64_t(c.T * rows.token), int64_t(rows.token), int64_t(rows.head)};
  }
  // Order of the tensor from the order of the pairs, [B,H,T,width]; fewer pairs repeat
  Doubles joined(const std::vector<Pair>& pairs, Doubles Pair::*field) const {
    Doubles x(rows.tokens * rows.heads * rows.width);
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t token = i / (rows.heads * rows.width), h = i / rows.width % rows.heads, b = token / c.T;
      x[i] = (pairs[(b * c.H + h) % pairs.size()].*field)[token % c.T * rows.width + i % rows.width];
    }
    return x;
  }
  void put(const std::vector<Pair>& pairs, Doubles Pair::*field) { rows.put(joined(pairs, field)); }
  double error(const std::vector<Pair>& pairs, Doubles Pair::*field) const {
    return check::error(rows, joined(pairs, field));
  }
};

Doubles joined_states(const std::vector<Pair>& pairs, Doubles Pair::*field) {
  Doubles x;
  for (const Pair& p : pairs) x.insert(x.end(), (p.*field).begin(), (p.*field).end());
  return x;
}
Memory uploaded(const Doubles& x) {
  return check::upload(std::vector<float>(x.begin(), x.end()));
}

struct Tensors {
  Tensor q, k, v, e, w, g, d_out, out, dq, dk, dv, de, dw, dg;
  size_t state_bytes;
  Memory final_state, d_state;
  explicit Tensors(const Case& c)
      : q(c, c.K, c.low()),
        k(c, c.K, c.low()),
        v(c, c.V, c.low()),
        e(c, c.K, c.low()),
        w(c, c.K, c.low()),
        g(c, c.K, false),
        d_out(c, c.V, c.low()),
        out(c, c.V, c.low()),
        dq(c, c.K, c.low()),
        dk(c, c.K, c.low()),
        dv(c, c.V, c.low()),
        de(c, c.K, c.low()),
        dw(c, c.K, c.low()),
        dg(c, c.K, false),
        state_bytes(size_t(c.B) * c.H * c.K * c.V * 4),
        final_state(state_bytes),
        d_state(state_bytes) {}
  std::vector<const Memory*> results() const {
    return {&out.rows.memory, &final_state,    &dq.rows.memory, &dk.rows.memory, &dv.rows.memory,
            &de.rows.memory,  &dw.rows.memory, &dg.rows.memory, &d_state};
  }
};

GeneralDelta problem_of(const Case& c, const Tensors& x, const float* state) {
  GeneralDelta p{
      c.B, c.T,     c.H, c.K, c.V, c.precision, c.erase_first, float(1 / std::sqrt(double(c.K))), {}, {}, {}, {},
      {},  nullptr, 0,   0,   0,   1,           state};
  p.q = x.q.view<const void>(), p.k = x.k.view<const void>(), p.v = x.v.view<const void>();
  p.erase = x.e.view<const void>(), p.writes_keys = c.writes_keys;
  if (!c.writes_keys) p.write = x.w.view<const void>();
  const auto g = x.g.view<const void>();
  if (c.logs != Logs::none) p.g = static_cast<const float*>(g.data);
  p.g_batch = g.batch, p.g_time = g.time, p.g_head = g.head, p.g_key = c.logs == Logs::head ? 0 : 1;
  return p;
}
GeneralDeltaGradients gradients_of(const Case& c, const Tensors& x, const float* d_final) {
  const auto dg = x.dg.view<void>();
  return {x.d_out.view<const void>(),
          d_final,
          x.dq.view<void>(),
          x.dk.view<void>(),
          x.dv.view<void>(),
          x.de.view<void>(),
          c.writes_keys ? Rows{} : x.dw.view<void>(),
          c.logs == Logs::none ? nullptr : static_cast<float*>(dg.data),
          dg.batch,
          dg.time,
          dg.head,
          c.states ? x.d_state.floats() : nullptr};
}

std::vector<std::vector<char>> run(const Case& c, const Tensors& x, const float* state, const float* d_final) {
  const GeneralDelta p = problem_of(c, x, state);
  const Memory kept(general_delta_kept_bytes(p, true)), workspace(general_delta_workspace_bytes(p));
  for (const Memory* m : x.results()) const_cast<Memory*>(m)->poison();
  expect(general_delta_forward(p, x.out.view<void>(), x.final_state.floats(), kept.data, true, nullptr), "forward");
  expect(general_delta_backward(p, kept.data, gradients_of(c, x, d_final), workspace.data, nullptr), "backward");
  expect(cudaDeviceSynchronize(), "run");
  std::vector<std::vector<char>> bytes;
  for (const Memory* m : x.results()) bytes.push_back(check::download<char>(m->data, m->bytes));
  return bytes;
}

// Worst error of each precision
struct Worst {
  double of[3] = {0, 0, 0};
};

bool run_case(const Case& c, std::mt19937_64& random, Worst& worst) {
  std::vector<Pair> pairs;
  for (int i = 0; i < c.B * c.H; ++i) pairs.push_back(draw(c, random));
  std::vector<std::thread> loops;
  for (Pair& p : pairs) loops.emplace_back([&p] { backward_loop(p); });
  for (std::thread& loop : loops) loop.join();
  if (c.writes_keys)
    for (Pair& p : pairs)
      for (size_t i = 0; i < p.dk.size(); ++i) p.dk[i] += p.dw[i];
  Tensors x(c);
  x.q.put(pairs, &Pair::q), x.k.put(pairs, &Pair::k), x.v.put(pairs, &Pair::v), x.e.put(pairs, &Pair::e);
  x.w.put(pairs, &Pair::w), x.g.put(pairs, &Pair::g), x.d_out.put(pairs, &Pair::d_out);
  const Memory state = uploaded(joined_states(pairs, &Pair::state)),
               d_final = uploaded(joined_states(pairs, &Pair::d_final));
  const float *given = c.states ? state.floats() : nullptr, *d_given = c.states ? d_final.floats() : nullptr;
  const auto first = run(c, x, given, d_given), second = run(c, x, given, d_given);

  const double bound = c.precision == Precision::fp32 ? 1e-5 : 2e-2;
  bool good = first == second;
  std::printf("%s%s", text(c).c_str(), good ? "" : "  two runs differ: FAIL");
  const auto judge = [&](const char* name, double error) {
    std::printf("  %s %.1e%s", name, error, error <= bound ? "" : " FAIL");
    good = good && error <= bound;
    double& most = worst.of[int(c.precision)];
    if (!(error <= most)) most = error;
  };
  judge("o", x.out.error(pairs, &Pair::out));
  judge("S", check::error(x.final_state, joined_states(pairs, &Pair::final_state)));
  judge("dq", x.dq.error(pairs, &Pair::dq));
  judge("dk", x.dk.error(pairs, &Pair::dk));
  judge("dv", x.dv.error(pairs, &Pair::dv));
  judge("de", x.de.error(pairs, &Pair::de));
  if (!c.writes_keys) judge("dw", x.dw.error(pairs, &Pair::dw));
  if (c.logs != Logs::none) judge("dg", x.dg.error(pairs, &Pair::dg));
  if (c.states) judge("dS", check::error(x.d_state, joined_states(pairs, &Pair::d_state)));
  std::printf("  %s\n", good ? "PASS" : "FAIL");
  std::fflush(stdout);
  return good;
}

// The cases, then the same with writes_keys
std::vector<Case> and_keys(std::vector<Case> cases) {
  for (size_t i = 0, count = cases.size(); i < count; ++i) {
    cases.push_back(cases[i]);
    cases.back().writes_keys = true;
  }
  return cases;
}

std::vector<Case> matrix(bool quick) {
  std::vector<Case> cases;
  for (const Precision p : {Precision::bf16, Precision::tf32, Precision::fp32}) {
    for (const bool first : {false, true}) {
      cases.push_back({p, 2, 130, 2, 72, 144, Logs::mild, first});
      cases.push_back({p, 1, 70, 2, 64, 64, Logs::mixed, first, true, 8});
      if (quick) continue;
      for (const int T : {1, 2, 3, 63, 64, 65, 127, 200, 400})
        cases.push_back({p, T < 63 ? 4 : 1, T, 2, 72, 144, Logs::mild, first, T % 3 != 0});
      for (const int K : {64, 72, 96, 128})
        for (const int V : {64, 128, 192}) cases.push_back({p, 1, 130, 2, K, V, Logs::mild, first});
      cases.push_back({p, 1, 130, 1, 256, 256, Logs::mild, first});
      cases.push_back({p, 1, 130, 1, 81, 162, Logs::mild, first});  // rows that are no multiple of 16 bytes
      cases.push_back({p, 2, 130, 2, 100, 40, Logs::mild, first, true, 1});
      for (const Logs logs : {Logs::none, Logs::zero, Logs::mixed, Logs::strong, Logs::cut, Logs::head})
        cases.push_back({p, 2, 150, 2, 72, 80, logs, first});
      cases.push_back({p, 1, 400, 2, 128, 128, Logs::mixed, first});
    }
  }
  return and_keys(cases);
}

// Divided into segments on a GPU of 100 multiprocessors or more, except T = 2047. Lengths with a short last segment and
// chunk among them.
std::vector<Case> long_matrix() {
  std::vector<Case> cases;
  for (const bool first : {false, true}) {
    for (const Precision p : {Precision::bf16, Precision::tf32, Precision::fp32}) {
      cases.push_back({p, 1, 2500, 2, 72, 144, Logs::slow, first});
      cases.push_back({p, 2, 4099, 2, 81, 81, Logs::slow, first, false, 1});
    }
    cases.push_back({Precision::bf16, 1, 2500, 2, 80, 160, Logs::mixed, first});
    cases.push_back({Precision::bf16, 1, 2048, 1, 256, 256, Logs::slow, first});
    cases.push_back({Precision::bf16, 1, 2047, 2, 80, 160, Logs::slow, first});
    cases.push_back({Precision::bf16, 1, 4099, 2, 128, 256, Logs::slow, first});  // slices of values and transition
  }
  cases.push_back({Precision::fp32, 1, 32768, 2, 32, 32, Logs::slow, true});
  cases.push_back({Precision::bf16, 1, 32768, 4, 80, 96, Logs::slow, false});
  return and_keys(cases);
}

// ---- time ----

void time_case(const std::string& only, const std::string& name, const Case& c) {
  if (name.find(only) == std::string::npos) return;
  std::mt19937_64 random(3);
  Case alone = c;
  alone.B = alone.H = 1;
  const std::vector<Pair> one{draw(alone, random)};
  Tensors x(c);
  x.q.put(one, &Pair::q), x.k.put(one, &Pair::k), x.v.put(one, &Pair::v), x.e.put(one, &Pair::e);
  x.w.put(one, &Pair::w), x.g.put(one, &Pair::g), x.d_out.put(one, &Pair::d_out);
  const GeneralDelta p = problem_of(c, x, nullptr);
  const Memory kept(general_delta_kept_bytes(p, true)), workspace(general_delta_workspace_bytes(p));
  const GeneralDeltaGradients d = gradients_of(c, x, nullptr);
  const double forward =
      median_ms([&](int) { return general_delta_forward(p, x.out.view<void>(), nullptr, kept.data, true, nullptr); });
  const double backward =
      median_ms([&](int) { return general_delta_backward(p, kept.data, d, workspace.data, nullptr); });
  // Least bytes: inputs, outputs and gradients once, backward reads the inputs again
  const double rows = double(c.B) * c.T * c.H, wide = c.low() ? 2 : 4;
  const double gigabytes = rows * (wide * (3 * (c.writes_keys ? 3 : 4) * c.K + 5 * c.V) + 4 * 3 * c.K) / 1e9;
  std::printf("| %s | %s | %d | %.3f | %.3f | %.3f | %.2f | %.0f | %.0f + %.0f |\n", name.c_str(),
              kPrecisionNames[int(c.precision)], c.T, forward, backward, forward + backward, gigabytes,
              gigabytes / (forward + backward) * 1e3, kept.bytes / 1e6, workspace.bytes / 1e6);
  std::fflush(stdout);
}

void time_all(const std::string& only) {
  const Precision low = Precision::bf16;
  std::printf(
      "\n| model, batch 64 | operands | T | forward ms | backward ms | sum | least GB | GB/s | kept + workspace MB |\n"
      "|---|---|---|---|---|---|---|---|---|\n");
  const auto time_both = [&](const std::string& name, Case c) {
    time_case(only, name, c);
    c.writes_keys = true;
    time_case(only, name + ", writes keys", c);
  };
  // Near 85 M parameters: widths 1280, 1024 and 1408
  time_both("KDA: 13 heads 96x192", {low, 64, 400, 13, 96, 192, Logs::mild, false, false});
  time_both("KDA: 20 heads 64x128", {low, 64, 400, 20, 64, 128, Logs::mild, false, false});
  time_both("KDA: 16 heads 80x160", {low, 64, 400, 16, 80, 160, Logs::mild, false, false});
  time_both("Gated DeltaNet-2: 8 heads 128x256", {low, 64, 400, 8, 128, 256, Logs::mild, false, false});
  time_case(only, "RWKV-7: 16 heads 88x88", {low, 64, 400, 16, 88, 88, Logs::mild, true, false});
  time_case(only, "16 heads 72x144", {low, 64, 400, 16, 72, 144, Logs::mild, false, false});
  time_case(only, "RWKV-7: 24 heads 64x64", {low, 64, 400, 24, 64, 64, Logs::mild, true, false});
  time_case(only, "width 1024: 16 heads 64x128", {low, 64, 400, 16, 64, 128, Logs::mild, false, false});
  time_case(only, "width 256: 4 heads 64x128", {low, 64, 400, 4, 64, 128, Logs::mild, false, false});
  time_case(only, "8 heads 128x128", {low, 64, 400, 8, 128, 128, Logs::mild, false, false});
  time_both("KDA, T 1300", {low, 64, 1300, 16, 80, 160, Logs::mild, false, false});
  time_both("KDA, batch 1, T 32768", {low, 1, 32768, 16, 80, 160, Logs::mild, false, false});
  time_both("KDA 1024, batch 32, T 1024", {low, 32, 1024, 8, 128, 256, Logs::mild, false, false});
  time_both("KDA 1024, batch 2, T 16384", {low, 2, 16384, 8, 128, 256, Logs::mild, false, false});
  time_both("KDA 1024, batch 1, T 32768", {low, 1, 32768, 8, 128, 256, Logs::mild, false, false});
  time_both("KDA", {Precision::tf32, 64, 400, 16, 80, 160, Logs::mild, false, false});
  time_both("KDA", {Precision::fp32, 64, 400, 16, 80, 160, Logs::mild, false, false});
}

Case parsed(char** words) {
  const auto index = [&](const char* const* names, int count, const char* word) {
    for (int i = 0; i < count; ++i)
      if (!std::strcmp(names[i], word)) return i;
    std::printf("[general_delta_check] unknown word %s\n", word);
    std::exit(2);
  };
  const auto number = [&](int i) { return std::atoi(words[i]); };
  return {Precision(index(kPrecisionNames, 3, words[0])),
          number(1),
          number(2),
          number(3),
          number(4),
          number(5),
          Logs(index(kLogNames, 8, words[6])),
          std::strstr(words[7], "before") != nullptr,
          true,
          0,
          !std::strncmp(words[7], "keys", 4)};
}

}  // namespace

int main(int argc, char** argv) {
  const check::Arguments<Case> arguments(argc, argv, 8, parsed);
  bool good = true;
  if (arguments.checks()) {
    good = truth_holds();
    std::mt19937_64 random(std::random_device{}());
    Worst worst;
    const std::vector<Case> all = !arguments.cases.empty() ? arguments.cases
                                  : arguments.lengthy      ? long_matrix()
                                                           : matrix(arguments.quick);
    for (const Case& c : all) good = run_case(c, random, worst) && good;
    std::printf("worst: bf16 %.1e (bound 2e-02), tf32 %.1e (2e-02), fp32 %.1e (1e-05): %s\n", worst.of[0], worst.of[1],
                worst.of[2], good ? "PASS" : "FAIL");
  }
  if (arguments.times()) time_all(arguments.model);
  return good ? 0 : 1;
}
