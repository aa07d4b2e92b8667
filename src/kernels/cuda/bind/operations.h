// The operations that have CUDA kernels: forward, backward, and predicates of the supported shapes and types.
#pragma once
#include "kernels/operations.h"

namespace sb::cuda::bind {

using kernels::Backward;
using kernels::Forward;
using kernels::Takes;

Forward<op::SelectiveScan> selective_scan;
Backward<op::SelectiveScan> selective_scan_back;
Takes<op::SelectiveScan> takes_selective_scan;
Forward<op::DecayedAttention> decayed_attention;
Backward<op::DecayedAttention> decayed_attention_back;
Takes<op::DecayedAttention> takes_decayed_attention;
Forward<op::WrittenAttention> written_attention;
Backward<op::WrittenAttention> written_attention_back;
Takes<op::WrittenAttention> takes_written_attention;
Forward<op::GatedDelta> gated_delta;
Backward<op::GatedDelta> gated_delta_back;
Takes<op::GatedDelta> takes_gated_delta;
Forward<op::Gru> gru;
Backward<op::Gru> gru_back;
Takes<op::Gru> takes_gru;
Forward<op::Project> project;
Backward<op::Project> project_back;
Takes<op::Project> takes_project;
Forward<op::Conv4> conv4;
Backward<op::Conv4> conv4_back;
Takes<op::Conv4> takes_conv4;
Forward<op::RowNorm> row_norm;
Backward<op::RowNorm> row_norm_back;
Takes<op::RowNorm> takes_row_norm;
Forward<op::GateSilu> gate_silu;
Backward<op::GateSilu> gate_silu_back;
Takes<op::GateSilu> takes_gate_silu;
Forward<op::GateSwish> gate_swish;
Backward<op::GateSwish> gate_swish_back;
Takes<op::GateSwish> takes_gate_swish;
Forward<op::SoftplusBias> softplus_bias;
Backward<op::SoftplusBias> softplus_bias_back;
Takes<op::SoftplusBias> takes_softplus_bias;
Forward<op::SoftplusDecay> softplus_decay;
Backward<op::SoftplusDecay> softplus_decay_back;
Takes<op::SoftplusDecay> takes_softplus_decay;
Forward<op::SoftplusGates> softplus_gates;
Backward<op::SoftplusGates> softplus_gates_back;
Takes<op::SoftplusGates> takes_softplus_gates;
Forward<op::ScaleHeads> scale_heads;
Backward<op::ScaleHeads> scale_heads_back;
Takes<op::ScaleHeads> takes_scale_heads;
Forward<op::SkipNorm> skip_norm;
Backward<op::SkipNorm> skip_norm_back;
Takes<op::SkipNorm> takes_skip_norm;
Forward<op::LogSigmoid> log_sigmoid;
Backward<op::LogSigmoid> log_sigmoid_back;
Takes<op::LogSigmoid> takes_log_sigmoid;
Forward<op::SigmoidGate> sigmoid_gate;
Backward<op::SigmoidGate> sigmoid_gate_back;
Takes<op::SigmoidGate> takes_sigmoid_gate;
Forward<op::ResidualLayerNorm> residual_layer_norm;
Backward<op::ResidualLayerNorm> residual_layer_norm_back;
Takes<op::ResidualLayerNorm> takes_residual_layer_norm;
Forward<op::Dropout> dropout;
Backward<op::Dropout> dropout_back;
Takes<op::Dropout> takes_dropout;
Forward<op::CausalAttention> causal_attention;
Backward<op::CausalAttention> causal_attention_back;
Takes<op::CausalAttention> takes_causal_attention;
Forward<op::Rope> rope;
Backward<op::Rope> rope_back;
Takes<op::Rope> takes_rope;
Forward<op::DecoderCrossEntropy> decoder_cross_entropy;
Backward<op::DecoderCrossEntropy> decoder_cross_entropy_back;
Takes<op::DecoderCrossEntropy> takes_decoder_cross_entropy;

}  // namespace sb::cuda::bind
