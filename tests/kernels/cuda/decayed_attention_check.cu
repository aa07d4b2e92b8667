// Decayed attention on the device against a double loop: errors ||out - ref|| / ||ref|| of every output and gradient,
// then times. Exit code 1 where a bound is missed.
//   decayed_attention_check [--quick | --long | --time] [--filter DECAY] [--model TEXT]
// --long: few long sequences, which are divided into segments.
#include <cstring>
#include <thread>

#include "check.cuh"
#include "kernels/cuda/decayed_attention.h"

using namespace sb::cuda;
using check::Doubles;
using check::error;
using check::expect;
using check::median_ms;
using check::Memory;

namespace {

// Of the decays. strong: 0, -30, -1e4 among mild ones; slow: states last for thousands of steps
enum class Logs { mild, zero, strong, slow };

struct Case {
  Decay decay;
  int B, T, H, G, K, V;
  Precision precision = Precision::bf16;
  Logs logs = Logs::mild;
  bool states = true;   // initial state, gradient of the final one
  int gap = 0;          // elements between the rows of steps
  bool writes = false;  // with factors of what is written and a skip
  bool before = false;  // with factors with which the frame before is written again
};

const char* name(Decay d) {
  const char* names[] = {"unit", "fixed", "scalar", "vector"};
  return names[static_cast<int>(d)];
}
const char* name(Precision p) {
  const char* names[] = {"bf16", "tf32", "fp32"};
  return names[static_cast<int>(p)];
}
const char* name(Logs l) {
  const char* names[] = {"mild", "zero", "strong", "slow"};
  return names[static_cast<int>(l)];
}

struct Data {
  Doubles q, k, v, g, state, d_out, d_final;  // no gaps; g [B,T,H,K] or [B,T,H] or [H]
  Doubles write, before, skip;                // [B,T,H], [B,T,H], [H]
};
struct Result {
  Doubles out, final, dq, dk, dv, dg, d_state, d_write, d_before, d_skip;
  double dg_terms = 0;  // of a fixed decay: root of the sum of squares of what dg is summed from, one a step
};

double log_decay(const Case& c, const Data& x, int b, int t, int h, int k) {
  if (c.decay == Decay::unit) return 0;
  if (c.decay == Decay::fixed) return x.g[h];
  const size_t step = (static_cast<size_t>(b) * c.T + t) * c.H + h;
  return c.decay == Decay::scalar ? x.g[step] : x.g[step * c.K + k];
}

// One sequence and head, by the definition.
void loop(const Case& c, double scale, const Data& x, Result& r, int b, int h, Doubles& dq, Doubles& dk,
          double& dg_fixed, double& dg_squares, double& d_skip) {
  const int K = c.K, V = c.V, group = h / (c.H / c.G);
  const size_t size = static_cast<size_t>(K) * V, pair = static_cast<size_t>(b) * c.H + h;
  const auto key_row = [&](int t) { return ((static_cast<size_t>(b) * c.T + t) * c.G + group) * K; };
  const auto value_row = [&](int t) { return ((static_cast<size_t>(b) * c.T + t) * c.H + h) * V; };
  Doubles states((c.T + 1) * size);
  if (c.states) std::copy_n(x.state.begin() + pair * size, size, states.begin());
  for (int t = 0; t < c.T; ++t) {
    const double *q = &x.q[key_row(t)], *k = &x.k[key_row(t)], *v = &x.v[value_row(t)];
    const double* before = &states[t * size];
    double *S = &states[(t + 1) * size], *out = &r.out[value_row(t)];
    const size_t step = (static_cast<size_t>(b) * c.T + t) * c.H + h;
    const double w = c.writes ? x.write[step] : 1, again = c.before && t > 0 ? x.before[step] : 0;
    const double *last_k = &x.k[key_row(std::max(0, t - 1))], *last_v = &x.v[value_row(std::max(0, t - 1))];
    for (int j = 0; j < V; ++j) out[j] = c.writes ? x.skip[h] * v[j] : 0;
    for (int i = 0; i < K; ++i) {
      const double a = std::exp(log_decay(c, x, b, t, h, i));
      for (int j = 0; j < V; ++j) {
        S[i * V + j] = a * (before[i * V + j] + again * last_k[i] * last_v[j]) + w * k[i] * v[j];
        out[j] += scale * q[i] * S[i * V + j];
      }
    }
  }
  std::copy_n(&states[c.T * size], size, r.final.begin() + pair * size);
  Doubles dS(size, 0.);
  if (c.states) std::copy_n(x.d_final.begin() + pair * size, size, dS.begin());
  dg_fixed = dg_squares = d_skip = 0;
  Doubles later_dv(V, 0.);  // of the frame's values, through the write of the next frame
  for (int t = c.T - 1; t >= 0; --t) {
    const double *q = &x.q[key_row(t)], *k = &x.k[key_row(t)], *v = &x.v[value_row(t)], *d = &x.d_out[value_row(t)];
    const double *before = &states[t * size], *S = &states[(t + 1) * size];
    double* dv = &r.dv[value_row(t)];
    std::fill_n(dv, V, 0.);
    const size_t step = (static_cast<size_t>(b) * c.T + t) * c.H + h;
    if (c.decay == Decay::scalar) r.dg[step] = 0;
    const double w = c.writes ? x.write[step] : 1, again = c.before && t > 0 ? x.before[step] : 0;
    const double *last_k = &x.k[key_row(std::max(0, t - 1))], *last_v = &x.v[value_row(std::max(0, t - 1))];
    const Doubles next_dv = later_dv;
    std::fill(later_dv.begin(), later_dv.end(), 0.);
    if (c.before) r.d_before[step] = 0;
    double fixed_term = 0;
    for (int i = 0; i < K; ++i) {
      const double a = std::exp(log_decay(c, x, b, t, h, i));
      double by_q = 0, by_k = 0, by_a = 0, by_last = 0;
      for (int j = 0; j < V; ++j) {
        double& s = dS[i * V + j];
        s += scale * q[i] * d[j];
        by_q += S[i * V + j] * d[j];
        by_k += s * w * v[j];
        dv[j] += s * k[i];
        by_a += s * (before[i * V + j] + again * last_k[i] * last_v[j]);
        s *= a;
        by_last += s * last_v[j];
        later_dv[j] += again * s * last_k[i];
      }
      if (c.before && t > 0) {
        r.d_before[step] += by_last * last_k[i];
        dk[static_cast<size_t>(t - 1) * K + i] += again * by_last;
      }
      dq[static_cast<size_t>(t) * K + i] = scale * by_q;
      dk[static_cast<size_t>(t) * K + i] += by_k;
      fixed_term += a * by_a;
      if (c.decay == Decay::scalar) r.dg[step] += a * by_a;
      if (c.decay == Decay::vector) r.dg[step * K + i] = a * by_a;
    }
    dg_fixed += fixed_term;
    dg_squares += fixed_term * fixed_term;
    if (!c.writes) continue;
    r.d_write[step] = 0;
    for (int j = 0; j < V; ++j) {
      r.d_write[step] += dv[j] * v[j];
      dv[j] = w * dv[j] + x.skip[h] * d[j] + next_dv[j];
      d_skip += v[j] * d[j];
    }
  }
  std::copy_n(dS.begin(), size, r.d_state.begin() + pair * size);
}

Result truth(const Case& c, double scale, const Data& x) {
  Result r;
  r.out.resize(x.v.size());
  r.final.resize(x.state.size());
  r.dq.assign(x.q.size(), 0);
  r.dk.assign(x.k.size(), 0);
  r.dv.resize(x.v.size());
  r.dg.assign(x.g.size(), 0);
  r.d_state.resize(x.state.size());
  r.d_write.resize(x.write.size());
  r.d_before.resize(x.before.size());
  r.d_skip.assign(x.skip.size(), 0);
  const int pairs = c.B * c.H;
  std::vector<Doubles> dq(pairs), dk(pairs);
  Doubles dg(pairs), dg_squares(pairs), d_skip(pairs);
  const double bytes = 8. * c.T * c.K * c.V;
  const int workers = std::max(
      1, std::min({pairs, static_cast<int>(std::thread::hardware_concurrency()), static_cast<int>(2e10 / bytes)}));
  std::vector<std::thread> threads;
  for (int w = 0; w < workers; ++w)
    threads.emplace_back([&, w] {
      for (int i = w; i < pairs; i += workers) {
        dq[i].resize(static_cast<size_t>(c.T) * c.K);
        dk[i].resize(static_cast<size_t>(c.T) * c.K);
        loop(c, scale, x, r, i / c.H, i % c.H, dq[i], dk[i], dg[i], dg_squares[i], d_skip[i]);
      }
    });
  for (std::thread& t : threads) t.join();
  for (int i = 0; i < pairs; ++i) {
    const int b = i / c.H, h = i % c.H, group = h / (c.H / c.G);
    for (int t = 0; t < c.T; ++t)
      for (int k = 0; k < c.K; ++k) {
        const size_t to = ((static_cast<size_t>(b) * c.T + t) * c.G + group) * c.K + k;
        r.dq[to] += dq[i][static_cast<size_t>(t) * c.K + k];
        r.dk[to] += dk[i][static_cast<size_t>(t) * c.K + k];
      }
    if (c.writes) r.d_skip[h] += d_skip[i];
    if (c.decay == Decay::fixed) r.dg[h] += dg[i], r.dg_terms += dg_squares[i];
  }
  r.dg_terms = std::sqrt(r.dg_terms);
  return r;
}

double rounded(double x, Precision p) {
  return check::rounded(x, p == Precision::bf16);
}

int64_t logs(const Case& c) {
  const int64_t steps = static_cast<int64_t>(c.B) * c.T * c.H;
  return c.decay == Decay::unit ? 0 : c.decay == Decay::fixed ? c.H : c.decay == Decay::scalar ? steps : steps * c.K;
}

Data random_data(const Case& c, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  const auto fill = [&](Doubles& to, size_t size, Precision p) {
    to.resize(size);
    for (double& e : to) e = rounded(normal(engine), p);
  };
  const size_t steps = static_cast<size_t>(c.B) * c.T, states = static_cast<size_t>(c.B) * c.H * c.K * c.V;
  Data x;
  fill(x.q, steps * c.G * c.K, c.precision);
  fill(x.k, steps * c.G * c.K, c.precision);
  fill(x.v, steps * c.H * c.V, c.precision);
  fill(x.d_out, steps * c.H * c.V, c.precision);
  fill(x.state, states, Precision::fp32);
  fill(x.d_final, states, Precision::fp32);
  x.g.resize(logs(c));
  for (double& e : x.g) {
    const double u = uniform(engine);
    e = c.logs == Logs::zero ? 0 : -0.2 * uniform(engine);
    if (c.logs == Logs::strong) e = u < .1 ? -30 : u < .15 ? -1e4 : u < .3 ? 0 : e;
    if (c.logs == Logs::slow) e *= 0.01;
    e = rounded(e, Precision::fp32);
  }
  if (c.writes) {
    fill(x.write, steps * c.H, Precision::fp32);
    fill(x.skip, c.H, Precision::fp32);
  }
  if (c.before) fill(x.before, steps * c.H, Precision::fp32);
  return x;
}

// The gradients of the loop itself against differences of its outputs.
double check_loop(Decay decay, bool before) {
  Case c{decay, 1, 5, 2, before ? 2 : 1, 3, 2, Precision::fp32};
  c.writes = decay != Decay::vector, c.before = before;
  Data x = random_data(c, 7);
  const Result r = truth(c, .7, x);
  const auto loss = [&] {
    const Result y = truth(c, .7, x);
    double sum = 0;
    for (size_t i = 0; i < y.out.size(); ++i) sum += y.out[i] * x.d_out[i];
    for (size_t i = 0; i < y.final.size(); ++i) sum += y.final[i] * x.d_final[i];
    return sum;
  };
  double worst = 0;
  const auto compare = [&](Doubles& input, const Doubles& gradient) {
    for (size_t i = 0; i < input.size(); ++i)
      worst = std::max(worst, std::abs(check::central_difference(input[i], 1e-5, loss) - gradient[i]));
  };
  compare(x.q, r.dq);
  compare(x.k, r.dk);
  compare(x.v, r.dv);
  compare(x.g, r.dg);
  compare(x.state, r.d_state);
  compare(x.write, r.d_write);
  compare(x.skip, r.d_skip);
  compare(x.before, r.d_before);
  return worst;
}

// [B, T, row] with a gap behind each row
struct Tensor {
  int64_t steps, row, gap;
  Precision precision;
  Memory memory;
  Tensor(int64_t s, int64_t r, int64_t between, Precision p)
      : steps(s), row(r), gap(between), precision(p), memory(s * (r + between) * (p == Precision::bf16 ? 2 : 4)) {}
  Tensor(int64_t s, int64_t r, int64_t between, Precision p, const Doubles& x) : Tensor(s, r, between, p) { put(x); }
  // x, repeated until the tensor is full
  void put(const Doubles& x) {
    if (x.empty()) return;
    const size_t line = std::min<size_t>(row, x.size()), lines = x.size() / line,
                 element = precision == Precision::bf16 ? 2 : 4;
    std::vector<unsigned char> bytes((lines == 1 ? line : lines * (row + gap)) * element);
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t to = i / line * (row + gap) + i % line;
      if (precision == Precision::bf16)
        reinterpret_cast<__nv_bfloat16*>(bytes.data())[to] = __float2bfloat16(static_cast<float>(x[i]));
      else
        reinterpret_cast<float*>(bytes.data())[to] = static_cast<float>(x[i]);
    }
    unsigned char* to = static_cast<unsigned char*>(memory.data);
    expect(cudaMemcpy(to, bytes.data(), std::min(bytes.size(), memory.bytes), cudaMemcpyHostToDevice), "put");
    for (size_t at = bytes.size(); at < memory.bytes; at += bytes.size())
      expect(cudaMemcpy(to + at, to, std::min(bytes.size(), memory.bytes - at), cudaMemcpyDeviceToDevice), "repeat");
  }
  Doubles get() const {
    std::vector<unsigned char> bytes(memory.bytes);
    expect(cudaMemcpy(bytes.data(), memory.data, bytes.size(), cudaMemcpyDeviceToHost), "get");
    Doubles x(steps * row);
    for (int64_t s = 0; s < steps; ++s)
      for (int64_t i = 0; i < row; ++i)
        x[s * row + i] =
            precision == Precision::bf16
                ? __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(bytes.data())[s * (row + gap) + i])
                : reinterpret_cast<const float*>(bytes.data())[s * (row + gap) + i];
    return x;
  }
  template <class Void>
  RowsOf<Void> rows(int64_t time, int64_t width) const {
    return {memory.data, time * (row + gap), row + gap, width};
  }
};

