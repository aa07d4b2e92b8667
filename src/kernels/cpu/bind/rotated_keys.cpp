#include "kernels/cpu/rotated_keys.h"

#include "kernels/cpu/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cpu {

using at::Tensor;
using kernels::Tensors;

namespace {

template <class T>
Rotation<T> rotation_of(const Tensor& k, const Tensor& cosine, const Tensor& sine) {
  return {k.size(0) * k.size(1), k.size(2), k.size(3), cosine.size(3), cosine.data_ptr<T>(), sine.data_ptr<T>()};
}

}  // namespace

Tensors rotated_keys(const op::RotatedKeys&, const Tensors& in, Tensors* saved) {
  const Tensor key = in[0].contiguous(), query = in[1].contiguous(), key_bias = in[2].contiguous(),
               query_bias = in[3].contiguous(), &angle = in[4];
  const auto type = key.scalar_type();
  const Tensor cosine = angle.cos().to(type).contiguous(), sine = angle.sin().to(type).contiguous();
  const Tensor k = fresh({angle.size(0), angle.size(1), angle.size(2), key.size(2)}, key.options()), q = fresh_like(k);
  with_type_of(k, [&](auto t) {
    using T = decltype(t);
    rotated_keys_forward<T>(rotation_of<T>(k, cosine, sine),
                            {key.data_ptr<T>(), query.data_ptr<T>(), key_bias.data_ptr<T>(), query_bias.data_ptr<T>(),
                             k.data_ptr<T>(), q.data_ptr<T>()});
  });
  if (saved) *saved = {k, q, cosine, sine};
  return {k, q};
}

Tensors rotated_keys_back(const op::RotatedKeys&, const kernels::Back& back) {
  const Tensor &k = back.saved[0], &q = back.saved[1], &cosine = back.saved[2], &sine = back.saved[3];
  const auto gradient = [&](size_t i) {
    return back.d_out[i].defined() ? back.d_out[i].contiguous() : at::zeros_like(k);
  };
  const Tensor dk = gradient(0), dq = gradient(1);
  const Tensor d_key = fresh({k.size(0), k.size(1), k.size(3)}, k.options()), d_query = fresh_like(d_key);
  const Tensor d_key_bias = fresh({k.size(2), k.size(3)}, k.options()), d_query_bias = fresh_like(d_key_bias);
  const Tensor d_angle = fresh(cosine.sizes(), k.options().dtype(at::kDouble));
  with_type_of(k, [&](auto t) {
    using T = decltype(t);
    rotated_keys_backward<T>(
        rotation_of<T>(k, cosine, sine),
        {k.data_ptr<T>(), q.data_ptr<T>(), dk.data_ptr<T>(), dq.data_ptr<T>(), d_key.data_ptr<T>(),
         d_query.data_ptr<T>(), d_key_bias.data_ptr<T>(), d_query_bias.data_ptr<T>(), d_angle.data_ptr<double>()});
  });
  return {d_key, d_query, d_key_bias, d_query_bias, d_angle};
}

}  // namespace sb::cpu
