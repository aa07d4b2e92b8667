#include <ATen/ATen.h>

#include "kernels/aten/chunks.h"
#include "kernels/elementwise.h"
#include "kernels/operations.h"

namespace sb::aten {

// read, m, gain, gate? -> y
kernels::Tensors mlstm_read(const op::MlstmRead&, const kernels::Tensors& in, kernels::Tensors*) {
  const at::Tensor read = in[0].to(compute_type(in[0]));
  const int64_t V = in[2].size(0) / read.size(2);
  const at::Tensor normaliser = at::maximum(read.narrow(3, V, 1).abs(), (-in[1]).exp().unsqueeze(-1));
  const at::Tensor normed = at::layer_norm(read.narrow(3, 0, V) / normaliser, {V}, {}, {}, 1e-6);
  const at::Tensor y = (normed.flatten(2) * in[2]).to(in[0].scalar_type());
  return {in[3].defined() ? y * sb::sigmoid(in[3]) : y};
}

}  // namespace sb::aten
