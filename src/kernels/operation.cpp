#include "kernels/operation.h"

#include "base/torch_pch.h"

#include <torch/csrc/autograd/graph_task.h>

// g++ 13 reports a false overrun in the vector<bool> of libtorch 2's Function::apply.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 13
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#endif

namespace sb::kernels {
namespace {

using torch::autograd::AutogradContext;

// Data of an autograd node other than tensors.
struct Node : torch::CustomClassHolder {
  std::function<Tensors(const Back&)> backward;
  std::vector<bool> present, wanted;  // of every input
  std::vector<GradientPlace> places;
};

// libtorch 1.13 does not support undefined tensors in apply(). So only defined tensors are passed; `present` tells
// which.
class Differentiable : public torch::autograd::Function<Differentiable> {
 public:
  static Tensors forward(AutogradContext* ctx, at::TensorList given,
                         const std::function<Tensors(const Tensors&, Tensors*)>& forward,
                         const c10::intrusive_ptr<Node>& node) {
    Tensors in(node->present.size()), saved;
    size_t next = 0;
    for (size_t i = 0; i < in.size(); ++i)
      if (node->present[i]) in[i] = given[next++];
    Tensors out = forward(in, &saved);
    ctx->save_for_backward(std::move(saved));
    ctx->saved_data["node"] = at::IValue::make_capsule(node);
    ctx->set_materialize_grads(false);
    return out;
  }
  static Tensors backward(AutogradContext* ctx, Tensors d_out) {
    const auto node = c10::static_intrusive_pointer_cast<Node>(ctx->saved_data["node"].toCapsule());
    const Tensors gradients = node->backward({ctx->get_saved_variables(), std::move(d_out), node->wanted,
                                              !torch::autograd::get_current_graph_task_keep_graph(), node->places});
    Tensors of_given;
    for (size_t i = 0; i < gradients.size(); ++i)
      if (node->present[i]) of_given.push_back(gradients[i]);
    of_given.resize(of_given.size() + 2);  // forward, node
    return of_given;
  }
};

}  // namespace

bool records_gradient(const Tensors& tensors) {
  if (!at::GradMode::is_enabled()) return false;
  for (const at::Tensor& x : tensors)
    if (x.defined() && x.requires_grad()) return true;
  return false;
}

Tensors differentiable(const std::function<Tensors(const Tensors& in, Tensors* saved)>& forward,
                       std::function<Tensors(const Back&)> backward, const Tensors& in) {
  const auto node = c10::make_intrusive<Node>();
  node->backward = std::move(backward);
  Tensors given;
  for (const at::Tensor& x : in) {
    node->present.push_back(x.defined());
    node->wanted.push_back(x.defined() && x.requires_grad());
    node->places.emplace_back(x);
    if (x.defined()) given.push_back(x);
  }
  return Differentiable::apply(at::TensorList(given), forward, node);
}

}  // namespace sb::kernels
