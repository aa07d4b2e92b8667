// LayerNorm(dropout(z) + residual) and dropout alone. The mask is made again in the backward pass, never stored.
#include <torch/csrc/autograd/custom_function.h>

#include "base/error.h"
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

// The factors 0 or 1 / (1 - p) of the elements of a block of rows.
template <class T>
class BlockMask {
 public:
  BlockMask(const Drop& drop, int64_t n)
      : mask_(drop.mask),
        n_(n),
        kept_(static_cast<T>(1 / (1 - drop.p))),
        arena_(drop.p == 0 ? 0 : cpu::Arena<T>::rounded(rows(n) * n)),
        scale_(drop.p == 0 ? nullptr : arena_.take(rows(n) * n)) {}
  const T* fill(int64_t first, int64_t last) const {
    mask_.fill(first * n_, (last - first) * n_, kept_, scale_);
    return scale_;
  }
  static int64_t elements(int64_t n) { return 2 * n; }  // a row of a block, for for_row_blocks

 private:
  static int64_t rows(int64_t n) { return cpu::rows_of_block(elements(n)); }
  const DropoutMask& mask_;
  int64_t n_;
  T kept_;
  cpu::Arena<T> arena_;
  T* scale_;
};

// u = what is kept of z, plus the residual; its mean and the sum of its squares about that. One walk: only where the
// mean outweighs the deviations is their difference too coarse, and the squares are summed once more.
template <class T, bool drops>
inline __attribute__((always_inline)) void add_row(int64_t n, const T* z, const T* scale, const T* residual, T* u,
                                                   T& mean, T& squares) {
  T sum;
  simd::two_sums<T>(
      n, sum, squares, [=](int64_t i, auto io, auto& first, auto& second) __attribute__((always_inline)) {
        auto value = io.load(z + i);
        if constexpr (drops) value = value * io.load(scale + i);
        value = value + io.load(residual + i);
        io.store(u + i, value);
        first = first + value;
        second = second + value * value;
      });
  mean = sum / static_cast<T>(n);
  const T of_mean = sum * mean;
  squares -= of_mean;
  if (!(of_mean <= 8 * squares))
    squares = simd::sum_packs<T>(
        n, [ u, mean ](int64_t i, auto io) __attribute__((always_inline)) {
          const auto centred = io.only(io.load(u + i) - Vec<T>(mean));
          return centred * centred;
        });
}
template <class T>
inline __attribute__((always_inline)) void normalise_row(int64_t n, T mean, T s, const T* u, const T* gain,
                                                         const T* bias, T* y) {
  simd::for_packs<T>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        io.store(y + i, (io.load(u + i) - Vec<T>(mean)) * Vec<T>(s) * io.load(gain + i) + io.load(bias + i));
      });
}

template <class T>
struct Forward {
  const Drop& drop;
  int64_t n;
  Rows<T> z, residual;
  const T *gain, *bias;
  T *u, *y, *moments;  // mean and scale of a row; u may be y

  template <bool drops>
  void rows(int64_t begin, int64_t end) const {
    const BlockMask<T> mask(drop, n);
    const auto zs = z.starts(), rs = residual.starts();
    cpu::for_row_blocks(begin, end, mask.elements(n),
                        [=, &mask, n = n, w = gain, c = bias, u = u, y = y, m = moments](int64_t first, int64_t last) {
                          const T* scale = drops ? mask.fill(first, last) : nullptr;
                          for (int64_t r = first; r < last; ++r)
                            add_row<T, drops>(n, zs[r], drops ? scale + (r - first) * n : nullptr, rs[r], u + r * n,
                                              m[2 * r], m[2 * r + 1]);
                          for (int64_t r = first; r < last; ++r)
                            m[2 * r + 1] = T(1) / std::sqrt(m[2 * r + 1] / static_cast<T>(n) + static_cast<T>(kEps));
                          for (int64_t r = first; r < last; ++r)
                            normalise_row<T>(n, m[2 * r], m[2 * r + 1], u + r * n, w, c, y + r * n);
                        });
  }
};

// First walk of a row backwards: sum and dot of what the second one subtracts. d_gain and d_bias are added to.
template <class T>
inline __attribute__((always_inline)) void sums_of_row(int64_t n, const T* gy, const T* u, const T* gain, T mean, T s,
                                                       T* d_gain, T* d_bias, T& sum, T& dot) {
  simd::two_sums<T>(
      n, sum, dot, [=](int64_t i, auto io, auto& first, auto& second) __attribute__((always_inline)) {
        const auto unit = (io.load(u + i) - Vec<T>(mean)) * Vec<T>(s), g = io.load(gy + i), gw = g * io.load(gain + i);
        io.store(d_bias + i, io.load(d_bias + i) + g);
        io.store(d_gain + i, g * unit + io.load(d_gain + i));
        first = first + gw;
        second = second + gw * unit;
      });
}
// dx = s (gy gain - a - unit c). dz is written only where something drops: else it is dx.
template <class T, bool drops>
inline __attribute__((always_inline)) void back_row(int64_t n, T mean, T s, T a, T c, const T* gy, const T* u,
                                                    const T* scale, const T* gain, T* dx, T* dz) {
  // The mean goes into the constant: no worse than the rounding of u itself, and one operation less.
  const T by_u = -s * s * c, constant = mean * s * s * c - s * a;
  simd::for_packs<T>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        const auto gw = io.load(gy + i) * io.load(gain + i);
        const auto d = io.load(u + i) * Vec<T>(by_u) + gw * Vec<T>(s) + Vec<T>(constant);
        io.store(dx + i, d);
        if constexpr (drops) io.store(dz + i, d * io.load(scale + i));
      });
}

