#include "kernels/frame_rows.h"

#include "base/error.h"
#include "kernels/cuda/bind/tensors.h"
#include "kernels/cuda/frames.h"

namespace sb::kernels {

at::Tensor frame_rows(const at::Tensor& symbol, int64_t channels, at::ScalarType type, const FrameNoise& noise) {
  if (symbol.dim() != 2 || symbol.scalar_type() != at::kShort || !symbol.is_cuda())
    throw bad_input("frame_rows", c10::str("symbol, expected int16 [B,T] on a CUDA device, got ", symbol.scalar_type(),
                                           " ", symbol.sizes(), " on ", symbol.device()));
  const at::Tensor ids = symbol.contiguous(), samples = cuda::bind::contiguous(noise.samples);
  const at::Tensor out = cuda::bind::fresh({ids.size(0), ids.size(1), channels}, ids, type);
  if (out.numel() == 0) return out;
  cuda::FrameRows p;
  p.batch = static_cast<int>(ids.size(0)), p.time = static_cast<int>(ids.size(1)), p.vocab = static_cast<int>(channels);
  p.element = cuda::bind::element_of(out), p.symbol = ids.data_ptr<int16_t>();
  p.noise = noise.size, p.seed = noise.seed, p.split = noise.split;
  p.samples = noise.size > 0 ? samples.data_ptr<int64_t>() : nullptr;
  const cuda::bind::OnDevice on(ids);
  on.check("frame_rows", cuda::expand_frames(p, out.data_ptr(), on.stream()));
  return out;
}

}  // namespace sb::kernels
