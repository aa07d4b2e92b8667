// Nothing of a GRU can be computed ahead of its state: the loop over time is all there is.
#include "kernels/operations.h"

namespace sb::aten {

kernels::Tensors gru(const op::Gru& op, const kernels::Tensors& in, kernels::Tensors* saved) {
  return truth::gru(op, in, saved);
}

}  // namespace sb::aten
