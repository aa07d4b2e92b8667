// Causal depthwise convolution of width 4, four steps at a time: seven rows of x in, four rows of y out. The backward
// pass recomputes what SiLU saw, four steps at a time, and makes dx, dw and db of them while they are in the cache.
#include <torch/csrc/autograd/custom_function.h>

#include "base/error.h"
#include "kernels/cpu/packs.h"
#include "kernels/cpu/tensor_rows.h"
#include "kernels/plain.h"
#include "kernels/poison.h"

namespace sb {
namespace {

using at::Tensor;
using simd::Vec;

constexpr int kSteps = 4;

// Task (slot, block of channels): the batch elements slot, slot + slots, ...; decided by sizes alone.
struct Division {
  int64_t batch, channels, slots, width;
  Division(int64_t b, int64_t c) : batch(b), channels(c), slots(std::min<int64_t>(b, 16)) {
    const int64_t blocks = std::clamp<int64_t>(16 / slots, 1, std::max<int64_t>(1, c / 32));
    width = (c + blocks - 1) / blocks;
    width = std::min<int64_t>((width + 15) / 16 * 16, 1024);
  }
  int64_t blocks() const { return (channels + width - 1) / width; }
  // body(slot, first channel, number of channels)
  template <class Body>
  void parallel(const Body& body) const {
    cpu::for_each_task(slots * blocks(), [&](int64_t task) {
      const int64_t first = task % blocks() * width;
      body(task / blocks(), first, std::min(width, channels - first));
    });
  }
};

// weight [C,1,4] as four rows of C; bias as a fifth (zeros where absent)
Tensor rows_of_weight(const Tensor& weight, const Tensor& bias) {
  const Tensor w = at::zeros({5, weight.size(0)}, weight.options());
  w.narrow(0, 0, 4).copy_(weight.reshape({-1, 4}).t());
  if (!cpu::is_absent(bias)) w.select(0, 4).copy_(bias);
  return w;
}

// Row t of a batch element for t = -3 .. T-1: x, or the tail, or zeros before it.
template <class T>
struct Past {
  const T *x, *tail, *zeros;
  int64_t stride, channels;
  const T* operator[](int64_t t) const { return t >= 0 ? x + t * stride : tail ? tail + (t + 3) * channels : zeros; }
};

// z of R steps, V vectors of channels: step r in z[r * V] ..
template <class T, int R, class Io>
inline __attribute__((always_inline)) void convolve_pack(const Io& io, int64_t i, int64_t channels,
                                                         const T* const (&in)[R + 3], const T* w,
                                                         Vec<T> (&z)[R * Io::vectors]) {
  constexpr int V = Io::vectors;
  Vec<T> x[(R + 3) * V];
  for (int r = 0; r < R + 3; ++r) {
    const auto row = io.load(in[r] + i);
    for (int v = 0; v < V; ++v) x[r * V + v] = row.v[v];
  }
  const auto bias = io.load(w + 4 * channels + i);
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) z[r * V + v] = bias.v[v];
  for (int k = 0; k < 4; ++k) {
    const auto wk = io.load(w + k * channels + i);
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < V; ++v) z[r * V + v] = xsimd::fma(wk.v[v], x[(r + k) * V + v], z[r * V + v]);
  }
}
// The r-th row of V vectors
template <class T, int V, int N>
inline __attribute__((always_inline)) simd::Pack<T, V> row_of(const Vec<T> (&z)[N], int r) {
  return simd::each<T, V>([&](int v) { return z[r * V + v]; });
}
template <int R>
inline constexpr int kColumns = simd::kWide > R ? simd::kWide / R : 1;  // vectors of channels that go together

template <class T, int R, bool silu>
void forward_rows(int64_t n, int64_t channels, const T* const (&in)[R + 3], const T* w, T* y) {
  simd::for_packs<T, kColumns<R>>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        constexpr int V = decltype(io)::vectors;
        Vec<T> z[R * V], gate[R * V];
        convolve_pack<T, R>(io, i, channels, in, w, z);
        if constexpr (silu) {
          for (int j = 0; j < R * V; ++j) gate[j] = z[j];
          simd::sigmoid<T, R * V>(gate);
          for (int j = 0; j < R * V; ++j) z[j] *= gate[j];
        }
        for (int r = 0; r < R; ++r) io.store(y + r * channels + i, row_of<T, V>(z, r));
      });
}

// gz of R steps: gy through the slope of SiLU at what the forward pass saw.
template <class T, int R>
void gate_rows(int64_t n, int64_t channels, const T* const (&in)[R + 3], const T* const (&gy)[R], const T* w,
               T* const (&gz)[R]) {
  simd::for_packs<T, kColumns<R>>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        constexpr int V = decltype(io)::vectors;
        Vec<T> z[R * V], gate[R * V];
        convolve_pack<T, R>(io, i, channels, in, w, z);
        for (int j = 0; j < R * V; ++j) gate[j] = z[j];
        simd::sigmoid<T, R * V>(gate);
        for (int j = 0; j < R * V; ++j) z[j] = simd::silu_slope(z[j], gate[j]);
        for (int r = 0; r < R; ++r) io.store(gz[r] + i, io.load(gy[r] + i) * row_of<T, V>(z, r));
      });
}

