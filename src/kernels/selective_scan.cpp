#include "base/error.h"
#include "base/torch_pch.h"
#include "kernels/check.h"
#include "kernels/operations.h"
#include "kernels/recurrence.h"
#include "kernels/step.h"

namespace sb {

OutAndState selective_scan(const at::Tensor& x, const at::Tensor& delta, const at::Tensor& A_log, const at::Tensor& B,
                           const at::Tensor& C, const at::Tensor& skip, const at::Tensor& state,
                           const at::Tensor& write, double a_min) {
  const char* where = "selective_scan";
  if (x.dim() != 3 || x.size(1) < 1)
    throw bad_input(where, "x, expected [B,T,D] with T > 0, got " + c10::str(x.sizes()));
  if (A_log.dim() != 2 || A_log.size(1) < 1)
    throw bad_input(where, "A_log, expected [D,N] with N > 0, got " + c10::str(A_log.sizes()));
  const int64_t b = x.size(0), t = x.size(1), d = x.size(2), n = A_log.size(1);
  kernels::check_shape(where, "delta", delta, {b, t, d});
  kernels::check_shape(where, "A_log", A_log, {d, n});
  kernels::check_shape(where, "B", B, {b, t, n});
  kernels::check_shape(where, "C", C, {b, t, n});
  kernels::check_shape(where, "skip", skip, {d});
  if (state.defined()) kernels::check_shape(where, "state", state, {b, d, n});
  if (write.defined()) kernels::check_shape(where, "write", write, {b, t, d});
  kernels::check_alike(where, x, {B, C});
  kernels::check_alike(where, x, {delta, A_log, skip, state, write}, /*float32_too=*/true);
  if (!(a_min >= 0 && a_min < 1))
    throw bad_input(where, "a_min, expected 0 <= a_min < 1, got " + std::to_string(a_min));
  const auto out = kernels::run(op::SelectiveScan{a_min}, {x, delta, A_log, B, C, skip, state, write});
  return {out[0], out[1]};
}

OutAndState selective_scan_step(const at::Tensor& x, const at::Tensor& delta, const at::Tensor& A_log,
                                const at::Tensor& B, const at::Tensor& C, const at::Tensor& skip,
                                const at::Tensor& state, const at::Tensor& write, double a_min) {
  const OutAndState one = selective_scan(x.unsqueeze(1), delta.unsqueeze(1), A_log, B.unsqueeze(1), C.unsqueeze(1),
                                         skip, state, write.defined() ? write.unsqueeze(1) : write, a_min);
  return {one.out.squeeze(1), one.state};
}

}  // namespace sb
