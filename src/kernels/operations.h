// All operations: their scalar parameters, the order of their tensors ("?": may be undefined), and their backends. To
// add a backend, write its functions in the device's folder, declare them here and list them in operations.cpp.
#pragma once
#include <optional>

#include "kernels/fused.h"
#include "kernels/norm_kinds.h"
#include "kernels/operation.h"

namespace sb {
namespace op {

// Recurrences (recurrence.h)
struct SelectiveScan {  // x, delta, A_log, B, C, skip, state?, write? -> out, state
  double a_min;
};
struct DecayedAttention {  // q, k, v, g?, state? -> out, state
  double scale;
};
struct WrittenAttention {  // q, k, x, g, write, skip, state? -> out, state
  double scale;
};
struct GatedDelta {  // q, k, v, beta, g?, state? -> out, state
  double scale;
};
struct GeneralDelta {  // q, k, v, erase, write, g?, state? -> out, state
  double scale;
  bool erase_first;  // from the state before the decay
};
struct ForgettingAttention {  // q, k, v, g -> out
  int64_t offset;
};
struct TrapezoidAttention {  // q, k, v, g, here, before, state?, last k?, last v? -> out, state
  double scale;
};
struct Mesa {     // q, k, v, beta, g, ridge, state? -> out, state
  int64_t steps;  // of the solver
};
struct LogLinearAttention {  // q, k, v, g, levels, state? -> out, state
  int64_t position;          // of the first frame
};
struct Gru {  // input gates, weight, bias, first state -> h
  double a_min;
};
// One step (step.h); updates the state in place, no gradients
struct DecayedAttentionStep {  // q, k, v, g?, state -> out
  double scale;
};
struct GatedDeltaStep {  // q, k, v, beta, g?, state -> out
  double scale;
};
struct GeneralDeltaStep {  // q, k, v, erase, write, g?, state -> out
  double scale;
  bool erase_first;
};

// Products (matmul.h)
struct Project {};         // x, weight, bias?, copy? -> y
struct BatchedProduct {};  // a, b -> a b

// Row-wise and elementwise operations (fused.h)
struct Conv4 {  // x, weight, bias?, tail? -> y
  bool silu;
};
struct TokenShift {};  // x, last?, mu... -> x + mu (the frame before - x) for every mu
struct Rwkv7Keys {     // decay, rate, key, key_scale, key_rate -> g, k, erase, write
  int64_t heads;
};
struct Rwkv7Read {  // o, r, k, v, bonus, gain, bias, gate -> y
  double eps;
};
struct RowNorm {  // x, gain?, gate? -> y
  Norm norm;
  NormGate gate;
  double eps;
};
struct GateSilu {};       // y, z -> y silu(z)
struct GateSwish {};      // ab, beta -> a sigma(beta a) b
struct SoftplusBias {};   // x, bias -> softplus(x + bias)
struct SoftplusDecay {};  // x, bias, A_log -> -e^{A_log} softplus(x + bias)
struct SoftplusGates {};  // x, bias, A_log -> softplus(x + bias), -e^{A_log} softplus(x + bias)
struct ScaleHeads {};     // x, w -> w x
struct SkipNorm {         // read, x, skip, gain, gate -> rms norm of (read + skip x) silu(gate)
  double eps;
};
struct LogSigmoid {  // x -> scale log sigma(x)
  double scale;
};
struct SigmoidGate {  // x -> scale sigma(x)
  double scale;
};
struct ResidualLayerNorm {  // z, residual, gain, bias -> y
  double p;
  std::optional<DropoutKey> key;  // p is 0 if absent
};
struct Dropout {  // x -> y
  double p;
  DropoutKey key;
  bool tied_over_time;
};
struct CausalAttention {  // q, k, v -> out
  int64_t offset;
};
struct Rope {  // x -> y
  double base;
  int sense;
  int64_t offset;
};
struct DecoderCrossEntropy {};  // h, weight, bias, target, normaliser, copy? -> loss

}  // namespace op

namespace naive {
using kernels::Forward;
Forward<op::SelectiveScan> selective_scan;
Forward<op::DecayedAttention> decayed_attention;
Forward<op::GatedDelta> gated_delta;
Forward<op::GeneralDelta> general_delta;
Forward<op::ForgettingAttention> forgetting_attention;
Forward<op::TrapezoidAttention> trapezoid_attention;
Forward<op::Mesa> mesa;
Forward<op::LogLinearAttention> log_linear_attention;
Forward<op::Gru> gru;
}  // namespace naive

namespace aten {
using kernels::Backward;
using kernels::Forward;
Forward<op::SelectiveScan> selective_scan;
Backward<op::SelectiveScan> selective_scan_back;  // because an autograd graph over all time would hold [B,T,D,N]
Forward<op::DecayedAttention> decayed_attention;
Forward<op::WrittenAttention> written_attention;
Forward<op::GatedDelta> gated_delta;
Forward<op::GeneralDelta> general_delta;
Forward<op::ForgettingAttention> forgetting_attention;
Forward<op::TrapezoidAttention> trapezoid_attention;
Forward<op::Mesa> mesa;
Backward<op::Mesa> mesa_back;
Forward<op::LogLinearAttention> log_linear_attention;
Forward<op::Gru> gru;
Forward<op::DecayedAttentionStep> decayed_attention_step;
Forward<op::GatedDeltaStep> gated_delta_step;
Forward<op::GeneralDeltaStep> general_delta_step;
Forward<op::Project> project;
Forward<op::BatchedProduct> batched_product;
Forward<op::Conv4> conv4;
Forward<op::TokenShift> token_shift;
Forward<op::Rwkv7Keys> rwkv7_keys;
Forward<op::Rwkv7Read> rwkv7_read;
Forward<op::RowNorm> row_norm;
Forward<op::GateSilu> gate_silu;
Forward<op::GateSwish> gate_swish;
Forward<op::SoftplusBias> softplus_bias;
Forward<op::SoftplusDecay> softplus_decay;
Forward<op::SoftplusGates> softplus_gates;
Forward<op::ScaleHeads> scale_heads;
Forward<op::SkipNorm> skip_norm;
Forward<op::LogSigmoid> log_sigmoid;
Forward<op::SigmoidGate> sigmoid_gate;
Forward<op::ResidualLayerNorm> residual_layer_norm;
Forward<op::Dropout> dropout;
Forward<op::CausalAttention> causal_attention;
Forward<op::Rope> rope;
Forward<op::DecoderCrossEntropy> decoder_cross_entropy;
}  // namespace aten

namespace cpu {
using kernels::Backward;
using kernels::Forward;
Forward<op::SelectiveScan> selective_scan;
Backward<op::SelectiveScan> selective_scan_back;
Forward<op::DecayedAttention> decayed_attention;
Backward<op::DecayedAttention> decayed_attention_back;
Forward<op::GatedDelta> gated_delta;
Backward<op::GatedDelta> gated_delta_back;
Forward<op::GeneralDelta> general_delta;
Backward<op::GeneralDelta> general_delta_back;
kernels::Supports<op::GeneralDelta> supports_general_delta;
Forward<op::Gru> gru;
Backward<op::Gru> gru_back;
Forward<op::DecayedAttentionStep> decayed_attention_step;
kernels::Supports<op::DecayedAttentionStep> supports_attention_step;
Forward<op::GatedDeltaStep> gated_delta_step;
kernels::Supports<op::GatedDeltaStep> supports_delta_step;
Forward<op::Project> project;
Backward<op::Project> project_back;
Forward<op::BatchedProduct> batched_product;
Backward<op::BatchedProduct> batched_product_back;
Forward<op::Conv4> conv4;
Backward<op::Conv4> conv4_back;
Forward<op::RowNorm> row_norm;
Backward<op::RowNorm> row_norm_back;
Forward<op::GateSilu> gate_silu;
Backward<op::GateSilu> gate_silu_back;
Forward<op::GateSwish> gate_swish;
Backward<op::GateSwish> gate_swish_back;
Forward<op::SoftplusBias> softplus_bias;
Backward<op::SoftplusBias> softplus_bias_back;
Forward<op::LogSigmoid> log_sigmoid;
Backward<op::LogSigmoid> log_sigmoid_back;
Forward<op::ResidualLayerNorm> residual_layer_norm;
Backward<op::ResidualLayerNorm> residual_layer_norm_back;
Forward<op::Dropout> dropout;
Backward<op::Dropout> dropout_back;
Forward<op::CausalAttention> causal_attention;
Backward<op::CausalAttention> causal_attention_back;
Forward<op::Rope> rope;
Backward<op::Rope> rope_back;
Forward<op::DecoderCrossEntropy> decoder_cross_entropy;
Backward<op::DecoderCrossEntropy> decoder_cross_entropy_back;
}  // namespace cpu

namespace cuda {
// The CUDA kernels of this build, defined in cuda/bind/table.cpp, or in cuda/absent.cpp for builds without CUDA.
template <class Op>
kernels::Kernel<Op> kernel();
}  // namespace cuda

}  // namespace sb
