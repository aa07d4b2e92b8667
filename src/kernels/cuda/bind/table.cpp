// The kernels of a build with CUDA.
#include "kernels/cuda/bind/operations.h"

namespace sb::cuda {

#define SB_CUDA(Op, name)                                          \
  template <>                                                      \
  kernels::Kernel<op::Op> kernel<op::Op>() {                       \
    return {bind::name, bind::name##_back, bind::supports_##name}; \
  }
#define SB_CUDA_NONE(Op)                     \
  template <>                                \
  kernels::Kernel<op::Op> kernel<op::Op>() { \
    return {};                               \
  }
SB_CUDA(SelectiveScan, selective_scan)
SB_CUDA(DecayedAttention, decayed_attention)
SB_CUDA(WrittenAttention, written_attention)
SB_CUDA(GatedDelta, gated_delta)
SB_CUDA(GeneralDelta, general_delta)
SB_CUDA(ForgettingAttention, forgetting_attention)
SB_CUDA_NONE(TrapezoidAttention)
SB_CUDA_NONE(Mesa)
SB_CUDA_NONE(LogLinearAttention)
SB_CUDA(Gru, gru)
SB_CUDA_NONE(DecayedAttentionStep)
SB_CUDA_NONE(GatedDeltaStep)
SB_CUDA_NONE(GeneralDeltaStep)
SB_CUDA(Project, project)
SB_CUDA_NONE(BatchedProduct)  // cuBLAS, through ATen
SB_CUDA(Conv4, conv4)
SB_CUDA(TokenShift, token_shift)
SB_CUDA(Rwkv7Keys, rwkv7_keys)
SB_CUDA(Rwkv7Read, rwkv7_read)
SB_CUDA(RowNorm, row_norm)
SB_CUDA(GateSilu, gate_silu)
SB_CUDA(GateSwish, gate_swish)
SB_CUDA(SoftplusBias, softplus_bias)
SB_CUDA(SoftplusDecay, softplus_decay)
SB_CUDA(SoftplusGates, softplus_gates)
SB_CUDA(ScaleHeads, scale_heads)
SB_CUDA(SkipNorm, skip_norm)
SB_CUDA(LogSigmoid, log_sigmoid)
SB_CUDA(SigmoidGate, sigmoid_gate)
SB_CUDA(ResidualLayerNorm, residual_layer_norm)
SB_CUDA(Dropout, dropout)
SB_CUDA(CausalAttention, causal_attention)
SB_CUDA(Rope, rope)
SB_CUDA(DecoderCrossEntropy, decoder_cross_entropy)
#undef SB_CUDA
#undef SB_CUDA_NONE

}  // namespace sb::cuda

namespace sb::kernels {

bool cuda_kernels_are_built() {
  return true;
}

}  // namespace sb::kernels
