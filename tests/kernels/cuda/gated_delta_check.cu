// The CUDA gated delta rule against a loop in double with a backward of its own, then its time.
//   gated_delta_check [--quick | --long] [--time [--model TEXT]] [--shape bf16|tf32|fp32 B T H n K V [slow]]
// --long: few long sequences, which are divided into segments; each twice, for the same bytes. Outputs and workspaces
// are filled with NaN before each run. Exit code 1 when an error is above its bound.
#include <thread>

#include "check.cuh"
#include "kernels/cuda/gated_delta.h"

using namespace sb::cuda;
using check::Doubles;
using check::expect;
using check::median_ms;
using check::Memory;

namespace {

// ---- the truth: one (sequence, head) pair in double ----

struct Pair {
  int T, n, K, V;
  double scale;
  bool decays;
  Doubles q, k, v, beta, g, state;  // [T,K] [T,n,K] [T,n,V] [T,n] [T] [K,V]
  Doubles d_out, d_final;           // [T,V] [K,V]
  Doubles out, final_state, dq, dk, dv, dbeta, dg, d_state;
};

// One factor: r = v - k^T S, S += beta k r^T; r is left in `rest`
void write_state(Pair& p, int row, Doubles& S, Doubles& rest) {
  const double *k = &p.k[row * p.K], *v = &p.v[row * p.V];
  rest.assign(v, v + p.V);
  for (int i = 0; i < p.K; ++i) {
    for (int j = 0; j < p.V; ++j) rest[j] -= k[i] * S[i * p.V + j];
  }
  for (int i = 0; i < p.K; ++i) {
    for (int j = 0; j < p.V; ++j) S[i * p.V + j] += p.beta[row] * k[i] * rest[j];
  }
}

void forward_loop(Pair& p, std::vector<Doubles>* every) {
  Doubles S = p.state, rest;
  p.out.assign(p.T * p.V, 0);
  for (int t = 0; t < p.T; ++t) {
    if (every && t % 64 == 0) every->push_back(S);
    if (p.decays) {
      for (double& x : S) x *= std::exp(p.g[t]);
    }
    for (int j = 0; j < p.n; ++j) write_state(p, t * p.n + j, S, rest);
    for (int i = 0; i < p.K; ++i) {
      for (int j = 0; j < p.V; ++j) p.out[t * p.V + j] += p.scale * p.q[t * p.K + i] * S[i * p.V + j];
    }
  }
  p.final_state = S;
}

void backward_loop(Pair& p) {
  std::vector<Doubles> every;
  forward_loop(p, &every);
  p.dq.assign(p.T * p.K, 0), p.dk.assign(p.T * p.n * p.K, 0), p.dv.assign(p.T * p.n * p.V, 0);
  p.dbeta.assign(p.T * p.n, 0), p.dg.assign(p.T, 0);
  Doubles dS = p.d_final;
  for (int block = static_cast<int>(every.size()) - 1; block >= 0; --block) {
    const int begin = 64 * block, end = std::min(p.T, begin + 64);
    std::vector<Doubles> before, rests;  // S before each factor (decayed), and what that factor corrected
    std::vector<Doubles> entering;       // S before each token's decay
    Doubles S = every[block], rest;
    for (int t = begin; t < end; ++t) {
      entering.push_back(S);
      if (p.decays) {
        for (double& x : S) x *= std::exp(p.g[t]);
      }
      for (int j = 0; j < p.n; ++j) {
        before.push_back(S);
        write_state(p, t * p.n + j, S, rest);
        rests.push_back(rest);
      }
    }
    for (int t = end - 1; t >= begin; --t) {
      const double *q = &p.q[t * p.K], *d_out = &p.d_out[t * p.V];
      for (int i = 0; i < p.K; ++i) {
        for (int j = 0; j < p.V; ++j) {
          p.dq[t * p.K + i] += p.scale * S[i * p.V + j] * d_out[j];
          dS[i * p.V + j] += p.scale * q[i] * d_out[j];
        }
      }
      for (int f = p.n - 1; f >= 0; --f) {
        const int row = t * p.n + f, local = (t - begin) * p.n + f;
        const double* k = &p.k[row * p.K];
        const Doubles &r = rests[local], &S0 = before[local];
        Doubles d(p.V, 0);
        for (int i = 0; i < p.K; ++i) {
          for (int j = 0; j < p.V; ++j) d[j] += k[i] * dS[i * p.V + j];
        }
        for (int j = 0; j < p.V; ++j) {
          p.dbeta[row] += d[j] * r[j];
          d[j] *= p.beta[row];
          p.dv[row * p.V + j] = d[j];
        }
        for (int i = 0; i < p.K; ++i) {
          double sum = 0;
          for (int j = 0; j < p.V; ++j) {
            sum += p.beta[row] * dS[i * p.V + j] * r[j] - S0[i * p.V + j] * d[j];
            dS[i * p.V + j] -= k[i] * d[j];
          }
          p.dk[row * p.K + i] = sum;
        }
        S = S0;
      }
      S = entering[t - begin];
      if (p.decays) {
        const double a = std::exp(p.g[t]);
        for (size_t i = 0; i < S.size(); ++i) p.dg[t] += a * dS[i] * S[i], dS[i] *= a;
      }
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

enum class Decay { none, random, zero, strong, cut, mixed };
const char* const kDecayNames[] = {"none", "random", "0", "-30", "-1e4", "mixed"};

struct Case {
  DeltaPrecision precision;
  int B, T, H, n, K, V;
  Decay decay = Decay::random;
  bool equal_keys = false, states = true, gaps = false;
  bool slow = false;  // decays and strengths near 0, so that states last for thousands of tokens
};

Pair draw(const Case& c, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  const bool bf16 = c.precision == DeltaPrecision::bf16;
  const auto rounded = [&](double x) { return bf16 ? __bfloat162float(__float2bfloat16(float(x))) : float(x); };
  const auto fill = [&](Doubles& x, size_t size, bool low) {
    x.resize(size);
    for (double& y : x) y = low ? rounded(normal(random)) : float(normal(random));
  };
  Pair p;
  p.T = c.T, p.n = c.n, p.K = c.K, p.V = c.V, p.scale = float(1 / std::sqrt(double(c.K)));
  p.decays = c.decay != Decay::none;
  fill(p.q, c.T * c.K, true), fill(p.k, c.T * c.n * c.K, true), fill(p.v, c.T * c.n * c.V, true);
  fill(p.d_out, c.T * c.V, true), fill(p.d_final, c.K * c.V, false), fill(p.state, c.K * c.V, false);
  if (!c.states) std::fill(p.state.begin(), p.state.end(), 0), std::fill(p.d_final.begin(), p.d_final.end(), 0);
  Doubles shared(c.K);
  for (double& x : shared) x = normal(random);
  const auto normalise = [&](Doubles& x) {
    for (size_t row = 0; row < x.size() / c.K; ++row) {
      double sum = 0;
      for (int i = 0; i < c.K; ++i) sum += x[row * c.K + i] * x[row * c.K + i];
      for (int i = 0; i < c.K; ++i) x[row * c.K + i] = rounded(x[row * c.K + i] / std::sqrt(sum + 1e-6));
    }
  };
  if (c.equal_keys) {
    for (size_t i = 0; i < p.k.size(); ++i) p.k[i] = shared[i % c.K] + 0.01 * p.k[i];
  }
  normalise(p.q), normalise(p.k);
  p.beta.resize(c.T * c.n), p.g.resize(c.T);
  const double most = c.n > 1 ? 2 : 1;
  for (double& x : p.beta) x = float(c.equal_keys ? 0.95 * most : most / (1 + std::exp(-normal(random))));
  if (p.beta.size() > 5) p.beta[5] = 0;
  if (c.slow) {
    for (double& x : p.beta) x = float(0.02 * x);
  }
  for (double& x : p.g) {
    const double soft = float(-0.2 * std::log1p(std::exp(normal(random))));
    const double draw = normal(random);
    x = c.decay == Decay::zero     ? 0
        : c.decay == Decay::strong ? -30
        : c.decay == Decay::cut    ? -1e4
        : c.decay == Decay::mixed  ? (draw > 1.5   ? -1e4
                                      : draw > 0.5 ? 0
                                                   : soft)
                                   : soft;
    if (c.slow) x = float(0.01 * x);
  }
  return p;
}

// Central differences of the loop's own loss, once
bool truth_holds() {
  std::mt19937_64 random(7);
  bool good = true;
  for (const int n : {1, 3}) {
    Case c{DeltaPrecision::fp32, 1, 70, 1, n, 4, 5};
    Pair p = draw(c, random);
    backward_loop(p);
    const auto probe = [&](Doubles& x, const Doubles& gradient, const char* name) {
      double worst = 0;
      for (int i = 0; i < 8; ++i) {
        const size_t at = random() % x.size();
        const double expected = check::central_difference(x[at], 1e-5, [&] { return loss(p); });
        worst = std::max(worst, std::abs(expected - gradient[at]) / (1 + std::abs(gradient[at])));
      }
      if (worst > 1e-6) std::printf("loop, d%s: differs from central differences by %.1e\n", name, worst), good = false;
    };
    probe(p.q, p.dq, "q"), probe(p.k, p.dk, "k"), probe(p.v, p.dv, "v"), probe(p.beta, p.dbeta, "beta");
    probe(p.g, p.dg, "g"), probe(p.state, p.d_state, "state");
  }
  return good;
}

// ---- device ----

// A tensor [B,T,n,H,W] of bf16 or float; with gaps, rows and heads lie further apart than they are wide.
struct Tensor {
  int B, T, n, H, W;
  bool bf16;
  int64_t head, factor, time, batch;
  Memory memory;
  Tensor(int B, int T, int n, int H, int W, bool bf16, int head_gap, int time_gap)
      : B(B),
        T(T),
        n(n),
        H(H),
        W(W),
        bf16(bf16),
        head(W + head_gap),
        factor(H * head),
        time(n * factor + time_gap),
        batch(T * time),
        memory(size_t(batch) * B * (bf16 ? 2 : 4)) {}
  size_t elements() const { return size_t(batch) * B; }
  DeltaView view() const { return {memory.data, batch, time, factor, head}; }
  int64_t at(int b, int t, int f, int h) const { return b * batch + t * time + f * factor + h * head; }

  // pair(b, h) gives [T,n,W]
  template <class F>
  void upload(F pair) {
    std::vector<float> x(elements(), NAN);
    each(pair, [&](int64_t at, double& value) { x[at] = float(value); });
    std::vector<__nv_bfloat16> low(bf16 ? x.size() : 0);
    for (size_t i = 0; i < low.size(); ++i) low[i] = __float2bfloat16(x[i]);
    expect(cudaMemcpy(memory.data, bf16 ? static_cast<const void*>(low.data()) : x.data(), x.size() * (bf16 ? 2 : 4),
                      cudaMemcpyHostToDevice),
           "upload");
  }
  std::vector<char> bytes() const {
    std::vector<char> bytes(elements() * (bf16 ? 2 : 4));
    expect(cudaMemcpy(bytes.data(), memory.data, bytes.size(), cudaMemcpyDeviceToHost), "download");
    return bytes;
  }
  // ||device - pair|| / ||pair||
  template <class F>
  double error(F pair) const {
    std::vector<char> bytes = this->bytes();
    double difference = 0, norm = 0;
    each(pair, [&](int64_t at, double& value) {
      const double x = bf16 ? __bfloat162float(reinterpret_cast<__nv_bfloat16*>(bytes.data())[at])
                            : reinterpret_cast<float*>(bytes.data())[at];
      difference += (x - value) * (x - value), norm += value * value;
    });
    return std::sqrt(difference) / std::max(std::sqrt(norm), 1e-30);
  }

 private:
  template <class F, class G>
  void each(F pair, G use) const {
    for (int b = 0; b < B; ++b) {
      for (int h = 0; h < H; ++h) {
        Doubles& x = pair(b, h);
        for (int t = 0; t < T; ++t) {
          for (int f = 0; f < n; ++f) {
            for (int i = 0; i < W; ++i) use(at(b, t, f, h) + i, x[(size_t(t) * n + f) * W + i]);
          }
        }
      }
    }
  }
};

struct Tensors {
  Tensor q, k, v, beta, g, state, out, final_state, d_out, d_final, dq, dk, dv, dbeta, dg, d_state;
  explicit Tensors(const Case& c)
      : q(c.B, c.T, 1, c.H, c.K, low(c), head(c, c.K), row(c)),
        k(c.B, c.T, c.n, c.H, c.K, low(c), head(c, c.K), row(c)),
        v(c.B, c.T, c.n, c.H, c.V, low(c), head(c, c.V), row(c)),
        beta(c.B, c.T, c.n, c.H, 1, false, 0, row(c)),
        g(c.B, c.T, 1, c.H, 1, false, 0, row(c)),
        state(c.B, c.K, 1, c.H, c.V, false, 0, 0),
        out(c.B, c.T, 1, c.H, c.V, low(c), head(c, c.V), 0),
        final_state(c.B, c.K, 1, c.H, c.V, false, 0, 0),
        d_out(c.B, c.T, 1, c.H, c.V, low(c), head(c, c.V), row(c)),
        d_final(c.B, c.K, 1, c.H, c.V, false, 0, 0),
        dq(c.B, c.T, 1, c.H, c.K, low(c), head(c, c.K), row(c)),
        dk(c.B, c.T, c.n, c.H, c.K, low(c), head(c, c.K), row(c)),
        dv(c.B, c.T, c.n, c.H, c.V, low(c), head(c, c.V), row(c)),
        dbeta(c.B, c.T, c.n, c.H, 1, false, 0, row(c)),
        dg(c.B, c.T, 1, c.H, 1, false, 0, row(c)),
        d_state(c.B, c.K, 1, c.H, c.V, false, 0, 0) {
    for (Tensor* s : {&state, &final_state, &d_final, &d_state}) {  // [B,H,K,V]
      s->time = c.V, s->factor = 0, s->head = int64_t(c.K) * c.V, s->batch = c.H * s->head;
    }
  }
  static bool low(const Case& c) { return c.precision == DeltaPrecision::bf16; }
  // With gaps, heads lie on multiples of 8 elements, as padded weights give them.
  static int head(const Case& c, int width) { return c.gaps ? (8 - width % 8) % 8 : 0; }
  static int row(const Case& c) { return c.gaps ? 24 : 0; }
};

DeltaShape shape_of(const Case& c) {
  return {c.B, c.T, c.H, c.n, c.K, c.V, float(1 / std::sqrt(double(c.K))), c.precision};
}
DeltaInputs inputs_of(const Case& c, const Tensors& x) {
  DeltaInputs in{x.q.view(), x.k.view(), x.v.view(), x.beta.view(), {}, nullptr};
  if (c.decay != Decay::none) in.g = x.g.view();
  if (c.states) in.state = x.state.memory.floats();
  return in;
}
DeltaOutputs outputs_of(const Case& c, const Tensors& x) {
  return {x.out.view(), c.states ? x.final_state.memory.floats() : nullptr};
}
DeltaGradients gradients_of(const Case& c, const Tensors& x) {
  DeltaGradients grad{x.d_out.view(), nullptr, x.dq.view(), x.dk.view(), x.dv.view(), x.dbeta.view(), {}, nullptr};
  if (c.decay != Decay::none) grad.dg = x.dg.view();
  if (c.states) {
    grad.d_final_state = x.d_final.memory.floats();
    grad.d_state = x.d_state.memory.floats();
  }
  return grad;
}

const char* name_of(DeltaPrecision p) {
  return p == DeltaPrecision::bf16 ? "bf16" : p == DeltaPrecision::tf32 ? "tf32" : "fp32";
}

bool run_case(const Case& c, bool twice, std::mt19937_64& random, double (&worst)[3]) {
  std::vector<Pair> pairs;
  for (int i = 0; i < c.B * c.H; ++i) pairs.push_back(draw(c, random));
  std::vector<std::thread> loops;
  for (Pair& p : pairs) loops.emplace_back([&p] { backward_loop(p); });
  for (std::thread& loop : loops) loop.join();
  const auto of = [&](Doubles Pair::*field) {
    return [&pairs, field, H = c.H](int b, int h) -> Doubles& { return pairs[b * H + h].*field; };
  };
  Tensors x(c);
  x.q.upload(of(&Pair::q)), x.k.upload(of(&Pair::k)), x.v.upload(of(&Pair::v));
  x.beta.upload(of(&Pair::beta)), x.g.upload(of(&Pair::g)), x.state.upload(of(&Pair::state));
  x.d_out.upload(of(&Pair::d_out)), x.d_final.upload(of(&Pair::d_final));

  const DeltaShape shape = shape_of(c);
  Memory kept(gated_delta_kept_bytes(shape)), more(gated_delta_scratch_bytes(shape, true));
  expect(gated_delta_forward(shape, inputs_of(c, x), outputs_of(c, x), kept.data, nullptr, 0), "forward");
  expect(gated_delta_backward(shape, inputs_of(c, x), gradients_of(c, x), kept.data, more.data, 0), "backward");
  expect(cudaDeviceSynchronize(), "run");
  bool same = true;  // bytes of outputs and gradients on a second run
  if (twice) {
    const auto results = {&x.out, &x.dq, &x.dk, &x.dv, &x.dbeta, &x.dg};
    std::vector<std::vector<char>> before;
    for (const Tensor* result : results) before.push_back(result->bytes());
    expect(gated_delta_forward(shape, inputs_of(c, x), outputs_of(c, x), kept.data, nullptr, 0), "forward");
    expect(gated_delta_backward(shape, inputs_of(c, x), gradients_of(c, x), kept.data, more.data, 0), "backward");
    expect(cudaDeviceSynchronize(), "run");
    auto old = before.begin();
    for (const Tensor* result : results) same = same && result->bytes() == *old++;
  }

  // Nearly equal keys: sums over a chunk cancel, at beta 1.9 to a tenth of their terms, and those are rounded.
  const bool cancels = c.equal_keys && c.n > 1;
  const double low = cancels ? 0.3 : c.equal_keys ? 5e-2 : 2e-2;
  const double bounds[] = {low, cancels ? 0.1 : 2e-2, cancels ? 5e-5 : 1e-5};
  const double bound = bounds[static_cast<int>(c.precision)];
  std::printf("%s B%d T%-4d H%d n%d %3dx%-3d g %-6s%s%s%s", name_of(c.precision), c.B, c.T, c.H, c.n, c.K, c.V,
              kDecayNames[static_cast<int>(c.decay)], c.equal_keys ? " equal keys" : "", c.gaps ? " gaps" : "",
              c.slow ? " slow" : "");
  bool good = same;
  if (!same) std::printf("  other bytes on the second run FAIL");
  const auto judge = [&](const char* name, double error) {
    std::printf("  %s %.1e%s", name, error, error <= bound ? "" : " FAIL");
    good = good && error <= bound;
    double& most = worst[static_cast<int>(c.precision)];
    if (!(error <= most)) most = error;
  };
  judge("o", x.out.error(of(&Pair::out)));
  if (c.states) judge("S", x.final_state.error(of(&Pair::final_state)));
  judge("dq", x.dq.error(of(&Pair::dq)));
  judge("dk", x.dk.error(of(&Pair::dk)));
  judge("dv", x.dv.error(of(&Pair::dv)));
  judge("dbeta", x.dbeta.error(of(&Pair::dbeta)));
  if (c.decay != Decay::none) judge("dg", x.dg.error(of(&Pair::dg)));
  if (c.states) judge("dS", x.d_state.error(of(&Pair::d_state)));
  std::printf("\n");
  std::fflush(stdout);
  return good;
}

std::vector<Case> matrix(bool quick) {
  std::vector<Case> cases;
  for (const DeltaPrecision p : {DeltaPrecision::bf16, DeltaPrecision::fp32, DeltaPrecision::tf32}) {
    cases.push_back({p, 2, 130, 2, 1, 72, 144});
    cases.push_back({p, 1, 65, 2, 4, 96, 192, Decay::mixed});
    cases.push_back({p, 1, 67, 1, 1, 81, 162, Decay::none, false, false});
    if (quick) continue;
    for (const int T : {1, 2, 3, 63, 64, 65, 127, 200, 513}) cases.push_back({p, T < 63 ? 8 : 2, T, 3, 1, 72, 144});
    cases.push_back({p, 1, 2200, 2, 1, 72, 144});
    cases.push_back({p, 1, 2200, 2, 1, 81, 162, Decay::none});
    for (const int K : {16, 64, 80, 81, 96, 120, 128}) {
      cases.push_back({p, 1, 200, 2, 1, K, 2 * K});
    }
    cases.push_back({p, 1, 130, 2, 1, 256, 512});
    cases.push_back({p, 1, 130, 2, 1, 200, 40});
    for (const Decay d : {Decay::none, Decay::zero, Decay::strong, Decay::cut, Decay::mixed}) {
      cases.push_back({p, 2, 150, 2, 1, 64, 128, d});
      cases.push_back({p, 1, 50, 2, 4, 64, 128, d});
    }
    for (const int n : {2, 3, 4}) {
      for (const int T : {1, 3, 17, 65, 127, 513}) cases.push_back({p, T < 65 ? 4 : 1, T, 4, n, 96, 192});
      cases.push_back({p, 1, 40, 2, n, 72, 144, Decay::none, true, false});
      cases.push_back({p, 1, 130, 2, n, 81, 162, Decay::random, false, false, true});
    }
    cases.push_back({p, 1, 40, 2, 4, 256, 512});
    cases.push_back({p, 2, 200, 2, 1, 64, 128, Decay::none, true});
    cases.push_back({p, 2, 200, 2, 1, 64, 128, Decay::random, true});
    cases.push_back({p, 2, 130, 3, 1, 81, 162, Decay::random, false, true, true});
    cases.push_back({p, 2, 130, 3, 1, 64, 128, Decay::random, false, false, true});
  }
  return cases;
}

// Divided into segments on a GPU of 100 multiprocessors or more, except T = 2047. Lengths with a short last segment and
// chunk among them.
std::vector<Case> long_matrix() {
  const DeltaPrecision low = DeltaPrecision::bf16, exact = DeltaPrecision::fp32;
  std::vector<Case> cases{{low, 1, 2048, 2, 1, 72, 144},
                          {low, 1, 20200, 2, 1, 72, 144},
                          {low, 1, 4099, 3, 1, 81, 162, Decay::none, false, false},
                          {low, 1, 2100, 2, 4, 96, 192},
                          {low, 1, 2048, 1, 1, 256, 512},
                          {low, 1, 32768, 16, 1, 72, 144},
                          {exact, 1, 32768, 2, 1, 64, 64}};
  for (const DeltaPrecision p : {low, exact, DeltaPrecision::tf32}) {
    cases.push_back({p, 1, 2500, 2, 1, 72, 144});
    cases.push_back({p, 1, 4099, 3, 1, 81, 162, Decay::mixed, false, true, true});
    cases.push_back({p, 2, 2500, 2, 3, 64, 128});
  }
  cases.push_back({low, 1, 2047, 2, 1, 72, 144});
  for (Case& c : cases) c.slow = true;
  cases.push_back({low, 1, 4096, 4, 1, 72, 144});
  return cases;
}

// ---- time ----

void time_case(const std::string& only, const char* name, const Case& c, std::mt19937_64& random) {
  if (std::string(name).find(only) == std::string::npos) return;
  Tensors x(c);
  Pair p = draw(Case{c.precision, 1, c.T, 1, c.n, c.K, c.V, c.decay}, random);
  const auto same = [&](Doubles Pair::*field) { return [&p, field](int, int) -> Doubles& { return p.*field; }; };
  x.q.upload(same(&Pair::q)), x.k.upload(same(&Pair::k)), x.v.upload(same(&Pair::v));
  x.beta.upload(same(&Pair::beta)), x.g.upload(same(&Pair::g)), x.d_out.upload(same(&Pair::d_out));
  const DeltaShape shape = shape_of(c);
  Memory kept(gated_delta_kept_bytes(shape)), scratch(gated_delta_scratch_bytes(shape, false)),
      more(gated_delta_scratch_bytes(shape, true));
  const DeltaInputs in = inputs_of(c, x);
  const DeltaOutputs out = outputs_of(c, x);
  const DeltaGradients grad = gradients_of(c, x);
  const double alone = median_ms([&](int) { return gated_delta_forward(shape, in, out, nullptr, scratch.data, 0); });
  const double forward = median_ms([&](int) { return gated_delta_forward(shape, in, out, kept.data, nullptr, 0); });
  const double backward =
      median_ms([&](int) { return gated_delta_backward(shape, in, grad, kept.data, more.data, 0); });
  // Least bytes (inputs, outputs and gradients once) and the operations of the chunk form, backward counted twice
  const double rows = double(c.B) * c.T * c.H * c.n, wide = Tensors::low(c) ? 2 : 4;
  const double values = rows / c.n * (c.K + c.V) + rows * (c.K + c.V);
  const double gigabytes = values * wide * 3 / 1e9;
  const double flops = rows * (6. * c.K * c.V + 128. * (c.K + c.V) + 64. * c.K + 64 * 64 / 3.);
  std::printf("| %s | %s | %d | %.3f | %.3f | %.3f | %.3f | %.2f | %.0f | %.0f | %.0f + %.0f |\n", name,
              name_of(c.precision), c.T, alone, forward, backward, forward + backward, gigabytes,
              gigabytes / (forward + backward) * 1e3, 3 * flops / (forward + backward) / 1e9, kept.bytes / 1e6,
              more.bytes / 1e6);
  std::fflush(stdout);
}

void time_all(const std::string& only, bool quick) {
  std::mt19937_64 random(3);
  const DeltaPrecision low = DeltaPrecision::bf16;
  std::printf(
      "\n| model, batch 64 | operands | T | forward ms | forward, keeping | backward | "
      "keeping both | least GB | GB/s | TFLOP/s | kept + scratch MB |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n");
  time_case(only, "Gated DeltaNet 1152: 16 heads 72x144", {low, 64, 400, 16, 1, 72, 144, Decay::random, false, false},
            random);
  if (quick) return;
  time_case(only, "Gated DeltaNet 1152, T 1300", {low, 64, 1300, 16, 1, 72, 144, Decay::random, false, false}, random);
  time_case(only, "Gated DeltaNet 1152, batch 32, T 1024", {low, 32, 1024, 16, 1, 72, 144, Decay::random, false, false},
            random);
  time_case(only, "Gated DeltaNet 1152, batch 8, T 4096", {low, 8, 4096, 16, 1, 72, 144, Decay::random, false, false},
            random);
  time_case(only, "Gated DeltaNet 1152, batch 2, T 16384", {low, 2, 16384, 16, 1, 72, 144, Decay::random, false, false},
            random);
  time_case(only, "Gated DeltaNet 1152, batch 1, T 32768", {low, 1, 32768, 16, 1, 72, 144, Decay::random, false, false},
            random);
  time_case(only, "DeltaNet 1296: 16 heads 81x162", {low, 64, 400, 16, 1, 81, 162, Decay::none, false, false}, random);
  time_case(only, "DeltaNet 1296 in rows of 88x168", {low, 64, 400, 16, 1, 81, 162, Decay::none, false, false, true},
            random);
  time_case(only, "Gated DeltaProduct 768: 8 heads 96x192, n 4",
            {low, 64, 400, 8, 4, 96, 192, Decay::random, false, false}, random);
  time_case(only, "width 1024: 16 heads 64x128", {low, 64, 400, 16, 1, 64, 128, Decay::random, false, false}, random);
  time_case(only, "width 256: 4 heads 64x128", {low, 64, 400, 4, 1, 64, 128, Decay::random, false, false}, random);
  time_case(only, "16 heads 128x256", {low, 64, 400, 16, 1, 128, 256, Decay::random, false, false}, random);
  time_case(only, "Gated DeltaNet 1152", {DeltaPrecision::tf32, 64, 400, 16, 1, 72, 144, Decay::random, false, false},
            random);
  time_case(only, "Gated DeltaNet 1152", {DeltaPrecision::fp32, 64, 400, 16, 1, 72, 144, Decay::random, false, false},
            random);
}

}  // namespace

int main(int argc, char** argv) {
  const check::Arguments<Case> arguments(argc, argv, 7, [](char** words) -> Case {
    const std::string p = words[0];
    const auto number = [&](int i) { return std::atoi(words[i]); };
    Case c{p == "bf16"   ? DeltaPrecision::bf16
           : p == "tf32" ? DeltaPrecision::tf32
                         : DeltaPrecision::fp32,
           number(1),
           number(2),
           number(3),
           number(4),
           number(5),
           number(6)};
    c.slow = words[7] && std::string(words[7]) == "slow";  // argv ends with a null
    return c;
  });
  bool good = true;
  if (arguments.checks()) {
    good = truth_holds();
    std::mt19937_64 random(std::random_device{}());
    double worst[3] = {0, 0, 0};
    const std::vector<Case> all = !arguments.cases.empty() ? arguments.cases
                                  : arguments.lengthy      ? long_matrix()
                                                           : matrix(arguments.quick);
    for (const Case& c : all) good = run_case(c, arguments.lengthy, random, worst) && good;
    std::printf("worst: bf16 %.1e, tf32 %.1e, fp32 %.1e: %s\n", worst[0], worst[1], worst[2], good ? "good" : "FAIL");
  }
  if (arguments.times()) time_all(arguments.model, arguments.quick);
  return good ? 0 : 1;
}
