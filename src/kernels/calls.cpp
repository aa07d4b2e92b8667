#include "kernels/calls.h"

#include <atomic>
#include <cctype>

#include "base/error.h"
#include "base/torch_pch.h"

namespace sb::kernels {
namespace {

std::atomic<const std::function<void(Call)>*> watching{nullptr};

// GatedDelta -> gated_delta
std::string in_words(const char* name) {
  std::string out;
  for (; *name != '\0'; ++name) {
    if (std::isupper(static_cast<unsigned char>(*name)) && !out.empty()) out += '_';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(*name)));
  }
  return out;
}

const char* type_name(at::ScalarType type) {
  return type == at::kBFloat16 ? "bf16"
         : type == at::kFloat  ? "fp32"
         : type == at::kDouble ? "fp64"
                               : at::toString(type);
}

double number(int64_t n) {
  return static_cast<double>(n);
}

double bytes_of(const Tensors& tensors) {
  double sum = 0;
  for (const at::Tensor& x : tensors)
    if (x.defined()) sum += number(x.numel()) * static_cast<double>(x.element_size());
  return sum;
}

// The tensors that a call reads: not a weight, if its bfloat16 copy is given.
Tensors read_by(const Call& call) {
  Tensors out = call.in;
  const size_t copy = call.name == "project" ? 3 : call.name == "decoder_cross_entropy" ? 5 : 0;
  if (copy > 0 && out.size() > copy && out[copy].defined()) out[1] = at::Tensor();
  return out;
}

struct Operations {
  double forward = 0, backward = 0;
};

Operations operations_of(const Call& call) {
  const Tensors& x = call.in;
  constexpr double chunk = 64;
  if (call.name == "project") {
    const double product = 2 * number(x[0].numel()) * number(x[1].size(0));
    return {product, 2 * product};
  }
  if (call.name == "batched_product") {
    const double product = 2 * number(x[0].numel()) * number(x[1].size(-1));
    return {product, 2 * product};
  }
  // The forward pass also computes the gradients, while the logits exist.
  if (call.name == "decoder_cross_entropy") return {6 * number(x[0].numel()) * number(x[1].size(0)), 0};
  if (call.name == "causal_attention") {  // [B,T,h,K]
    const double pairs = number(x[0].numel()) * number(x[1].size(1) + 1);
    return {2 * pairs, 5 * pairs};
  }
  if (call.name == "gated_delta") {  // q [B,T,H,K], v [B,T,n,H,V]
    const double rows = number(x[2].size(0) * x[2].size(1) * x[2].size(3)), n = number(x[2].size(2));
    const double K = number(x[0].size(3)), V = number(x[2].size(4));
    const double each = 2 * K * V + n * (4 * K * V + 2 * chunk * (K + V) + chunk * K + chunk * chunk / 3);
    return {rows * each, 2 * rows * each};
  }
  if (call.name == "general_delta") {  // q [B,T,H,K], v [B,T,H,V]
    const double rows = number(x[2].size(0) * x[2].size(1) * x[2].size(2));
    const double K = number(x[0].size(3)), V = number(x[2].size(3));
    const double each = 8 * K * V + chunk * (4 * K + 3 * V) + chunk * chunk / 3;
    return {rows * each, 2 * rows * each};
  }
  if (call.name == "decayed_attention" || call.name == "written_attention") {  // q [B,T,G,K], v [B,T,H,V]
    const double rows = number(x[2].size(0) * x[2].size(1) * x[2].size(2));
    const double K = number(x[0].size(3)), V = number(x[2].size(3)), each = 4 * K * V + chunk * (K + V);
    return {rows * each, 2 * rows * each};
  }
  if (call.name == "selective_scan") {  // x [B,T,D], A_log [D,N]
    const double states = number(x[0].numel()) * number(x[2].size(1));
    return {9 * states, 18 * states};
  }
  if (call.name == "gru") {  // gates [B,T,3d], weight [3d,d]
    const double product = 2 * number(x[0].numel()) * number(x[1].size(1));
    return {product, 2 * product};
  }
  return {};
}

}  // namespace

namespace detail {

bool calls_are_watched() {
  return watching.load(std::memory_order_relaxed) != nullptr;
}

void tell_call(const char* name, const Tensors& in, CallForward forward, CallBackward backward) {
  const std::function<void(Call)>* seen = watching.load();
  if (seen == nullptr) return;
  Call call{in_words(name), {}, {}, std::move(forward), std::move(backward)};
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
  return {operations_of(call).forward, bytes_of(read_by(call)) + bytes_of(out)};
}

CallWork backward_work(const Call& call, const Tensors& d_out, const Tensors& gradients) {
  return {operations_of(call).backward, bytes_of(read_by(call)) + bytes_of(d_out) + bytes_of(gradients)};
}

}  // namespace sb::kernels
