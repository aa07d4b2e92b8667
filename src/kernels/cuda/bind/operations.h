// The operations that have CUDA kernels: forward, backward, and predicates of the supported shapes and types.
#pragma once
#include "kernels/operations.h"

namespace sb::cuda::bind {

using kernels::Backward;
using kernels::Forward;
using kernels::Supports;

Forward<op::SelectiveScan> selective_scan;
Backward<op::SelectiveScan> selective_scan_back;
Supports<op::SelectiveScan> supports_selective_scan;
Forward<op::DecayedAttention> decayed_attention;
Backward<op::DecayedAttention> decayed_attention_back;
Supports<op::DecayedAttention> supports_decayed_attention;
Forward<op::WrittenAttention> written_attention;
Backward<op::WrittenAttention> written_attention_back;
Supports<op::WrittenAttention> supports_written_attention;
Forward<op::GatedDelta> gated_delta;
Backward<op::GatedDelta> gated_delta_back;
Supports<op::GatedDelta> supports_gated_delta;
Forward<op::Gru> gru;
Backward<op::Gru> gru_back;
Supports<op::Gru> supports_gru;
Forward<op::Project> project;
Backward<op::Project> project_back;
Supports<op::Project> supports_project;
Forward<op::Conv4> conv4;
Backward<op::Conv4> conv4_back;
Supports<op::Conv4> supports_conv4;
Forward<op::RowNorm> row_norm;
Backward<op::RowNorm> row_norm_back;
Supports<op::RowNorm> supports_row_norm;
Forward<op::GateSilu> gate_silu;
Backward<op::GateSilu> gate_silu_back;
Supports<op::GateSilu> supports_gate_silu;
Forward<op::GateSwish> gate_swish;
Backward<op::GateSwish> gate_swish_back;
Supports<op::GateSwish> supports_gate_swish;
Forward<op::SoftplusBias> softplus_bias;
Backward<op::SoftplusBias> softplus_bias_back;
Supports<op::SoftplusBias> supports_softplus_bias;
Forward<op::SoftplusDecay> softplus_decay;
Backward<op::SoftplusDecay> softplus_decay_back;
Supports<op::SoftplusDecay> supports_softplus_decay;
Forward<op::SoftplusGates> softplus_gates;
Backward<op::SoftplusGates> softplus_gates_back;
Supports<op::SoftplusGates> supports_softplus_gates;
Forward<op::ScaleHeads> scale_heads;
Backward<op::ScaleHeads> scale_heads_back;
Supports<op::ScaleHeads> supports_scale_heads;
Forward<op::SkipNorm> skip_norm;
Backward<op::SkipNorm> skip_norm_back;
Supports<op::SkipNorm> supports_skip_norm;
Forward<op::LogSigmoid> log_sigmoid;
Backward<op::LogSigmoid> log_sigmoid_back;
Supports<op::LogSigmoid> supports_log_sigmoid;
Forward<op::SigmoidGate> sigmoid_gate;
Backward<op::SigmoidGate> sigmoid_gate_back;
Supports<op::SigmoidGate> supports_sigmoid_gate;
Forward<op::ResidualLayerNorm> residual_layer_norm;
Backward<op::ResidualLayerNorm> residual_layer_norm_back;
Supports<op::ResidualLayerNorm> supports_residual_layer_norm;
Forward<op::Dropout> dropout;
Backward<op::Dropout> dropout_back;
Supports<op::Dropout> supports_dropout;
Forward<op::CausalAttention> causal_attention;
Backward<op::CausalAttention> causal_attention_back;
Supports<op::CausalAttention> supports_causal_attention;
Forward<op::Rope> rope;
Backward<op::Rope> rope_back;
Supports<op::Rope> supports_rope;
Forward<op::DecoderCrossEntropy> decoder_cross_entropy;
Backward<op::DecoderCrossEntropy> decoder_cross_entropy_back;
Supports<op::DecoderCrossEntropy> supports_decoder_cross_entropy;

}  // namespace sb::cuda::bind
