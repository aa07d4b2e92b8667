#include "kernels/cpu/gru.h"

#include "kernels/cpu/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cpu {

using at::Tensor;
using kernels::Tensors;

// input gates, weight, bias, first state
Tensors gru(const op::Gru& op, const Tensors& in, Tensors* saved) {
  const Tensor weight = in[1].contiguous(), bias = in[2].contiguous();
  const GruSizes s{in[0].size(0), in[0].size(1), weight.size(1)};
  const Tensor gi = in[0].transpose(0, 1).contiguous();
  const Tensor hidden = fresh({s.time + 1, s.batch, s.width}, gi.options());
  const Tensor kept = fresh({s.time, s.batch, 4 * s.width}, gi.options());
  hidden[0].copy_(in[3]);
  with_type_of(gi, [&](auto type) {
    using T = decltype(type);
    gru_forward<T>(s, gi.data_ptr<T>(), weight.data_ptr<T>(), bias.data_ptr<T>(), op.a_min, hidden.data_ptr<T>(),
                   kept.data_ptr<T>());
  });
  if (saved) *saved = {hidden, kept, weight};
  return {hidden.narrow(0, 1, s.time).transpose(0, 1).contiguous()};
}

Tensors gru_back(const op::Gru& op, const kernels::Back& back) {
  const Tensor &hidden = back.saved[0], &kept = back.saved[1], &weight = back.saved[2];
  const GruSizes s{kept.size(1), kept.size(0), weight.size(1)};
  const Tensor d_out = back.d_out[0].transpose(0, 1).contiguous();
  const Tensor d_gi = fresh({s.time, s.batch, 3 * s.width}, kept.options()), d_gh = fresh_like(d_gi);
  const Tensor d_first = fresh({s.batch, s.width}, kept.options());
  with_type_of(kept, [&](auto type) {
    using T = decltype(type);
    gru_backward<T>(s, d_out.data_ptr<T>(), hidden.data_ptr<T>(), kept.data_ptr<T>(), weight.data_ptr<T>(), op.a_min,
                    d_gi.data_ptr<T>(), d_gh.data_ptr<T>(), d_first.data_ptr<T>());
  });
  const Tensor rows = d_gh.view({s.time * s.batch, 3 * s.width});
  const Tensor before = hidden.narrow(0, 0, s.time).reshape({s.time * s.batch, s.width});
  return {d_gi.transpose(0, 1).contiguous(), multiplied(rows.t(), before), sum_in_order(rows), d_first};
}

}  // namespace sb::cpu
