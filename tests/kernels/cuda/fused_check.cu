// conv4, norms, residual LayerNorm, dropout, rope and gates on the device against loops in double, then their times as
// shares of the card's copy rate. Exit code 1 where a bound is missed.
//   fused_check [--quick | --time]
#include <cstring>

#include "check.cuh"
#include "kernels/cuda/conv4.h"
#include "kernels/cuda/gates.h"
#include "kernels/cuda/norms.h"
#include "kernels/cuda/residual_norm.h"
#include "kernels/cuda/rope.h"
#include "random/philox.h"

using namespace sb::cuda;
using namespace check;

namespace {

constexpr bool kLow[] = {true, false};
double bound(bool low) {
  return low ? 2e-2 : 1e-5;
}
Element element(bool low) {
  return low ? Element::bf16 : Element::fp32;
}
std::string shape(bool low, std::initializer_list<size_t> sizes) {
  std::string text = low ? "bf16" : "fp32";
  for (size_t s : sizes) text += " " + std::to_string(s);
  return text;
}
double sigma(double x) {
  return 1 / (1 + std::exp(-x));
}
double silu(double x) {
  return x * sigma(x);
}
double slope_of_silu(double x) {
  return sigma(x) * (1 + x * (1 - sigma(x)));
}
bool same_bytes(const Memory& a, const std::vector<char>& before) {
  return download<char>(a.data, before.size()) == before;
}

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

// ---- norms ----

void check_norm(Verdict& verdict, std::mt19937_64& engine, bool low, NormKind kind, NormGate gate, size_t tokens,
                size_t heads, size_t width, size_t head_gap, size_t token_gap, bool pads) {
  const size_t rows = tokens * heads, n = rows * width;
  const bool has_gain = kind != NormKind::l2;
  Doubles x = normals(n, engine, low), z = normals(n, engine, low), gy = normals(n, engine, low),
          gain = normals(width, engine, false);
  std::fill_n(x.begin(), width, 0.);  // a row of zeros
  const double eps = kind == NormKind::rms ? 1e-5 : kind == NormKind::l2 ? 1e-6 : 1e-8;
  const double feps = static_cast<float>(eps);
  Doubles y(n), dx(n), dz(n), d_gain(width, 0.);
  for (size_t r = 0; r < rows; ++r) {
    const double *xs = &x[r * width], *zs = &z[r * width], *g = &gy[r * width];
    const auto u = [&](size_t i) { return gate == NormGate::before ? xs[i] * silu(zs[i]) : xs[i]; };
    const auto w = [&](size_t i) { return has_gain ? gain[i] : 1; };
    const auto t = [&](size_t i) { return g[i] * w(i) * (gate == NormGate::after ? silu(zs[i]) : 1); };
    double squares = 0, dot = 0;
    for (size_t i = 0; i < width; ++i) squares += u(i) * u(i), dot += t(i) * u(i);
    const double mean = squares / double(width), root = std::sqrt(mean);
    const double s = kind == NormKind::rms  ? 1 / std::sqrt(mean + feps)
                     : kind == NormKind::l2 ? 1 / std::sqrt(squares + feps)
                                            : 1 / (root + feps);
    // ds/du_i = -slope u_i
    const double slope = kind == NormKind::rms  ? s * s * s / double(width)
                         : kind == NormKind::l2 ? s * s * s
                         : root > 0             ? s * s / (double(width) * root)
                                                : 0;
    for (size_t i = 0; i < width; ++i) {
      const double du = s * t(i) - slope * u(i) * dot;
      y[r * width + i] = w(i) * s * u(i) * (gate == NormGate::after ? silu(zs[i]) : 1);
      dx[r * width + i] = du * (gate == NormGate::before ? silu(zs[i]) : 1);
      dz[r * width + i] =
          gate == NormGate::after ? g[i] * w(i) * s * u(i) * slope_of_silu(zs[i]) : du * xs[i] * slope_of_silu(zs[i]);
      d_gain[i] += g[i] * s * u(i) * (gate == NormGate::after ? silu(zs[i]) : 1);
    }
  }
  const auto tensor = [&](const Doubles& v) { return Rows(tokens, heads, width, low, head_gap, token_gap, v); };
  const Rows xs = tensor(x), zs = tensor(z), gs = tensor(gy);
  Rows ys(tokens, heads, width, low, head_gap, token_gap), dxs(tokens, heads, width, low, head_gap, token_gap),
      dzs(tokens, heads, width, low, head_gap, token_gap);
  Rows gains(1, 1, width, false, 0, 0, gain), d_gains(1, 1, width, false);
  RowNorm p;
  p.tokens = int64_t(tokens), p.heads = int(heads), p.width = int(width), p.element = element(low);
  p.padded = pads ? int(width + head_gap) : 0;
  p.kind = kind, p.gate = gate, p.eps = float(eps);
  p.gain = has_gain ? gains.memory.floats() : nullptr;
  p.x = xs.view<RowsIn>();
  if (gate != NormGate::none) p.z = zs.view<RowsIn>();
  Memory scratch(row_norm_scratch_bytes(p));
  expect(row_norm_forward(p, ys.view<RowsOut>(), nullptr), "row_norm_forward");
  expect(row_norm_backward(p, gs.view<RowsIn>(), dxs.view<RowsOut>(), dzs.view<RowsOut>(),
                           has_gain ? d_gains.memory.floats() : nullptr, scratch.data, nullptr),
         "row_norm_backward");
  expect(cudaDeviceSynchronize(), "norm");
  const char* const kinds[] = {"rms", "outer eps", "l2"};
  const char* const gates[] = {"", ", gate after", ", gate before"};
  const std::string name = std::string(kinds[int(kind)]) + gates[int(gate)];
  const std::string where = shape(low, {tokens, heads, width, head_gap, token_gap});
  verdict.judge(name, error(ys, y), bound(low), where + " y");
  verdict.judge(name + " back", error(dxs, dx), bound(low), where + " dx");
  if (gate != NormGate::none) verdict.judge(name + " back", error(dzs, dz), bound(low), where + " dz");
  if (has_gain) verdict.judge(name + " back", error(d_gains, d_gain), bound(low), where + " d gain");
  // gaps: zeros where they are padding, else untouched
  const Doubles all = ys.all();
  bool kept = true;
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t in_token = i % ys.token;
    if (in_token >= heads * ys.head)
      kept = kept && std::isnan(all[i]);
    else if (in_token % ys.head >= width)
      kept = kept && (pads ? all[i] == 0 : std::isnan(all[i]));
  }
  verdict.judge("gaps between rows", kept ? 0 : 1, 0.5, where);
}

