#include "kernels/operations.h"

namespace sb::kernels {

// One row per operation: naive, aten, cpu, and the CUDA kernel of this build. {}: no such backend, aten is used
// instead.
#define SB_OPERATION(Op, ...)                                                     \
  template <>                                                                     \
  const Operation<op::Op>& row_of<op::Op>() {                                     \
    static const Operation<op::Op> row{#Op, __VA_ARGS__, cuda::kernel<op::Op>()}; \
    return row;                                                                   \
  }

SB_OPERATION(SelectiveScan, {naive::selective_scan}, {aten::selective_scan, aten::selective_scan_back},
             {cpu::selective_scan, cpu::selective_scan_back})
SB_OPERATION(DecayedAttention, {naive::decayed_attention}, {aten::decayed_attention},
             {cpu::decayed_attention, cpu::decayed_attention_back})
SB_OPERATION(WrittenAttention, {}, {aten::written_attention}, {})
SB_OPERATION(GatedDelta, {naive::gated_delta}, {aten::gated_delta}, {cpu::gated_delta, cpu::gated_delta_back})
SB_OPERATION(GeneralDelta, {naive::general_delta}, {aten::general_delta},
             {cpu::general_delta, cpu::general_delta_back, cpu::supports_general_delta})
SB_OPERATION(ForgettingAttention, {naive::forgetting_attention}, {aten::forgetting_attention}, {})
SB_OPERATION(TrapezoidAttention, {naive::trapezoid_attention}, {aten::trapezoid_attention}, {})
SB_OPERATION(Mesa, {naive::mesa}, {aten::mesa, aten::mesa_back}, {})
SB_OPERATION(LogLinearAttention, {naive::log_linear_attention}, {aten::log_linear_attention}, {})
SB_OPERATION(Gru, {naive::gru}, {aten::gru}, {cpu::gru, cpu::gru_back})
SB_OPERATION(DecayedAttentionStep, {}, {aten::decayed_attention_step},
             {cpu::decayed_attention_step, nullptr, cpu::supports_attention_step})
SB_OPERATION(GatedDeltaStep, {}, {aten::gated_delta_step}, {cpu::gated_delta_step, nullptr, cpu::supports_delta_step})
SB_OPERATION(GeneralDeltaStep, {}, {aten::general_delta_step}, {})
SB_OPERATION(Project, {}, {aten::project}, {cpu::project, cpu::project_back})
SB_OPERATION(BatchedProduct, {}, {aten::batched_product}, {cpu::batched_product, cpu::batched_product_back})
SB_OPERATION(Conv4, {}, {aten::conv4}, {cpu::conv4, cpu::conv4_back})
SB_OPERATION(TokenShift, {}, {aten::token_shift}, {})
SB_OPERATION(Rwkv7Keys, {}, {aten::rwkv7_keys}, {})
SB_OPERATION(Rwkv7Read, {}, {aten::rwkv7_read}, {})
SB_OPERATION(RowNorm, {}, {aten::row_norm}, {cpu::row_norm, cpu::row_norm_back})
SB_OPERATION(GateSilu, {}, {aten::gate_silu}, {cpu::gate_silu, cpu::gate_silu_back})
SB_OPERATION(GateSwish, {}, {aten::gate_swish}, {cpu::gate_swish, cpu::gate_swish_back})
SB_OPERATION(SoftplusBias, {}, {aten::softplus_bias}, {cpu::softplus_bias, cpu::softplus_bias_back})
SB_OPERATION(SoftplusDecay, {}, {aten::softplus_decay}, {})
SB_OPERATION(SoftplusGates, {}, {aten::softplus_gates}, {})
SB_OPERATION(ScaleHeads, {}, {aten::scale_heads}, {})
SB_OPERATION(SkipNorm, {}, {aten::skip_norm}, {})
SB_OPERATION(LogSigmoid, {}, {aten::log_sigmoid}, {cpu::log_sigmoid, cpu::log_sigmoid_back})
SB_OPERATION(SigmoidGate, {}, {aten::sigmoid_gate}, {})
SB_OPERATION(ResidualLayerNorm, {}, {aten::residual_layer_norm},
             {cpu::residual_layer_norm, cpu::residual_layer_norm_back})
SB_OPERATION(Dropout, {}, {aten::dropout}, {cpu::dropout, cpu::dropout_back})
SB_OPERATION(CausalAttention, {}, {aten::causal_attention}, {cpu::causal_attention, cpu::causal_attention_back})
SB_OPERATION(Rope, {}, {aten::rope}, {cpu::rope, cpu::rope_back})
SB_OPERATION(DecoderCrossEntropy, {}, {aten::decoder_cross_entropy},
             {cpu::decoder_cross_entropy, cpu::decoder_cross_entropy_back})
#undef SB_OPERATION

}  // namespace sb::kernels
