#include "kernels/cpu/selective_scan.h"

#include "kernels/cpu/bind/tensors.h"
#include "kernels/operations.h"

namespace sb::cpu {

using at::Tensor;
using kernels::Tensors;

namespace {

ScanSizes scan_sizes(const Tensor& x, const Tensor& A_log) {
  return {x.size(0), x.size(1), x.size(2), A_log.size(1)};
}

}  // namespace

// x, delta, A_log, B, C, skip, state?, write?
Tensors selective_scan(const op::SelectiveScan& op, const Tensors& in, Tensors* saved) {
  Tensors c;
  for (const Tensor& x : in) c.push_back(contiguous(x));
  const Tensor &x = c[0], &write = c[7].defined() ? c[7] : c[1];
  const ScanSizes s = scan_sizes(x, c[2]);
  const Tensor out = fresh_like(x), last = fresh({s.batch, s.channels, s.states}, x.options());
  const Tensor kept = saved ? fresh({s.batch, s.chunks(), s.channels, s.states}, x.options()) : Tensor();
  with_type_of(x, [&](auto type) {
    using T = decltype(type);
    selective_scan_forward<T>(s, {x.data_ptr<T>(), c[1].data_ptr<T>(), c[2].data_ptr<T>(), c[3].data_ptr<T>(),
                                  c[4].data_ptr<T>(), c[5].data_ptr<T>(), write.data_ptr<T>(), data_or_null<T>(c[6]),
                                  out.data_ptr<T>(), last.data_ptr<T>(), data_or_null<T>(kept), op.a_min});
  });
  if (saved) *saved = {x, c[1], c[2], c[3], c[4], c[5], c[7], kept};
  return {out, last};
}

Tensors selective_scan_back(const op::SelectiveScan& op, const kernels::Back& back) {
  const Tensors& c = back.saved;
  const Tensor &x = c[0], &delta = c[1], &kept = c[7];
  const bool decoupled = c[6].defined();
  const Tensor& write = decoupled ? c[6] : delta;
  const ScanSizes s = scan_sizes(x, c[2]);
  const Tensor d_out = back.d_out[0].defined() ? back.d_out[0].contiguous() : at::zeros_like(x);
  const Tensor d_last = contiguous(back.d_out[1]);
  const auto make = [&](at::IntArrayRef sizes) { return fresh(sizes, x.options()); };
  const Tensor d_x = fresh_like(x), d_delta = fresh_like(x), d_write = fresh_like(x);
  const Tensor d_first = make({s.batch, s.channels, s.states});
  const Tensor d_A_log = make({s.batch_slots(), s.channels, s.states}), d_skip = make({s.batch_slots(), s.channels});
  const Tensor d_B = make({s.channel_groups(), s.batch, s.time, s.states}), d_C = fresh_like(d_B);
  with_type_of(x, [&](auto type) {
    using T = decltype(type);
    selective_scan_backward<T>(
        s, {x.data_ptr<T>(), delta.data_ptr<T>(), c[2].data_ptr<T>(), c[3].data_ptr<T>(), c[4].data_ptr<T>(),
            c[5].data_ptr<T>(), write.data_ptr<T>(), kept.data_ptr<T>(), d_out.data_ptr<T>(), data_or_null<T>(d_last),
            d_x.data_ptr<T>(), d_delta.data_ptr<T>(), d_write.data_ptr<T>(), d_first.data_ptr<T>(),
            d_A_log.data_ptr<T>(), d_skip.data_ptr<T>(), d_B.data_ptr<T>(), d_C.data_ptr<T>(), op.a_min});
  });
  if (!decoupled) d_delta.add_(d_write);
  return {d_x,
          d_delta,
          sum_in_order(d_A_log),
          sum_in_order(d_B),
          sum_in_order(d_C),
          sum_in_order(d_skip),
          d_first,
          decoupled ? d_write : Tensor()};
}

}  // namespace sb::cpu