struct Problem {
  Case c;
  float scale;
  Tensor q, k, v, g, state, d_out, d_final, write, before, skip;
  Tensor out, final, dq, dk, dv, dg, d_state, d_write, d_before, d_skip;
  DecayedAttention p{};
  Memory kept, scratch, workspace;

  Problem(const Case& c_, const Data& x)
      : c(c_),
        scale(1 / std::sqrt(static_cast<float>(c.K))),
        q(c.B * c.T, c.G * c.K, c.gap, c.precision, x.q),
        k(c.B * c.T, c.G * c.K, c.gap, c.precision, x.k),
        v(c.B * c.T, c.H * c.V, c.gap, c.precision, x.v),
        g(1, logs(c), 0, Precision::fp32, x.g),
        state(1, static_cast<int64_t>(c.B) * c.H * c.K * c.V, 0, Precision::fp32, x.state),
        d_out(c.B * c.T, c.H * c.V, c.gap, c.precision, x.d_out),
        d_final(1, state.row, 0, Precision::fp32, x.d_final),
        write(1, c.writes ? static_cast<int64_t>(c.B) * c.T * c.H : 0, 0, Precision::fp32, x.write),
        before(1, c.before ? write.row : 0, 0, Precision::fp32, x.before),
        skip(1, c.writes ? c.H : 0, 0, Precision::fp32, x.skip),
        out(c.B * c.T, c.H * c.V, c.gap, c.precision),
        final(1, state.row, 0, Precision::fp32),
        dq(c.B * c.T, c.G * c.K, c.gap, c.precision),
        dk(c.B * c.T, c.G * c.K, c.gap, c.precision),
        dv(c.B * c.T, c.H * c.V, c.gap, c.precision),
        dg(1, g.row, 0, Precision::fp32),
        d_state(1, state.row, 0, Precision::fp32),
        d_write(1, write.row, 0, Precision::fp32),
        d_before(1, before.row, 0, Precision::fp32),
        d_skip(1, skip.row, 0, Precision::fp32),
        kept((describe(), decayed_attention_kept_bytes(p))),
        scratch(decayed_attention_scratch_bytes(p)),
        workspace(decayed_attention_workspace_bytes(p)) {}
  int64_t g_width() const { return c.decay == Decay::vector ? c.K : 1; }
  void describe() {
    p = {c.B,
         c.T,
         c.H,
         c.G,
         c.K,
         c.V,
         c.precision,
         c.decay,
         scale,
         q.rows<const void>(c.T, c.K),
         k.rows<const void>(c.T, c.K),
         v.rows<const void>(c.T, c.V),
         c.decay == Decay::unit ? nullptr : static_cast<const float*>(g.memory.data),
         c.decay == Decay::fixed ? 0 : c.T * c.H * g_width(),
         c.decay == Decay::fixed ? 0 : c.H * g_width(),
         g_width(),
         c.states ? static_cast<const float*>(state.memory.data) : nullptr};
    if (!c.writes) return;
    p.write = write.memory.floats();
    p.write_batch = static_cast<int64_t>(c.T) * c.H, p.write_time = c.H, p.write_head = 1;
    p.skip = skip.memory.floats();
    if (c.before) p.before = before.memory.floats();
  }
  cudaError_t forward() {
    return decayed_attention_forward(p, out.rows<void>(c.T, c.V), static_cast<float*>(final.memory.data), kept.data,
                                     scratch.data, nullptr);
  }
  cudaError_t backward() {
    const DecayedAttentionGradients d{d_out.rows<const void>(c.T, c.V),
                                      c.states ? static_cast<const float*>(d_final.memory.data) : nullptr,
                                      dq.rows<void>(c.T, c.K),
                                      dk.rows<void>(c.T, c.K),
                                      dv.rows<void>(c.T, c.V),
                                      static_cast<float*>(dg.memory.data),
                                      p.g_batch,
                                      p.g_time,
                                      p.g_head,
                                      static_cast<float*>(d_state.memory.data),
                                      d_write.memory.floats(),
                                      p.write_batch,
                                      p.write_time,
                                      p.write_head,
                                      d_skip.memory.floats(),
                                      d_before.memory.floats()};
    return decayed_attention_backward(p, kept.data, d, workspace.data, nullptr);
  }
};

