// The forward pass computes the gradients; the backward pass scales them.
#include "kernels/cuda/bind/tensors.h"
#include "kernels/cuda/decoder_loss.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {

bool supports_decoder_cross_entropy(const op::DecoderCrossEntropy&, const Tensors& in) {
  return readable(in[0]) && readable(in[1]) && readable(in[2]) && in[1].size(0) <= kMaxClasses &&
         (is_low(in[0]) || !in[5].defined());
}

// h, weight, bias, target, normaliser, copy? -> loss in float32
Tensors decoder_cross_entropy(const op::DecoderCrossEntropy&, const Tensors& in, Tensors* saved) {
  const Tensor h = in[0].contiguous(), bias = floats(in[2]), target = in[3].contiguous();
  const Tensor values = in[5].defined() ? in[5] : in[1];
  const int64_t classes = values.size(0), width = values.size(1), padded = (classes + 7) / 8 * 8;
  Tensor weight = values.to(h.scalar_type()).contiguous();
  if (padded != classes) weight = at::cat({weight, at::zeros({padded - classes, width}, weight.options())});
  DecoderLoss p;
  p.rows = h.size(0), p.width = static_cast<int>(width), p.classes = static_cast<int>(classes);
  p.padded_classes = static_cast<int>(padded);
  p.element = element_of(h), p.tf32 = kernels::tf32_is_allowed();
  p.h = data(h), p.weight = data(weight), p.bias = float_data(bias), p.target = target.data_ptr<int64_t>();
  p.normaliser = in[4].data_ptr<double>();
  DecoderLossGradients d;
  Tensors gradients;
  if (saved) {
    gradients = {fresh_like(h), fresh({padded, width}, h, at::kFloat), fresh_like(bias)};
    d = {data(gradients[0]), float_data(gradients[1]), float_data(gradients[2])};
  }
  const Tensor loss = fresh({1}, h, at::kDouble), memory = scratch(decoder_loss_scratch_bytes(p), h);
  const OnDevice on(h);
  on.check("decoder_cross_entropy",
           decoder_loss(p, loss.data_ptr<double>(), d, data(memory), blas_handle(), on.stream()));
  if (saved) {
    gradients[1] = gradients[1].narrow(0, 0, classes);
    *saved = gradients;
  }
  return {loss.to(at::kFloat).squeeze(0)};
}

Tensors decoder_cross_entropy_back(const op::DecoderCrossEntropy&, const Back& back) {
  Tensors out;
  for (const Tensor& x : back.saved) out.push_back(x * back.d_out[0]);  // one number: it does not widen a bf16 tensor
  out.resize(6);
  return out;
}

}  // namespace sb::cuda::bind
