// One step of the selective scan with explicit state: constant memory, for streaming.
#pragma once
#include "kernels/recurrence.h"

namespace sb {

// x, delta [B,D]; B, C [B,N]; state [B,D,N] (undefined: zeros); write [B,D] or undefined. out [B,D]; as selective_scan,
// T = 1.
Scan selective_scan_step(const at::Tensor& x, const at::Tensor& delta, const at::Tensor& A_log, const at::Tensor& B,
                         const at::Tensor& C, const at::Tensor& skip, const at::Tensor& state = {},
                         const at::Tensor& write = {}, double a_min = 0);

}  // namespace sb
