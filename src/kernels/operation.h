// The one shape of an operation: a public function with its checks calls run(), which chooses a back end by the tensor
// and ties it to autograd. Back ends are pairs of functions that know neither; the table of all is operations.cpp.
#pragma once
#include <functional>
#include <vector>

#include "kernels/backend.h"
#include "kernels/gradient_place.h"

namespace sb::kernels {

using Tensors = std::vector<at::Tensor>;  // an absent one is undefined

// What a backward pass is given.
struct Back {
  Tensors saved;                           // what forward kept
  Tensors d_out;                           // of every output; undefined: zeros
  std::vector<bool> wanted;                // of every input: whether its gradient is asked for
  bool last = false;                       // nobody walks the graph again: what was kept may be overwritten
  std::vector<GradientPlace> places = {};  // of every input, or none

  // GradientPlace::take and sum
  at::Tensor place(size_t input) const { return input < places.size() ? places[input].take() : at::Tensor(); }
  at::Tensor sum(size_t input) const { return input < places.size() ? places[input].sum() : at::Tensor(); }
};

// Op holds an operation's numbers and switches (operations.h). forward returns the outputs and keeps in `saved` what
// backward needs; saved is null where no gradient will be asked for. backward returns a gradient for every input,
// undefined where there is none.
template <class Op>
using Forward = Tensors(const Op&, const Tensors& in, Tensors* saved);
template <class Op>
using Backward = Tensors(const Op&, const Back&);

template <class Op>
using Takes = bool(const Op&, const Tensors& in);

template <class Op>
struct Kernel {
  Forward<Op>* forward = nullptr;    // absent: aten's runs
  Backward<Op>* backward = nullptr;  // absent: forward consists of differentiable operations, or has no gradient
  Takes<Op>* takes = nullptr;        // whether it is made for these shapes and types, else aten's runs; absent: for all
};

template <class Op>
struct Operation {
  const char* name;
  Kernel<Op> truth, aten, cpu, cuda;
  const Kernel<Op>& of(Backend backend, const Op& op, const Tensors& in) const {
    const Kernel<Op>& wanted = backend == Backend::truth  ? truth
                               : backend == Backend::cpu  ? cpu
                               : backend == Backend::cuda ? cuda
                                                          : aten;
    return wanted.forward && (!wanted.takes || wanted.takes(op, in)) ? wanted : aten;
  }
};
// The row of an operation in the table.
template <class Op>
const Operation<Op>& row_of();

// True when autograd would record an operation on any of these tensors.
bool records_gradient(const Tensors& tensors);

// The outputs of forward, with backward as their gradient.
Tensors differentiable(const std::function<Tensors(const Tensors& in, Tensors* saved)>& forward,
                       std::function<Tensors(const Back&)> backward, const Tensors& in);

using CallForward = std::function<Tensors(const Tensors& in, Tensors* saved)>;
using CallBackward = std::function<Tensors(const Back&)>;

// For those that watch (calls.h).
namespace detail {
bool calls_are_watched();
void tell_call(const char* name, const Tensors& in, CallForward forward, CallBackward backward);

template <class Op>
void tell(const char* name, const Op& op, const Kernel<Op>& kernel, const Tensors& in) {
  CallBackward back;
  if (kernel.backward) back = [op, backward = kernel.backward](const Back& given) { return backward(op, given); };
  tell_call(
      name, in, [op, forward = kernel.forward](const Tensors& x, Tensors* saved) { return forward(op, x, saved); },
      std::move(back));
}
}  // namespace detail

// in[0] decides where the operation runs.
template <class Op>
Tensors run(const Op& op, const Tensors& in) {
  const Operation<Op>& row = row_of<Op>();
  const Kernel<Op>& kernel = row.of(backend_of(in[0]), op, in);
  if (detail::calls_are_watched()) detail::tell(row.name, op, kernel, in);
  if (!kernel.backward || !records_gradient(in)) return kernel.forward(op, in, nullptr);
  return differentiable([&](const Tensors& inputs, Tensors* saved) { return kernel.forward(op, inputs, saved); },
                        [op, backward = kernel.backward](const Back& back) { return backward(op, back); }, in);
}

// Whether something better than ATen's operations would run.
template <class Op>
bool has_kernel(const Op& op, const Tensors& in) {
  const Operation<Op>& row = row_of<Op>();
  return &row.of(backend_of(in[0]), op, in) != &row.aten;
}

}  // namespace sb::kernels
