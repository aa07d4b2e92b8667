#include "kernels/cpu/selective_scan.h"

#include <torch/csrc/autograd/custom_function.h>

#include "base/error.h"
#include "kernels/compat.h"
#include "kernels/cpu/tensor_rows.h"
#include "kernels/poison.h"
#include "kernels/recurrence.h"
#include "kernels/step_scan.h"

namespace sb {
namespace {

using at::Tensor;
using torch::autograd::variable_list;

std::string shape(const Tensor& x) {
  return c10::str(x.sizes());
}

void expect(const char* name, const Tensor& x, at::IntArrayRef sizes) {
  if (x.sizes() != sizes)
    throw bad_input("selective_scan", std::string(name) + ", expected " + c10::str(sizes) + ", got " + shape(x));
}

void check(const Tensor& x, const Tensor& delta, const Tensor& A_log, const Tensor& B, const Tensor& C,
           const Tensor& skip, const Tensor& state, const Tensor& write) {
  if (x.dim() != 3 || x.size(1) < 1)
    throw bad_input("selective_scan", "x, expected [B,T,D] with T > 0, got " + shape(x));
  if (A_log.dim() != 2 || A_log.size(1) < 1)
    throw bad_input("selective_scan", "A_log, expected [D,N] with N > 0, got " + shape(A_log));
  const int64_t b = x.size(0), t = x.size(1), d = x.size(2), n = A_log.size(1);
  expect("delta", delta, {b, t, d});
  expect("A_log", A_log, {d, n});
  expect("B", B, {b, t, n});
  expect("C", C, {b, t, n});
  expect("skip", skip, {d});
  if (state.defined()) expect("state", state, {b, d, n});
  if (write.defined()) expect("write", write, {b, t, d});
}

cpu::ScanSizes sizes_of(const Tensor& x, const Tensor& A_log) {
  return {x.size(0), x.size(1), x.size(2), A_log.size(1)};
}

template <class T>
const T* data_or_null(const Tensor& x) {
  return x.defined() ? x.data_ptr<T>() : nullptr;
}

class SelectiveScan : public torch::autograd::Function<SelectiveScan> {
 public:
  static variable_list forward(torch::autograd::AutogradContext* ctx, const Tensor& x_in, const Tensor& delta_in,
                               const Tensor& A_log_in, const Tensor& B_in, const Tensor& C_in, const Tensor& skip_in,
                               const Tensor& state_in, const Tensor& write_in, double a_min, bool keep) {
    const Tensor x = x_in.contiguous(), delta = delta_in.contiguous(), A_log = A_log_in.contiguous();
    const Tensor B = B_in.contiguous(), C = C_in.contiguous(), skip = skip_in.contiguous();
    const Tensor state = cpu::is_absent(state_in) ? Tensor() : state_in.contiguous();
    const bool decoupled = !cpu::is_absent(write_in);
    const Tensor write = decoupled ? write_in.contiguous() : delta;
    const cpu::ScanSizes s = sizes_of(x, A_log);
    const Tensor out = kernels::fresh(x.sizes(), x.options());
    const Tensor last = kernels::fresh({s.batch, s.channels, s.states}, x.options());
    const Tensor kept =
        keep ? kernels::fresh({s.batch, s.chunks(), s.channels, s.states}, x.options()) : at::empty({0}, x.options());
    cpu::with_type_of(x, [&](auto type) {
      using T = decltype(type);
      cpu::selective_scan_forward<T>(
          s, {x.data_ptr<T>(), delta.data_ptr<T>(), A_log.data_ptr<T>(), B.data_ptr<T>(), C.data_ptr<T>(),
              skip.data_ptr<T>(), write.data_ptr<T>(), data_or_null<T>(state), out.data_ptr<T>(), last.data_ptr<T>(),
              keep ? kept.data_ptr<T>() : nullptr, a_min});
    });
    ctx->saved_data["had_state"] = state.defined();
    ctx->saved_data["a_min"] = a_min;
    if (keep) ctx->save_for_backward({x, delta, A_log, B, C, skip, decoupled ? write : Tensor(), kept});
    return {out, last};
  }

