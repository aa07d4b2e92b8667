// Processes rows in groups of kGroup; only the logits of one group exist at a time. The forward pass computes the
// gradients, the backward pass scales them.
#include "base/error.h"
#include "kernels/cpu/bind/tensors.h"
#include "kernels/cpu/cross_entropy.h"
#include "kernels/operations.h"

namespace sb::cpu {

using at::Tensor;
using kernels::Tensors;

namespace {

constexpr int64_t kGroup = 1024;

// The kernels use targets as indices for writing.
void check_targets(const Tensor& target, int64_t classes, double normaliser) {
  const char* here = "decoder_cross_entropy";
  const int64_t* values = target.data_ptr<int64_t>();
  int64_t most = -1;
  for (int64_t i = 0; i < target.numel(); ++i) most = std::max(most, values[i]);
  if (!(normaliser > 0)) throw bad_input(here, "target, expected at least one row that is not padding, got none");
  if (most >= classes) throw bad_input(here, c10::str("target, expected < ", classes, " classes, got ", most));
}

struct DecoderGradients {
  Tensor h, weight, bias;
};

template <class T>
double loss_and_gradients(const Tensor& h, const Tensor& weight, const Tensor& bias, const Tensor& target,
                          double normaliser, const DecoderGradients* gradients) {
  const int64_t rows = h.size(0), C = weight.size(0);
  const Tensor logits = fresh({std::min(rows, kGroup), C}, h.options());
  std::vector<double> losses(static_cast<size_t>(rows), 0.0);
  const T share = gradients ? static_cast<T>(1 / normaliser) : T(0);
  for (int64_t r0 = 0; r0 < rows; r0 += kGroup) {
    const int64_t group = std::min(kGroup, rows - r0);
    const Tensor block = logits.narrow(0, 0, group), inputs = h.narrow(0, r0, group);
    T* const logit = logits.data_ptr<T>();
    multiply(block, inputs, weight.t(), bias);
    cross_entropy_rows(group, C, logit, target.data_ptr<int64_t>() + r0, share, losses.data() + r0);
    if (!gradients) continue;
    multiply(gradients->h.narrow(0, r0, group), block, weight);
    multiply(gradients->weight, block.t(), inputs, {}, r0 > 0);
    add_columns(group, C, logit, gradients->bias.data_ptr<T>());
  }
  double total = 0;
  for (const double loss : losses) total += loss;
  return total / normaliser;
}

}  // namespace

// h, weight, bias, target, normaliser, copy? (not read)
Tensors decoder_cross_entropy(const op::DecoderCrossEntropy&, const Tensors& in, Tensors* saved) {
  const Tensor h = in[0].contiguous(), weight = in[1].contiguous(), bias = in[2].contiguous();
  const Tensor target = in[3].contiguous();
  const double normaliser = *in[4].data_ptr<double>();
  check_targets(target, weight.size(0), normaliser);
  DecoderGradients gradients;
  if (saved) gradients = {fresh_like(h), fresh_like(weight), at::zeros(bias.sizes(), h.options())};
  const double loss = with_type_of(h, [&](auto type) {
    return loss_and_gradients<decltype(type)>(h, weight, bias, target, normaliser, saved ? &gradients : nullptr);
  });
  if (saved) *saved = {gradients.h, gradients.weight, gradients.bias};
  return {at::full({}, loss, h.options())};
}

Tensors decoder_cross_entropy_back(const op::DecoderCrossEntropy&, const kernels::Back& back) {
  Tensors out = back.saved;
  const Tensor& grad = back.d_out[0];
  const bool scales = with_type_of(grad, [&](auto type) { return *grad.data_ptr<decltype(type)>() != 1; });
  if (scales)
    for (Tensor& x : out) x = x * grad;
  out.resize(6);
  return out;
}

}  // namespace sb::cpu