// ---- residual LayerNorm and dropout ----

// The factor of an element, from the generator of the CPU
double kept(uint64_t seed, uint32_t place, int64_t sample, int64_t update, uint32_t frame, size_t channel, double p) {
  const uint32_t c3 = place << 8 | static_cast<uint32_t>(sb::Purpose::dropout);
  const auto block = sb::philox4x32({frame << 12 | uint32_t(channel / 8), uint32_t(sample), uint32_t(update), c3},
                                    {uint32_t(seed), uint32_t(seed >> 32)});
  const uint32_t half = block[channel % 8 / 2] >> (channel % 2 * 16) & 0xffff,
                 dropped = uint32_t(std::round(p * 65536));
  return half >= dropped ? 65536. / (65536. - dropped) : 0.;
}

void check_residual(Verdict& verdict, std::mt19937_64& engine, bool low, bool low_stream, size_t B, size_t T,
                    size_t width, size_t gap, double p, double mean, bool two) {
  const size_t rows = B * T, n = rows * width;
  const Doubles z = normals(n, engine, low), residual = normals(n, engine, low_stream, 1, mean),
                gy = normals(n, engine, low_stream), more = normals(n, engine, low),
                gain = normals(width, engine, false), bias = normals(width, engine, false);
  std::vector<int64_t> samples(B), update = {(int64_t{3} << 33) + 77};
  for (size_t b = 0; b < B; ++b) samples[b] = int64_t(engine() % (uint64_t{1} << 40));
  const uint64_t seed = engine();
  const uint32_t place = 13;
  Doubles y(n), d_residual(n), dz(n), d_gain(width, 0.), d_bias(width, 0.), u(width), factor(width);
  for (size_t r = 0; r < rows; ++r) {
    double sum = 0, squares = 0, by = 0, by_x = 0;
    for (size_t i = 0; i < width; ++i) {
      factor[i] = p > 0 ? kept(seed, place, samples[r / T], update[0], uint32_t(r % T), i, p) : 1;
      u[i] = z[r * width + i] * factor[i] + residual[r * width + i];
      sum += u[i];
    }
    for (size_t i = 0; i < width; ++i) squares += std::pow(u[i] - sum / double(width), 2);
    const double s = 1 / std::sqrt(squares / double(width) + 1e-5);
    const auto g = [&](size_t i) { return gy[r * width + i] + (two ? more[r * width + i] : 0); };
    for (size_t i = 0; i < width; ++i) {
      u[i] = (u[i] - sum / double(width)) * s;
      y[r * width + i] = u[i] * gain[i] + bias[i];
      by += g(i) * gain[i], by_x += g(i) * gain[i] * u[i];
      d_gain[i] += g(i) * u[i], d_bias[i] += g(i);
    }
    for (size_t i = 0; i < width; ++i) {
      d_residual[r * width + i] = s * (g(i) * gain[i] - by / double(width) - u[i] * by_x / double(width));
      dz[r * width + i] = d_residual[r * width + i] * factor[i];
    }
  }
  const Rows zs(rows, 1, width, low, 0, gap, z), rs(rows, 1, width, low_stream, 0, gap, residual),
      gs(rows, 1, width, low_stream, 0, gap, gy), ms(rows, 1, width, low, 0, gap, more);
  Rows ys(rows, 1, width, low_stream, 0, gap), lows(rows, 1, width, true, 0, gap),
      drs(rows, 1, width, low_stream, 0, gap), dzs(rows, 1, width, low, 0, gap);
  Rows gains(1, 1, width, false, 0, 0, gain), biases(1, 1, width, false, 0, 0, bias), d_gains(1, 1, width, false),
      d_biases(1, 1, width, false);
  const Memory sample = upload(samples), updates = upload(update);
  ResidualNorm q;
  q.rows = int64_t(rows), q.time = int(T), q.width = int(width), q.element = element(low);
  q.stream = element(low_stream);
  q.gain = gains.memory.floats(), q.bias = biases.memory.floats();
  q.z = zs.view<RowsIn>(), q.residual = rs.view<RowsIn>();
  q.dropout = {float(p), seed, place, sample.integers(), updates.integers()};
  Memory stats(8 * rows), scratch(residual_norm_scratch_bytes(q));
  expect(residual_norm_forward(q, ys.view<RowsOut>(), low_stream ? RowsOut{} : lows.view<RowsOut>(), stats.floats(),
                               nullptr),
         "residual_norm_forward");
  ResidualNormGradients d{gs.view<RowsIn>(),       two ? ms.view<RowsIn>() : RowsIn{},
                          drs.view<RowsOut>(),     dzs.view<RowsOut>(),
                          d_gains.memory.floats(), d_biases.memory.floats()};
  expect(residual_norm_backward(q, stats.floats(), d, scratch.data, nullptr), "residual_norm_backward");
  expect(cudaDeviceSynchronize(), "residual norm");
  const std::string where = shape(low, {B, T, width, gap});
  // a mean of 30 leaves fewer digits to the deviations
  const double most = bound(low || low_stream) * (mean != 0 ? 4 : 1);
  verdict.judge("residual norm", error(ys, y), most, where + " y");
  if (!low_stream) verdict.judge("residual norm, bf16 copy", error(lows, y), 2e-2, where);
  verdict.judge("residual norm back", error(drs, d_residual), most, where + " d residual");
  verdict.judge("residual norm back", error(dzs, dz), bound(low) * (mean != 0 ? 4 : 1), where + " dz");
  verdict.judge("residual norm back", error(d_gains, d_gain), most, where + " d gain");
  verdict.judge("residual norm back", error(d_biases, d_bias), most, where + " d bias");
  if (p > 0) {  // the same elements, exactly
    const Doubles found = dzs.get();
    size_t wrong = 0;
    for (size_t i = 0; i < n; ++i) wrong += (found[i] == 0) != (dz[i] == 0);
    verdict.judge("dropout's mask", double(wrong), 0.5, where);
    Dropout alone;
    alone.rows = int64_t(rows), alone.time = int(T), alone.width = int(width), alone.element = element(low);
    alone.dropout = q.dropout, alone.x = zs.view<RowsIn>(), alone.add = ms.view<RowsIn>();
    for (bool tied : {false, true}) {
      alone.dropout.tied_over_time = tied;
      Rows out(rows, 1, width, low, 0, gap);
      expect(dropout_forward(alone, out.view<RowsOut>(), nullptr), "dropout_forward");
      Doubles expected(n);
      for (size_t i = 0; i < n; ++i) {
        const size_t r = i / width;
        expected[i] =
            z[i] * kept(seed, place, samples[r / T], update[0], tied ? 0 : uint32_t(r % T), i % width, p) + more[i];
      }
      verdict.judge("dropout", error(out, expected), bound(low), where);
    }
  }
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
  for (bool low : kLow) {
    for (int T : {1, 2, 3, 4, 37, 40, 41, 43, 130})
      check_conv4(verdict, engine, low, 3, T, 24, 8, true, true, T % 2 == 0);
    check_conv4(verdict, engine, low, 2, 90, 81, 0, true, false, true);
    check_conv4(verdict, engine, low, 2, 50, 37, 3, false, true, true);
    if (!quick) check_conv4(verdict, engine, low, 5, 200, 1296, 16, true, true, false);
    const NormGate gates[] = {NormGate::none, NormGate::after, NormGate::before};
    const size_t widths[] = {5, 8, 64, 72, 81, 96, 128, 144, 162, 192, 256, 512, 640, 1152, 1296, 2592, 3000, 5000};
    for (size_t width : widths)
      for (NormGate gate : gates) {
        if (quick && width > 300 && width % 3 != 0) continue;
        const size_t tokens = width > 300 ? 40 : 90;
        check_norm(verdict, engine, low, NormKind::rms, gate, tokens, 3, width, 0, 0, false);
        check_norm(verdict, engine, low, NormKind::rms, gate, tokens, 2, width, (8 - width % 8) % 8, 24, true);
      }
    for (size_t width : {64, 81, 128}) {
      check_norm(verdict, engine, low, NormKind::l2, NormGate::none, 101, 5, width, 0, 0, false);
      check_norm(verdict, engine, low, NormKind::outer_eps, NormGate::none, 77, 4, width, 8, 8, false);
    }
    check_norm(verdict, engine, low, NormKind::outer_eps, NormGate::none, 77, 1, 768, 0, 0, false);
    for (bool low_stream : {low, false}) {
      for (size_t width : {8, 72, 256, 264, 1024, 1152, 1296, 2048})
        check_residual(verdict, engine, low, low_stream, 3, 21, width, width % 16, width % 72 == 0 ? 0.2 : 0, 0,
                       width > 256);
      check_residual(verdict, engine, low, low_stream, 2, 9, 81, 0, 0.5, 0, true);
      check_residual(verdict, engine, low, low_stream, 2, 9, 4001, 0, 0.1, 0, false);
      check_residual(verdict, engine, low, low_stream, 2, 30, 256, 0, 0.2, 30, true);
    }
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

struct Timer {
  double rate = copy_rate();
  void row(const char* name, int width, double bytes, double ms) const {
    std::printf("| %s | %d | %.0f | %.1f | %.2f | %.0f |\n", name, width, bytes / 1e6, ms * 1e3, bytes / ms / 1e9,
                100 * bytes / (ms * 1e-3) / rate);
    std::fflush(stdout);
  }
};

constexpr int B = 64, T = 400;
constexpr size_t tokens = size_t{B} * T;

void time_residual(const Timer& timer, int width, bool low_stream, float p, const float* parameters, void* scratch) {
  const size_t n = tokens * width;
  const int sets = sets_for(2. * n);
  const Sets z(n, true, sets, 1), more(n, true, sets, 2), dz(n, true, sets), low(n, true, sets);
  const Sets r(n, low_stream, sets, 4), g(n, low_stream, sets, 5), y(n, low_stream, sets);
  const Memory stats(8 * tokens), sums(8 * width);
  const Memory samples = upload(std::vector<int64_t>(B, 5)), update = upload(std::vector<int64_t>(1, 9));
  expect(cudaMemset(stats.data, 0, stats.bytes), "memset");
  ResidualNorm q;
  q.rows = tokens, q.time = T, q.width = width, q.stream = element(low_stream);
  q.gain = parameters, q.bias = parameters + 8192;
  q.dropout = {p, 7, 1, samples.integers(), update.integers()};
  const bool writes_dz = p > 0 || !low_stream;
  const std::string name =
      std::string("residual norm, ") + (low_stream ? "bf16" : "fp32") + " stream" + (p > 0 ? ", dropout" : "");
  const double s = low_stream ? 2 : 4;
  const auto forward = [&](int i) {
    RowsOut copy{low.at(i), width};
    if (low_stream) copy.data = nullptr;
    q.z = {z.at(i), width}, q.residual = {r.at(i), width};
    return residual_norm_forward(q, {y.at(i), width}, copy, stats.floats(), nullptr);
  };
  const auto backward = [&](int i) {
    ResidualNormGradients d;
    d.gy = {g.at(i), width}, d.gy_low = {more.at(i), width}, d.d_residual = {y.at(i), width};
    if (writes_dz) d.dz = {dz.at(i), width};
    d.d_gain = sums.floats(), d.d_bias = sums.floats() + width;
    q.z = {z.at(i), width}, q.residual = {r.at(i), width};
    return residual_norm_backward(q, stats.floats(), d, scratch, nullptr);
  };
  timer.row(name.c_str(), width, n * (2 + 2 * s + (low_stream ? 0 : 2)), median_ms(forward));
  timer.row("its backward, two gradients in", width, n * (3 * s + 4 + (writes_dz ? 2 : 0)), median_ms(backward));
}

void time_width(const Timer& timer, int width) {
  const int heads = width <= 512 ? 4 : width == 1024 ? 8 : 16, K = width / heads, V = 2 * K;
  Sets parameters(5 * 8192, false, 1, 3);
  const auto floats = [&](int offset) { return static_cast<float*>(parameters.at(0)) + offset; };
  Memory scratch(size_t{64} << 20), sums(1 << 20);
  {
    const int C = 4 * width;  // q, k, v of the delta rules and GLA, a slice of the projection
    const size_t row = size_t(C) + 2 * width + 32, n = tokens * row;
    const int sets = sets_for(2. * n);
    Sets x(n, true, sets, 1), gy(n, true, sets, 2), y(n, true, sets);
    const auto in = [&](const Sets& s, int i) { return Frames<const void>{s.at(i), int64_t(T * row), int64_t(row)}; };
    const auto problem = [&](int i) {
      return Conv4{B, T, C, Element::bf16, true, in(x, i), floats(0), nullptr, nullptr};
    };
    const auto out = [&](int i) { return Frames<void>{y.at(i), int64_t(T) * C, C}; };
    const double bytes = 2. * tokens * C;
    timer.row("conv4 + SiLU, 4 d channels", width, 2 * bytes,
              median_ms([&](int i) { return conv4_forward(problem(i), out(i), nullptr); }));
    timer.row("its backward", width, 3 * bytes, median_ms([&](int i) {
                return conv4_backward(problem(i), {gy.at(i), int64_t(T) * C, C}, out(i), sums.floats(), nullptr,
                                      nullptr, scratch.data, nullptr);
              }));
  }
  const auto time_norm = [&](const char* name, NormKind kind, NormGate gate, int rows_heads, int n, int head) {
    const size_t size = tokens * rows_heads * head;
    const int sets = sets_for(2. * size);
    Sets x(size, true, sets, 1), z(size, true, sets, 2), g(size, true, sets, 3), y(size, true, sets),
        dz(size, true, sets);
    const auto rows = [&](const Sets& s, int i) { return RowsOut{s.at(i), int64_t(rows_heads) * head, head}; };
    const auto in = [&](const Sets& s, int i) { return RowsIn{s.at(i), int64_t(rows_heads) * head, head}; };
    const auto problem = [&](int i) {
      RowNorm p;
      p.tokens = tokens, p.heads = rows_heads, p.width = n, p.padded = head, p.kind = kind, p.gate = gate;
      p.gain = kind == NormKind::l2 ? nullptr : floats(0);
      p.x = in(x, i);
      if (gate != NormGate::none) p.z = in(z, i);
      return p;
    };
    const double bytes = 2. * tokens * rows_heads * n;
    const bool gated = gate != NormGate::none;
    timer.row(name, width, bytes * (gated ? 3 : 2),
              median_ms([&](int i) { return row_norm_forward(problem(i), rows(y, i), nullptr); }));
    timer.row("its backward", width, bytes * (gated ? 5 : 3), median_ms([&](int i) {
                return row_norm_backward(problem(i), in(g, i), rows(y, i), rows(dz, i),
                                         kind == NormKind::l2 ? nullptr : sums.floats(), scratch.data, nullptr);
              }));
  };
  time_norm("l2, q and k heads", NormKind::l2, NormGate::none, 2 * heads, K, K);
  time_norm("rms then gate, heads of 2 d / h", NormKind::rms, NormGate::after, heads, V, V);
  if (K % 8) {
    time_norm("l2, heads padded to 8", NormKind::l2, NormGate::none, 2 * heads, K, (K + 7) / 8 * 8);
    time_norm("rms then gate, padded to 8", NormKind::rms, NormGate::after, heads, V, (V + 7) / 8 * 8);
  }
  time_norm("gate then rms, 2 d channels", NormKind::rms, NormGate::before, 1, 2 * width, 2 * width);
  time_norm("outer eps, d channels", NormKind::outer_eps, NormGate::none, 1, width, width);
  time_residual(timer, width, true, 0, floats(0), scratch.data);
  time_residual(timer, width, true, 0.2f, floats(0), scratch.data);
  time_residual(timer, width, false, 0, floats(0), scratch.data);
  time_residual(timer, width, false, 0.2f, floats(0), scratch.data);
  {
    const int n = 2 * width;
    const size_t size = tokens * n;
    const int sets = sets_for(4. * size);
    Sets x(size, true, sets, 1), z(size, true, sets, 2), g(size, true, sets, 3), y(size, true, sets),
        dz(size, true, sets);
    Sets f(size, false, sets, 6), f2(size, false, sets);
    const GateRows p{int64_t(tokens), n, Element::bf16};
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
    const SigmoidGate log{{int64_t(tokens), width, Element::bf16}, true, 1 / 16.f, -INFINITY, {x.at(0), width}};
    timer.row("log sigmoid, d", width, 3. * size, median_ms([&](int i) {
                return sigmoid_gate_forward(log, {static_cast<float*>(f2.at(i)), width}, nullptr);
              }));
    timer.row(
        "its backward", width, 4. * size, median_ms([&](int i) {
          return sigmoid_gate_backward(log, {static_cast<const float*>(f.at(i)), width}, {y.at(i), width}, nullptr);
        }));
    StepGates narrow{{int64_t(tokens), heads, Element::bf16}, {x.at(0), n}, floats(0), floats(0)};
    timer.row("step gates of h heads", width, 10. * tokens * heads, median_ms([&](int i) {
                return step_gates_forward(narrow, {static_cast<float*>(f2.at(i)), heads},
                                          {static_cast<float*>(f2.at(i + 1)), heads}, nullptr);
              }));
    timer.row("its backward", width, 12. * tokens * heads, median_ms([&](int i) {
                return step_gates_backward(narrow, {}, {static_cast<const float*>(f.at(i)), heads}, {y.at(i), n},
                                           sums.floats(), sums.floats() + 8192, scratch.data, nullptr);
              }));
    const GateRows half{int64_t(tokens), width, Element::bf16};
    timer.row("gate_swish, d", width, 3. * size, median_ms([&](int i) {
                return gate_swish_forward(half, in(x, i), floats(0), {y.at(i), width}, nullptr);
              }));
    timer.row("its backward", width, 5. * size, median_ms([&](int i) {
                return gate_swish_backward(half, {g.at(i), width}, in(x, i), floats(0), out(y, i), sums.floats(),
                                           scratch.data, nullptr);
              }));
    if (K % 2 == 0) {
      Memory table(4 * T * size_t(K));
      expect(rope_table(table.floats(), T, K / 2, 1000, 0, nullptr), "rope_table");
      timer.row("rope, q and k", width, 4. * size, median_ms([&](int i) {
                  return rope({int64_t(tokens), T, 2 * heads, K, Element::bf16, 1, table.floats(), {x.at(i), n, K}},
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
  std::printf(
      "copy inside the card: %.2f TB/s\n| operation | width | MB | us | TB/s | %% of the copy rate "
      "|\n|---|---|---|---|---|---|\n",
      timer.rate / 1e12);
  for (int width : {256, 1024, 1152, 1296}) time_width(timer, width);
  return 0;
}
