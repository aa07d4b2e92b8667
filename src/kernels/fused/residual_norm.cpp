// LayerNorm(dropout(z) + residual) and dropout alone. The mask is made again in the backward pass, never stored.
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/graph_task.h>

#include "base/error.h"
#include "kernels/check.h"
#include "kernels/compat.h"
#include "kernels/cpu/packs.h"
#include "kernels/cpu/tensor_rows.h"
#include "kernels/fused/dropout_mask.h"
#include "kernels/plain.h"
#include "kernels/poison.h"

namespace sb {
namespace {

using at::Tensor;
using cpu::Rows;
using simd::Vec;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kEps = 1e-5;

// The dropout of a call: p = 0 keeps everything, and nothing is saved.
struct Drop {
  double p = 0;
  DropoutKey key;
  Drop() = default;
  Drop(double rate, const std::optional<DropoutKey>& from) {
    if (!from || rate == 0) return;
    p = rate;
    key = *from;
    key.samples = key.samples.contiguous();
  }
  // Of a call on x [B,T,C].
  DropoutMask mask(const Tensor& x) const {
    if (p == 0) return {};
    return {key.seed,
            key.place,
            static_cast<uint32_t>(*key.update.data_ptr<int64_t>()),
            key.samples.data_ptr<int64_t>(),
            x.size(1),
            x.size(2),
            p};
  }
  void save(AutogradContext* ctx) const {
    if (p == 0) return;
    ctx->saved_data["p"] = p;
    ctx->saved_data["seed"] = static_cast<int64_t>(key.seed);
    ctx->saved_data["place"] = static_cast<int64_t>(key.place);
    ctx->saved_data["update"] = key.update;
    ctx->saved_data["samples"] = key.samples;
  }
  static Drop saved(AutogradContext* ctx) {
    Drop out;
    auto& data = ctx->saved_data;
    if (data.empty()) return out;
    out.p = data["p"].toDouble();
    out.key = {static_cast<uint64_t>(data["seed"].toInt()), static_cast<uint32_t>(data["place"].toInt()),
               data["update"].toTensor(), data["samples"].toTensor()};
    return out;
  }
};

// Rows that are walked twice before the next ones: what the first cache holds beside the streams, or, where that would
// be one row, what the second holds. Measured for widths 64 to 2048 (bench/notes/fused.md).
constexpr int64_t kNear = 1024, kFar = 16384;  // elements
int64_t forward_rows(int64_t n) {
  return cpu::rows_of_block(n <= 256 ? kNear : kFar, n);
}
int64_t backward_rows(int64_t n) {
  return cpu::rows_of_block(n <= 1024 ? kNear : kFar, n);
}

// The factors 0 or 1 / (1 - p) of the elements of a block of rows.
template <class T>
class BlockMask {
 public:
  BlockMask(const DropoutMask& mask, int64_t rows)
      : arena_(mask.p == 0 ? 0 : cpu::Arena<T>::rounded(rows * mask.channels)) {
    if (mask.p == 0) return;
    rows_.emplace(mask, rows);
    scale_ = arena_.take(rows * mask.channels);
  }
  const T* fill(int64_t first, int64_t last) const {
    rows_->fill(first, last, scale_);
    return scale_;
  }

