#include "kernels/operations.h"

namespace sb::kernels {
namespace {

// Minimum work of each operation with matrix products. The recurrences work in chunks.
namespace work {

constexpr double chunk = 64;

double number(int64_t n) {
  return static_cast<double>(n);
}
double count(const at::Tensor& x) {
  return number(x.numel());
}

Work selective_scan(const Tensors& in) {  // x [B,T,D], A_log [D,N]
  const double states = count(in[0]) * number(in[2].size(1));
  return {9 * states, 18 * states};
}
Work decayed_attention(const Tensors& in) {  // q [B,T,G,K], v [B,T,H,V]
  const double rows = number(in[2].size(0) * in[2].size(1) * in[2].size(2));
  const double K = number(in[0].size(3)), V = number(in[2].size(3)), each = 4 * K * V + chunk * (K + V);
  return {rows * each, 2 * rows * each};
}
Work gated_delta(const Tensors& in) {  // q [B,T,H,K], v [B,T,n,H,V]
  const double rows = number(in[2].size(0) * in[2].size(1) * in[2].size(3)), n = number(in[2].size(2));
  const double K = number(in[0].size(3)), V = number(in[2].size(4));
  const double each = 2 * K * V + n * (4 * K * V + 2 * chunk * (K + V) + chunk * K + chunk * chunk / 3);
  return {rows * each, 2 * rows * each};
}
Work general_delta(const Tensors& in) {  // q [B,T,H,K], v [B,T,H,V]
  const double rows = number(in[2].size(0) * in[2].size(1) * in[2].size(2));
  const double K = number(in[0].size(3)), V = number(in[2].size(3));
  const double each = 8 * K * V + chunk * (4 * K + 3 * V) + chunk * chunk / 3;
  return {rows * each, 2 * rows * each};
}
Work gru(const Tensors& in) {  // gates [B,T,3d], weight [3d,d]
  const double product = 2 * count(in[0]) * number(in[1].size(1));
  return {product, 2 * product};
}
Work project(const Tensors& in) {
  const double product = 2 * count(in[0]) * number(in[1].size(0));
  return {product, 2 * product, in[3].defined() ? 1 : -1};
}
Work batched_product(const Tensors& in) {
  const double product = 2 * count(in[0]) * number(in[1].size(-1));
  return {product, 2 * product};
}
Work causal_attention(const Tensors& in) {  // [B,T,h,K]
  const double pairs = count(in[0]) * number(in[1].size(1) + 1);
  return {2 * pairs, 5 * pairs};
}
Work decoder_cross_entropy(const Tensors& in) {  // the forward pass also computes the gradients, while the logits exist
  return {6 * count(in[0]) * number(in[1].size(0)), 0, in[5].defined() ? 1 : -1};
}

}  // namespace work
}  // namespace

#define SB_OPERATION(Op, name, of_naive, of_aten, of_cpu, of_cuda, work)                                     \
  template <>                                                                                                \
  const Operation<op::Op>& row_of<op::Op>() {                                                                \
    static const Operation<op::Op> row{                                                                      \
        #name, naive::name##_kernel, aten::name##_kernel, cpu::name##_kernel, cuda::kernel<op::Op>(), work}; \
    return row;                                                                                              \
  }
#include "kernels/operations.def"
#undef SB_OPERATION

}  // namespace sb::kernels
