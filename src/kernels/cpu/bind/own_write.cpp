#include "kernels/cpu/own_write.h"

#include "kernels/cpu/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cpu {

using at::Tensor;
using kernels::Tensors;

namespace {

// q, k, v, here, skip?
template <class T>
struct Operands {
  Rows<T> q, k, v;
  Tensor here, skip;
  explicit Operands(const Tensors& in) : q(in[0]), k(in[1]), v(in[2]), here(in[3]), skip(in[4]) {}
  OwnWrite<T> problem(const op::OwnWrite& op) const {
    return {v.count(),  here.size(-1), q.width(),  v.width(),          static_cast<T>(op.scale),
            q.starts(), k.starts(),    v.starts(), here.data_ptr<T>(), data_or_null<T>(skip)};
  }
};

}  // namespace

// read, q, k, v, here, skip?
Tensors own_write(const op::OwnWrite& op, const Tensors& in, Tensors* saved) {
  const Tensors operands{in[1], in[2], in[3], in[4].contiguous(), contiguous(in[5])};
  const Tensor out = fresh_like(in[3]);
  with_type_of(out, [&](auto type) {
    using T = decltype(type);
    const Operands<T> p(operands);
    const Rows<T> read(in[0]);
    own_write_forward<T>(p.problem(op), read.starts(), out.data_ptr<T>());
  });
  if (saved) *saved = operands;
  return {out};
}

Tensors own_write_back(const op::OwnWrite& op, const kernels::Back& back) {
  const Tensors& in = back.saved;
  const Tensor &d_out = back.d_out[0], dq = row_gradient_of(back, 1, in[0]), dk = row_gradient_of(back, 2, in[1]),
               dv = row_gradient_of(back, 3, in[2]), d_here = fresh_like(in[3]),
               d_skip = in[4].defined() ? fresh_like(in[4]) : Tensor();
  with_type_of(dv, [&](auto type) {
    using T = decltype(type);
    const Operands<T> p(in);
    const Rows<T> given(d_out), to_q(dq), to_k(dk), to_v(dv);
    own_write_backward<T>(p.problem(op), {given.starts(), to_q.targets(), to_k.targets(), to_v.targets(),
                                          d_here.data_ptr<T>(), data_or_null<T>(d_skip)});
  });
  return {d_out, dq, dk, dv, d_here, d_skip};
}

}  // namespace sb::cpu