 private:
  std::optional<DropoutRows> rows_;
  cpu::Arena<T> arena_;
  T* scale_ = nullptr;
};

// u = what is kept of z, plus the residual: its sum and the sum of its squares.
template <class T, bool drops>
inline __attribute__((always_inline)) simd::Pack<T, 2> add_row(int64_t n, const T* z, const T* scale, const T* residual,
                                                               T* u) {
  return simd::sums_of<T, 2>(
      n, [=](int64_t i, auto io, auto& sum) __attribute__((always_inline)) {
        auto value = io.load(z + i);
        if constexpr (drops) value = value * io.load(scale + i);
        value = value + io.load(residual + i);
        io.store(u + i, value);
        sum[0] = sum[0] + value;
        sum[1] = sum[1] + value * value;
      });
}
// The variance is a difference of these sums; only where the mean outweighs the deviations is that too coarse, and the
// row is walked once more.
template <class T>
inline void mean_and_scale(int64_t n, const simd::Pack<T, 2>& lanes, const T* u, T& mean, T& s) {
  const T sum = simd::horizontal_sum(lanes.v[0]), one_nth = T(1) / static_cast<T>(n);
  mean = sum * one_nth;
  const T of_mean = sum * mean;
  T squares = simd::horizontal_sum(lanes.v[1]) - of_mean;
  if (!(of_mean <= 8 * squares))
    squares = simd::sum_packs<T>(
        n, [ u, centre = mean ](int64_t i, auto io) __attribute__((always_inline)) {
          const auto centred = io.only(io.load(u + i) - Vec<T>(centre));
          return centred * centred;
        });
  s = T(1) / std::sqrt(squares * one_nth + static_cast<T>(kEps));
}
// x = (u - mean) s is kept for the backward pass.
template <class T, bool keeps>
inline __attribute__((always_inline)) void normalise_row(int64_t n, T mean, T s, const T* u, const T* gain,
                                                         const T* bias, T* x, T* y) {
  simd::for_packs<T, simd::kWide>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        const auto unit = (io.load(u + i) - Vec<T>(mean)) * Vec<T>(s);
        if constexpr (keeps) io.store(x + i, unit);
        io.store(y + i, unit * io.load(gain + i) + io.load(bias + i));
      });
}

template <class T>
struct Forward {
  DropoutMask drop;
  int64_t n;
  Rows<T> z, residual;
  const T *gain, *bias;
  T *y, *x, *scales;  // x, the normalised rows, and their scales s are written where they are kept

  template <bool drops, bool keeps>
  void rows(int64_t begin, int64_t end) const {
    const int64_t rows = forward_rows(n);
    const BlockMask<T> mask(drop, rows);
    cpu::Arena<T> arena(cpu::Arena<T>::rounded(rows * n));
    const auto zs = z.starts(), rs = residual.starts();
    T* const u = arena.take(rows * n);
    const auto block = [ =, &mask, n = n, w = gain, c = bias, y = y, x = x, kept = scales ](int64_t first, int64_t last)
        __attribute__((always_inline)) {
      simd::Pack<T, 2> lanes[cpu::kBlockRows];
      T mean[cpu::kBlockRows], s[cpu::kBlockRows];
      const T* scale = drops ? mask.fill(first, last) : nullptr;
      if constexpr (keeps)
        __builtin_prefetch(kept + std::min(first + 64, end - 1), 1);  // a store that waits delays all
      for (int64_t i = 0, r = first; r < last; ++i, ++r)
        lanes[i] = add_row<T, drops>(n, zs[r], drops ? scale + i * n : nullptr, rs[r], u + i * n);
      for (int64_t i = 0, r = first; r < last; ++i, ++r) {
        mean_and_scale<T>(n, lanes[i], u + i * n, mean[i], s[i]);
        if constexpr (keeps) kept[r] = s[i];
      }
      for (int64_t i = 0, r = first; r < last; ++i, ++r)
        normalise_row<T, keeps>(n, mean[i], s[i], u + i * n, w, c, keeps ? x + r * n : nullptr, y + r * n);
    };
    cpu::for_row_blocks(begin, end, rows, block);
  }
};