  static variable_list backward(torch::autograd::AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &delta = saved[1], &A_log = saved[2], &B = saved[3], &C = saved[4], &skip = saved[5];
    const bool decoupled = saved[6].defined();
    const Tensor& write = decoupled ? saved[6] : delta;
    const Tensor& kept = saved[7];
    const cpu::ScanSizes s = sizes_of(x, A_log);
    const Tensor d_out = grads[0].defined() ? grads[0].contiguous() : at::zeros_like(x);
    const Tensor d_last = grads[1].defined() ? grads[1].contiguous() : Tensor();
    const auto fresh = [&](at::IntArrayRef sizes) { return kernels::fresh(sizes, x.options()); };
    const Tensor d_x = fresh(x.sizes()), d_delta = fresh(x.sizes()), d_write = fresh(x.sizes());
    const Tensor d_first = fresh({s.batch, s.channels, s.states});
    const Tensor d_A_log = fresh({s.batch_slots(), s.channels, s.states}),
                 d_skip = fresh({s.batch_slots(), s.channels});
    const Tensor d_B = fresh({s.channel_groups(), s.batch, s.time, s.states}), d_C = fresh(d_B.sizes());
    cpu::with_type_of(x, [&](auto type) {
      using T = decltype(type);
      cpu::selective_scan_backward<T>(
          s, {x.data_ptr<T>(), delta.data_ptr<T>(), A_log.data_ptr<T>(), B.data_ptr<T>(), C.data_ptr<T>(),
              skip.data_ptr<T>(), write.data_ptr<T>(), kept.data_ptr<T>(), d_out.data_ptr<T>(), data_or_null<T>(d_last),
              d_x.data_ptr<T>(), d_delta.data_ptr<T>(), d_write.data_ptr<T>(), d_first.data_ptr<T>(),
              d_A_log.data_ptr<T>(), d_skip.data_ptr<T>(), d_B.data_ptr<T>(), d_C.data_ptr<T>(),
              ctx->saved_data["a_min"].toDouble()});
    });
    if (!decoupled) d_delta.add_(d_write);
    const bool had_state = ctx->saved_data["had_state"].toBool();
    return {d_x,
            d_delta,
            cpu::sum_in_order(d_A_log),
            cpu::sum_in_order(d_B),
            cpu::sum_in_order(d_C),
            cpu::sum_in_order(d_skip),
            had_state ? d_first : Tensor(),
            decoupled ? d_write : Tensor(),
            Tensor(),
            Tensor()};
  }
};

}  // namespace

Scan selective_scan(const Tensor& x, const Tensor& delta, const Tensor& A_log, const Tensor& B, const Tensor& C,
                    const Tensor& skip, const Tensor& state, const Tensor& write, double a_min) {
  check(x, delta, A_log, B, C, skip, state, write);
  if (!(a_min >= 0 && a_min < 1))
    throw bad_input("selective_scan", "a_min, expected 0 <= a_min < 1, got " + std::to_string(a_min));
  if (!kernels::has_cpu_kernel(x)) return chunked::selective_scan(x, delta, A_log, B, C, skip, state, write, a_min);
  const bool keep = compat::records_gradient(x, delta, A_log, B, C, skip, state, write);
  const variable_list out =
      SelectiveScan::apply(x, delta, A_log, B, C, skip, cpu::or_empty(state, x), cpu::or_empty(write, x), a_min, keep);
  return {out[0], out[1]};
}

Scan selective_scan_step(const Tensor& x, const Tensor& delta, const Tensor& A_log, const Tensor& B, const Tensor& C,
                         const Tensor& skip, const Tensor& state, const Tensor& write, double a_min) {
  const Scan one = selective_scan(x.unsqueeze(1), delta.unsqueeze(1), A_log, B.unsqueeze(1), C.unsqueeze(1), skip,
                                  state, write.defined() ? write.unsqueeze(1) : write, a_min);
  return {one.out.squeeze(1), one.state};
}

}  // namespace sb
