#include "kernels/cuda/rope.h"

#include "kernels/cuda/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {
namespace {

Tensor turned(int sense, const Tensor& x, const Tensor& table) {
  const Held rows = by_heads(x);
  const Tensor y = fresh_like(x);
  Rope p;
  p.tokens = rows.tokens, p.time = static_cast<int>(x.size(1)), p.heads = rows.heads, p.width = rows.width;
  p.element = element_of(x), p.sense = sense, p.table = float_data(table), p.x = rows.in();
  const OnDevice on(x);
  on.check("rope", cuda::rope(p, by_heads(y).out(), on.stream()));
  return y;
}

}  // namespace

bool supports_rope(const op::Rope&, const Tensors& in) {
  return readable(in[0]);
}
Tensors rope(const op::Rope& op, const Tensors& in, Tensors* saved) {
  const Tensor& x = in[0];
  const int time = static_cast<int>(x.size(1)), half = static_cast<int>(x.size(3) / 2);
  const Tensor table = fresh({time, 2, half}, x, at::kFloat);
  const OnDevice on(x);
  on.check("rope", rope_table(float_data(table), time, half, op.base, op.offset, on.stream()));
  if (saved) *saved = {table};
  return {turned(op.sense, x, table)};
}
Tensors rope_back(const op::Rope& op, const Back& back) {
  return {turned(-op.sense, back.d_out[0], back.saved[0])};
}

}  // namespace sb::cuda::bind