// R steps from t: dw and db [5][width] of those steps, and the dx of steps t-3 .. t-4+R, which are then complete.
// gz: of steps t-3 .. t-1+R. Where dx is null (before the sequence) nothing is written.
template <class T, int R>
void gather_rows(int64_t n, int64_t channels, int64_t width, const T* const (&in)[R + 3], const T* const (&gz)[R + 3],
                 const T* w, T* dw, T* const (&dx)[R]) {
  simd::for_vectors<T>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        Vec<T> x[R + 3], g[R + 3], wk[4];
        for (int r = 0; r < R + 3; ++r) g[r] = io.load(gz[r] + i);
        for (int k = 0; k < 4; ++k) wk[k] = io.load(w + k * channels + i);
        for (int r = 0; r < R; ++r) {
          if (!dx[r]) continue;
          Vec<T> d = wk[3] * g[r];
          for (int k = 2; k >= 0; --k) d = xsimd::fma(wk[k], g[r + 3 - k], d);
          io.store(dx[r] + i, d);
        }
        for (int r = 0; r < R + 3; ++r) x[r] = io.load(in[r] + i);
        for (int k = 0; k < 4; ++k) {
          Vec<T> sum = io.load(dw + k * width + i);
          for (int r = 0; r < R; ++r) sum = xsimd::fma(g[r + 3], x[r + k], sum);
          io.store(dw + k * width + i, sum);
        }
        Vec<T> sum = io.load(dw + 4 * width + i);
        for (int r = 0; r < R; ++r) sum += g[r + 3];
        io.store(dw + 4 * width + i, sum);
      });
}

template <class T, bool silu>
void convolve(const Tensor& x, const Tensor& tail, const Tensor& w, const Tensor& y) {
  const int64_t time = x.size(1), C = x.size(2);
  const Tensor zeros = at::zeros({C}, x.options());
  const Division division(x.size(0), C);
  division.parallel([&](int64_t slot, int64_t c, int64_t n) {
    for (int64_t b = slot; b < x.size(0); b += division.slots) {
      const Past<T> past{x.data_ptr<T>() + b * x.stride(0) + c,
                         cpu::is_absent(tail) ? nullptr : tail.data_ptr<T>() + b * 3 * C + c, zeros.data_ptr<T>() + c,
                         x.stride(1), C};
      T* out = y.data_ptr<T>() + b * time * C + c;
      const T* weight = w.data_ptr<T>() + c;
      int64_t t = 0;
      for (; t + kSteps <= time; t += kSteps)
        forward_rows<T, kSteps, silu>(
            n, C, {past[t - 3], past[t - 2], past[t - 1], past[t], past[t + 1], past[t + 2], past[t + 3]}, weight,
            out + t * C);
      for (; t < time; ++t)
        forward_rows<T, 1, silu>(n, C, {past[t - 3], past[t - 2], past[t - 1], past[t]}, weight, out + t * C);
    }
  });
}