// First walk of a row backwards: sum and dot of what the second one subtracts. d_gain and d_bias are added to.
template <class T>
inline __attribute__((always_inline)) simd::Pack<T, 2> sums_of_row(int64_t n, const T* gy, const T* x, const T* gain,
                                                                   T* d_gain, T* d_bias) {
  return simd::sums_of<T, 2>(
      n, [=](int64_t i, auto io, auto& sum) __attribute__((always_inline)) {
        const auto unit = io.load(x + i), g = io.load(gy + i), gw = g * io.load(gain + i);
        io.store(d_bias + i, io.load(d_bias + i) + g);
        io.store(d_gain + i, g * unit + io.load(d_gain + i));
        sum[0] = sum[0] + gw;
        sum[1] = sum[1] + gw * unit;
      });
}
// The same for two rows: half the reads and writes of d_gain and d_bias.
template <class T>
inline __attribute__((always_inline)) simd::Pack<T, 4> sums_of_two_rows(int64_t n, const T* gy0, const T* gy1,
                                                                        const T* x0, const T* x1, const T* gain,
                                                                        T* d_gain, T* d_bias) {
  return simd::sums_of<T, 4, 2>(
      n, [=](int64_t i, auto io, auto& sum) __attribute__((always_inline)) {
        const auto w = io.load(gain + i), g0 = io.load(gy0 + i), g1 = io.load(gy1 + i);
        const auto unit0 = io.load(x0 + i), unit1 = io.load(x1 + i);
        io.store(d_bias + i, io.load(d_bias + i) + (g0 + g1));
        io.store(d_gain + i, g1 * unit1 + (g0 * unit0 + io.load(d_gain + i)));
        const auto gw0 = g0 * w, gw1 = g1 * w;
        sum[0] = sum[0] + gw0;
        sum[1] = sum[1] + gw0 * unit0;
        sum[2] = sum[2] + gw1;
        sum[3] = sum[3] + gw1 * unit1;
      });
}
// d_residual = s (gy gain - mean of that - x mean of (gy gain x)), the means from `sum` and `dot`. dz is written only
// where something drops: else it is d_residual. Fetches the row of the next block.
template <class T, bool drops>
inline __attribute__((always_inline)) void back_row(int64_t n, T s, T sum, T dot, const T* gy, const T* x,
                                                    const T* scale, const T* gain, T* d_residual, T* dz,
                                                    const T* next_gy, const T* next_x) {
  const T part = -s * (T(1) / static_cast<T>(n)), by_x = part * dot, constant = part * sum;
  simd::for_packs<T, simd::kWide>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        io.prefetch(next_gy + i);
        io.prefetch(next_x + i);
        const auto gw = io.load(gy + i) * io.load(gain + i);
        const auto d = io.load(x + i) * Vec<T>(by_x) + gw * Vec<T>(s) + Vec<T>(constant);
        io.store(d_residual + i, d);
        if constexpr (drops) io.store(dz + i, d * io.load(scale + i));
      });
}

template <class T>
struct Backward {
  DropoutMask drop;
  int64_t n;
  Rows<T> gy;
  const T *x, *gain, *scales;
  T *dz, *d_residual;  // d_residual may be x

  template <bool drops>
  void rows(int64_t begin, int64_t end, T* d_gain, T* d_bias) const {
    const int64_t rows = backward_rows(n);
    const BlockMask<T> mask(drop, rows);
    const auto gs = gy.starts();
    const auto block = [ =, &mask, n = n, x = x, w = gain, s = scales, dz = dz, dr =
                         d_residual ](int64_t first, int64_t last) __attribute__((always_inline)) {
      simd::Pack<T, 4> lanes[cpu::kBlockRows / 2];  // of two rows
      T sums[2 * cpu::kBlockRows];
      const T* scale = drops ? mask.fill(first, last) : nullptr;
      int64_t r = first;
      for (; r + 2 <= last; r += 2)
        lanes[(r - first) / 2] =
            sums_of_two_rows<T>(n, gs[r], gs[r + 1], x + r * n, x + (r + 1) * n, w, d_gain, d_bias);
      if (r < last) {
        const simd::Pack<T, 2> single = sums_of_row<T>(n, gs[r], x + r * n, w, d_gain, d_bias);
        std::copy_n(single.v, 2, lanes[(r - first) / 2].v);
      }
      for (int64_t k = 0; k < 2 * (last - first); ++k) sums[k] = simd::horizontal_sum(lanes[k / 4].v[k % 4]);
      for (r = first; r < last; ++r) {
        const int64_t next = std::min(r + (last - first), end - 1);
        back_row<T, drops>(n, s[r], sums[2 * (r - first)], sums[2 * (r - first) + 1], gs[r], x + r * n,
                           drops ? scale + (r - first) * n : nullptr, w, dr + r * n, dz + r * n, gs[next],
                           x + next * n);
      }
    };
    cpu::for_row_blocks(begin, end, rows, block);
  }
};

