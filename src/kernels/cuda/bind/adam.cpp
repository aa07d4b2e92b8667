#include "kernels/cuda/adam.h"

#include <cstring>

#include "base/error.h"
#include "kernels/adam_update.h"
#include "kernels/cuda/bind/tensors.h"

namespace sb::kernels {

using at::Tensor;

Tensor adam_stretches(const std::vector<AdamStretch>& stretches, const at::Device& device) {
  static_assert(sizeof(cuda::AdamGroup) == 4 * sizeof(int64_t));
  const Tensor packed = at::zeros({static_cast<int64_t>(stretches.size()), 4}, at::kLong);
  auto* to = static_cast<char*>(packed.data_ptr());
  for (const AdamStretch& s : stretches) {
    const cuda::AdamGroup group{s.offset, s.length, s.max_lr, s.decay ? 1 : 0};
    std::memcpy(to, &group, sizeof group);
    to += sizeof group;
  }
  return packed.to(device);
}

Tensor adam_update(const FlatAdam& adam, const Tensor& gradients, const Tensor& loss) {
  const int64_t n = adam.parameters.numel();
  for (const Tensor& x : {adam.parameters, adam.first_moment, adam.second_moment, gradients})
    if (x.numel() != n || x.scalar_type() != at::kFloat || !x.is_contiguous() || x.device() != adam.parameters.device())
      throw bad_input("adam_update", c10::str("buffers, expected float32 [", n, "] on ", adam.parameters.device(),
                                              ", got ", x.scalar_type(), " ", x.sizes(), " on ", x.device()));
  if (adam.copy.defined() &&
      (adam.copy.numel() != n || adam.copy.scalar_type() != at::kBFloat16 || !adam.copy.is_contiguous()))
    throw bad_input("adam_update", c10::str("copy, expected bfloat16 [", n, "], got ", adam.copy.scalar_type(), " ",
                                            adam.copy.sizes()));
  cuda::FlatAdam p;
  p.count = n;
  p.parameters = adam.parameters.data_ptr<float>();
  p.first_moment = adam.first_moment.data_ptr<float>();
  p.second_moment = adam.second_moment.data_ptr<float>();
  p.gradients = gradients.data_ptr<float>();
  p.copy = cuda::bind::data(adam.copy);
  p.groups = static_cast<const cuda::AdamGroup*>(adam.stretches.data_ptr());
  p.group_count = static_cast<int>(adam.stretches.size(0));
  p.beta1 = adam.beta1, p.beta2 = adam.beta2, p.eps = adam.eps, p.weight_decay = adam.weight_decay;
  p.bf16_state = adam.bf16_state;
  p.lr = adam.lr.data_ptr<double>(), p.clip = adam.clip.data_ptr<double>(), p.loss = loss.data_ptr<double>();
  p.updates = adam.updates.data_ptr<int64_t>(), p.sound = adam.sound.data_ptr<int64_t>();
  static_assert(sizeof(cuda::AdamReport) == 2 * sizeof(double));
  const Tensor report = cuda::bind::fresh({2}, adam.parameters, at::kDouble);
  const Tensor memory = cuda::bind::scratch(cuda::adam_workspace_bytes(p), adam.parameters);
  const cuda::bind::OnDevice on(adam.parameters);
  on.check("adam_update", cuda::adam_update(p, reinterpret_cast<cuda::AdamReport*>(report.data_ptr<double>()),
                                            memory.data_ptr(), on.stream()));
  return report;
}

}  // namespace sb::kernels
