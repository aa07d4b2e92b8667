#include "base/torch_pch.h"
#include "kernels/cpu/packs.h"
#include "kernels/cpu/tensor_rows.h"
#include "kernels/matmul.h"
#include "models/ops.h"

namespace sb {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <class T, int V>
inline __attribute__((always_inline)) simd::Pack<T, V> tanh_of(const simd::Pack<T, V>& x) {
  return simd::Vec<T>(T(2)) * simd::sigmoid(x + x) - simd::Vec<T>(T(1));
}

// One frame of one sequence. gates: x part then h part, each (r, z, n); saved: r, z >= a_min, n, h part of n.
template <class T>
void step_forward(int64_t d, T a_min, const T* gi, const T* gh, const T* h, T* out, T* saved) {
  simd::for_packs<T>(d, [=](int64_t i, const auto& io) {
    const auto r = simd::sigmoid(io.load(gi + i) + io.load(gh + i));
    auto z = simd::sigmoid(io.load(gi + d + i) + io.load(gh + d + i));
    for (auto& vector : z.v) vector = xsimd::max(simd::Vec<T>(a_min), vector);  // in this order x86 keeps a NaN
    const auto hn = io.load(gh + 2 * d + i);
    const auto n = tanh_of(io.load(gi + 2 * d + i) + r * hn);
    io.store(out + i, n + z * (io.load(h + i) - n));
    io.store(saved + i, r);
    io.store(saved + d + i, z);
    io.store(saved + 2 * d + i, n);
    io.store(saved + 3 * d + i, hn);
  });
}

// grad: of h_t; on return of h_{t-1} through z alone. d_gi and d_gh: gradients of the two gate rows. A z at a_min does
// not move.
template <class T>
void step_backward(int64_t d, T a_min, const T* saved, const T* h, T* grad, T* d_gi, T* d_gh) {
  using Vec = simd::Vec<T>;
  const Vec one(T(1)), none(T(0)), least(a_min);
  simd::for_vectors<T>(d, [=](int64_t i, const auto& io) {
    const Vec r = io.load(saved + i), z = io.load(saved + d + i), n = io.load(saved + 2 * d + i);
    const Vec hn = io.load(saved + 3 * d + i), g = io.load(grad + i);
    const Vec dn = g * (one - z) * (one - n * n);
    const Vec dz = xsimd::select(z <= least, none, g * (io.load(h + i) - n) * z * (one - z));
    const Vec dr = dn * hn * r * (one - r);
    io.store(grad + i, g * z);
    io.store(d_gi + i, dr);
    io.store(d_gi + d + i, dz);
    io.store(d_gi + 2 * d + i, dn);
    io.store(d_gh + i, dr);
    io.store(d_gh + d + i, dz);
    io.store(d_gh + 2 * d + i, dn * r);
  });
}

template <class Body>
void each_sequence(int64_t batch, int64_t d, const Body& body) {
  at::parallel_for(0, batch, std::max<int64_t>(1, 8192 / d), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) body(b);
  });
}

// Time goes first inside ([T,B,·]), so that a frame of the batch is one matrix.
struct GruFunction : torch::autograd::Function<GruFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& input_gates, const at::Tensor& weight,
                            const at::Tensor& bias, const at::Tensor& first, double a_min) {
    const int64_t batch = input_gates.size(0), length = input_gates.size(1), d = weight.size(1);
    const auto gi = input_gates.transpose(0, 1).contiguous();
    auto hidden = at::empty({length + 1, batch, d}, gi.options());
    auto saved = at::empty({length, batch, 4 * d}, gi.options());
    auto gh = at::empty({batch, 3 * d}, gi.options());
    hidden[0].copy_(first);
    cpu::with_type_of(gi, [&](auto type) {
      using T = decltype(type);
      for (int64_t t = 0; t < length; ++t) {
        product_into(gh, hidden[t], weight.t());
        gh.add_(bias);
        const T* h = hidden.template data_ptr<T>() + t * batch * d;
        each_sequence(batch, d, [&](int64_t b) {
          step_forward<T>(d, static_cast<T>(a_min), gi.template data_ptr<T>() + (t * batch + b) * 3 * d,
                          gh.template data_ptr<T>() + b * 3 * d, h + b * d,
                          hidden.template data_ptr<T>() + ((t + 1) * batch + b) * d,
                          saved.template data_ptr<T>() + (t * batch + b) * 4 * d);
        });
      }
    });
    ctx->save_for_backward({hidden, saved, weight});
    ctx->saved_data["a_min"] = a_min;
    return hidden.narrow(0, 1, length).transpose(0, 1).contiguous();
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto kept = ctx->get_saved_variables();
    const auto &hidden = kept[0], &saved = kept[1], &weight = kept[2];
    const double a_min = ctx->saved_data["a_min"].toDouble();
    const int64_t length = saved.size(0), batch = saved.size(1), d = weight.size(1);
    const auto d_out = grads[0].transpose(0, 1).contiguous();
    auto d_gi = at::empty({length, batch, 3 * d}, saved.options());
    auto d_gh = at::empty({length, batch, 3 * d}, saved.options());
    auto grad = at::zeros({batch, d}, saved.options());
    cpu::with_type_of(saved, [&](auto type) {
      using T = decltype(type);
      for (int64_t t = length - 1; t >= 0; --t) {
        grad.add_(d_out[t]);
        each_sequence(batch, d, [&](int64_t b) {
          const int64_t row = t * batch + b;
          step_backward<T>(d, static_cast<T>(a_min), saved.template data_ptr<T>() + row * 4 * d,
                           hidden.template data_ptr<T>() + row * d, grad.template data_ptr<T>() + b * d,
                           d_gi.template data_ptr<T>() + row * 3 * d, d_gh.template data_ptr<T>() + row * 3 * d);
        });
        add_product_into(grad, d_gh[t], weight);
      }
    });
    const auto rows = d_gh.view({length * batch, 3 * d});
    const auto d_weight = product(rows.t(), hidden.narrow(0, 0, length).reshape({length * batch, d}));
    return {d_gi.transpose(0, 1).contiguous(), d_weight, column_sums(rows), grad, at::Tensor()};
  }
};

}  // namespace

at::Tensor gru_sequence(const at::Tensor& input_gates, const at::Tensor& weight_hh, const at::Tensor& bias_hh,
                        const at::Tensor& first, double a_min) {
  if (kernels::has_cpu_kernel(input_gates)) return GruFunction::apply(input_gates, weight_hh, bias_hh, first, a_min);
  const int64_t d = weight_hh.size(1);
  auto h = first;
  std::vector<at::Tensor> out;
  for (int64_t t = 0; t < input_gates.size(1); ++t) {
    const auto gi = split_last(input_gates.select(1, t), {d, d, d});
    const auto gh = split_last(at::linear(h, weight_hh, bias_hh), {d, d, d});
    const auto r = at::sigmoid(gi[0] + gh[0]), z = at::sigmoid(gi[1] + gh[1]).clamp_min(a_min);
    const auto n = at::tanh(gi[2] + r * gh[2]);
    h = n + z * (h - n);
    out.push_back(h);
  }
  return at::stack(out, 1);
}

}  // namespace sb
