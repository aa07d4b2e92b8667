// LayerNorm(dropout(z) + residual) and dropout alone. The mask is made again in the backward pass, never stored.
#include <torch/csrc/autograd/custom_function.h>

#include "base/error.h"
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

// The dropout of a call: p = 0 keeps everything.
struct Drop {
  double p;
  DropoutMask mask;
  explicit Drop(AutogradContext* ctx)
      : p(ctx->saved_data["p"].toDouble()),
        mask({static_cast<uint64_t>(ctx->saved_data["seed"].toInt()),
              static_cast<uint64_t>(ctx->saved_data["index"].toInt())},
             p) {}
  static void save(AutogradContext* ctx, double p, int64_t seed, int64_t index) {
    ctx->saved_data["p"] = p;
    ctx->saved_data["seed"] = seed;
    ctx->saved_data["index"] = index;
  }
};

// body(row, scale of its elements or null) over rows begin..end, masks made for some thousand elements at a time
template <class T, class Body>
void for_masked_rows(const Drop& drop, int64_t begin, int64_t end, int64_t n, const Body& body) {
  if (drop.p == 0) {
    for (int64_t r = begin; r < end; ++r) body(r, static_cast<const T*>(nullptr));
    return;
  }
  const int64_t together = std::max<int64_t>(1, 2048 / std::max<int64_t>(1, n));
  const T kept = static_cast<T>(1 / (1 - drop.p));
  cpu::Arena<T> arena(cpu::Arena<T>::rounded(together * n));
  T* scale = arena.take(together * n);
  for (int64_t r0 = begin; r0 < end; r0 += together) {
    const int64_t rows = std::min(together, end - r0);
    drop.mask.fill(r0 * n, rows * n, kept, scale);
    for (int64_t r = 0; r < rows; ++r) body(r0 + r, static_cast<const T*>(scale + r * n));
  }
}

template <class T, bool drops>
void norm_row(int64_t n, const T* z, const T* scale, const T* residual, const T* gain, const T* bias, T* y, T* saved) {
  const T sum = simd::sum_packs<T>(
      n, [&](int64_t i, auto io) __attribute__((always_inline)) {
        const auto kept = drops ? io.load(z + i) * io.load(scale + i) : io.load(z + i);
        const auto u = kept + io.load(residual + i);
        io.store(y + i, u);
        return u;
      });
  const T mean = sum / static_cast<T>(n);
  const T squares = simd::sum_packs<T>(
      n, [&](int64_t i, auto io) __attribute__((always_inline)) {
        const auto centred = io.only(io.load(y + i) - Vec<T>(mean));
        return centred * centred;
      });
  const T s = T(1) / std::sqrt(squares / static_cast<T>(n) + static_cast<T>(kEps));
  simd::for_packs<T>(
      n, [&](int64_t i, auto io) __attribute__((always_inline)) {
        io.store(y + i, (io.load(y + i) - Vec<T>(mean)) * Vec<T>(s) * io.load(gain + i) + io.load(bias + i));
      });
  saved[0] = mean;
  saved[1] = s;
}

// dz is written only where something drops: else it is d_residual.
template <class T, bool drops>
void norm_row_back(int64_t n, const T* gy, const T* z, const T* scale, const T* residual, const T* gain, const T* saved,
                   T* dz, T* d_residual, T* d_gain, T* d_bias) {
  const Vec<T> mean(saved[0]), s(saved[1]);
  T sum = 0, dot = 0;
  simd::two_sums<T>(
      n, sum, dot, [&](int64_t i, auto io, auto& first, auto& second) __attribute__((always_inline)) {
        const auto kept = drops ? io.load(z + i) * io.load(scale + i) : io.load(z + i);
        const auto unit = (kept + io.load(residual + i) - mean) * s, g = io.load(gy + i), gw = g * io.load(gain + i);
        io.store(d_residual + i, unit);
        io.store(d_bias + i, io.load(d_bias + i) + g);
        io.store(d_gain + i, g * unit + io.load(d_gain + i));
        first = first + gw;
        second = second + gw * unit;
      });
  const Vec<T> a(sum / static_cast<T>(n)), c(dot / static_cast<T>(n));
  simd::for_packs<T>(
      n, [&](int64_t i, auto io) __attribute__((always_inline)) {
        const auto d = s * (io.load(gy + i) * io.load(gain + i) - a - io.load(d_residual + i) * c);
        io.store(d_residual + i, d);
        if constexpr (drops) io.store(dz + i, d * io.load(scale + i));
      });
}