template <class T, bool silu>
void convolve_back(const Tensor& gy, const Tensor& x, const Tensor& tail, const Tensor& w, const Tensor& dx,
                   const Tensor& d_tail, const Tensor& dw) {
  const int64_t time = x.size(1), C = x.size(2);
  const Tensor zeros = at::zeros({C}, x.options());
  const Division division(x.size(0), C);
  const bool has_tail = !cpu::is_absent(tail);
  division.parallel([&](int64_t slot, int64_t c, int64_t n) {
    // gz of the last eight steps, step t in row t % 8
    cpu::Arena<T> arena(cpu::Arena<T>::rounded(5 * n) + cpu::Arena<T>::rounded(8 * n));
    T *sums = arena.take(5 * n), *ring = arena.take(8 * n);
    std::fill_n(sums, 5 * n, T(0));
    const T* none = zeros.data_ptr<T>() + c;
    for (int64_t b = slot; b < x.size(0); b += division.slots) {
      const Past<T> past{x.data_ptr<T>() + b * x.stride(0) + c, has_tail ? tail.data_ptr<T>() + b * 3 * C + c : nullptr,
                         none, x.stride(1), C};
      const T* g = gy.data_ptr<T>() + b * time * C + c;
      T* out = dx.data_ptr<T>() + b * time * C + c;
      T* out_tail = has_tail ? d_tail.data_ptr<T>() + b * 3 * C + c : nullptr;
      const T* weight = w.data_ptr<T>() + c;
      const auto d_row = [&](int64_t t) -> T* {
        return t >= 0 ? out + t * C : out_tail ? out_tail + (t + 3) * C : nullptr;
      };
      const auto gz = [&](int64_t t) -> const T* {
        return t < 0 || t >= time ? none : silu ? ring + t % 8 * n : g + t * C;
      };
      const auto to_gz = [&](int64_t t) { return ring + t % 8 * n; };
      int64_t t = 0;
      for (; t + kSteps <= time; t += kSteps) {
        const T* const in[] = {past[t - 3], past[t - 2], past[t - 1], past[t], past[t + 1], past[t + 2], past[t + 3]};
        if constexpr (silu)
          gate_rows<T, kSteps>(n, C, in, {g + t * C, g + (t + 1) * C, g + (t + 2) * C, g + (t + 3) * C}, weight,
                               {to_gz(t), to_gz(t + 1), to_gz(t + 2), to_gz(t + 3)});
        gather_rows<T, kSteps>(n, C, n, in, {gz(t - 3), gz(t - 2), gz(t - 1), gz(t), gz(t + 1), gz(t + 2), gz(t + 3)},
                               weight, sums, {d_row(t - 3), d_row(t - 2), d_row(t - 1), d_row(t)});
      }
      for (; t < time; ++t) {
        const T* const in[] = {past[t - 3], past[t - 2], past[t - 1], past[t]};
        if constexpr (silu) gate_rows<T, 1>(n, C, in, {g + t * C}, weight, {to_gz(t)});
        gather_rows<T, 1>(n, C, n, in, {gz(t - 3), gz(t - 2), gz(t - 1), gz(t)}, weight, sums, {d_row(t - 3)});
      }
      for (; t < time + 3; ++t)  // no later steps: their gz is zero
        gather_rows<T, 1>(n, C, n, {none, none, none, none}, {gz(t - 3), gz(t - 2), gz(t - 1), none}, weight, sums,
                          {d_row(t - 3)});
    }
    for (int64_t k = 0; k < 5; ++k) std::copy_n(sums + k * n, n, dw.data_ptr<T>() + (slot * 5 + k) * C + c);
  });
}

template <class Body>
void with_silu(bool silu, const Body& body) {
  if (silu)
    body(std::true_type{});
  else
    body(std::false_type{});
}

class Conv4 : public torch::autograd::Function<Conv4> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* ctx, const Tensor& x_in, const Tensor& weight,
                        const Tensor& bias, const Tensor& tail_in, bool silu) {
    const Tensor x = x_in.stride(2) == 1 ? x_in : x_in.contiguous(), tail = tail_in.contiguous();
    const Tensor w = rows_of_weight(weight, bias);
    const Tensor y = kernels::fresh(x.sizes(), x.options());
    cpu::with_type_of(
        x, [&](auto type) { with_silu(silu, [&](auto on) { convolve<decltype(type), on>(x, tail, w, y); }); });
    ctx->save_for_backward({x, weight, bias, tail});
    ctx->saved_data["silu"] = silu;
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &bias = saved[2], &tail = saved[3];
    const Tensor gy = grads[0].contiguous(), w = rows_of_weight(weight, bias);
    const Tensor dx = kernels::fresh(x.sizes(), x.options());
    const Tensor d_tail = cpu::is_absent(tail) ? Tensor() : kernels::fresh(tail.sizes(), x.options());
    const Tensor parts = kernels::fresh({Division(x.size(0), x.size(2)).slots, 5, x.size(2)}, x.options());
    cpu::with_type_of(x, [&](auto type) {
      with_silu(ctx->saved_data["silu"].toBool(),
                [&](auto on) { convolve_back<decltype(type), on>(gy, x, tail, w, dx, d_tail, parts); });
    });
    const Tensor dw = cpu::sum_in_order(parts);
    return {dx, dw.narrow(0, 0, 4).t().reshape(weight.sizes()), cpu::is_absent(bias) ? Tensor() : dw.select(0, 4),
            d_tail, Tensor()};
  }
};

}  // namespace

Tensor conv4(const Tensor& x, const Tensor& weight, const Tensor& bias, bool silu, const Tensor& tail) {
  const auto wrong = [](const char* name, const std::string& expected, const Tensor& got) {
    return bad_input("conv4", std::string(name) + ", expected " + expected + ", got " + c10::str(got.sizes()));
  };
  if (x.dim() != 3) throw wrong("x", "[B,T,C]", x);
  const int64_t C = x.size(2);
  if (weight.sizes() != at::IntArrayRef{C, 1, 4}) throw wrong("weight", c10::str("[", C, ", 1, 4]"), weight);
  if (bias.defined() && bias.sizes() != at::IntArrayRef{C}) throw wrong("bias", c10::str("[", C, "]"), bias);
  if (tail.defined() && tail.sizes() != at::IntArrayRef{x.size(0), 3, C})
    throw wrong("tail", c10::str("[", x.size(0), ", 3, ", C, "]"), tail);
  if (!kernels::has_cpu_kernel(x)) return plain::conv4(x, weight, bias, silu, tail);
  return Conv4::apply(x, weight, cpu::or_empty(bias, x), cpu::or_empty(tail, x), silu);
}

}  // namespace sb