template <class T>
struct Backward {
  const Drop& drop;
  int64_t n;
  Rows<T> gy;
  const T *u, *gain, *moments;
  T *dz, *dx;

  template <bool drops>
  void rows(int64_t begin, int64_t end, T* d_gain, T* d_bias) const {
    const BlockMask<T> mask(drop, n);
    const auto gs = gy.starts();
    cpu::for_row_blocks(begin, end, mask.elements(n),
                        [=, &mask, n = n, u = u, w = gain, m = moments, dz = dz, dx = dx](int64_t first, int64_t last) {
                          T a[cpu::kBlockRows], c[cpu::kBlockRows];
                          const T* scale = drops ? mask.fill(first, last) : nullptr;
                          for (int64_t r = first; r < last; ++r)
                            sums_of_row<T>(n, gs[r], u + r * n, w, m[2 * r], m[2 * r + 1], d_gain, d_bias, a[r - first],
                                           c[r - first]);
                          for (int64_t r = first; r < last; ++r)
                            back_row<T, drops>(n, m[2 * r], m[2 * r + 1], a[r - first] / static_cast<T>(n),
                                               c[r - first] / static_cast<T>(n), gs[r], u + r * n,
                                               drops ? scale + (r - first) * n : nullptr, w, dx + r * n, dz + r * n);
                        });
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
                        const Tensor& bias_in, double p, int64_t seed, int64_t index, bool with_gradients) {
    Drop::save(ctx, p, seed, index);
    const Drop drop(ctx);
    const int64_t n = z.size(-1);
    const Tensor gain = gain_in.contiguous(), bias = bias_in.contiguous();
    const Tensor y = kernels::fresh(z.sizes(), z.options()), saved = kernels::fresh({z.numel() / n, 2}, z.options());
    // Kept in place of z, which nobody needs any more.
    const Tensor u = with_gradients ? kernels::fresh(z.sizes(), z.options()) : y;
    cpu::with_type_of(z, [&](auto type) {
      using T = decltype(type);
      const Forward<T> pass{drop,
                            n,
                            Rows<T>(z),
                            Rows<T>(residual),
                            gain.data_ptr<T>(),
                            bias.data_ptr<T>(),
                            u.data_ptr<T>(),
                            y.data_ptr<T>(),
                            saved.data_ptr<T>()};
      with_drops(drop, [&](auto drops) {
        cpu::Ranges(pass.z.count(), n).parallel([&](int64_t, int64_t begin, int64_t end) {
          pass.template rows<drops>(begin, end);
        });
      });
    });
    if (with_gradients) ctx->save_for_backward({u, gain, saved});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const Tensor &u = saved[0], &gain = saved[1], &moments = saved[2];
    const Drop drop(ctx);
    const int64_t n = u.size(-1);
    const Tensor d_residual = kernels::fresh(u.sizes(), u.options());
    const Tensor dz = drop.p == 0 ? d_residual : kernels::fresh(u.sizes(), u.options());
    Tensor parts;
    cpu::with_type_of(u, [&](auto type) {
      using T = decltype(type);
      const Backward<T> pass{drop,
                             n,
                             Rows<T>(grads[0]),
                             u.data_ptr<T>(),
                             gain.data_ptr<T>(),
                             moments.data_ptr<T>(),
                             dz.data_ptr<T>(),
                             d_residual.data_ptr<T>()};
      const cpu::Ranges ranges(pass.gy.count(), n);
      parts = at::zeros({ranges.count, 2, n}, u.options());
      T* sums = parts.data_ptr<T>();
      with_drops(drop, [&](auto drops) {
        ranges.parallel([&](int64_t part, int64_t begin, int64_t end) {
          T* d_gain = sums + 2 * part * n;
          pass.template rows<drops>(begin, end, d_gain, d_gain + n);
        });
      });
    });
    const Tensor sums = cpu::sum_in_order(parts);
    return {dz, d_residual, sums.select(0, 0), sums.select(0, 1), Tensor(), Tensor(), Tensor(), Tensor()};
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
        const BlockMask<T> mask(drop, n);
        cpu::for_row_blocks(begin, end, mask.elements(n), [&](int64_t first, int64_t last) {
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
                                  static_cast<int64_t>(used.index), compat::records_gradient(z, residual, gain, bias));
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