class ResidualLayerNorm : public torch::autograd::Function<ResidualLayerNorm> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& z, const Tensor& residual, const Tensor& gain_in,
                        const Tensor& bias_in, double p, int64_t seed, int64_t index) {
    Drop::save(ctx, p, seed, index);
    const Drop drop(ctx);
    const int64_t n = z.size(-1);
    const Tensor gain = gain_in.contiguous(), bias = bias_in.contiguous();
    const Tensor y = kernels::fresh(z.sizes(), z.options()), saved = kernels::fresh({z.numel() / n, 2}, z.options());
    cpu::with_type_of(z, [&](auto type) {
      using T = decltype(type);
      const Rows<T> zs(z), rs(residual);
      const T *w = gain.data_ptr<T>(), *c = bias.data_ptr<T>();
      T *out = y.data_ptr<T>(), *moments = saved.data_ptr<T>();
      cpu::Ranges(zs.count(), n).parallel([&](int64_t, int64_t begin, int64_t end) {
        for_masked_rows<T>(drop, begin, end, n, [&](int64_t r, const T* scale) {
          (scale ? norm_row<T, true> : norm_row<T, false>)(n, zs[r], scale, rs[r], w, c, out + r * n, moments + 2 * r);
        });
      });
    });
    ctx->save_for_backward({z, residual, gain, saved});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const Tensor &z = saved[0], &residual = saved[1], &gain = saved[2], &moments = saved[3];
    const Drop drop(ctx);
    const int64_t n = z.size(-1);
    const Tensor d_residual = kernels::fresh(z.sizes(), z.options());
    const Tensor dz = drop.p == 0 ? d_residual : kernels::fresh(z.sizes(), z.options());
    Tensor parts;
    cpu::with_type_of(z, [&](auto type) {
      using T = decltype(type);
      const Rows<T> gs(grads[0]), zs(z), rs(residual);
      const cpu::Ranges ranges(zs.count(), n);
      parts = at::zeros({ranges.count, 2, n}, z.options());
      const T *w = gain.data_ptr<T>(), *m = moments.data_ptr<T>();
      T *to_z = dz.data_ptr<T>(), *to_r = d_residual.data_ptr<T>(), *sums = parts.data_ptr<T>();
      ranges.parallel([&](int64_t part, int64_t begin, int64_t end) {
        T* d_gain = sums + 2 * part * n;
        for_masked_rows<T>(drop, begin, end, n, [&](int64_t r, const T* scale) {
          (scale ? norm_row_back<T, true> : norm_row_back<T, false>)(n, gs[r], zs[r], scale, rs[r], w, m + 2 * r,
                                                                     to_z + r * n, to_r + r * n, d_gain, d_gain + n);
        });
      });
    });
    const Tensor sums = cpu::sum_in_order(parts);
    return {dz, d_residual, sums.select(0, 0), sums.select(0, 1), Tensor(), Tensor(), Tensor()};
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
      cpu::Ranges(xs.count(), n).parallel([&](int64_t, int64_t begin, int64_t end) {
        for_masked_rows<T>(drop, begin, end, n, [&](int64_t r, const T* scale) {
          const T* from = xs[r];
          simd::for_packs<T>(
              n, [&](int64_t i, auto io) __attribute__((always_inline)) {
                io.store(out + r * n + i, io.load(from + i) * io.load(scale + i));
              });
        });
      });
    });
    return y;
  }
  static Tensor forward(AutogradContext* ctx, const Tensor& x, double p, int64_t seed, int64_t index) {
    Drop::save(ctx, p, seed, index);
    return scaled(x, Drop(ctx));
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {scaled(grads[0], Drop(ctx)), Tensor(), Tensor(), Tensor()};
  }
};

void check_rate(const char* name, double p) {
  if (!(p >= 0 && p < 1)) throw bad_input(name, "p, expected 0 <= p < 1, got " + std::to_string(p));
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
  if (!kernels::has_cpu_kernel(z)) return plain::residual_layer_norm(z, residual, gain, bias, p, key);
  const DropoutKey used = key.value_or(DropoutKey{});
  return ResidualLayerNorm::apply(z, residual, gain, bias, key ? p : 0.0, static_cast<int64_t>(used.seed),
                                  static_cast<int64_t>(used.index));
}

Tensor dropout(const Tensor& x, double p, const std::optional<DropoutKey>& key, bool tied_over_time) {
  check_rate("dropout", p);
  if (!key || p == 0) return x;
  if (tied_over_time && x.dim() != 3) throw bad_input("dropout", "x, expected [B,T,C], got " + c10::str(x.sizes()));
  if (tied_over_time) return x * plain::dropout_scale(x, p, *key, true);
  if (!kernels::has_cpu_kernel(x)) return plain::dropout(x, p, key);
  return Dropout::apply(x, p, static_cast<int64_t>(key->seed), static_cast<int64_t>(key->index));
}

}  // namespace sb
