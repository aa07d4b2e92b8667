// Nothing of a GRU can be computed ahead of its state: the loop over time is all there is.
#include <ATen/ATen.h>

#include "kernels/operations.h"

namespace sb::aten {

kernels::Tensors gru(const op::Gru& op, const kernels::Tensors& in, kernels::Tensors* saved) {
  // Weights in float beside gates in half precision: computed and returned in float, as states are.
  auto type = in[0].scalar_type();
  for (const at::Tensor& x : in) type = c10::promoteTypes(type, x.scalar_type());
  kernels::Tensors alike;
  for (const at::Tensor& x : in) alike.push_back(x.to(type));
  return truth::gru(op, alike, saved);
}

}  // namespace sb::aten
