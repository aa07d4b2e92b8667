// What surrounds the recurrence of RWKV-7 on the device against loops in double, then its times as shares of the card's
// copy rate. Exit code 1 where a bound is missed.
//   rwkv7_check [--quick | --time]
#include <cstring>

#include "fused.cuh"
#include "kernels/cuda/rwkv7_rows.h"

using namespace sb::cuda;
using namespace check;

namespace {

// Contiguous [tokens, heads, K] of several tensors
struct Rwkv7Case {
  bool low;
  size_t tokens, heads, K;
  std::mt19937_64& engine;
  size_t size() const { return tokens * heads * K; }
  Doubles draw(double scale = 1) const { return normals(size(), engine, low, scale); }
  Doubles parameters() const { return normals(heads * K, engine, false); }
  Rows tensor(const Doubles& x) const { return Rows(tokens, heads, K, low, 0, 0, x); }
  Rows empty() const { return Rows(tokens, heads, K, low); }
  Rwkv7Rows rows() const { return {int64_t(tokens), int(heads), int(K), element(low)}; }
  std::string where() const { return shape(low, {tokens, heads, K}); }
};
Rows floats_of(const Doubles& x) {
  return Rows(1, 1, x.size(), false, 0, 0, x);
}

void check_rwkv7_keys(Verdict& verdict, const Rwkv7Case& c) {
  const Doubles decay = c.draw(), rate = c.draw(), key = c.draw(), scale = c.parameters(), share = c.parameters();
  const Doubles dg = normals(c.size(), c.engine, false), dk = c.draw(), de = c.draw(), dw = c.draw();
  Doubles g(c.size()), k(g), erase(g), write(g), d_decay(g), d_rate(g), d_key(g), d_parameters(2 * c.heads * c.K, 0.);
  for (size_t row = 0; row < c.tokens * c.heads; ++row) {
    const size_t at = row * c.K, head = row % c.heads * c.K;
    double norm = 0, along = 0;
    for (size_t i = 0; i < c.K; ++i) norm += std::pow(key[at + i] * scale[head + i], 2);
    norm = std::sqrt(norm);
    for (size_t i = 0; i < c.K; ++i) {
      const double a = sigma(rate[at + i]), x = key[at + i];
      g[at + i] = -std::exp(-.5) * sigma(decay[at + i]);
      k[at + i] = x * (1 + (a - 1) * share[head + i]);
      erase[at + i] = x * scale[head + i] / norm;
      write[at + i] = a * erase[at + i];
      along += erase[at + i] * (de[at + i] + dw[at + i] * a);
    }
    for (size_t i = 0; i < c.K; ++i) {
      const double a = sigma(rate[at + i]), s = sigma(decay[at + i]), x = key[at + i];
      const double du = (de[at + i] + dw[at + i] * a - erase[at + i] * along) / norm;
      d_decay[at + i] = -std::exp(-.5) * s * (1 - s) * dg[at + i];
      d_rate[at + i] = (dk[at + i] * x * share[head + i] + dw[at + i] * erase[at + i]) * a * (1 - a);
      d_key[at + i] = dk[at + i] * (1 + (a - 1) * share[head + i]) + du * scale[head + i];
      d_parameters[head + i] += du * x;
      d_parameters[c.heads * c.K + head + i] += dk[at + i] * x * (a - 1);
    }
  }
  const Rows decays = c.tensor(decay), rates = c.tensor(rate), keys = c.tensor(key), scales = floats_of(scale),
             shares = floats_of(share), dks = c.tensor(dk), des = c.tensor(de), dws = c.tensor(dw), dgs = floats_of(dg);
  const Rows gs(1, 1, c.size(), false), ks = c.empty(), erases = c.empty(), writes = c.empty(), d_decays = c.empty(),
                                        d_rates = c.empty(), d_keys = c.empty(), sums(1, 1, d_parameters.size(), false);
  const Rwkv7Keys p{c.rows(),         decays.memory.data,     rates.memory.data,
                    keys.memory.data, scales.memory.floats(), shares.memory.floats()};
  const Memory scratch(rwkv7_scratch_bytes(p.rows));
  expect(rwkv7_keys_forward(p, {gs.memory.floats(), ks.memory.data, erases.memory.data, writes.memory.data}, nullptr),
         "rwkv7_keys_forward");
  const auto back = [&] {
    expect(rwkv7_keys_backward(p,
                               {dgs.memory.floats(), dks.memory.data, des.memory.data, dws.memory.data,
                                d_decays.memory.data, d_rates.memory.data, d_keys.memory.data, sums.memory.floats()},
                               scratch.data, nullptr),
           "rwkv7_keys_backward");
    expect(cudaDeviceSynchronize(), "rwkv7_keys");
  };
  back();
  const auto judge = [&](const char* name, const Rows& got, const Doubles& wanted) {
    verdict.judge("RWKV-7 keys", error(got, wanted), bound(c.low), c.where() + " " + name);
  };
  judge("g", gs, g), judge("k", ks, k), judge("erase", erases, erase), judge("write", writes, write);
  judge("d decay", d_decays, d_decay), judge("d rate", d_rates, d_rate), judge("d key", d_keys, d_key);
  judge("d parameters", sums, d_parameters);
  const auto once = download<char>(sums.memory.data, sums.memory.bytes);
  back();
  verdict.judge("same bytes twice", same_bytes(sums.memory, once) ? 0 : 1, 0.5, c.where());
}

void check_rwkv7_read(Verdict& verdict, const Rwkv7Case& c) {
  const double eps = 1e-3;
  const Doubles o = c.draw(), r = c.draw(), k = c.draw(), v = c.draw(), gate = c.draw(), dy = c.draw(),
                bonus = c.parameters(), gain = c.parameters(), bias = c.parameters();
  Doubles y(c.size()), d_o(y), dr(y), dk(y), dv(y), d_gate(y), d_parameters(3 * c.heads * c.K, 0.);
  for (size_t row = 0; row < c.tokens * c.heads; ++row) {
    const size_t at = row * c.K, head = row % c.heads * c.K, all = c.heads * c.K;
    const double n = double(c.K);
    double mean = 0, square = 0, sum = 0, first = 0, second = 0, ds = 0;
    for (size_t i = 0; i < c.K; ++i) mean += o[at + i] / n, sum += r[at + i] * k[at + i] * bonus[head + i];
    for (size_t i = 0; i < c.K; ++i) square += std::pow(o[at + i] - mean, 2) / n;
    const double inverse = 1 / std::sqrt(square + eps);
    for (size_t i = 0; i < c.K; ++i) {
      const double normed = (o[at + i] - mean) * inverse, dz = dy[at + i] * gate[at + i];
      const double z = normed * gain[head + i] + bias[head + i] + sum * v[at + i];
      y[at + i] = z * gate[at + i], d_gate[at + i] = z * dy[at + i];
      first += dz * gain[head + i] / n, second += dz * gain[head + i] * normed / n, ds += dz * v[at + i];
      d_parameters[all + head + i] += dz * normed, d_parameters[2 * all + head + i] += dz;
    }
    for (size_t i = 0; i < c.K; ++i) {
      const double normed = (o[at + i] - mean) * inverse, dz = dy[at + i] * gate[at + i];
      d_o[at + i] = (dz * gain[head + i] - first - normed * second) * inverse;
      dv[at + i] = dz * sum;
      dr[at + i] = ds * k[at + i] * bonus[head + i], dk[at + i] = ds * r[at + i] * bonus[head + i];
      d_parameters[head + i] += ds * r[at + i] * k[at + i];
    }
  }
  const Rows os = c.tensor(o), rs = c.tensor(r), ks = c.tensor(k), vs = c.tensor(v), gates = c.tensor(gate),
             dys = c.tensor(dy), bonuses = floats_of(bonus), gains = floats_of(gain), biases = floats_of(bias);
  const Rows ys = c.empty(), d_os = c.empty(), drs = c.empty(), dks = c.empty(), dvs = c.empty(), d_gates = c.empty(),
             sums(1, 1, d_parameters.size(), false);
  const Rwkv7Read p{
      c.rows(),       float(eps),        os.memory.data,          rs.memory.data,        ks.memory.data,
      vs.memory.data, gates.memory.data, bonuses.memory.floats(), gains.memory.floats(), biases.memory.floats()};
  const Memory scratch(rwkv7_scratch_bytes(p.rows));
  expect(rwkv7_read_forward(p, ys.memory.data, nullptr), "rwkv7_read_forward");
  const auto back = [&] {
    expect(rwkv7_read_backward(p,
                               {dys.memory.data, d_os.memory.data, drs.memory.data, dks.memory.data, dvs.memory.data,
                                d_gates.memory.data, sums.memory.floats()},
                               scratch.data, nullptr),
           "rwkv7_read_backward");
    expect(cudaDeviceSynchronize(), "rwkv7_read");
  };
  back();
  const auto judge = [&](const char* name, const Rows& got, const Doubles& wanted) {
    verdict.judge("RWKV-7 read", error(got, wanted), bound(c.low), c.where() + " " + name);
  };
  judge("y", ys, y), judge("d o", d_os, d_o), judge("dr", drs, dr), judge("dk", dks, dk), judge("dv", dvs, dv);
  judge("d gate", d_gates, d_gate), judge("d parameters", sums, d_parameters);
  const auto once = download<char>(sums.memory.data, sums.memory.bytes);
  back();
  verdict.judge("same bytes twice", same_bytes(sums.memory, once) ? 0 : 1, 0.5, c.where());
}

int check_all(bool quick) {
  Verdict verdict;
  std::mt19937_64 engine(7);
  for (const bool low : {true, false})
    for (const size_t K : {2, 6, 64, 66, 92, 96, 128, 200, 256})
      for (const size_t tokens : {size_t{1}, size_t{37}, size_t{quick ? 200 : 3000}}) {
        check_rwkv7_keys(verdict, {low, tokens, 3, K, engine});
        check_rwkv7_read(verdict, {low, tokens, 3, K, engine});
      }
  return verdict.finish();
}

// ---- time ----

void time_width(const Timer& timer, int width, int heads) {
  const size_t n = kTokens * width;
  const int sets = sets_for(2. * n * 8);
  Sets in(8 * n, true, sets, 1), out(8 * n, true, sets), parameters(3 * size_t(width), false, 1, 2);
  const auto from = [&](int i, int which) { return static_cast<const char*>(in.at(i)) + 2 * n * which; };
  const auto to = [&](int i, int which) { return static_cast<char*>(out.at(i)) + 2 * n * which; };
  const auto* const row = static_cast<const float*>(parameters.at(0));
  const Rwkv7Rows rows{int64_t(kTokens), heads, width / heads, Element::bf16};
  const Memory scratch(rwkv7_scratch_bytes(rows)), sums(12 * size_t(width));
  const auto keys = [&](int i) { return Rwkv7Keys{rows, from(i, 0), from(i, 1), from(i, 2), row, row + width}; };
  timer.row(
      "RWKV-7 keys", width, 2. * n * (3 + 2 + 3), median_ms([&](int i) {
        return rwkv7_keys_forward(keys(i), {reinterpret_cast<float*>(to(i, 0)), to(i, 2), to(i, 3), to(i, 4)}, nullptr);
      }));
  timer.row("its backward", width, 2. * n * (3 + 2 + 3 + 3), median_ms([&](int i) {
              return rwkv7_keys_backward(keys(i),
                                         {reinterpret_cast<const float*>(from(i, 3)), from(i, 5), from(i, 6),
                                          from(i, 7), to(i, 0), to(i, 1), to(i, 2), sums.floats()},
                                         scratch.data, nullptr);
            }));
  const auto read = [&](int i) {
    return Rwkv7Read{rows,       1e-3f,      from(i, 0), from(i, 1),  from(i, 2),
                     from(i, 3), from(i, 4), row,        row + width, row + 2 * width};
  };
  timer.row("RWKV-7 read", width, 2. * n * (5 + 1),
            median_ms([&](int i) { return rwkv7_read_forward(read(i), to(i, 0), nullptr); }));
  timer.row("its backward", width, 2. * n * (6 + 5), median_ms([&](int i) {
              return rwkv7_read_backward(read(i),
                                         {from(i, 5), to(i, 0), to(i, 1), to(i, 2), to(i, 3), to(i, 4), sums.floats()},
                                         scratch.data, nullptr);
            }));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && !std::strcmp(argv[1], "--time")) {
    const Timer timer;
    time_width(timer, 320, 4);
    time_width(timer, 1152, 16);
    time_width(timer, 1472, 16);
    return 0;
  }
  return check_all(argc > 1 && !std::strcmp(argv[1], "--quick"));
}
