// Elementwise gates over rows [rows, width] on CUDA, forward and backward, without torch. Log-decays, write strengths
// and steps (the inputs of recurrences) and their gradients are fp32; other activations have the type `element`.
#pragma once
#include "kernels/cuda/rows.h"

namespace sb::cuda {

struct GateRows {
  int64_t rows = 0;
  int width = 0;
  Element element = Element::bf16;
};

// y silu(z)
cudaError_t gate_silu_forward(const GateRows& p, const RowsIn& y, const RowsIn& z, const RowsOut& out,
                              cudaStream_t stream);
cudaError_t gate_silu_backward(const GateRows& p, const RowsIn& d_out, const RowsIn& y, const RowsIn& z,
                               const RowsOut& dy, const RowsOut& dz, cudaStream_t stream);

// scale y sigma(z)
cudaError_t gate_sigmoid_forward(const GateRows& p, float scale, const RowsIn& y, const RowsIn& z, const RowsOut& out,
                                 cudaStream_t stream);
cudaError_t gate_sigmoid_backward(const GateRows& p, float scale, const RowsIn& d_out, const RowsIn& y, const RowsIn& z,
                                  const RowsOut& dy, const RowsOut& dz, cudaStream_t stream);

// a sigma(beta a) b; a row of ab [rows, 2 width] holds a, then b; beta [1] (null: 1)
cudaError_t gate_swish_forward(const GateRows& p, const RowsIn& ab, const float* beta, const RowsOut& out,
                               cudaStream_t stream);
size_t gate_swish_scratch_bytes();
// d_beta may be null. Deterministic.
cudaError_t gate_swish_backward(const GateRows& p, const RowsIn& d_out, const RowsIn& ab, const float* beta,
                                const RowsOut& d_ab, float* d_beta, void* scratch, cudaStream_t stream);

// Steps or log-decays of one projection, or both:
//   step = softplus(x + bias), or x + bias above 20;  decay = -e^{A_log} step
// bias, A_log [width]; step, decay [rows, width] fp32, whose data may be null.
struct StepGates {
  GateRows rows;
  RowsIn x;
  const float *bias = nullptr, *A_log = nullptr;
};
cudaError_t step_gates_forward(const StepGates& p, const TokenRows<float>& step, const TokenRows<float>& decay,
                               cudaStream_t stream);
size_t step_gates_scratch_bytes(const StepGates& p);
// d_step, d_decay: null data means zeros. d_bias and d_A_log may be null. Deterministic.
cudaError_t step_gates_backward(const StepGates& p, const TokenRows<const float>& d_step,
                                const TokenRows<const float>& d_decay, const RowsOut& dx, float* d_bias, float* d_A_log,
                                void* scratch, cudaStream_t stream);

// If `log`: scale log(sigma(x)), GLA's log-decay. Else: scale sigma(x), the delta rules' write strength.
struct SigmoidGate {
  GateRows rows;
  bool log = false;
  float scale = 1;
  RowsIn x;
};
cudaError_t sigmoid_gate_forward(const SigmoidGate& p, const TokenRows<float>& out, cudaStream_t stream);
cudaError_t sigmoid_gate_backward(const SigmoidGate& p, const TokenRows<const float>& d_out, const RowsOut& dx,
                                  cudaStream_t stream);

// HGRN2's operands: q = silu(query), k = 1 - sigma(forget), g = ln sigma(forget), fp32
struct Hgrn2Keys {
  GateRows rows;
  RowsIn query, forget;
};
cudaError_t hgrn2_keys_forward(const Hgrn2Keys& p, const RowsOut& q, const RowsOut& k, const TokenRows<float>& g,
                               cudaStream_t stream);
cudaError_t hgrn2_keys_backward(const Hgrn2Keys& p, const RowsIn& dq, const RowsIn& dk,
                                const TokenRows<const float>& dg, const RowsOut& d_query, const RowsOut& d_forget,
                                cudaStream_t stream);

// Sums over rows: the gradient of a bias
size_t column_sums_scratch_bytes(const GateRows& p);
cudaError_t column_sums(const GateRows& p, const RowsIn& x, float* sums, void* scratch, cudaStream_t stream);

}  // namespace sb::cuda
