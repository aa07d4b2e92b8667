// A GRU cannot be computed in chunks, since its gates depend on the state. This is a plain loop over time.
#include <ATen/ATen.h>

#include "kernels/operations.h"

namespace sb::aten {

kernels::Tensors gru(const op::Gru& op, const kernels::Tensors& in, kernels::Tensors* saved) {
  // If gates are in half precision and weights in float, computes and returns float, as for states.
  auto type = in[0].scalar_type();
  for (const at::Tensor& x : in) type = c10::promoteTypes(type, x.scalar_type());
  kernels::Tensors alike;
  for (const at::Tensor& x : in) alike.push_back(x.to(type));
  return naive::gru(op, alike, saved);
}

}  // namespace sb::aten