// body(whether anything drops)
template <class Body>
void with_drops(const Drop& drop, const Body& body) {
  drop.p == 0 ? body(std::false_type{}) : body(std::true_type{});
}

class ResidualLayerNorm : public torch::autograd::Function<ResidualLayerNorm> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& z, const Tensor& residual, const Tensor& gain_in,
                        const Tensor& bias_in, const Drop& drop, bool with_gradients) {
    drop.save(ctx);
    const int64_t n = z.size(-1);
    const Tensor gain = gain_in.contiguous(), bias = bias_in.contiguous();
    const Tensor y = kernels::fresh(z.sizes(), z.options());
    // Kept in place of z, which nobody needs any more.
    const Tensor x = with_gradients ? kernels::fresh(z.sizes(), z.options()) : y;
    const Tensor scales = with_gradients ? kernels::fresh({z.numel() / n}, z.options()) : y;
    cpu::with_type_of(z, [&](auto type) {
      using T = decltype(type);
      const Forward<T> pass{drop.mask(z),        n,
                            Rows<T>(z),          Rows<T>(residual),
                            gain.data_ptr<T>(),  bias.data_ptr<T>(),
                            y.data_ptr<T>(),     x.data_ptr<T>(),
                            scales.data_ptr<T>()};
      with_drops(drop, [&](auto drops) {
        cpu::Ranges(pass.z.count(), n).split([&](int64_t begin, int64_t end) {
          with_gradients ? pass.template rows<drops, true>(begin, end) : pass.template rows<drops, false>(begin, end);
        });
      });
    });
    if (with_gradients) ctx->save_for_backward({x, gain, scales});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &gain = saved[1], &scales = saved[2];
    const Drop drop = Drop::saved(ctx);
    const int64_t n = x.size(-1);
    // x is this node's own: unless the graph outlives this pass its gradient takes its place, row for row.
    const bool in_place = !torch::autograd::get_current_graph_task_keep_graph();
    const Tensor d_residual = in_place ? x : kernels::fresh(x.sizes(), x.options());
    const Tensor dz = drop.p == 0 ? d_residual : kernels::fresh(x.sizes(), x.options());
    Tensor d_gain, d_bias;
    cpu::with_type_of(x, [&](auto type) {
      using T = decltype(type);
      const Backward<T> pass{drop.mask(x),       n,
                             Rows<T>(grads[0]),  x.data_ptr<T>(),
                             gain.data_ptr<T>(), scales.data_ptr<T>(),
                             dz.data_ptr<T>(),   d_residual.data_ptr<T>()};
      const cpu::Ranges ranges(pass.gy.count(), n);
      const cpu::PartSums<T> parts(ranges.count, 2 * n);
      with_drops(drop, [&](auto drops) {
        ranges.parallel([&](int64_t part, int64_t begin, int64_t end) {
          T* const sums = parts.start(part);
          pass.template rows<drops>(begin, end, sums, sums + n);
        });
      });
      d_gain = parts.total(0, n, x.options());
      d_bias = parts.total(n, n, x.options());
    });
    return {dz, d_residual, d_gain, d_bias, Tensor(), Tensor()};
  }
};

