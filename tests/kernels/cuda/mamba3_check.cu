// What surrounds the attention of Mamba-3 on the device against loops in double, then its times as shares of the GPU's
// copy rate. Exit code 1 where a bound is missed. The attention itself: decayed_attention_check.
//   mamba3_check [--quick | --time]
#include <cstring>

#include "fused.cuh"
#include "kernels/cuda/mamba3_rows.h"

using namespace sb::cuda;
using namespace check;

namespace {

Rows floats_of(const Doubles& x) {
  return Rows(1, 1, x.size(), false, 0, 0, x);
}

// ---- gates ----

void check_gates(Verdict& verdict, bool low, size_t tokens, size_t heads, std::mt19937_64& engine) {
  const size_t n = tokens * heads;
  Doubles dt = normals(n, engine, low, 3), rate = normals(n, engine, low, 3), trap = normals(n, engine, low),
          bias = normals(heads, engine, false), d[4];
  dt[0] = 100, rate[n - 1] = -1e5;  // beyond the bounds of softplus and of f
  for (Doubles& each : d) each = normals(n, engine, false);
  Doubles step(n), decay(n), here(n), before(n), d_dt(n), d_rate(n), d_trap(n), d_bias(heads, 0.);
  for (size_t i = 0; i < n; ++i) {
    const double in = rounded(dt[i], low) + bias[i % heads], u = rounded(rate[i], low), s = sigma(trap[i]);
    const double f = u >= 0 ? 1 + u : 1 / (1 - u), bounded = std::max(f, 1e-4);
    step[i] = in > 20 ? in : std::log1p(std::exp(in));
    const double through = d[1][i];
    decay[i] = -bounded * step[i], here[i] = s * step[i], before[i] = step[i] - here[i];
    const double to_here = d[2][i] - d[3][i], to_f = f >= 1e-4 ? -through * step[i] : 0;
    d_dt[i] = (d[0][i] + d[3][i] + to_here * s - through * bounded) * (in > 20 ? 1 : sigma(in));
    d_rate[i] = to_f * (u >= 0 ? 1 : f * f);
    d_trap[i] = to_here * step[i] * s * (1 - s);
    d_bias[i % heads] += d_dt[i];
  }
  const size_t gap = 3 * heads + 5;  // rows of a wider projection
  const auto wide = [&](const Doubles& x) { return Rows(tokens, 1, heads, low, 0, gap, x); };
  const auto empty = [&] { return Rows(tokens, 1, heads, low, 0, gap); };
  const Rows dts = wide(dt), rates = wide(rate), traps = wide(trap), biases = floats_of(bias), d_dts = empty(),
             d_rates = empty(), d_traps = empty(), d_biases(1, 1, heads, false),
             given[4] = {floats_of(d[0]), floats_of(d[1]), floats_of(d[2]), floats_of(d[3])};
  const Memory out[4] = {Memory(4 * n), Memory(4 * n), Memory(4 * n), Memory(4 * n)};
  const Mamba3Gates p{int64_t(tokens),      int(heads),           element(low),          dts.view<RowsIn>(),
                      rates.view<RowsIn>(), traps.view<RowsIn>(), biases.memory.floats()};
  const Memory scratch(mamba3_gates_scratch_bytes(p));
  expect(mamba3_gates_forward(p, {out[0].floats(), out[1].floats(), out[2].floats(), out[3].floats()}, nullptr),
         "mamba3_gates_forward");
  const auto back = [&] {
    expect(mamba3_gates_backward(
               p,
               {given[0].memory.floats(), given[1].memory.floats(), given[2].memory.floats(), given[3].memory.floats(),
                d_dts.view<RowsOut>(), d_rates.view<RowsOut>(), d_traps.view<RowsOut>(), d_biases.memory.floats()},
               scratch.data, nullptr),
           "mamba3_gates_backward");
    expect(cudaDeviceSynchronize(), "mamba3_gates");
  };
  back();
  const std::string where = shape(low, {tokens, heads});
  const auto judge = [&](const char* name, double difference, double most) {
    verdict.judge("Mamba-3 gates", difference, most, where + " " + name);
  };
  judge("step", error(out[0], step), 1e-5), judge("decay", error(out[1], decay), 1e-5);
  judge("here", error(out[2], here), 1e-5), judge("before", error(out[3], before), 1e-5);
  judge("d dt", error(d_dts, d_dt), bound(low)), judge("d rate", error(d_rates, d_rate), bound(low));
  judge("d trap", error(d_traps, d_trap), bound(low)), judge("d bias", error(d_biases, d_bias), bound(low));
  const auto once = download<char>(d_biases.memory.data, d_biases.memory.bytes);
  back();
  verdict.judge("same bytes twice", same_bytes(d_biases.memory, once) ? 0 : 1, 0.5, where);
}

// ---- keys ----

struct KeysCase {
  bool low;
  size_t batch, time, heads, states;
  bool carried;  // an angle before the first frame, and a gradient of that after the last one
  size_t tokens() const { return batch * time; }
  size_t angles() const { return states / 4; }
  std::string where() const { return shape(low, {batch, time, heads, states}); }
};

// key and query, k and q: [0] and [1]
struct KeysData {
  Doubles row[2], gain[2], bias[2], turn, step, angle, d_out[2], d_last;
};
struct KeysResult {
  Doubles out[2], last, d_row[2], d_gain[2], d_bias[2], d_turn, d_step, d_angle;
};

KeysData draw_keys(const KeysCase& c, std::mt19937_64& engine) {
  KeysData x;
  const size_t n = c.tokens() * c.heads * c.states, turns = c.batch * c.heads * c.angles();
  for (int i = 0; i < 2; ++i) {
    x.row[i] = normals(c.tokens() * c.states, engine, c.low), x.gain[i] = normals(c.states, engine, false);
    x.bias[i] = normals(c.heads * c.states, engine, false), x.d_out[i] = normals(n, engine, c.low);
  }
  x.turn = normals(c.tokens() * c.angles(), engine, c.low), x.step = normals(c.tokens() * c.heads, engine, false);
  for (double& s : x.step) s = std::abs(s);
  x.angle = normals(turns, engine, false, 3), x.d_last = normals(turns, engine, false);
  return x;
}

KeysResult keys_loop(const KeysCase& c, const KeysData& x) {
  const size_t N = c.states, A = c.angles(), H = c.heads, turns = H * A;
  KeysResult r;
  for (int i = 0; i < 2; ++i) {
    r.out[i].resize(x.d_out[i].size()), r.d_row[i].resize(x.row[i].size());
    r.d_gain[i].assign(N, 0), r.d_bias[i].assign(H * N, 0);
  }
  r.last.resize(x.angle.size()), r.d_angle.resize(x.angle.size());
  r.d_turn.assign(x.turn.size(), 0), r.d_step.assign(x.step.size(), 0);
  Doubles by_angle(c.tokens() * turns);  // gradients of the angles of each frame
  for (size_t b = 0; b < c.batch; ++b) {
    Doubles theta(turns, 0.);
    if (c.carried) std::copy_n(x.angle.begin() + b * turns, turns, theta.begin());
    for (size_t t = 0; t < c.time; ++t) {
      const size_t token = b * c.time + t;
      for (size_t i = 0; i < turns; ++i)
        theta[i] += M_PI * std::tanh(x.turn[token * A + i % A]) * x.step[token * H + i / A];
      for (int kind = 0; kind < 2; ++kind) {
        const double* const row = &x.row[kind][token * N];
        double squares = 0, along = 0;
        for (size_t j = 0; j < N; ++j) squares += row[j] * row[j];
        const double inverse = 1 / std::sqrt(squares / N + 1e-5);
        Doubles normed(N), d_normed(N, 0.);
        for (size_t j = 0; j < N; ++j) normed[j] = row[j] * inverse * x.gain[kind][j];
        for (size_t h = 0; h < H; ++h) {
          const double* const d = &x.d_out[kind][(token * H + h) * N];
          double* const out = &r.out[kind][(token * H + h) * N];
          Doubles dy(d, d + N);
          for (size_t j = 0; j < N; ++j) out[j] = normed[j] + x.bias[kind][h * N + j];
          for (size_t j = 0; j < A; ++j) {
            const double cosine = std::cos(theta[h * A + j]), sine = std::sin(theta[h * A + j]);
            const double a = out[2 * j], e = out[2 * j + 1];
            out[2 * j] = a * cosine - e * sine, out[2 * j + 1] = a * sine + e * cosine;
            by_angle[token * turns + h * A + j] += out[2 * j] * d[2 * j + 1] - out[2 * j + 1] * d[2 * j];
            dy[2 * j] = d[2 * j] * cosine + d[2 * j + 1] * sine,
                   dy[2 * j + 1] = d[2 * j + 1] * cosine - d[2 * j] * sine;
          }
          for (size_t j = 0; j < N; ++j) d_normed[j] += dy[j], r.d_bias[kind][h * N + j] += dy[j];
        }
        for (size_t j = 0; j < N; ++j) {
          r.d_gain[kind][j] += d_normed[j] * row[j] * inverse;
          along += d_normed[j] * x.gain[kind][j] * row[j];
        }
        for (size_t j = 0; j < N; ++j)
          r.d_row[kind][token * N + j] =
              inverse * (d_normed[j] * x.gain[kind][j] - row[j] * along * inverse * inverse / N);
      }
    }
    std::copy(theta.begin(), theta.end(), r.last.begin() + b * turns);
    Doubles later(turns, 0.);
    if (c.carried) std::copy_n(x.d_last.begin() + b * turns, turns, later.begin());
    for (size_t t = c.time; t-- > 0;) {
      const size_t token = b * c.time + t;
      for (size_t i = 0; i < turns; ++i) {
        later[i] += by_angle[token * turns + i];
        const double tangent = std::tanh(x.turn[token * A + i % A]);
        r.d_turn[token * A + i % A] += M_PI * (1 - tangent * tangent) * x.step[token * H + i / A] * later[i];
        r.d_step[token * H + i / A] += M_PI * tangent * later[i];
      }
    }
    std::copy(later.begin(), later.end(), r.d_angle.begin() + b * turns);
  }
  return r;
}

Doubles joined(const Doubles (&x)[2]) {
  Doubles y = x[0];
  y.insert(y.end(), x[1].begin(), x[1].end());
  return y;
}

struct KeysProblem {
  KeysCase c;
  Rows row[2], turn, gain[2], bias[2], step, d_out[2], out[2], d_row[2], d_turn, d_gains, d_biases, d_step;
  Memory angle, d_last, last, d_angle;
  Mamba3Keys p;
  Memory kept, scratch;
  KeysProblem(const KeysCase& given, const KeysData& x)
      : c(given),
        row{wide(x.row[0]), wide(x.row[1])},
        turn(c.tokens(), 1, c.angles(), c.low, 0, 7, x.turn),
        gain{floats_of(x.gain[0]), floats_of(x.gain[1])},
        bias{floats_of(x.bias[0]), floats_of(x.bias[1])},
        step(floats_of(x.step)),
        d_out{keys(x.d_out[0]), keys(x.d_out[1])},
        out{keys(), keys()},
        d_row{wide(), wide()},
        d_turn(c.tokens(), 1, c.angles(), c.low, 0, 7),
        d_gains(1, 1, 2 * c.states, false),
        d_biases(1, 1, 2 * c.heads * c.states, false),
        d_step(1, 1, x.step.size(), false),
        angle(upload(x.angle)),
        d_last(upload(x.d_last)),
        last(8 * x.angle.size()),
        d_angle(8 * x.angle.size()),
        p{int64_t(c.batch),
          int64_t(c.time),
          int(c.heads),
          int(c.states),
          element(c.low),
          row[0].view<RowsIn>(),
          row[1].view<RowsIn>(),
          turn.view<RowsIn>(),
          gain[0].memory.floats(),
          gain[1].memory.floats(),
          bias[0].memory.floats(),
          bias[1].memory.floats(),
          step.memory.floats(),
          c.carried ? angle.doubles() : nullptr},
        kept(mamba3_kept_bytes(p)),
        scratch(mamba3_keys_scratch_bytes(p)) {}
  Rows wide(const Doubles& x) const { return Rows(c.tokens(), 1, c.states, c.low, 0, 6, x); }
  Rows wide() const { return Rows(c.tokens(), 1, c.states, c.low, 0, 6); }
  Rows keys(const Doubles& x) const { return Rows(c.tokens(), c.heads, c.states, c.low, 0, 0, x); }
  Rows keys() const { return Rows(c.tokens(), c.heads, c.states, c.low); }
  void forward() const {
    expect(mamba3_keys_forward(p, {out[0].memory.data, out[1].memory.data, last.doubles()}, kept.data, nullptr),
           "mamba3_keys_forward");
  }
  void backward() const {
    const Mamba3KeyGradients d{
        d_out[0].memory.data,     d_out[1].memory.data,     c.carried ? d_last.doubles() : nullptr,
        d_row[0].view<RowsOut>(), d_row[1].view<RowsOut>(), d_turn.view<RowsOut>(),
        d_gains.memory.floats(),  d_biases.memory.floats(), d_step.memory.floats(),
        d_angle.doubles()};
    expect(mamba3_keys_backward(p, d, kept.data, scratch.data, nullptr), "mamba3_keys_backward");
    expect(cudaDeviceSynchronize(), "mamba3_keys");
  }
};

void check_keys(Verdict& verdict, const KeysCase& c, std::mt19937_64& engine) {
  const KeysData x = draw_keys(c, engine);
  const KeysResult r = keys_loop(c, x);
  const KeysProblem problem(c, x);
  problem.forward();
  problem.backward();
  const auto judge = [&](const char* name, double difference) {
    verdict.judge("Mamba-3 keys", difference, bound(c.low), c.where() + " " + name);
  };
  judge("k", error(problem.out[0], r.out[0])), judge("q", error(problem.out[1], r.out[1]));
  judge("d key", error(problem.d_row[0], r.d_row[0])), judge("d query", error(problem.d_row[1], r.d_row[1]));
  judge("d gains", error(problem.d_gains, joined(r.d_gain))),
      judge("d biases", error(problem.d_biases, joined(r.d_bias)));
  judge("d turn", error(problem.d_turn, r.d_turn)), judge("d step", error(problem.d_step, r.d_step));
  const auto doubles = [](const Memory& from, size_t count) { return download<double>(from.data, count); };
  verdict.judge("angles", error(doubles(problem.last, r.last.size()), r.last), 1e-6, c.where());
  judge("d angle", error(doubles(problem.d_angle, r.d_angle.size()), r.d_angle));
  const auto results = [&] {
    std::vector<char> all;
    for (const Rows* each : {&problem.out[0], &problem.out[1], &problem.d_row[0], &problem.d_row[1], &problem.d_gains,
                             &problem.d_biases, &problem.d_turn, &problem.d_step}) {
      const auto more = download<char>(each->memory.data, each->memory.bytes);
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  };
  const auto once = results();
  problem.forward();
  problem.backward();
  verdict.judge("same bytes twice", results() == once ? 0 : 1, 0.5, c.where());
}

// A frame must leave the bytes of keys and queries before it.
void check_causality(Verdict& verdict, const KeysCase& c, std::mt19937_64& engine) {
  const KeysData x = draw_keys(c, engine);
  for (const size_t t : {size_t{1}, c.time / 2, c.time - 1}) {
    KeysData changed = x;
    for (size_t b = 0; b < c.batch; ++b) {
      const size_t token = b * c.time + t;
      for (Doubles& row : changed.row) row[token * c.states] += 5;
      changed.turn[token * c.angles()] -= 2, changed.step[token * c.heads] *= 4;
    }
    const KeysProblem one(c, x), other(c, changed);
    one.forward(), other.forward();
    expect(cudaDeviceSynchronize(), "mamba3_keys");
    bool same = true;
    const size_t frame = c.heads * c.states, before = t * frame;
    for (int kind = 0; kind < 2; ++kind) {
      const Doubles a = one.out[kind].get(), d = other.out[kind].get();
      for (size_t b = 0; b < c.batch; ++b)
        same = same && std::equal(a.begin() + b * c.time * frame, a.begin() + b * c.time * frame + before,
                                  d.begin() + b * c.time * frame);
    }
    verdict.judge("no later frame", same ? 0 : 1, 0.5, c.where());
  }
}

int check_all(bool quick) {
  Verdict verdict;
  std::mt19937_64 engine(std::random_device{}());
  for (const bool low : {true, false}) {
    for (const size_t heads : {1, 8, 32, 81, 256})
      for (const size_t tokens : {size_t{1}, size_t{37}, quick ? size_t{200} : size_t{3000}})
        check_gates(verdict, low, tokens, heads, engine);
    for (const size_t states : {4, 12, 64, 128, 132, 256})
      for (const size_t time : {size_t{1}, size_t{16}, size_t{17}, quick ? size_t{40} : size_t{400}})
        check_keys(verdict, {low, 2, time, states == 64 ? size_t{9} : 3, states, time != 16}, engine);
    check_keys(verdict, {low, 3, quick ? size_t{50} : size_t{1300}, 32, 128, false}, engine);
    check_keys(verdict, {low, 1, 20, 64, 128, true}, engine);
    check_keys(verdict, {low, 1, 20, 30, 256, true}, engine);
    check_causality(verdict, {low, 2, 50, 5, 128, true}, engine);
  }
  return verdict.finish();
}

// ---- time ----

void time_width(const Timer& timer, int heads, int states) {
  const size_t A = states / 4, row = 2 * size_t(states) + 3 * size_t(heads) + A, keys = kTokens * heads * states;
  const int sets = sets_for(8. * keys);
  Sets in(kTokens * row, true, sets, 1), d_in(kTokens * row, true, sets), out(2 * keys, true, sets, 2);
  Sets gates(4 * kTokens * heads, false, sets, 3), d_gates(4 * kTokens * heads, false, sets, 4);
  Sets parameters(2 * size_t(states) * (heads + 1), false, 1, 5);
  const Memory angle(8 * size_t{kBatch} * heads * A), sums(8 * size_t(states) * (heads + 1));
  const auto* const floats = static_cast<const float*>(parameters.at(0));
  const auto part = [&](const Sets& from, int i, size_t column) {
    return RowsIn{static_cast<char*>(from.at(i)) + 2 * column, int64_t(row), 0};
  };
  const auto to = [&](const Sets& from, int i, size_t column) {
    return RowsOut{static_cast<char*>(from.at(i)) + 2 * column, int64_t(row), 0};
  };
  const auto gate = [&](const Sets& from, int i, int which) {
    return static_cast<float*>(from.at(i)) + kTokens * heads * which;
  };
  const size_t dt = 2 * size_t(states), rate = dt + heads, trap = rate + heads, turn = trap + heads;
  const auto gates_of = [&](int i) {
    return Mamba3Gates{int64_t(kTokens),  heads, Element::bf16, part(in, i, dt), part(in, i, rate),
                       part(in, i, trap), floats};
  };
  const auto keys_of = [&](int i) {
    return Mamba3Keys{kBatch,
                      kTime,
                      heads,
                      states,
                      Element::bf16,
                      part(in, i, 0),
                      part(in, i, states),
                      part(in, i, turn),
                      floats,
                      floats + states,
                      floats + 2 * states,
                      floats + states * (heads + 2),
                      gate(gates, i, 0),
                      nullptr};
  };
  const Memory kept(mamba3_kept_bytes(keys_of(0))),
      scratch(std::max(mamba3_keys_scratch_bytes(keys_of(0)), mamba3_gates_scratch_bytes(gates_of(0))));
  const double token_heads = double(kTokens) * heads, small = 2. * kTokens * (2. * states + A) + 4 * token_heads;
  timer.row("Mamba-3 gates", heads, token_heads * (3 * 2 + 4 * 4), median_ms([&](int i) {
              return mamba3_gates_forward(
                  gates_of(i), {gate(d_gates, i, 0), gate(d_gates, i, 1), gate(d_gates, i, 2), gate(d_gates, i, 3)},
                  nullptr);
            }));
  timer.row("its backward", heads, token_heads * (6 * 2 + 4 * 4), median_ms([&](int i) {
              return mamba3_gates_backward(gates_of(i),
                                           {gate(gates, i, 0), gate(gates, i, 1), gate(gates, i, 2), gate(gates, i, 3),
                                            to(d_in, i, dt), to(d_in, i, rate), to(d_in, i, trap), sums.floats()},
                                           scratch.data, nullptr);
            }));
  char* const rows = static_cast<char*>(out.at(0));
  const auto half = [&](int i, int which) { return rows + out.each * size_t(i % sets) + 2 * keys * which; };
  timer.row("Mamba-3 keys", heads, 4. * keys + small, median_ms([&](int i) {
              return mamba3_keys_forward(keys_of(i), {half(i, 0), half(i, 1), angle.doubles()}, kept.data, nullptr);
            }));
  timer.row("its backward", heads, 4. * keys + 2 * small, median_ms([&](int i) {
              const Mamba3KeyGradients d{half(i, 0),
                                         half(i, 1),
                                         nullptr,
                                         to(d_in, i, 0),
                                         to(d_in, i, states),
                                         to(d_in, i, turn),
                                         sums.floats(),
                                         sums.floats() + 2 * states,
                                         gate(d_gates, i, 0),
                                         nullptr};
              return mamba3_keys_backward(keys_of(i), d, kept.data, scratch.data, nullptr);
            }));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && !std::strcmp(argv[1], "--time")) {
    const Timer timer;
    time_width(timer, 8, 128);
    time_width(timer, 32, 128);
    return 0;
  }
  return check_all(argc > 1 && !std::strcmp(argv[1], "--quick"));
}
