// All operations: their scalar parameters, the order of their tensors ("?": may be undefined), and their kernels. To
// add a kernel, write its functions in the device's folder and change the operation's row in operations.def.
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
  bool erase_first;          // from the state before the decay
  bool writes_keys = false;  // `write` is the tensor k: a kernel may return the sum of both gradients as that of k
};
struct ForgettingAttention {  // q, k, v, g -> out
  int64_t offset;
};
struct TrapezoidAttention {  // q, k, v, g, here, before, skip?, state?, last k?, last v? -> out, state
  double scale;
};
struct Mesa {     // q, k, v, beta, g, ridge, state? -> out, state
  int64_t steps;  // of the solver
};
struct LogLinearAttention {  // q, k, v, g, levels, state? -> out, state (if final_state)
  int64_t position;          // of the first frame
  bool final_state;
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
struct Hgrn2Keys {};    // query, forget -> q, k, g
struct MlstmRead {};    // read, m, gain, gate? -> y
struct Mamba3Gates {};  // dt, rate, trap, bias -> step, decay, here, before
struct OwnWrite {       // read, q, k, v, here, skip? -> read + (scale here (q . k) + skip) v
  double scale;
};
struct RotatedKeys {};  // key, query, key_bias, query_bias, angle -> k, q
struct Mamba3Keys {};   // key, query, key_gain, query_gain, key_bias, query_bias, turn, step, angle? -> k, q, angle
struct RowNorm {        // x, gain?, gate? -> y
  Norm norm;
  NormGate gate;
  double eps;
};
struct SigmoidNorm {  // x, gain, gate -> rms norm of x, times sigma(gate)
  double eps;
};
struct GateSilu {};   // y, z -> y silu(z)
struct GateSigmoid {  // y, z -> scale y sigma(z)
  double scale;
};
struct GateSwish {};      // ab, beta -> a sigma(beta a) b
struct SoftplusBias {};   // x, bias -> softplus(x + bias)
struct SoftplusDecay {};  // x, bias, A_log -> -e^{A_log} softplus(x + bias)
struct SoftplusGates {};  // x, bias, A_log -> softplus(x + bias), -e^{A_log} softplus(x + bias)
struct ScaleHeads {};     // x, w -> w x
struct DeltaKeys {};      // k, beta -> k, beta k
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

// The functions of every row, and NAME_kernel, which holds them
#define SB_KERNEL_none(Op, name) inline constexpr kernels::Kernel<op::Op> name##_kernel{};
#define SB_KERNEL_plain(Op, name) \
  kernels::Forward<op::Op> name;  \
  inline constexpr kernels::Kernel<op::Op> name##_kernel{name};
#define SB_KERNEL_back(Op, name)         \
  kernels::Forward<op::Op> name;         \
  kernels::Backward<op::Op> name##_back; \
  inline constexpr kernels::Kernel<op::Op> name##_kernel{name, name##_back};
#define SB_KERNEL_limited(Op, name)          \
  kernels::Forward<op::Op> name;             \
  kernels::Supports<op::Op> supports_##name; \
  inline constexpr kernels::Kernel<op::Op> name##_kernel{name, nullptr, supports_##name};
#define SB_KERNEL_full(Op, name)             \
  kernels::Forward<op::Op> name;             \
  kernels::Backward<op::Op> name##_back;     \
  kernels::Supports<op::Op> supports_##name; \
  inline constexpr kernels::Kernel<op::Op> name##_kernel{name, name##_back, supports_##name};
#define SB_OPERATION(Op, name, of_naive, of_aten, of_cpu, of_cuda, work) \
  namespace naive {                                                      \
  SB_KERNEL_##of_naive(Op, name)                                         \
  }                                                                      \
  namespace aten {                                                       \
  SB_KERNEL_##of_aten(Op, name)                                          \
  }                                                                      \
  namespace cpu {                                                        \
  SB_KERNEL_##of_cpu(Op, name)                                           \
  }                                                                      \
  namespace cuda::bind {                                                 \
  SB_KERNEL_##of_cuda(Op, name)                                          \
  }
#include "kernels/operations.def"
#undef SB_OPERATION
#undef SB_KERNEL_none
#undef SB_KERNEL_plain
#undef SB_KERNEL_back
#undef SB_KERNEL_limited
#undef SB_KERNEL_full

namespace cuda {
// The CUDA kernels of this build, defined in cuda/bind/table.cpp, or in cuda/absent.cpp for builds without CUDA.
template <class Op>
kernels::Kernel<Op> kernel();
}  // namespace cuda

}  // namespace sb
