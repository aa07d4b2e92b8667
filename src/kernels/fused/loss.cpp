// Decoder and cross-entropy. Rows go in groups of kGroup, and only a group's logits exist at a time. Gradients are made
// here, in the forward pass; the backward pass scales them.
#include <torch/csrc/autograd/custom_function.h>

#include "base/error.h"
#include "kernels/compat.h"
#include "kernels/cpu/packs.h"
#include "kernels/cpu/tensor_rows.h"
#include "kernels/matmul.h"
#include "kernels/plain.h"
#include "kernels/poison.h"

namespace sb {
namespace {

using at::Tensor;
using simd::Vec;

constexpr int64_t kGroup = 1024;

// A row of logits to its cross-entropy (0 for padding); with `share` != 0 the row becomes share * (softmax - one-hot).
template <class T>
double row_loss(int64_t n, T* logit, int64_t target, T share) {
  if (target < 0) {
    if (share != T(0)) std::fill_n(logit, n, T(0));
    return 0;
  }
  const T most = simd::largest(n, logit);
  const double picked = static_cast<double>(logit[target]) - static_cast<double>(most);
  const T sum = simd::sum_packs<T>(
      n, [=](int64_t i, auto io) __attribute__((always_inline)) {
        const auto e = simd::exp(io.load(logit + i) - Vec<T>(most));
        io.store(logit + i, e);
        return io.only(e);
      });
  if (share != T(0)) {
    const Vec<T> scale(share / sum);
    simd::for_packs<T>(
        n, [=](int64_t i, auto io) __attribute__((always_inline)) { io.store(logit + i, io.load(logit + i) * scale); });
    logit[target] -= share;
  }
  return std::log(static_cast<double>(sum)) - picked;
}

struct Gradients {
  Tensor h, weight, bias;
};

template <class T>
double loss_and_gradients(const Tensor& h, const Tensor& weight, const Tensor& bias, const Tensor& target,
                          double normaliser, Gradients* gradients) {
  const int64_t rows = h.size(0), C = weight.size(0);
  const int64_t* wanted = target.data_ptr<int64_t>();
  const Tensor logits = kernels::fresh({std::min(rows, kGroup), C}, h.options());
  std::vector<double> losses(static_cast<size_t>(rows), 0.0);
  const T share = gradients ? static_cast<T>(1 / normaliser) : T(0);
  for (int64_t r0 = 0; r0 < rows; r0 += kGroup) {
    const int64_t group = std::min(kGroup, rows - r0);
    const Tensor block = logits.narrow(0, 0, group), inputs = h.narrow(0, r0, group);
    T* const logit = logits.data_ptr<T>();
    product_into(block, inputs, weight.t(), bias);
    cpu::Ranges(group, 4 * C).split([&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        losses[static_cast<size_t>(r0 + r)] = row_loss<T>(C, logit + r * C, wanted[r0 + r], share);
    });
    if (!gradients) continue;
    product_into(gradients->h.narrow(0, r0, group), block, weight);
    if (r0 == 0)
      product_into(gradients->weight, block.t(), inputs);
    else
      add_product_into(gradients->weight, block.t(), inputs);
    T* const db = gradients->bias.data_ptr<T>();
    cpu::Ranges(C, group).split([&](int64_t begin, int64_t end) {
      for (int64_t r = 0; r < group; ++r) {
        for (int64_t c = begin; c < end; ++c) db[c] += logit[r * C + c];
      }
    });
  }
  double total = 0;
  for (const double loss : losses) total += loss;
  return total / normaliser;
}

class DecoderCrossEntropy : public torch::autograd::Function<DecoderCrossEntropy> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* ctx, const Tensor& h_in, const Tensor& weight_in,
                        const Tensor& bias_in, const Tensor& target_in, double normaliser, bool with_gradients) {
    const Tensor h = h_in.contiguous(), weight = weight_in.contiguous(), bias = bias_in.contiguous();
    const Tensor target = target_in.contiguous();
    Gradients gradients;
    if (with_gradients)
      gradients = {kernels::fresh(h.sizes(), h.options()), kernels::fresh(weight.sizes(), h.options()),
                   at::zeros(bias.sizes(), h.options())};
    const double loss = cpu::with_type_of(h, [&](auto type) {
      return loss_and_gradients<decltype(type)>(h, weight, bias, target, normaliser,
                                                with_gradients ? &gradients : nullptr);
    });
    if (with_gradients) ctx->save_for_backward({gradients.h, gradients.weight, gradients.bias});
    return at::full({}, loss, h.options());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& grads) {
    torch::autograd::variable_list out = ctx->get_saved_variables();
    if (grads[0].item<double>() != 1)
      for (Tensor& x : out) x = x * grads[0];
    out.resize(6);
    return out;
  }
};

}  // namespace

Tensor decoder_cross_entropy(const Tensor& h, const Tensor& weight, const Tensor& bias, const Tensor& target,
                             double normaliser) {
  const char* here = "decoder_cross_entropy";
  if (h.dim() != 2 || weight.dim() != 2 || h.size(1) != weight.size(1))
    throw bad_input(here, c10::str("h [rows,d] and weight [C,d], got ", h.sizes(), " and ", weight.sizes()));
  if (bias.sizes() != at::IntArrayRef{weight.size(0)})
    throw bad_input(here, c10::str("bias, expected [", weight.size(0), "], got ", bias.sizes()));
  if (target.sizes() != at::IntArrayRef{h.size(0)} || target.scalar_type() != at::kLong)
    throw bad_input(here, c10::str("target, expected int64 [", h.size(0), "], got ", target.sizes()));
  const int64_t real = target.ge(0).sum().item<int64_t>();
  if (real == 0) throw bad_input(here, "target, expected at least one row that is not padding, got none");
  if (const int64_t most = target.max().item<int64_t>(); most >= weight.size(0))
    throw bad_input(here, c10::str("target, expected < ", weight.size(0), " classes, got ", most));
  if (!kernels::has_cpu_kernel(h)) return plain::decoder_cross_entropy(h, weight, bias, target, normaliser);
  return DecoderCrossEntropy::apply(h, weight, bias, target, normaliser == 0 ? static_cast<double>(real) : normaliser,
                                    compat::records_gradient(h, weight, bias));
}

}  // namespace sb