class Dropout : public torch::autograd::Function<Dropout> {
 public:
  static Tensor scaled(const Tensor& x, const Drop& drop) {
    const Tensor y = kernels::fresh(x.sizes(), x.options());
    cpu::with_type_of(x, [&](auto type) {
      using T = decltype(type);
      const Rows<T> xs(x);
      const int64_t n = xs.width();
      T* out = y.data_ptr<T>();
      const DropoutMask masks = drop.mask(x);
      cpu::Ranges(xs.count(), n).split([&](int64_t begin, int64_t end) {
        const int64_t rows = forward_rows(n);
        const BlockMask<T> mask(masks, rows);
        cpu::for_row_blocks(begin, end, rows, [&](int64_t first, int64_t last) {
          const T* scale = mask.fill(first, last);
          for (int64_t r = first; r < last; ++r)
            simd::for_packs<T>(
                n, [ from = xs[r], to = out + r * n, s = scale + (r - first) * n ](int64_t i, auto io)
                       __attribute__((always_inline)) { io.store(to + i, io.load(from + i) * io.load(s + i)); });
        });
      });
    });
    return y;
  }
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Drop& drop) {
    drop.save(ctx);
    return scaled(x, drop);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {scaled(grads[0], Drop::saved(ctx)), Tensor()};
  }
};

void check_rate(const char* name, double p) {
  if (!(p >= 0 && p < 1)) throw bad_input(name, "p, expected 0 <= p < 1, got " + std::to_string(p));
}

// What the counters of the generator can tell apart.
void check_key(const char* name, const Tensor& x, const DropoutKey& key) {
  kernels::check_shape(name, "x with dropout", x, {-1, -1, -1});
  kernels::check_shape(name, "update", key.update, {1});
  kernels::check_shape(name, "samples", key.samples, {x.size(0)});
  for (const Tensor& integers : {key.update, key.samples})
    if (integers.scalar_type() != at::kLong || integers.device() != x.device())
      throw bad_input(name, c10::str("update and samples, expected int64 on ", x.device(), ", got ",
                                     integers.scalar_type(), " on ", integers.device()));
  const auto most = [&](const char* what, int64_t number, int64_t bound) {
    if (number > bound)
      throw bad_input(name, c10::str(what, " under dropout, expected at most ", bound, ", got ", number));
  };
  most("frames", x.size(1), kDropoutFrames);
  most("channels", x.size(2), kDropoutChannels);
  most("the place", key.place, kDropoutPlaces - 1);
}

}  // namespace

Tensor residual_layer_norm(const Tensor& z, const Tensor& residual, const Tensor& gain, const Tensor& bias, double p,
                           const std::optional<DropoutKey>& key) {
  check_rate("residual_layer_norm", p);
  if (z.dim() == 0 || z.size(-1) == 0 || z.sizes() != residual.sizes())
    throw bad_input("residual_layer_norm",
                    "residual, expected " + c10::str(z.sizes()) + ", got " + c10::str(residual.sizes()));
  for (const Tensor& w : {gain, bias})
    if (w.sizes() != at::IntArrayRef{z.size(-1)})
      throw bad_input("residual_layer_norm", c10::str("gain and bias, expected [", z.size(-1), "], got ", w.sizes()));
  if (key && p > 0) check_key("residual_layer_norm", z, *key);
  if (!kernels::has_cpu_kernel(z)) return plain::residual_layer_norm(z, residual, gain, bias, p, key);
  return ResidualLayerNorm::apply(z, residual, gain, bias, Drop(p, key),
                                  compat::records_gradient(z, residual, gain, bias));
}

Tensor dropout(const Tensor& x, double p, const std::optional<DropoutKey>& key, bool tied_over_time) {
  check_rate("dropout", p);
  if (!key || p == 0) return x;
  check_key("dropout", x, *key);
  if (tied_over_time) return x * plain::dropout_scale(x, p, *key, true);
  if (!kernels::has_cpu_kernel(x)) return plain::dropout(x, p, key);
  return Dropout::apply(x, Drop(p, key));
}

}  // namespace sb
