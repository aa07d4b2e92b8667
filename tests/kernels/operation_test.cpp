// One shape for every operation: the choice of a back end and the way to autograd.
#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/calls.h"
#include "kernels/matmul.h"
#include "kernels/operations.h"
#include "recurrence_run.h"

namespace sb::test {
namespace {

TEST(Backends, DependOnTensorUnlessForced) {
  using kernels::Backend;
  EXPECT_EQ(kernels::backend_of(at::ones({2})), Backend::cpu);
  EXPECT_EQ(kernels::backend_of(at::ones({2}, at::kDouble)), Backend::cpu);
  EXPECT_EQ(kernels::backend_of(at::ones({2}, at::kHalf)), Backend::aten);
  {
    const kernels::UseBackend outer(Backend::naive);
    EXPECT_EQ(kernels::on(Backend::aten, [] { return kernels::backend_of(at::ones({2})); }), Backend::aten);
    EXPECT_EQ(kernels::backend_of(at::ones({2})), Backend::naive);
  }
  EXPECT_EQ(kernels::backend_of(at::ones({2})), Backend::cpu);
}

TEST(Backends, FallBackToAten) {
  using kernels::Backend;
  const op::Conv4 conv{true};
  const auto& row = kernels::row_of<op::Conv4>();
  EXPECT_EQ(row.of(Backend::naive, conv, {}).forward, row.aten.forward);
  EXPECT_EQ(row.of(Backend::cpu, conv, {}).forward, row.cpu.forward);
  const auto& gru = kernels::row_of<op::Gru>();
  EXPECT_EQ(gru.of(Backend::naive, {0}, {}).forward, gru.naive.forward);
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
  static constexpr Operation<test::Times> row{"Times", {}, {test::times}, {test::times, test::times_back}, {}};
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

// As delta_keys on a GPU, whose first result is its operand, a slice; the third result is an alias of the second.
TEST(Backends, InputsAndAliasesAsOutputsHaveGradientsOfTheirOwn) {
  const Tensor whole = noise({2, 6}, 1).set_requires_grad(true), factor = noise({2, 1}, 2).set_requires_grad(true);
  const auto parts = slices(whole * 1, {2, 4});
  bool written_at_place = false;
  const auto out = kernels::differentiable(
      [](const Tensors& in, Tensors* saved) -> Tensors {
        const Tensor y = in[0] * in[1];
        *saved = in;
        return {in[0], y, y.detach()};
      },
      [&](const kernels::Back& back) -> Tensors {
        const Tensor dy = back.d_out[1] + back.d_out[2], dx = back.place(0);
        written_at_place = dx.defined();
        if (!written_at_place) return {};
        dx.copy_(back.d_out[0] + dy * back.saved[1]);
        return {dx, (dy * back.saved[0]).sum(1, true)};
      },
      {parts[1], factor});
  const Tensor weights = noise({3, 2, 4}, 3);
  (out[0] * weights[0] + out[1] * weights[1] + out[2] * weights[2]).sum().backward();
  ASSERT_TRUE(written_at_place);
  const Tensor through = weights[1] + weights[2], x = whole.detach().narrow(1, 2, 4);
  EXPECT_TRUE(at::allclose(whole.grad().narrow(1, 2, 4), weights[0] + through * factor.detach()));
  EXPECT_EQ(whole.grad().narrow(1, 0, 2).abs().max().item<double>(), 0);
  EXPECT_TRUE(at::allclose(factor.grad(), (through * x).sum(1, true)));
}

TEST(WatchCalls, RecordsReplayableCalls) {
  const Tensor x = at::randn({2, 5, 8}).requires_grad_(), gain = at::randn({8}), weight = at::randn({3, 8});
  std::vector<kernels::Call> seen;
  Tensor normed;
  {
    const kernels::WatchCalls watch([&](kernels::Call call) { seen.push_back(std::move(call)); });
    EXPECT_THROW(kernels::WatchCalls([](const kernels::Call&) {}), Error);
    normed = rms_norm(x, gain, 1e-5);
    project(normed, weight);
  }
  rms_norm(x, gain, 1e-5);  // nobody looks
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].name, "row_norm");
  EXPECT_EQ(seen[0].shape(), "fp32 [2,5,8], fp32 [8], -");
  EXPECT_EQ(seen[0].wanted, (std::vector<bool>{true, false, false}));
  EXPECT_FALSE(seen[0].in[0].requires_grad());
  kernels::Tensors saved;
  const kernels::Tensors again = seen[0].forward(seen[0].in, &saved);
  EXPECT_TRUE(at::equal(again[0], normed));
  const Tensor d_out = at::randn({2, 5, 8});
  const kernels::Tensors gradients = seen[0].backward({saved, {d_out}, seen[0].wanted, false});
  EXPECT_TRUE(at::equal(gradients[0], torch::autograd::grad({normed}, {x}, {d_out})[0]));
  EXPECT_EQ(kernels::forward_work(seen[0], again).bytes, 4 * (80 + 8 + 80));
  EXPECT_EQ(kernels::forward_work(seen[0], again).operations, 0);
  EXPECT_EQ(seen[1].name, "project");
  EXPECT_EQ(kernels::forward_work(seen[1], {}).operations, 2 * 10 * 8 * 3);
  EXPECT_EQ(kernels::backward_work(seen[1], {}, {}).operations, 4 * 10 * 8 * 3);
}

TEST(WatchCalls, CountTheWorkOfEachOperation) {
  const Tensor x = at::randn({2, 5, 8}), weight = at::randn({3, 8}), q = at::randn({1, 3, 2, 4});
  std::vector<kernels::Call> seen;
  const kernels::WatchCalls watch([&](kernels::Call call) { seen.push_back(std::move(call)); });
  const Tensor y = project(x, weight, {}, weight.to(at::kBFloat16));
  causal_attention(q, q, q);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(kernels::forward_work(seen[0], {y}).bytes, 4 * 80 + 2 * 24 + 4 * 30) << "the copy is read, not the weight";
  EXPECT_EQ(seen[1].name, "causal_attention");
  EXPECT_EQ(kernels::forward_work(seen[1], {}).operations, 2 * 24 * 4);
  EXPECT_EQ(kernels::backward_work(seen[1], {}, {}).operations, 5 * 24 * 4);
}

}  // namespace
}  // namespace sb::test
