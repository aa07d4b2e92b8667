#include "kernels/cuda/selective_scan.h"

#include "kernels/cuda/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {
namespace {

template <class E>
ScanRows<E> scan_rows(const Tensor& x) {
  return {static_cast<E*>(data(x)), x.defined() ? x.stride(0) : 0, x.defined() ? x.stride(1) : 0};
}

// In the order of the operation's inputs, state apart
SelectiveScan problem(const op::SelectiveScan& op, const Tensors& c, const Tensor& state) {
  const Tensor &x = c[0], &A_log = c[2];
  return {x.size(0),
          x.size(1),
          x.size(2),
          A_log.size(1),
          is_low(x),
          scan_rows<const void>(x),
          scan_rows<const void>(c[3]),
          scan_rows<const void>(c[4]),
          scan_rows<const float>(c[1]),
          scan_rows<const float>(c[7]),
          float_data(A_log),
          float_data(c[5]),
          float_data(state),
          static_cast<float>(op.a_min)};
}

Tensor packed_floats(const Tensor& x) {
  return x.defined() ? packed_last(x.to(at::kFloat)) : x;
}

}  // namespace

bool supports_selective_scan(const op::SelectiveScan& op, const Tensors& in) {
  for (size_t i = 0; i < 8; ++i)
    if (!readable_or_absent(in[i])) return false;
  if (!same_type(in[0], in[3]) || !same_type(in[0], in[4]) || in[2].size(1) > 256) return false;
  SelectiveScan p{};
  p.states = in[2].size(1), p.bf16 = is_low(in[0]), p.a_min = static_cast<float>(op.a_min);
  const c10::DeviceGuard on(in[0].device());
  return selective_scan_fits(p);
}

// x, delta, A_log, B, C, skip, state?, write? -> out, state (float32)
Tensors selective_scan(const op::SelectiveScan& op, const Tensors& in, Tensors* saved) {
  const Tensors c{packed_last(in[0]), packed_floats(in[1]), floats(in[2]), packed_last(in[3]),
                  packed_last(in[4]), floats(in[5]),        floats(in[6]), packed_floats(in[7])};
  const Tensor &x = c[0], out = fresh(x.sizes(), x);
  const Tensor last = fresh({x.size(0), x.size(2), c[2].size(1)}, x, at::kFloat);
  const SelectiveScan p = problem(op, c, c[6]);
  const OnDevice on(x);
  const Tensor kept = saved ? scratch(selective_scan_kept_bytes(p), x) : Tensor();
  const Tensor memory = scratch(selective_scan_scratch_bytes(p), x);
  on.check("selective_scan",
           selective_scan_forward(p, scan_rows<void>(out), float_data(last), data(kept), data(memory), on.stream()));
  if (saved) {
    *saved = c;
    saved->push_back(kept);
  }
  return {out, last};
}

Tensors selective_scan_back(const op::SelectiveScan& op, const Back& back) {
  const Tensors& c = back.saved;
  const Tensor &x = c[0], &kept = c[8];
  const bool decoupled = c[7].defined();
  const Tensor d_out = back.d_out[0].defined() ? packed_last(back.d_out[0]) : at::zeros_like(x);
  const Tensor d_last = floats(back.d_out[1]);
  const Tensor dx = gradient_of(back, 0, x), dB = gradient_of(back, 3, c[3]), dC = gradient_of(back, 4, c[3]);
  const Tensor d_delta = fresh(x.sizes(), x, at::kFloat), d_write = decoupled ? fresh_like(d_delta) : Tensor();
  const Tensor d_A_log = fresh_like(c[2]), d_skip = fresh_like(c[5]);
  const Tensor d_first = c[6].defined() ? fresh_like(c[6]) : Tensor();
  const SelectiveScan p = problem(op, c, c[6]);
  const OnDevice on(x);
  const Tensor memory = scratch(selective_scan_workspace_bytes(p, true), x);
  const SelectiveScanGradients d{scan_rows<const void>(d_out), float_data(d_last),  scan_rows<void>(dx),
                                 scan_rows<void>(dB),          scan_rows<void>(dC), scan_rows<float>(d_delta),
                                 scan_rows<float>(d_write),    float_data(d_A_log), float_data(d_skip),
                                 float_data(d_first)};
  on.check("selective_scan", selective_scan_backward(p, data(kept), d, data(memory), on.stream()));
  return {dx, d_delta, d_A_log, dB, dC, d_skip, d_first, d_write};
}

}  // namespace sb::cuda::bind
