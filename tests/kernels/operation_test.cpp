// One shape for every operation: the choice of a back end and the way to autograd.
#include <gtest/gtest.h>

#include "kernels/operations.h"
#include "recurrence_run.h"

namespace sb::test {
namespace {

TEST(Backends, TheTensorDecidesAndATestMayInsist) {
  using kernels::Backend;
  EXPECT_EQ(kernels::backend_of(at::ones({2})), Backend::cpu);
  EXPECT_EQ(kernels::backend_of(at::ones({2}, at::kDouble)), Backend::cpu);
  EXPECT_EQ(kernels::backend_of(at::ones({2}, at::kHalf)), Backend::aten);
  {
    const kernels::UseBackend outer(Backend::truth);
    EXPECT_EQ(kernels::on(Backend::aten, [] { return kernels::backend_of(at::ones({2})); }), Backend::aten);
    EXPECT_EQ(kernels::backend_of(at::ones({2})), Backend::truth);
  }
  EXPECT_EQ(kernels::backend_of(at::ones({2})), Backend::cpu);
}

TEST(Backends, WhereThereIsNoKernelAtensRuns) {
  using kernels::Backend;
  const op::Conv4 conv{true};
  const auto& row = kernels::row_of<op::Conv4>();
  EXPECT_EQ(row.of(Backend::truth, conv, {}).forward, row.aten.forward);
  EXPECT_EQ(row.of(Backend::cpu, conv, {}).forward, row.cpu.forward);
  const auto& gru = kernels::row_of<op::Gru>();
  EXPECT_EQ(gru.of(Backend::truth, {0}, {}).forward, gru.truth.forward);
  // A state that does not lie in order cannot be changed in place by our loop.
  const auto& step = kernels::row_of<op::GatedDeltaStep>();
  const Tensor state = at::zeros({2, 3, 4, 5});
  EXPECT_EQ(step.of(Backend::cpu, {1}, {{}, {}, {}, {}, {}, state}).forward, step.cpu.forward);
  EXPECT_EQ(step.of(Backend::cpu, {1}, {{}, {}, {}, {}, {}, state.transpose(0, 1)}).forward, step.aten.forward);
}

}  // namespace

// An operation made here: y = factor x, with a gradient of its own.
struct Times {
  double factor;
};
static kernels::Tensors times(const Times& op, const kernels::Tensors& in, kernels::Tensors* saved) {
  if (saved) *saved = {in[0]};
  return {in[0] * op.factor, in[0] + 1};
}
static kernels::Tensors times_back(const Times& op, const kernels::Back& back) {
  EXPECT_TRUE(back.saved[0].defined());
  EXPECT_FALSE(back.d_out[1].defined());  // nobody asked
  EXPECT_TRUE(back.wanted[0]);
  EXPECT_FALSE(back.wanted[1]);
  EXPECT_FALSE(back.wanted[2]);
  return {back.d_out[0] * op.factor, Tensor(), Tensor()};
}

}  // namespace sb::test

namespace sb::kernels {
template <>
const Operation<test::Times>& row_of<test::Times>() {
  static constexpr Operation<test::Times> row{{}, {test::times}, {test::times, test::times_back}, {}};
  return row;
}
}  // namespace sb::kernels

namespace sb::test {
namespace {

TEST(Backends, AbsentInputsAndUnusedOutputsPassThroughAutograd) {
  const Tensor x = at::ones({3}).requires_grad_(), other = at::ones({2});
  const kernels::Tensors out = kernels::run(Times{3}, {x, Tensor(), other});
  out[0].sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), at::full({3}, 3.0F)));
  const at::NoGradGuard no_gradients;
  EXPECT_FALSE(kernels::run(Times{3}, {x, Tensor(), other})[0].requires_grad());
}

}  // namespace
}  // namespace sb::test
