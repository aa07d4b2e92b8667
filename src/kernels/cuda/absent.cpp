// A build without CUDA kernels.
#include "base/error.h"
#include "kernels/adam_update.h"
#include "kernels/frame_rows.h"
#include "kernels/operations.h"

namespace sb::cuda {

template <class Op>
kernels::Kernel<Op> kernel() {
  return {};
}
template kernels::Kernel<op::SelectiveScan> kernel();
template kernels::Kernel<op::DecayedAttention> kernel();
template kernels::Kernel<op::WrittenAttention> kernel();
template kernels::Kernel<op::GatedDelta> kernel();
template kernels::Kernel<op::GeneralDelta> kernel();
template kernels::Kernel<op::ForgettingAttention> kernel();
template kernels::Kernel<op::TrapezoidAttention> kernel();
template kernels::Kernel<op::Mesa> kernel();
template kernels::Kernel<op::LogLinearAttention> kernel();
template kernels::Kernel<op::Gru> kernel();
template kernels::Kernel<op::DecayedAttentionStep> kernel();
template kernels::Kernel<op::GatedDeltaStep> kernel();
template kernels::Kernel<op::GeneralDeltaStep> kernel();
template kernels::Kernel<op::Project> kernel();
template kernels::Kernel<op::BatchedProduct> kernel();
template kernels::Kernel<op::Conv4> kernel();
template kernels::Kernel<op::TokenShift> kernel();
template kernels::Kernel<op::Rwkv7Keys> kernel();
template kernels::Kernel<op::Rwkv7Read> kernel();
template kernels::Kernel<op::RowNorm> kernel();
template kernels::Kernel<op::GateSilu> kernel();
template kernels::Kernel<op::GateSwish> kernel();
template kernels::Kernel<op::SoftplusBias> kernel();
template kernels::Kernel<op::SoftplusDecay> kernel();
template kernels::Kernel<op::SoftplusGates> kernel();
template kernels::Kernel<op::ScaleHeads> kernel();
template kernels::Kernel<op::SkipNorm> kernel();
template kernels::Kernel<op::LogSigmoid> kernel();
template kernels::Kernel<op::SigmoidGate> kernel();
template kernels::Kernel<op::ResidualLayerNorm> kernel();
template kernels::Kernel<op::Dropout> kernel();
template kernels::Kernel<op::CausalAttention> kernel();
template kernels::Kernel<op::Rope> kernel();
template kernels::Kernel<op::DecoderCrossEntropy> kernel();

}  // namespace sb::cuda

namespace sb::kernels {
namespace {

Error not_built(const char* where) {
  return bad_input(where, "no CUDA kernels, expected a build with nvcc and a PyTorch with CUDA, got one without");
}

}  // namespace

bool cuda_kernels_are_built() {
  return false;
}
at::Tensor adam_stretches(const std::vector<AdamStretch>&, const at::Device&) {
  throw not_built("adam_update");
}
at::Tensor adam_update(const FlatAdam&, const at::Tensor&, const at::Tensor&) {
  throw not_built("adam_update");
}
at::Tensor frame_rows(const at::Tensor&, int64_t, at::ScalarType, const FrameNoise&) {
  throw not_built("frame_rows");
}

}  // namespace sb::kernels
