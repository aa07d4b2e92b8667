// conv4, token shift, rope and gates on the device against loops in double, then their times as shares of the card's
// copy rate. Exit code 1 where a bound is missed.
//   fused_check [--quick | --time]
#include <cstring>

#include "fused.cuh"
#include "kernels/cuda/conv4.h"
#include "kernels/cuda/gates.h"
#include "kernels/cuda/rope.h"
#include "kernels/cuda/token_shift.h"

using namespace sb::cuda;
using namespace check;

namespace {

// ---- conv4 ----

void check_conv4(Verdict& verdict, std::mt19937_64& engine, bool low, int B, int T, int C, int gap, bool act, bool bias,
                 bool tailed) {
  const size_t n = static_cast<size_t>(B) * T * C;
  const Doubles x = normals(n, engine, low), gy = normals(n, engine, low), w = normals(4 * C, engine, false),
                b = normals(C, engine, false), tail = normals(size_t(B) * 3 * C, engine, low);
  const auto at = [&](int s, int t, int c) { return (size_t(s) * T + t) * C + c; };
  const auto past = [&](int s, int t, int c) {
    return t >= 0 ? x[at(s, t, c)] : tailed ? tail[(size_t(s) * 3 + t + 3) * C + c] : 0.;
  };
  Doubles y(n), dx(n, 0.), dw(4 * C, 0.), db(C, 0.), d_tail(tail.size(), 0.);
  for (int s = 0; s < B; ++s)
    for (int t = 0; t < T; ++t)
      for (int c = 0; c < C; ++c) {
        double z = bias ? b[c] : 0;
        for (int k = 0; k < 4; ++k) z += w[c * 4 + k] * past(s, t - 3 + k, c);
        y[at(s, t, c)] = act ? silu(z) : z;
        const double g = gy[at(s, t, c)] * (act ? slope_of_silu(z) : 1);
        db[c] += g;
        for (int k = 0; k < 4; ++k) {
          dw[c * 4 + k] += g * past(s, t - 3 + k, c);
          const int from = t - 3 + k;
          (from >= 0 ? dx[at(s, from, c)] : d_tail[(size_t(s) * 3 + from + 3) * C + c]) += g * w[c * 4 + k];
        }
      }
  Rows xs(size_t(B) * T, 1, C, low, 0, gap, x), ys(size_t(B) * T, 1, C, low, 0, gap),
      gs(size_t(B) * T, 1, C, low, 0, gap, gy), dxs(size_t(B) * T, 1, C, low, 0, gap);
  Rows tails(size_t(B) * 3, 1, C, low, 0, 0, tail), d_tails(size_t(B) * 3, 1, C, low);
  Rows ws(1, 1, 4 * C, false, 0, 0, w), bs(1, 1, C, false, 0, 0, b), dws(1, 1, 4 * C, false), dbs(1, 1, C, false);
  const auto frames = [&](const Rows& r) {
    return Frames<void>{r.memory.data, static_cast<int64_t>(T * r.token), static_cast<int64_t>(r.token)};
  };
  const auto in = [&](const Rows& r) {
    return Frames<const void>{r.memory.data, static_cast<int64_t>(T * r.token), static_cast<int64_t>(r.token)};
  };
  const Conv4 p{B,
                T,
                C,
                element(low),
                act,
                in(xs),
                ws.memory.floats(),
                bias ? bs.memory.floats() : nullptr,
                tailed ? tails.memory.data : nullptr};
  Memory scratch(conv4_scratch_bytes(p));
  expect(conv4_forward(p, frames(ys), nullptr), "conv4_forward");
  const auto back = [&] {
    expect(conv4_backward(p, in(gs), frames(dxs), dws.memory.floats(), bias ? dbs.memory.floats() : nullptr,
                          tailed ? d_tails.memory.data : nullptr, scratch.data, nullptr),
           "conv4_backward");
    expect(cudaDeviceSynchronize(), "conv4");
  };
  back();
  const std::string where = shape(low, {size_t(B), size_t(T), size_t(C), size_t(gap)});
  verdict.judge("conv4", error(ys, y), bound(low), where + " y");
  verdict.judge("conv4 backward", error(dxs, dx), bound(low), where + " dx");
  verdict.judge("conv4 backward", error(dws, dw), bound(low), where + " dw");
  if (bias) verdict.judge("conv4 backward", error(dbs, db), bound(low), where + " db");
  if (tailed) verdict.judge("conv4 backward", error(d_tails, d_tail), bound(low), where + " d tail");
  const auto once = download<char>(dws.memory.data, dws.memory.bytes);
  back();
  verdict.judge("same bytes twice", same_bytes(dws.memory, once) ? 0 : 1, 0.5, where);
}

// ---- token shift ----

void check_shift(Verdict& verdict, std::mt19937_64& engine, bool low, int B, int T, int C, int gap, bool tailed) {
  const size_t n = static_cast<size_t>(B) * T * C;
  const Doubles x = normals(n, engine, low), mu = normals(size_t(kShifts) * C, engine, false),
                last = normals(size_t(B) * C, engine, low);
  std::vector<Doubles> dy, y(kShifts, Doubles(n));
  for (int s = 0; s < kShifts; ++s) dy.push_back(normals(n, engine, low));
  Doubles dx(n, 0.), d_mu(mu.size(), 0.), d_last(last.size(), 0.);
  for (size_t i = 0; i < n; ++i) {
    const size_t c = i % C, b = i / (size_t(T) * C);
    const bool first = i / C % T == 0;
    const double before = !first ? x[i - C] : tailed ? last[b * C + c] : 0;
    for (int s = 0; s < kShifts; ++s) {
      const double m = mu[s * C + c], d = dy[s][i];
      y[s][i] = x[i] + m * (before - x[i]);
      dx[i] += d * (1 - m);
      (first ? d_last[b * C + c] : dx[i - C]) += d * m;
      d_mu[s * C + c] += d * (before - x[i]);
    }
  }
  const size_t frames = size_t(B) * T;
  Rows xs(frames, 1, C, low, 0, gap, x), dxs(frames, 1, C, low, 0, gap), lasts(B, 1, C, low, 0, 0, last),
      d_lasts(B, 1, C, low), mus(1, 1, mu.size(), false, 0, 0, mu), d_mus(1, 1, mu.size(), false);
  std::vector<Rows> ys, dys;
  void* out[kShifts];
  const void* given[kShifts];
  for (int s = 0; s < kShifts; ++s) {
    ys.emplace_back(frames, 1, C, low), dys.emplace_back(frames, 1, C, low, 0, 0, dy[s]);
    out[s] = ys[s].memory.data, given[s] = dys[s].memory.data;
  }
  const int64_t batch = static_cast<int64_t>(T * xs.token), time = static_cast<int64_t>(xs.token);
  const TokenShift p{
      B, T, C, element(low), {xs.memory.data, batch, time}, mus.memory.floats(), tailed ? lasts.memory.data : nullptr};
  Memory scratch(token_shift_scratch_bytes(p));
  expect(token_shift_forward(p, out, nullptr), "token_shift_forward");
  const auto back = [&] {
    expect(token_shift_backward(p, given, {dxs.memory.data, batch, time}, d_mus.memory.floats(),
                                tailed ? d_lasts.memory.data : nullptr, scratch.data, nullptr),
           "token_shift_backward");
    expect(cudaDeviceSynchronize(), "token_shift");
  };
  back();
  const std::string where = shape(low, {size_t(B), size_t(T), size_t(C), size_t(gap)});
  for (int s = 0; s < kShifts; ++s) verdict.judge("token shift", error(ys[s], y[s]), bound(low), where + " y");
  verdict.judge("token shift backward", error(dxs, dx), bound(low), where + " dx");
  verdict.judge("token shift backward", error(d_mus, d_mu), bound(low), where + " d mu");
  if (tailed) verdict.judge("token shift backward", error(d_lasts, d_last), bound(low), where + " d last");
  const auto once = download<char>(d_mus.memory.data, d_mus.memory.bytes);
  back();
  verdict.judge("same bytes twice", same_bytes(d_mus.memory, once) ? 0 : 1, 0.5, where);
}

// ---- rope ----

void check_rope(Verdict& verdict, std::mt19937_64& engine, bool low, size_t B, size_t T, size_t heads, size_t width,
                size_t head_gap, int sense, int64_t offset) {
  const size_t tokens = B * T, half = width / 2;
  const Doubles x = normals(tokens * heads * width, engine, low);
  Doubles y(x.size());
  for (size_t r = 0; r < tokens * heads; ++r)
    for (size_t j = 0; j < half; ++j) {
      const float exponent = float(j) / float(half);
      const double rate = 1.F / float(std::pow(1000., double(exponent)));
      const double angle = double(offset + int64_t(r / heads % T)) * rate, c = std::cos(angle),
                   s = sense * std::sin(angle);
      const double a = x[r * width + j], b = x[r * width + half + j];
      y[r * width + j] = a * c + b * s, y[r * width + half + j] = b * c - a * s;
    }
  const Rows xs(tokens, heads, width, low, head_gap, 0, x);
  Rows ys(tokens, heads, width, low, head_gap, 0);
  Memory table(4 * T * width);
  expect(rope_table(table.floats(), int(T), int(half), 1000, offset, nullptr), "rope_table");
  Rope p{int64_t(tokens), int(T), int(heads), int(width), element(low), sense, table.floats(), xs.view<RowsIn>()};
  expect(rope(p, ys.view<RowsOut>(), nullptr), "rope");
  verdict.judge("rope", error(ys, y), bound(low), shape(low, {B, T, heads, width}));
}

// ---- gates ----

void check_gates(Verdict& verdict, std::mt19937_64& engine, bool low, size_t rows, size_t width, size_t gap) {
  const size_t n = rows * width;
  const std::string where = shape(low, {rows, width, gap});
  const auto tensor = [&](const Doubles& v) { return Rows(rows, 1, width, low, 0, gap, v); };
  const auto floats = [&](const Doubles& v) { return Rows(rows, 1, width, false, 0, gap, v); };
  const GateRows p{int64_t(rows), int(width), element(low)};
  const Doubles y = normals(n, engine, low), z = normals(n, engine, low, 3), g = normals(n, engine, low);
  const Rows ys = tensor(y), zs = tensor(z), gs = tensor(g);
  Doubles want(n), want_y(n), want_z(n);
  {
    for (size_t i = 0; i < n; ++i) {
      want[i] = y[i] * silu(z[i]);
      want_y[i] = g[i] * silu(z[i]), want_z[i] = g[i] * y[i] * slope_of_silu(z[i]);
    }
    Rows out(rows, 1, width, low, 0, gap), dy(rows, 1, width, low, 0, gap), dz(rows, 1, width, low, 0, gap);
    expect(gate_silu_forward(p, ys.view<RowsIn>(), zs.view<RowsIn>(), out.view<RowsOut>(), nullptr), "gate_silu");
    expect(gate_silu_backward(p, gs.view<RowsIn>(), ys.view<RowsIn>(), zs.view<RowsIn>(), dy.view<RowsOut>(),
                              dz.view<RowsOut>(), nullptr),
           "gate_silu");
    verdict.judge("gate_silu", error(out, want), bound(low), where);
    verdict.judge("gate_silu back", error(dy, want_y), bound(low), where);
    verdict.judge("gate_silu back", error(dz, want_z), bound(low), where);
  }
  {
    for (size_t i = 0; i < n; ++i) {
      const double s = sigma(z[i]);
      want[i] = 2 * y[i] * s, want_y[i] = 2 * g[i] * s, want_z[i] = 2 * g[i] * y[i] * s * (1 - s);
    }
    Rows out(rows, 1, width, low, 0, gap), dy(rows, 1, width, low, 0, gap), dz(rows, 1, width, low, 0, gap);
    expect(gate_sigmoid_forward(p, 2, ys.view<RowsIn>(), zs.view<RowsIn>(), out.view<RowsOut>(), nullptr),
           "gate_sigmoid");
    expect(gate_sigmoid_backward(p, 2, gs.view<RowsIn>(), ys.view<RowsIn>(), zs.view<RowsIn>(), dy.view<RowsOut>(),
                                 dz.view<RowsOut>(), nullptr),
           "gate_sigmoid");
    verdict.judge("gate_sigmoid", error(out, want), bound(low), where);
    verdict.judge("gate_sigmoid back", error(dy, want_y), bound(low), where);
    verdict.judge("gate_sigmoid back", error(dz, want_z), bound(low), where);
  }
  {
    const Doubles ab = normals(2 * n, engine, low), beta = {1.3f};
    Doubles d_ab(2 * n);
    double d_beta = 0, terms = 0;
    for (size_t i = 0; i < n; ++i) {
      const size_t at = i / width * 2 * width + i % width;
      const double a = ab[at], b = ab[at + width], s = sigma(beta[0] * a);
      want[i] = a * s * b;
      d_ab[at] = g[i] * b * slope_of_silu(beta[0] * a), d_ab[at + width] = g[i] * a * s;
      const double term = g[i] * b * a * a * s * (1 - s);
      d_beta += term, terms += term * term;
    }
    const Rows abs(rows, 1, 2 * width, low, 0, gap, ab), betas(1, 1, 1, false, 0, 0, beta);
    Rows out(rows, 1, width, low, 0, gap), d_abs(rows, 1, 2 * width, low, 0, gap), d_betas(1, 1, 1, false);
    Memory scratch(gate_swish_scratch_bytes());
    expect(gate_swish_forward(p, abs.view<RowsIn>(), betas.memory.floats(), out.view<RowsOut>(), nullptr),
           "gate_swish");
    expect(gate_swish_backward(p, gs.view<RowsIn>(), abs.view<RowsIn>(), betas.memory.floats(), d_abs.view<RowsOut>(),
                               d_betas.memory.floats(), scratch.data, nullptr),
           "gate_swish");
    verdict.judge("gate_swish", error(out, want), bound(low), where);
    verdict.judge("gate_swish back", error(d_abs, d_ab), bound(low), where);
    // one sum of both signs: against the root of the sum of squares of its terms
    verdict.judge("gate_swish back", error(d_betas.get(), {d_beta}, std::sqrt(terms)), bound(low), where + " d beta");
  }
  {
    const Doubles bias = normals(width, engine, false, 2), A_log = normals(width, engine, false),
                  ds = normals(n, engine, false), dd = normals(n, engine, false);
    const float least = -8;
    Doubles step(n), decay(n), dx(n), d_bias(width, 0.), d_A(width, 0.);
    for (size_t i = 0; i < n; ++i) {
      const size_t c = i % width;
      const double in = z[i] + bias[c], A = -std::exp(A_log[c]);
      step[i] = in > 20 ? in : std::log1p(std::exp(in));
      decay[i] = std::max<double>(A * step[i], least);
      const double through = A * step[i] > least ? dd[i] : 0;
      dx[i] = (ds[i] + through * A) * (in > 20 ? 1 : sigma(in));
      d_bias[c] += dx[i], d_A[c] += through * A * step[i];
    }
    const Rows biases(1, 1, width, false, 0, 0, bias), As(1, 1, width, false, 0, 0, A_log), dss = floats(ds),
                                                                                            dds = floats(dd);
    Rows steps(rows, 1, width, false, 0, gap), decays(rows, 1, width, false, 0, gap), dxs(rows, 1, width, low, 0, gap),
        d_biases(1, 1, width, false), d_As(1, 1, width, false);
    const StepGates q{p, zs.view<RowsIn>(), biases.memory.floats(), As.memory.floats(), least};
    Memory scratch(step_gates_scratch_bytes(q));
    expect(step_gates_forward(q, steps.view<TokenRows<float>>(), decays.view<TokenRows<float>>(), nullptr),
           "step_gates");
    expect(
        step_gates_backward(q, dss.view<TokenRows<const float>>(), dds.view<TokenRows<const float>>(),
                            dxs.view<RowsOut>(), d_biases.memory.floats(), d_As.memory.floats(), scratch.data, nullptr),
        "step_gates");
    verdict.judge("step gates", error(steps, step), 1e-5, where);
    verdict.judge("step gates", error(decays, decay), 1e-5, where);
    verdict.judge("step gates back", error(dxs, dx), bound(low), where);
    verdict.judge("step gates back", error(d_biases, d_bias), 1e-5, where + " d bias");
    verdict.judge("step gates back", error(d_As, d_A), 1e-5, where + " d A");
  }
  for (bool log : {false, true}) {
    const SigmoidGate q{p, log, log ? 1 / 16.f : 2.f, log ? -.3f : -INFINITY, zs.view<RowsIn>()};
    const Doubles d = normals(n, engine, false);
    const Rows ds = floats(d);
    for (size_t i = 0; i < n; ++i) {
      const double s = sigma(z[i]), l = std::log(s) / 16;
      want[i] = log ? std::max<double>(l, q.least) : 2 * s;
      want_z[i] = d[i] * (log ? (l > q.least ? (1 - s) / 16 : 0) : 2 * s * (1 - s));
    }
    Rows out(rows, 1, width, false, 0, gap), dz(rows, 1, width, low, 0, gap);
    expect(sigmoid_gate_forward(q, out.view<TokenRows<float>>(), nullptr), "sigmoid_gate");
    expect(sigmoid_gate_backward(q, ds.view<TokenRows<const float>>(), dz.view<RowsOut>(), nullptr), "sigmoid_gate");
    verdict.judge(log ? "log sigmoid" : "sigmoid", error(out, want), 1e-5, where);
    verdict.judge(log ? "log sigmoid back" : "sigmoid back", error(dz, want_z), bound(low), where);
  }
  {
    Doubles sums(width, 0.);
    for (size_t i = 0; i < n; ++i) sums[i % width] += g[i];
    Rows found(1, 1, width, false);
    Memory scratch(column_sums_scratch_bytes(p));
    expect(column_sums(p, gs.view<RowsIn>(), found.memory.floats(), scratch.data, nullptr), "column_sums");
    verdict.judge("column sums", error(found, sums), 1e-5, where);
  }
}

// ---- all of them ----

int check_all(bool quick) {
  std::mt19937_64 engine(std::random_device{}());
  Verdict verdict;
  for (bool low : {true, false}) {
    for (int T : {1, 2, 3, 4, 37, 40, 41, 43, 130})
      check_conv4(verdict, engine, low, 3, T, 24, 8, true, true, T % 2 == 0);
    check_conv4(verdict, engine, low, 2, 90, 81, 0, true, false, true);
    check_conv4(verdict, engine, low, 2, 50, 37, 3, false, true, true);
    if (!quick) check_conv4(verdict, engine, low, 5, 200, 1296, 16, true, true, false);
    for (const int T : {1, 2, 15, 16, 17, 31, 32, 33, 100}) check_shift(verdict, engine, low, 3, T, 24, 8, T % 2 == 0);
    check_shift(verdict, engine, low, 2, 90, 81, 3, true);
    if (!quick) check_shift(verdict, engine, low, 5, 200, 1472, 0, false);
    for (int sense : {1, -1}) {
      check_rope(verdict, engine, low, 2, 50, 4, 96, 0, sense, 0);
      check_rope(verdict, engine, low, 2, 33, 3, 72, 0, sense, 2100);
      check_rope(verdict, engine, low, 2, 33, 3, 64, 8, sense, 7);
    }
    for (size_t width : {4, 16, 32, 81, 256, 2592})
      check_gates(verdict, engine, low, width > 1000 ? 70 : 300, width, width % 32);
  }
  return verdict.finish();
}

// ---- time ----

void time_width(const Timer& timer, int width) {
  const int heads = width <= 512 ? 4 : width == 1024 ? 8 : 16, K = width / heads;
  Sets parameters(5 * 8192, false, 1, 3);
  const auto floats = [&](int offset) { return static_cast<float*>(parameters.at(0)) + offset; };
  Memory scratch(size_t{64} << 20), sums(1 << 20);
  {
    const int C = 4 * width;  // q, k, v of the delta rules and GLA, a slice of the projection
    const size_t row = size_t(C) + 2 * width + 32, n = kTokens * row;
    const int sets = sets_for(2. * n);
    Sets x(n, true, sets, 1), gy(n, true, sets, 2), y(n, true, sets);
    const auto in = [&](const Sets& s, int i) {
      return Frames<const void>{s.at(i), int64_t(kTime * row), int64_t(row)};
    };
    const auto problem = [&](int i) {
      return Conv4{kBatch, kTime, C, Element::bf16, true, in(x, i), floats(0), nullptr, nullptr};
    };
    const auto out = [&](int i) { return Frames<void>{y.at(i), int64_t(kTime) * C, C}; };
    const double bytes = 2. * kTokens * C;
    timer.row("conv4 + SiLU, 4 d channels", width, 2 * bytes,
              median_ms([&](int i) { return conv4_forward(problem(i), out(i), nullptr); }));
    timer.row("its backward", width, 3 * bytes, median_ms([&](int i) {
                return conv4_backward(problem(i), {gy.at(i), int64_t(kTime) * C, C}, out(i), sums.floats(), nullptr,
                                      nullptr, scratch.data, nullptr);
              }));
  }
  {
    const size_t n = kTokens * width;
    const int sets = sets_for(2. * n * kShifts);
    Sets x(n, true, sets, 1), dx(n, true, sets), y(n * kShifts, true, sets), dy(n * kShifts, true, sets, 2);
    const auto problem = [&](int i) {
      return TokenShift{kBatch, kTime, width, Element::bf16, {x.at(i), int64_t(kTime) * width, width}, floats(0)};
    };
    const auto parts = [&]<class Pointer>(Pointer(&to)[kShifts], const Sets& s, int i) {
      for (int c = 0; c < kShifts; ++c) to[c] = static_cast<char*>(s.at(i)) + 2 * n * c;
    };
    const Memory memory(token_shift_scratch_bytes(problem(0))), d_mu(4 * size_t(kShifts) * width);
    timer.row("token shift", width, 2. * n * (1 + kShifts), median_ms([&](int i) {
                void* to[kShifts];
                parts(to, y, i);
                return token_shift_forward(problem(i), to, nullptr);
              }));
    timer.row("its backward", width, 2. * n * (2 + kShifts), median_ms([&](int i) {
                const void* from[kShifts];
                parts(from, dy, i);
                return token_shift_backward(problem(i), from, {dx.at(i), int64_t(kTime) * width, width}, d_mu.floats(),
                                            nullptr, memory.data, nullptr);
              }));
  }
  {
    const int n = 2 * width;
    const size_t size = kTokens * n;
    const int sets = sets_for(4. * size);
    Sets x(size, true, sets, 1), z(size, true, sets, 2), g(size, true, sets, 3), y(size, true, sets),
        dz(size, true, sets);
    Sets f(size, false, sets, 6), f2(size, false, sets);
    const GateRows p{int64_t(kTokens), n, Element::bf16};
    const auto in = [&](const Sets& s, int i) { return RowsIn{s.at(i), n}; };
    const auto out = [&](const Sets& s, int i) { return RowsOut{s.at(i), n}; };
    timer.row("gate_silu, 2 d", width, 6. * size,
              median_ms([&](int i) { return gate_silu_forward(p, in(x, i), in(z, i), out(y, i), nullptr); }));
    timer.row("its backward", width, 10. * size, median_ms([&](int i) {
                return gate_silu_backward(p, in(g, i), in(x, i), in(z, i), out(y, i), out(dz, i), nullptr);
              }));
    const StepGates step{p, in(x, 0), floats(0), nullptr};
    timer.row("softplus, 2 d", width, 6. * size, median_ms([&](int i) {
                return step_gates_forward(step, {static_cast<float*>(f2.at(i)), n}, {}, nullptr);
              }));
    timer.row("its backward", width, 8. * size, median_ms([&](int i) {
                return step_gates_backward(step, {static_cast<const float*>(f.at(i)), n}, {}, out(y, i), sums.floats(),
                                           nullptr, scratch.data, nullptr);
              }));
    const SigmoidGate log{{int64_t(kTokens), width, Element::bf16}, true, 1 / 16.f, -INFINITY, {x.at(0), width}};
    timer.row("log sigmoid, d", width, 3. * size, median_ms([&](int i) {
                return sigmoid_gate_forward(log, {static_cast<float*>(f2.at(i)), width}, nullptr);
              }));
    timer.row(
        "its backward", width, 4. * size, median_ms([&](int i) {
          return sigmoid_gate_backward(log, {static_cast<const float*>(f.at(i)), width}, {y.at(i), width}, nullptr);
        }));
    StepGates narrow{{int64_t(kTokens), heads, Element::bf16}, {x.at(0), n}, floats(0), floats(0)};
    timer.row("step gates of h heads", width, 10. * kTokens * heads, median_ms([&](int i) {
                return step_gates_forward(narrow, {static_cast<float*>(f2.at(i)), heads},
                                          {static_cast<float*>(f2.at(i + 1)), heads}, nullptr);
              }));
    timer.row("its backward", width, 12. * kTokens * heads, median_ms([&](int i) {
                return step_gates_backward(narrow, {}, {static_cast<const float*>(f.at(i)), heads}, {y.at(i), n},
                                           sums.floats(), sums.floats() + 8192, scratch.data, nullptr);
              }));
    const GateRows half{int64_t(kTokens), width, Element::bf16};
    timer.row("gate_swish, d", width, 3. * size, median_ms([&](int i) {
                return gate_swish_forward(half, in(x, i), floats(0), {y.at(i), width}, nullptr);
              }));
    timer.row("its backward", width, 5. * size, median_ms([&](int i) {
                return gate_swish_backward(half, {g.at(i), width}, in(x, i), floats(0), out(y, i), sums.floats(),
                                           scratch.data, nullptr);
              }));
    if (K % 2 == 0) {
      Memory table(4 * kTime * size_t(K));
      expect(rope_table(table.floats(), kTime, K / 2, 1000, 0, nullptr), "rope_table");
      timer.row("rope, q and k", width, 4. * size, median_ms([&](int i) {
                  return rope(
                      {int64_t(kTokens), kTime, 2 * heads, K, Element::bf16, 1, table.floats(), {x.at(i), n, K}},
                      {y.at(i), n, K}, nullptr);
                }));
    }
    timer.row("column sums, 2 d", width, 2. * size,
              median_ms([&](int i) { return column_sums(p, in(x, i), sums.floats(), scratch.data, nullptr); }));
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool quick = false, timed = false;
  for (int i = 1; i < argc; ++i) {
    quick = quick || std::strcmp(argv[i], "--quick") == 0;
    timed = timed || std::strcmp(argv[i], "--time") == 0;
  }
  if (!timed) return check_all(quick);
  const Timer timer;
  for (int width : {256, 1024, 1152, 1296}) time_width(timer, width);
  return 0;
}
