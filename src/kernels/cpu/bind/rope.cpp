#include "kernels/cpu/rope.h"

#include "kernels/cpu/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cpu {

using at::Tensor;
using kernels::Tensors;

namespace {

Tensor turned(const op::Rope& op, int sense, const Tensor& x) {
  const Tensor y = fresh_like(x);
  with_type_of(x, [&](auto type) {
    using T = decltype(type);
    const Rows<T> rows(x);
    rope_turn<T>({x.size(0), x.size(1), x.size(2), x.size(3) / 2, op.base, op.offset, rows.starts()}, sense,
                 y.data_ptr<T>());
  });
  return y;
}

}  // namespace

Tensors rope(const op::Rope& op, const Tensors& in, Tensors*) {
  return {turned(op, op.sense, in[0])};
}
Tensors rope_back(const op::Rope& op, const kernels::Back& back) {
  return {turned(op, -op.sense, back.d_out[0])};
}

}  // namespace sb::cpu
