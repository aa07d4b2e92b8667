#include "kernels/cpu/rotated_keys.h"

#include "kernels/cpu/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cpu {

using at::Tensor;
using kernels::Tensors;

namespace {

// x: key, query, their biases, cosines and sines
template <class T>
RotatedKeys<T> keys_of(const Tensors& x) {
  return {x[4].size(0) * x[4].size(1), x[4].size(2),       x[0].size(2),       x[4].size(3),       x[0].data_ptr<T>(),
          x[1].data_ptr<T>(),          x[2].data_ptr<T>(), x[3].data_ptr<T>(), x[4].data_ptr<T>(), x[5].data_ptr<T>()};
}

}  // namespace

Tensors rotated_keys(const op::RotatedKeys&, const Tensors& in, Tensors* saved) {
  Tensors x;
  for (size_t i = 0; i < 4; ++i) x.push_back(in[i].contiguous());
  const auto type = x[0].scalar_type();
  x.push_back(in[4].cos().to(type).contiguous());
  x.push_back(in[4].sin().to(type).contiguous());
  const Tensor k = fresh({x[4].size(0), x[4].size(1), x[4].size(2), x[0].size(2)}, x[0].options()), q = fresh_like(k);
  with_type_of(k, [&](auto t) {
    using T = decltype(t);
    rotated_keys_forward(keys_of<T>(x), k.data_ptr<T>(), q.data_ptr<T>());
  });
  if (saved) {
    *saved = x;
    saved->insert(saved->end(), {k, q});
  }
  return {k, q};
}

Tensors rotated_keys_back(const op::RotatedKeys&, const kernels::Back& back) {
  const Tensors& x = back.saved;
  const Tensor &k = x[6], &q = x[7];
  const auto gradient = [&](size_t i) {
    return back.d_out[i].defined() ? back.d_out[i].contiguous() : at::zeros_like(k);
  };
  const Tensor dk = gradient(0), dq = gradient(1);
  const Tensors out = {fresh_like(x[0]), fresh_like(x[1]), fresh_like(x[2]), fresh_like(x[3]),
                       fresh(x[4].sizes(), x[4].options().dtype(at::kDouble))};
  with_type_of(k, [&](auto t) {
    using T = decltype(t);
    rotated_keys_backward<T>(
        keys_of<T>(x), {k.data_ptr<T>(), q.data_ptr<T>(), dk.data_ptr<T>(), dq.data_ptr<T>(), out[0].data_ptr<T>(),
                        out[1].data_ptr<T>(), out[2].data_ptr<T>(), out[3].data_ptr<T>(), out[4].data_ptr<double>()});
  });
  return out;
}

}  // namespace sb::cpu
