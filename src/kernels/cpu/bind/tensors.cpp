#include "kernels/cpu/bind/tensors.h"

#include <ATen/Parallel.h>

#include <limits>

#include "kernels/cpu/matmul.h"
#include "kernels/cpu/width.h"

namespace sb::cpu {

using at::Tensor;

void parallel_for(int64_t items, int64_t grain, RangeBody body) {
  at::parallel_for(0, items, grain, [&](int64_t first, int64_t last) { body(first, last); });
}

int64_t thread_count() {
  return at::in_parallel_region() ? 1 : at::get_num_threads();
}

Tensor fresh(at::IntArrayRef sizes, const at::TensorOptions& options) {
  Tensor t = at::empty(sizes, options);
  if (kernels::buffers_are_poisoned() && t.is_floating_point()) t.fill_(std::numeric_limits<double>::quiet_NaN());
  return t;
}

Tensor gradient_of(const kernels::Back& back, size_t input, at::IntArrayRef sizes, const at::TensorOptions& options) {
  const Tensor place = back.place(input);
  const bool fits = place.defined() && place.dtype() == options.dtype() && place.sizes() == sizes &&
                    (sizes.back() == 1 || place.stride(-1) == 1);
  return fits ? place : fresh(sizes, options);
}

Tensor row_gradient_of(const kernels::Back& back, size_t input, const Tensor& like) {
  const Tensor x = gradient_of(back, input, like);
  const bool copied = with_type_of(x, [&](auto type) { return Rows<decltype(type)>(x).is_copy_of(x); });
  return copied ? fresh_like(like) : x;
}

Tensor sum_in_order(const Tensor& parts) {
  if (parts.size(0) == 1) return parts.select(0, 0);
  const Tensor from = parts.contiguous(), out = fresh(parts.sizes().slice(1), parts.options());
  with_type_of(from, [&](auto type) {
    using T = decltype(type);
    sum_rows(from.data_ptr<T>(), from.size(0), out.numel(), out.numel(), out.data_ptr<T>());
  });
  return out;
}

Tensor start_states(const Tensor& state, int64_t B, int64_t H, int64_t K, int64_t V, int64_t slots,
                    const at::TensorOptions& options) {
  const bool wide = options.dtype() == at::kDouble;
  const int64_t Kp = wide ? padded<double>(K) : padded<float>(K), Vp = wide ? padded<double>(V) : padded<float>(V);
  Tensor states = fresh({B * H, slots, Kp, Vp}, options);
  Tensor first = states.select(1, 0);
  if (!state.defined() || Kp != K || Vp != V) first.zero_();
  if (state.defined()) first.narrow(1, 0, K).narrow(2, 0, V).copy_(state.reshape({B * H, K, V}));
  return states;
}

Tensor unpadded_state(const Tensor& states, int64_t slot, int64_t B, int64_t H, int64_t K, int64_t V) {
  Tensor state = fresh({B, H, K, V}, states.options());
  state.view({B * H, K, V}).copy_(states.select(1, slot).narrow(1, 0, K).narrow(2, 0, V));
  return state;
}

namespace {

// One stride must be 1 for the panels to be read in order.
Tensor readable(const Tensor& x) {
  return x.stride(0) == 1 || x.stride(1) == 1 ? x : x.contiguous();
}

template <class T>
Matrix<T> matrix_of(const Tensor& x) {
  // An axis of one element may carry any stride.
  return {x.data_ptr<T>(), x.size(0) == 1 ? x.size(1) : x.stride(0), x.size(1) == 1 ? 1 : x.stride(1)};
}

}  // namespace

void multiply(const Tensor& out, const Tensor& a_in, const Tensor& b_in, const Tensor& bias_in, bool add) {
  const at::NoGradGuard no_gradients;
  const Tensor a = readable(a_in), b = readable(b_in), bias = contiguous(bias_in);
  TORCH_INTERNAL_ASSERT(out.stride(1) == 1 || out.size(1) == 1);
  with_type_of(out, [&](auto type) {
    using T = decltype(type);
    matmul<T>(out.size(0), out.size(1), a.size(1), matrix_of<T>(a), matrix_of<T>(b), out.data_ptr<T>(), out.stride(0),
              add ? Start::add : Start::zero, data_or_null<T>(bias));
  });
}

}  // namespace sb::cpu