bool check_case(const Case& c, unsigned seed) {
  const Data x = random_data(c, seed);
  Problem problem(c, x);
  const Result r = truth(c, problem.scale, x);
  const double bound = c.precision == Precision::bf16 ? 2e-2 : c.precision == Precision::tf32 ? 5e-3 : 1e-5;
  expect(problem.forward(), "forward");
  expect(problem.backward(), "backward");
  expect(cudaDeviceSynchronize(), "kernels");
  const double errors[] = {error(problem.out.get(), r.out),
                           error(problem.final.get(), r.final),
                           error(problem.dq.get(), r.dq),
                           error(problem.dk.get(), r.dk),
                           error(problem.dv.get(), r.dv),
                           c.decay == Decay::unit ? 0 : error(problem.dg.get(), r.dg, std::max(r.dg_terms, 1e-30)),
                           error(problem.d_state.get(), r.d_state),
                           error(problem.d_write.get(), r.d_write),
                           error(problem.d_skip.get(), r.d_skip),
                           error(problem.d_before.get(), r.d_before)};
  const auto results = [&] {
    Doubles all;
    for (const Tensor* x :
         {&problem.out, &problem.dq, &problem.dk, &problem.dv, &problem.dg, &problem.d_write, &problem.d_before}) {
      const Doubles more = x->get();
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  };
  const Doubles once = results();
  expect(problem.forward(), "forward");
  expect(problem.backward(), "backward");
  expect(cudaDeviceSynchronize(), "kernels");
  bool good = once == results();
  if (!good) std::printf("not the same bytes twice\n");
  std::printf("%-6s %s %-6s B%d T%-4d H%-2d G%-2d %3dx%-3d %s%s|", name(c.decay), name(c.precision), name(c.logs), c.B,
              c.T, c.H, c.G, c.K, c.V, c.states ? "S" : " ",
              c.before   ? "B"
              : c.writes ? "W"
                         : " ");
  for (double e : errors) {
    std::printf(" %.1e", e);
    good = good && e <= bound;
  }
  std::printf("%s\n", good ? "" : "  <-- FAILS");
  return good;
}

// A frame must leave the bytes of the outputs before it, although it changes the weight of the frame before.
bool check_causality(unsigned seed) {
  const Case c{Decay::scalar, 1, 140, 2, 2, 128, 80, Precision::bf16, Logs::mild, true, 0, true, true};
  const Data x = random_data(c, seed);
  bool good = true;
  for (const int t : {1, 63, 64, 65, 128, 139}) {
    Data changed = x;
    for (size_t i = 0; i < static_cast<size_t>(c.H) * c.K; ++i)
      changed.q[t * c.H * c.K + i] = rounded(x.q[t * c.H * c.K + i] * 3 - 7, c.precision),
                                changed.k[t * c.H * c.K + i] = rounded(x.k[t * c.H * c.K + i] * 3 - 7, c.precision);
    for (size_t i = 0; i < static_cast<size_t>(c.H) * c.V; ++i)
      changed.v[t * c.H * c.V + i] = rounded(x.v[t * c.H * c.V + i] * 3 - 7, c.precision);
    for (int h = 0; h < c.H; ++h)
      changed.g[t * c.H + h] -= 1, changed.write[t * c.H + h] += 2, changed.before[t * c.H + h] += 3;
    Problem one(c, x), other(c, changed);
    expect(one.forward(), "forward");
    expect(other.forward(), "forward");
    expect(cudaDeviceSynchronize(), "kernels");
    const Doubles a = one.out.get(), b = other.out.get();
    const bool same = std::equal(a.begin(), a.begin() + static_cast<int64_t>(t) * c.H * c.V, b.begin());
    if (!same) std::printf("frame %d changes outputs before it  <-- FAILS\n", t);
    good = good && same;
  }
  return good;
}

// FLOPs of the chunk form with the causal half of P, backward 2.5 times; bytes each input and output once.
void time_case(const std::string& only, const char* model, Case c) {
  if (std::string(model).find(only) == std::string::npos) return;
  c.states = false;
  Case one = c;
  one.B = 1;
  const Data x = random_data(one, 5);
  Problem problem(c, x);
  const double forward = median_ms([&](int) { return problem.forward(); });
  const double backward = median_ms([&](int) { return problem.backward(); });
  const double flops = 1. * c.B * c.T * c.H * (4. * c.K * c.V + 64. * (c.K + c.V));
  const double element = c.precision == Precision::bf16 ? 2 : 4;
  const double keys = 2. * c.B * c.T * c.G * c.K * element, values = 1. * c.B * c.T * c.H * c.V * element;
  const double logs = 4. * static_cast<double>(problem.g.row);
  const double forward_bytes = keys + 2 * values + logs, backward_bytes = 2 * keys + 3 * values + 2 * logs;
  std::printf(
      "%-18s %-6s %s B%d T%-4d H%-2d %3dx%-3d | forward %7.3f ms %5.0f TFLOP/s %5.2f TB/s | backward %7.3f ms %5.0f "
      "TFLOP/s %5.2f TB/s | sum %7.3f ms\n",
      model, name(c.decay), name(c.precision), c.B, c.T, c.H, c.K, c.V, forward, flops / forward / 1e9,
      forward_bytes / forward / 1e9, backward, 2.5 * flops / backward / 1e9, backward_bytes / backward / 1e9,
      forward + backward);
}

// Divided into segments on a GPU of 100 multiprocessors or more, except T = 2047. Lengths with a short last segment and
// chunk among them.
std::vector<Case> long_cases() {
  std::vector<Case> all;
  const Precision low = Precision::bf16, exact = Precision::fp32;
  for (Decay d : {Decay::scalar, Decay::vector}) {
    for (Precision p : {low, exact, Precision::tf32}) {
      all.push_back({d, 1, 2500, 2, 2, 72, 144, p, Logs::slow});
      all.push_back({d, 2, 4099, 2, 2, 81, 162, p, Logs::slow, false, 3});
      all.push_back({d, 1, 4099, 2, 1, 64, 128, p, Logs::strong});
    }
    all.push_back({d, 1, 2500, 1, 1, 256, 256, low, Logs::slow});
    all.push_back({d, 1, 20200, 2, 2, 72, 72, low, Logs::slow});
    all.push_back({d, 1, 32768, 2, 2, 64, 64, exact, Logs::slow});
  }
  all.push_back({Decay::unit, 1, 2500, 2, 2, 72, 144});
  all.push_back({Decay::fixed, 1, 2500, 2, 2, 72, 144, low, Logs::slow});
  all.push_back({Decay::vector, 1, 32768, 4, 4, 72, 144, low, Logs::slow});
  for (bool before : {false, true})  // heads at whole 16 bytes
    for (Logs l : {Logs::slow, Logs::zero, Logs::strong}) {
      all.push_back({Decay::scalar, 1, 2500, 4, before ? 4 : 1, 128, 88, low, l, true, 8, true, before});
      all.push_back({Decay::scalar, 1, 2048, 2, before ? 2 : 1, 128, 64, low, l, false, 0, true, before});
    }
  all.push_back({Decay::scalar, 1, 32768, 4, 1, 128, 88, low, Logs::slow, true, 0, true});
  all.push_back({Decay::scalar, 1, 32768, 2, 2, 128, 80, low, Logs::slow, true, 0, true, true});
  all.push_back({Decay::scalar, 1, 2047, 2, 1, 128, 88, low, Logs::slow, true, 0, true});
  all.push_back({Decay::vector, 1, 2047, 2, 2, 72, 144, low, Logs::slow});
  return all;
}

std::vector<Case> cases(bool quick) {
  std::vector<Case> all;
  const Decay kinds[] = {Decay::unit, Decay::fixed, Decay::scalar, Decay::vector};
  const Precision precisions[] = {Precision::bf16, Precision::fp32};
  if (quick) {
    for (Decay d : kinds)
      for (Precision p : precisions) all.push_back({d, 1, 70, 2, 2, 64, 72, p, Logs::mild, true, 3});
    all.push_back({Decay::scalar, 1, 130, 4, 1, 128, 81});
    for (int V : {64, 88})
      for (bool writes : {false, true})
        all.push_back({Decay::scalar, 2, 140, 4, 1, 128, V, Precision::bf16, Logs::mild, true, 8, writes});
    for (int V : {64, 80})
      all.push_back({Decay::scalar, 2, 140, 3, 3, 128, V, Precision::bf16, Logs::mild, true, 8, true, true});
    return all;
  }
  for (Decay d : {Decay::scalar, Decay::vector})
    for (Precision p : precisions)
      for (int T : {1, 2, 3, 63, 64, 65, 127, 200, 513, 2200}) all.push_back({d, 2, T, 2, 2, 72, 144, p});
  const int widths[][2] = {{64, 64},   {72, 144},  {81, 81},   {96, 192}, {120, 240}, {128, 81},
                           {144, 128}, {162, 120}, {192, 256}, {240, 72}, {256, 256}, {16, 7}};
  for (Decay d : {Decay::fixed, Decay::vector})
    for (Precision p : precisions)
      for (const auto& w : widths) all.push_back({d, 1, 150, 2, 2, w[0], w[1], p, Logs::mild, w[0] % 3 != 0, w[0] % 5});
  for (Decay d : {Decay::scalar, Decay::vector})
    for (Precision p : precisions)
      for (Logs l : {Logs::zero, Logs::strong}) all.push_back({d, 2, 200, 4, 4, 64, 128, p, l});
  for (Precision p : precisions) {
    all.push_back({Decay::scalar, 2, 400, 32, 1, 128, 81, p});
    all.push_back({Decay::scalar, 1, 200, 8, 2, 128, 64, p, Logs::strong});
    all.push_back({Decay::vector, 1, 200, 8, 2, 64, 64, p});
    all.push_back({Decay::unit, 2, 333, 4, 4, 64, 64, p});
    all.push_back({Decay::fixed, 2, 2200, 4, 4, 72, 144, p});
  }
  for (int T : {1, 2, 3, 63, 64, 65, 127, 200, 513, 2200})  // heads at whole 16 bytes
    for (bool writes : {false, true})
      all.push_back(
          {Decay::scalar, 2, T, 4, 1, 128, T % 2 ? 88 : 64, Precision::bf16, Logs::mild, T != 200, 0, writes});
  for (Logs l : {Logs::zero, Logs::strong})
    for (bool writes : {false, true})
      all.push_back({Decay::scalar, 2, 200, 8, 2, 128, 88, Precision::bf16, l, true, 24, writes});
  for (int T : {1, 2, 3, 63, 64, 65, 127, 200, 513, 2200})
    all.push_back(
        {Decay::scalar, 2, T, 3, 3, 128, T % 2 ? 80 : 64, Precision::bf16, Logs::mild, T != 200, 0, true, true});
  for (Logs l : {Logs::zero, Logs::strong})
    all.push_back({Decay::scalar, 2, 200, 4, 4, 72, 96, Precision::bf16, l, true, 24, true, true});
  all.push_back({Decay::scalar, 8, 400, 32, 32, 128, 80, Precision::bf16, Logs::mild, false, 0, true, true});
  const int whole[][2] = {{72, 72}, {96, 96}, {120, 8}, {128, 40}, {80, 64}};
  for (Decay d : {Decay::unit, Decay::fixed, Decay::scalar})
    for (const auto& w : whole)
      all.push_back(
          {d, 1, 150, 6, 2, w[0], w[1], Precision::bf16, Logs::mild, w[0] % 3 != 0, w[0] % 16, w[1] % 16 == 0});
  all.push_back({Decay::scalar, 2, 400, 32, 1, 128, 88, Precision::bf16, Logs::mild, false, 0, true});
  all.push_back({Decay::scalar, 64, 300, 8, 1, 128, 88, Precision::bf16, Logs::strong, true, 0, true});
  all.push_back({Decay::scalar, 90, 400, 4, 1, 128, 64, Precision::bf16, Logs::mild, false, 0, true});
  all.push_back({Decay::scalar, 2, 200, 4, 4, 96, 96, Precision::tf32});
  all.push_back({Decay::vector, 2, 200, 4, 4, 96, 96, Precision::tf32});
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  bool quick = false, only_time = false, lengthy = false;
  std::string filter, only;
  for (int i = 1; i < argc; ++i) {
    quick = quick || std::strcmp(argv[i], "--quick") == 0;
    lengthy = lengthy || std::strcmp(argv[i], "--long") == 0;
    only_time = only_time || std::strcmp(argv[i], "--time") == 0;
    if (std::strcmp(argv[i], "--filter") == 0 && i + 1 < argc) filter = argv[++i];
    if (std::strcmp(argv[i], "--model") == 0 && i + 1 < argc) only = argv[++i];
  }
  bool good = true;
  if (!only_time) {
    const auto loop_holds = [](Decay d, bool before) {
      const double worst = check_loop(d, before);
      std::printf("loop against differences, %s%s: %.1e\n", name(d), before ? " with the frame before" : "", worst);
      return worst < 1e-6;
    };
    for (Decay d : {Decay::unit, Decay::fixed, Decay::scalar, Decay::vector}) good = loop_holds(d, false) && good;
    good = loop_holds(Decay::scalar, true) && good;
    std::printf("errors of: out, final state, dq, dk, dv, dg, d initial state, d write, d skip, d before\n");
    unsigned seed = std::random_device{}();
    if (filter.empty() || filter == "scalar") good = check_causality(seed++) && good;
    for (const Case& c : lengthy ? long_cases() : cases(quick))
      if (filter.empty() || filter == name(c.decay)) good = check_case(c, seed++) && good;
    std::printf(good ? "all within bounds\n" : "BOUNDS MISSED\n");
  }
  if (quick || lengthy) return good ? 0 : 1;
  const auto wanted = [&](Decay d) { return filter.empty() || filter == name(d); };
  if (wanted(Decay::scalar)) {
    time_case(only, "Mamba2 1296", {Decay::scalar, 64, 400, 32, 1, 128, 81});
    time_case(only, "Mamba2 1296, 88", {Decay::scalar, 64, 400, 32, 1, 128, 88});
    time_case(only, "Mamba2 1296, writes",
              {Decay::scalar, 64, 400, 32, 1, 128, 88, Precision::bf16, Logs::mild, false, 0, true});
    time_case(only, "Mamba2 1024", {Decay::scalar, 64, 400, 32, 1, 128, 64});
    time_case(only, "Mamba2 256", {Decay::scalar, 64, 400, 8, 1, 128, 64});
    time_case(only, "Mamba2 256, writes",
              {Decay::scalar, 64, 400, 8, 1, 128, 64, Precision::bf16, Logs::mild, false, 0, true});
    time_case(only, "Mamba-3 1280",
              {Decay::scalar, 64, 400, 32, 32, 128, 80, Precision::bf16, Logs::mild, false, 0, true, true});
    time_case(only, "Mamba-3 1280, plain", {Decay::scalar, 64, 400, 32, 32, 128, 80});
    time_case(only, "Mamba-3 256",
              {Decay::scalar, 64, 400, 8, 8, 128, 64, Precision::bf16, Logs::mild, false, 0, true, true});
    time_case(only, "mLSTM 1568", {Decay::scalar, 64, 400, 14, 14, 56, 120});
    time_case(only, "mLSTM 1600", {Decay::scalar, 64, 400, 16, 16, 50, 101});
    time_case(only, "Mamba2 1296", {Decay::scalar, 64, 1300, 32, 1, 128, 88});
    for (const auto& [B, T] : {std::pair{8, 4096}, {2, 16384}, {1, 32768}})
      time_case(only, "Mamba2 1296, long",
                {Decay::scalar, B, T, 32, 1, 128, 88, Precision::bf16, Logs::mild, false, 0, true});
    time_case(only, "Mamba2 1296", {Decay::scalar, 64, 400, 32, 1, 128, 81, Precision::fp32});
  }
  if (wanted(Decay::fixed)) time_case(only, "RetNet 1152", {Decay::fixed, 64, 400, 16, 16, 72, 144});
  if (wanted(Decay::unit)) time_case(only, "linear attention", {Decay::unit, 64, 400, 16, 16, 72, 72});
  if (wanted(Decay::vector)) {
    time_case(only, "GLA 1152", {Decay::vector, 64, 400, 16, 16, 72, 144});
    time_case(only, "GLA 256", {Decay::vector, 64, 400, 4, 4, 64, 128});
    time_case(only, "HGRN2 1584", {Decay::vector, 64, 400, 18, 18, 88, 88});
    time_case(only, "HGRN2 1600", {Decay::vector, 64, 400, 16, 16, 100, 100});
    time_case(only, "HGRN2 1024", {Decay::vector, 64, 400, 8, 8, 128, 128});
    time_case(only, "GLA 1152", {Decay::vector, 64, 1300, 16, 16, 72, 144});
    for (const auto& [B, T] : {std::pair{8, 4096}, {2, 16384}, {1, 32768}})
      time_case(only, "GLA 1152, long", {Decay::vector, B, T, 16, 16, 72, 144});
    time_case(only, "GLA 1152", {Decay::vector, 64, 400, 16, 16, 72, 144, Precision::fp32});
  }
  return good ? 0 : 1;
}
