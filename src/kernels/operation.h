// Common structure of all operations. A public function checks its arguments and calls run(), which selects a backend
// and registers the operation with autograd. A backend is a pair of functions, forward and backward. operations.def
// is the table of all operations and backends.
#pragma once
#include <functional>
#include <vector>

#include "kernels/backend.h"
#include "kernels/gradient_place.h"

namespace sb::kernels {

using Tensors = std::vector<at::Tensor>;  // absent tensors are undefined

// Arguments of a backward function.
struct Back {
  Tensors saved;                           // saved by forward
  Tensors d_out;                           // gradient of every output; undefined: zeros
  std::vector<bool> wanted;                // for every input, whether its gradient is needed
  bool last = false;                       // the graph is not retained: `saved` may be overwritten
  std::vector<GradientPlace> places = {};  // destination of every input's gradient; may be empty

  // GradientPlace::take() and sum() of an input
  at::Tensor place(size_t input) const { return input < places.size() ? places[input].take() : at::Tensor(); }
  at::Tensor sum(size_t input) const { return input < places.size() ? places[input].sum() : at::Tensor(); }
};

// Op holds an operation's scalar parameters (operations.h). forward returns the outputs and stores what backward needs
// in `saved`, which is null if no gradient is needed. backward returns a gradient for every input; undefined: no
// gradient.
template <class Op>
using Forward = Tensors(const Op&, const Tensors& in, Tensors* saved);
template <class Op>
using Backward = Tensors(const Op&, const Back&);

template <class Op>
using Supports = bool(const Op&, const Tensors& in);

template <class Op>
struct Kernel {
  Forward<Op>* forward = nullptr;    // null: use aten
  Backward<Op>* backward = nullptr;  // null: forward consists of differentiable operations, or has no gradient
  Supports<Op>* supports = nullptr;  // whether it supports these shapes and types, else use aten; null: supports all
};

// Operations of matrix products in a call of an operation (a multiply-add is two).
struct Work {
  double forward = 0, backward = 0;
  int unread = -1;  // input that is not read, because a copy of it in bfloat16 is given; -1: none
};

template <class Op>
struct Operation {
  const char* name;
  Kernel<Op> naive, aten, cpu, cuda;
  Work (*work)(const Tensors& in) = nullptr;  // null: no matrix products
  const Kernel<Op>& of(Backend backend, const Op& op, const Tensors& in) const {
    const Kernel<Op>& wanted = backend == Backend::naive  ? naive
                               : backend == Backend::cpu  ? cpu
                               : backend == Backend::cuda ? cuda
                                                          : aten;
    return wanted.forward && (!wanted.supports || wanted.supports(op, in)) ? wanted : aten;
  }
};
// The table's row of an operation.
template <class Op>
const Operation<Op>& row_of();

// Whether autograd would record an operation on these tensors.
bool records_gradient(const Tensors& tensors);

// Calls forward and returns its outputs, with `backward` as their autograd function.
Tensors differentiable(const std::function<Tensors(const Tensors& in, Tensors* saved)>& forward,
                       std::function<Tensors(const Back&)> backward, const Tensors& in);

using CallForward = std::function<Tensors(const Tensors& in, Tensors* saved)>;
using CallBackward = std::function<Tensors(const Back&)>;

// For WatchCalls (calls.h).
namespace detail {
bool calls_are_watched();
void tell_call(const char* name, const Work& work, const Tensors& in, CallForward forward, CallBackward backward);

template <class Op>
void tell(const Operation<Op>& row, const Op& op, const Kernel<Op>& kernel, const Tensors& in) {
  CallBackward back;
  if (kernel.backward) back = [op, backward = kernel.backward](const Back& given) { return backward(op, given); };
  tell_call(
      row.name, row.work ? row.work(in) : Work{}, in,
      [op, forward = kernel.forward](const Tensors& x, Tensors* saved) { return forward(op, x, saved); },
      std::move(back));
}
}  // namespace detail

// Runs the operation. in[0] selects the backend.
template <class Op>
Tensors run(const Op& op, const Tensors& in) {
  const Operation<Op>& row = row_of<Op>();
  const Kernel<Op>& kernel = row.of(backend_of(in[0]), op, in);
  if (detail::calls_are_watched()) detail::tell(row, op, kernel, in);
  if (!kernel.backward || !records_gradient(in)) return kernel.forward(op, in, nullptr);
  return differentiable([&](const Tensors& inputs, Tensors* saved) { return kernel.forward(op, inputs, saved); },
                        [op, backward = kernel.backward](const Back& back) { return backward(op, back); }, in);
}

// Whether run() would use a kernel of ours instead of ATen operations.
template <class Op>
bool has_kernel(const Op& op, const Tensors& in) {
  const Operation<Op>& row = row_of<Op>();
  return &row.of(backend_of(in[0]), op, in) != &row.aten;
}

}  // namespace sb::kernels
