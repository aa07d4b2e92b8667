// What the recurrences of one family share at their border: shape checks and the padded states the CPU kernels work on.
#pragma once
#include <ATen/ATen.h>

namespace sb::kernels {

void check_decayed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& g,
                             const at::Tensor& state);
void check_gated_delta_rule(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& beta,
                            const at::Tensor& g, const at::Tensor& state);

// CPU float and double run our kernels, everything else ATen operations.
bool has_cpu_kernel(const at::Tensor& t);

// [B H, slots, padded K, padded V] whose slot 0 holds `state` [B,H,K,V] (undefined: zeros), zeros in the padding.
template <class T>
at::Tensor start_states(const at::Tensor& state, int64_t B, int64_t H, int64_t K, int64_t V, int64_t slots,
                        const at::TensorOptions& options);
// Slot `slot` of such a tensor as a fresh [B,H,K,V].
at::Tensor unpadded_state(const at::Tensor& states, int64_t slot, int64_t B, int64_t H, int64_t K, int64_t V);

}  // namespace sb::kernels
