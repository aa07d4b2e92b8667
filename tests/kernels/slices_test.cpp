#include "slices_claims.h"

#include "kernels/fused.h"
#include "kernels/matmul.h"

namespace sb::test {
namespace {

class Slices : public RecurrenceTest {};

TEST_F(Slices, MatchGradientsOfSplitWithoutCopies) {
  expect_slices_hold(at::kDouble);
  expect_slices_hold(at::kFloat);
}

// One projection, sliced twice as in mixers: our slices and ATen's agree byte for byte.
TEST_F(Slices, GiveSameBytesAsAtenSplitInMixer) {
  const int64_t B = 2, T = 70, h = 2, K = 6, V = 5;
  const Tensor start = noise({B, T, 3 * h * K + 2 * h * V}, 1), taps = noise({2 * h * K + h * V, 1, 4}, 2);
  const Tensor gain = noise({V}, 3), beta = noise({B, T, 1, h}, 4).sigmoid();
  const auto gradients = [&](at::ScalarType type, bool ours, int64_t n) {
    const auto split = [&](const Tensor& x, const std::vector<int64_t>& widths, int64_t axis) {
      return ours ? slices(x, widths, axis) : x.split_with_sizes(widths, axis);
    };
    const Tensor x = start.to(type).clone().set_requires_grad(true), w = taps.to(type).clone().set_requires_grad(true);
    const Tensors parts = split(x * 1, {2 * h * K + h * V, h * V, h * K}, -1);
    const Tensors qk_v = split(conv4(parts[0], w, {}, true), {2 * h * K, h * V}, -1);
    const Tensors qk = split(l2_normalise(qk_v[0].view({B, T, 2 * h, K})), {h, h}, 2);
    const Tensor v = qk_v[1].view({B, T, h, V});
    const Tensor out = n == 0 ? decayed_attention(qk[0], qk[1], v, {}, 1, {}).out
                              : gated_delta_rule(qk[0], qk[1].unsqueeze(2), v.unsqueeze(2), beta.to(type), {}, 1).out;
    const Tensor y = rms_norm_then_gate(out, gain.to(type), parts[1].view({B, T, h, V}), 1e-5);
    const Tensor low = n == 0 ? project(parts[2], noise({3, h * K}, 6).to(type))
                              : project(parts[2].view({B, T, h, K}), noise({3, K}, 6).to(type));
    ((y * noise(y.sizes(), 5).to(type)).sum() + low.square().sum()).backward();
    return Tensors{x.grad(), w.grad()};
  };
  for (const at::ScalarType type : {at::kFloat, at::kDouble})
    for (const int64_t n : {0, 1}) {
      const Tensors got = gradients(type, true, n), expected = gradients(type, false, n);
      for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(at::equal(got[i], expected[i])) << n << " " << i;
    }
}

}  // namespace
}  // namespace sb::test
