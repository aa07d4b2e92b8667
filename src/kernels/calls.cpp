#include "kernels/calls.h"

#include <atomic>

#include "base/error.h"
#include "base/torch_pch.h"

namespace sb::kernels {
namespace {

std::atomic<const std::function<void(Call)>*> watching{nullptr};

const char* type_name(at::ScalarType type) {
  return type == at::kBFloat16 ? "bf16"
         : type == at::kFloat  ? "fp32"
         : type == at::kDouble ? "fp64"
                               : at::toString(type);
}

double bytes_of(const Tensors& tensors) {
  double sum = 0;
  for (const at::Tensor& x : tensors)
    if (x.defined()) sum += static_cast<double>(x.numel()) * static_cast<double>(x.element_size());
  return sum;
}

double bytes_read(const Call& call) {
  Tensors in = call.in;
  if (call.work.unread >= 0) in[static_cast<size_t>(call.work.unread)] = at::Tensor();
  return bytes_of(in);
}

}  // namespace

namespace detail {

bool calls_are_watched() {
  return watching.load(std::memory_order_relaxed) != nullptr;
}

void tell_call(const char* name, const Work& work, const Tensors& in, CallForward forward, CallBackward backward) {
  const std::function<void(Call)>* seen = watching.load();
  if (seen == nullptr) return;
  Call call{name, {}, {}, std::move(forward), std::move(backward), work};
  for (const at::Tensor& x : in) {
    call.in.push_back(x.defined() ? x.detach() : x);
    call.wanted.push_back(x.defined() && x.requires_grad());
  }
  (*seen)(std::move(call));
}

}  // namespace detail

WatchCalls::WatchCalls(std::function<void(Call)> seen) : seen_(std::move(seen)) {
  const std::function<void(Call)>* nobody = nullptr;
  if (!watching.compare_exchange_strong(nobody, &seen_)) throw check_failed("calls", "another WatchCalls exists");
}
WatchCalls::~WatchCalls() {
  watching.store(nullptr);
}

std::string Call::shape() const {
  std::string out;
  for (const at::Tensor& x : in) {
    out += out.empty() ? "" : ", ";
    if (!x.defined()) {
      out += "-";
      continue;
    }
    out += std::string(type_name(x.scalar_type())) + " [";
    for (int64_t d = 0; d < x.dim(); ++d) out += (d == 0 ? "" : ",") + std::to_string(x.size(d));
    out += "]";
  }
  return out;
}

CallWork forward_work(const Call& call, const Tensors& out) {
  return {call.work.forward, bytes_read(call) + bytes_of(out)};
}

CallWork backward_work(const Call& call, const Tensors& d_out, const Tensors& gradients) {
  return {call.work.backward, bytes_read(call) + bytes_of(d_out) + bytes_of(gradients)};
}

}  // namespace sb::kernels
