// Norms, heads times a number, residual LayerNorm and dropout on the device against loops in double, then their times
// as shares of the card's copy rate. Exit code 1 where a bound is missed.
//   rows_check [--quick | --time]
#include <cstring>

#include "fused.cuh"
#include "kernels/cuda/head_scale.h"
#include "kernels/cuda/norms.h"
#include "kernels/cuda/residual_norm.h"
#include "random/philox.h"

using namespace sb::cuda;
using namespace check;

namespace {

// ---- norms ----

void check_norm(Verdict& verdict, std::mt19937_64& engine, bool low, NormKind kind, NormGate gate, size_t tokens,
                size_t heads, size_t width, size_t head_gap, size_t token_gap, bool pads, size_t skip_width = 0) {
  const size_t rows = tokens * heads, n = rows * width;
  const bool has_gain = kind != NormKind::l2;
  Doubles x = normals(n, engine, low), z = normals(n, engine, low), gy = normals(n, engine, low),
          gain = normals(width, engine, false);
  const Doubles w = normals(n, engine, low), D = normals(skip_width ? width / skip_width : 1, engine, false);
  std::fill_n(x.begin(), width, 0.);  // a row of zeros
  const double eps = kind == NormKind::rms ? 1e-5 : kind == NormKind::l2 ? 1e-6 : 1e-8;
  const double feps = static_cast<float>(eps);
  Doubles y(n), dx(n), dz(n), d_gain(width, 0.);
  for (size_t r = 0; r < rows; ++r) {
    Doubles with_skip(x.begin() + r * width, x.begin() + (r + 1) * width);
    for (size_t i = 0; i < width && skip_width; ++i) with_skip[i] += D[i / skip_width] * w[r * width + i];
    const double *xs = with_skip.data(), *zs = &z[r * width], *g = &gy[r * width];
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
  const Rows xs = tensor(x), zs = tensor(z), gs = tensor(gy), ws = tensor(w), Ds(1, 1, D.size(), false, 0, 0, D);
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
  if (skip_width) p.w = ws.view<RowsIn>(), p.skip = Ds.memory.floats(), p.skip_width = int(skip_width);
  Memory scratch(row_norm_scratch_bytes(p));
  expect(row_norm_forward(p, ys.view<RowsOut>(), nullptr), "row_norm_forward");
  expect(row_norm_backward(p, gs.view<RowsIn>(), dxs.view<RowsOut>(), dzs.view<RowsOut>(),
                           has_gain ? d_gains.memory.floats() : nullptr, scratch.data, nullptr),
         "row_norm_backward");
  expect(cudaDeviceSynchronize(), "norm");
  const char* const kinds[] = {"rms", "outer eps", "l2"};
  const char* const gates[] = {"", ", gate after", ", gate before"};
  const std::string name = std::string(kinds[int(kind)]) + gates[int(gate)] + (skip_width ? ", skip" : "");
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
  q.dropout = {p, seed, place, sample.integers(), updates.integers()};
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

// ---- heads times a number ----

void check_head_scale(Verdict& verdict, std::mt19937_64& engine, bool low, size_t tokens, size_t heads, size_t width,
                      size_t head_gap, size_t token_gap, bool pads, bool skips) {
  const size_t n = tokens * heads * width, rows = tokens * heads;
  const Doubles x = normals(n, engine, low), dy = normals(n, engine, low), read = normals(n, engine, low),
                w = normals(rows, engine, false), D = normals(heads, engine, false);
  Doubles y(n), dx(n), dw(rows, 0.), ds(rows, 0.);
  for (size_t i = 0; i < n; ++i) {
    const size_t r = i / width;
    y[i] = w[r] * x[i];
    dx[i] = w[r] * dy[i] + (skips ? D[r % heads] * read[i] : 0);
    dw[r] += dy[i] * x[i], ds[r] += read[i] * x[i];
  }
  const auto tensor = [&](const Doubles& v) { return Rows(tokens, heads, width, low, head_gap, token_gap, v); };
  const Rows xs = tensor(x), dys = tensor(dy), reads = tensor(read), ws(tokens, 1, heads, false, 0, 3, w),
             Ds(1, 1, heads, false, 0, 0, D);
  Rows ys(tokens, heads, width, low, head_gap, token_gap), dxs(tokens, heads, width, low, head_gap, token_gap),
      dws(tokens, 1, heads, false), dss(tokens, 1, heads, false);
  HeadScale p{int64_t(tokens),
              int(heads),
              int(width),
              pads ? int(width + head_gap) : 0,
              element(low),
              xs.view<RowsIn>(),
              ws.view<TokenRows<const float>>()};
  HeadScaleGradients d;
  d.dy = dys.view<RowsIn>(), d.dx = dxs.view<RowsOut>(), d.dw = dws.view<TokenRows<float>>();
  if (skips) d.read = reads.view<RowsIn>(), d.skip = Ds.memory.floats(), d.d_skip = dss.view<TokenRows<float>>();
  expect(head_scale_forward(p, ys.view<RowsOut>(), nullptr), "head_scale_forward");
  expect(head_scale_backward(p, d, nullptr), "head_scale_backward");
  expect(cudaDeviceSynchronize(), "head scale");
  const std::string where = shape(low, {tokens, heads, width, head_gap});
  verdict.judge("head scale", error(ys, y), bound(low), where);
  verdict.judge("head scale back", error(dxs, dx), bound(low), where + " dx");
  verdict.judge("head scale back", error(dws, dw), 1e-5, where + " dw");
  if (skips) verdict.judge("head scale back", error(dss, ds), 1e-5, where + " d skip");
}

// ---- all of them ----

int check_all(bool quick) {
  std::mt19937_64 engine(std::random_device{}());
  Verdict verdict;
  for (bool low : {true, false}) {
    const NormGate gates[] = {NormGate::none, NormGate::after, NormGate::before};
    const size_t widths[] = {5, 8, 64, 72, 81, 96, 128, 144, 162, 192, 256, 512, 640, 1152, 1296, 2592, 3000, 5000};
    for (size_t width : widths)
      for (NormGate gate : gates) {
        if (quick && width > 300 && width % 3 != 0) continue;
        const size_t tokens = width > 300 ? 40 : 90;
        check_norm(verdict, engine, low, NormKind::rms, gate, tokens, 3, width, 0, 0, false);
        check_norm(verdict, engine, low, NormKind::rms, gate, tokens, 2, width, (8 - width % 8) % 8, 24, true);
      }
    for (size_t width : {64, 96, 162, 240, 512, 648, 1296, 2592, 5184})
      check_norm(verdict, engine, low, NormKind::rms, NormGate::before, 30, 1, width, 0, width % 5 ? 8 : 0, false,
                 width % 81 ? 16 : 81);
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
    for (size_t width : {8, 64, 81, 88, 256})
      for (bool skips : {false, true}) {
        check_head_scale(verdict, engine, low, 61, 5, width, 0, 8, false, skips);
        check_head_scale(verdict, engine, low, 61, 3, width, (8 - width % 8) % 8, 0, true, skips);
      }
  }
  return verdict.finish();
}

// ---- time ----

void time_residual(const Timer& timer, int width, bool low_stream, float p, const float* parameters, void* scratch) {
  const size_t n = kTokens * width;
  const int sets = sets_for(2. * n);
  const Sets z(n, true, sets, 1), more(n, true, sets, 2), dz(n, true, sets), low(n, true, sets);
  const Sets r(n, low_stream, sets, 4), g(n, low_stream, sets, 5), y(n, low_stream, sets);
  const Memory stats(8 * kTokens), sums(8 * width);
  const Memory samples = upload(std::vector<int64_t>(kBatch, 5)), update = upload(std::vector<int64_t>(1, 9));
  expect(cudaMemset(stats.data, 0, stats.bytes), "memset");
  ResidualNorm q;
  q.rows = kTokens, q.time = kTime, q.width = width, q.stream = element(low_stream);
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
  const auto time_norm = [&](const char* name, NormKind kind, NormGate gate, int rows_heads, int n, int head,
                             int skip_width = 0) {
    const size_t size = kTokens * rows_heads * head;
    const int sets = sets_for(2. * size);
    Sets x(size, true, sets, 1), z(size, true, sets, 2), g(size, true, sets, 3), y(size, true, sets),
        dz(size, true, sets), w(skip_width ? size : 1, true, sets, 4);
    const auto rows = [&](const Sets& s, int i) { return RowsOut{s.at(i), int64_t(rows_heads) * head, head}; };
    const auto in = [&](const Sets& s, int i) { return RowsIn{s.at(i), int64_t(rows_heads) * head, head}; };
    const auto problem = [&](int i) {
      RowNorm p;
      p.tokens = kTokens, p.heads = rows_heads, p.width = n, p.padded = head, p.kind = kind, p.gate = gate;
      p.gain = kind == NormKind::l2 ? nullptr : floats(0);
      p.x = in(x, i);
      if (gate != NormGate::none) p.z = in(z, i);
      if (skip_width) p.w = in(w, i), p.skip = floats(0), p.skip_width = skip_width;
      return p;
    };
    const double bytes = 2. * kTokens * rows_heads * n;
    const bool gated = gate != NormGate::none;
    const int more = skip_width ? 1 : 0;
    timer.row(name, width, bytes * (gated ? 3 + more : 2),
              median_ms([&](int i) { return row_norm_forward(problem(i), rows(y, i), nullptr); }));
    timer.row("its backward", width, bytes * (gated ? 5 + more : 3), median_ms([&](int i) {
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
  time_norm("the same with a skip", NormKind::rms, NormGate::before, 1, 2 * width, 2 * width, K);
  time_norm("outer eps, d channels", NormKind::outer_eps, NormGate::none, 1, width, width);
  time_residual(timer, width, true, 0, floats(0), scratch.data);
  time_residual(timer, width, true, 0.2f, floats(0), scratch.data);
  time_residual(timer, width, false, 0, floats(0), scratch.data);
  time_residual(timer, width, false, 0.2f, floats(0), scratch.data);
  {
    const int n = 2 * width;
    const size_t size = kTokens * n;
    const int sets = sets_for(4. * size);
    Sets x(size, true, sets, 1), z(size, true, sets, 2), g(size, true, sets, 3), y(size, true, sets);
    Sets f(kTokens * n / 8, false, sets, 6), f2(kTokens * n / 8, false, sets);
    const int padded = (K + 7) / 8 * 8;
    HeadScale scale{int64_t(kTokens), n / padded, K, padded, Element::bf16, {x.at(0), n, padded}, {}};
    scale.w = {static_cast<const float*>(f.at(0)), n / padded};
    timer.row("heads times a number, 2 d", width, 4. * size, median_ms([&](int i) {
                scale.x = {x.at(i), n, padded};
                return head_scale_forward(scale, {y.at(i), n, padded}, nullptr);
              }));
    timer.row("its backward with a skip", width, 8. * size, median_ms([&](int i) {
                HeadScaleGradients d;
                scale.x = {x.at(i), n, padded};
                d.dy = {g.at(i), n, padded}, d.read = {z.at(i), n, padded}, d.skip = floats(0);
                d.dx = {y.at(i), n, padded};
                d.dw = {static_cast<float*>(f2.at(i)), n / padded};
                d.d_skip = {static_cast<float*>(f2.at(i + 1)), n / padded};
                return head_scale_backward(scale, d, nullptr);
              }));
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
