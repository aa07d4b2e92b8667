#include "models/parameters.h"

#include <gtest/gtest.h>

#include "base/torch_pch.h"

namespace sb {
namespace {

TEST(Parameters, AndGradientsAreViewsOfFlatBuffers) {
  ParameterList list;
  const Param a = list.matrix("a", 2, 3);
  const Param b = list.bias("b", 4, 3);
  list.allocate(at::kDouble, at::kCPU);
  list.initialise(1);
  EXPECT_EQ(list.count(), 10);
  (a->value.sum() * 2 + b->value.sum() * 5).backward();
  EXPECT_TRUE(at::equal(list.flat_grad().narrow(0, a->offset, 6), at::full({6}, 2.0, at::kDouble)));
  EXPECT_TRUE(at::equal(list.flat_grad().narrow(0, b->offset, 4), at::full({4}, 5.0, at::kDouble)));
  list.flat().zero_();
  EXPECT_EQ(a->value.abs().sum().item<double>(), 0);
}

TEST(Parameters, JoinedPartsAreContiguousInAnyDeclarationOrder) {
  ParameterList list;
  const Param q = list.matrix("q", 2, 3);
  const Param between = list.ones("between", 5);
  const Param k = list.matrix("k", 4, 3);
  const Joined both = list.join({k, nullptr, q});
  list.allocate(at::kDouble, at::kCPU);
  list.initialise(1);
  EXPECT_EQ(q->offset, k->offset + 12);
  const auto value = both.value();
  EXPECT_TRUE(at::equal(value, at::cat({k->value, q->value})));
  EXPECT_EQ(value.data_ptr(), k->value.data_ptr());
  const auto weights = at::arange(18, at::kDouble).view({6, 3});
  (value * weights).sum().backward();
  EXPECT_TRUE(at::equal(k->value.grad(), weights.narrow(0, 0, 4)));
  EXPECT_TRUE(at::equal(q->value.grad(), weights.narrow(0, 4, 2)));
  EXPECT_EQ(between->value.grad().abs().sum().item<double>(), 0);
}

TEST(Parameters, CopiesOfJoinedPartsEqualTheirValues) {
  ParameterList list;
  const Param a = list.matrix("a", 2, 3);
  list.ones("between", 5);
  const Param b = list.matrix("b", 4, 3), c = list.matrix("c", 1, 3);
  const Joined beside = list.join({b, c}), apart({a, b});
  list.allocate(at::kFloat, at::kCPU, /*with_copy=*/true);
  list.initialise(1);
  EXPECT_TRUE(at::equal(beside.copy(), beside.value().to(at::kBFloat16)));
  EXPECT_EQ(beside.copy().data_ptr(), b->copy.data_ptr());
  EXPECT_TRUE(at::equal(apart.copy(), apart.value().to(at::kBFloat16)));
}

// backward() adds to the flat gradient; grad() returns the gradient.
TEST(Parameters, PaddedAndScaledValuesHaveCorrectGradients) {
  ParameterList list;
  const Param a = list.matrix("a", 6, 3), b = list.matrix("b", 4, 3), c = list.matrix("c", 2, 9);
  const Joined both = list.join({a, b});
  list.allocate(at::kDouble, at::kCPU);
  list.initialise(1);
  const auto rows = Padding::of_rows({{2, 3, 8}, {4, 1, 1}}), columns = Padding::of_columns({3, 3, 4});
  const auto value = both.value(rows, 0.5), wide = Joined(c).value(columns);
  ASSERT_EQ(value.sizes(), (at::IntArrayRef{20, 3}));
  ASSERT_EQ(wide.sizes(), (at::IntArrayRef{2, 12}));
  EXPECT_TRUE(at::equal(value.narrow(0, 8, 3), a->value.narrow(0, 3, 3) * 0.5));
  EXPECT_TRUE(at::equal(wide.view({2, 3, 4}).narrow(2, 0, 3).reshape({2, 9}), c->value));
  EXPECT_EQ(both.stand_in(rows).sizes(), value.sizes());
  const auto weights = at::arange(60, at::kDouble).view({20, 3}), others = at::arange(24, at::kDouble).view({2, 12});
  const auto of_a = 0.5 * at::cat({weights.narrow(0, 0, 3), weights.narrow(0, 8, 3)});
  const auto of_b = 0.5 * weights.narrow(0, 16, 4), of_c = others.view({2, 3, 4}).narrow(2, 0, 3).reshape({2, 9});
  const auto loss = [&] { return (both.value(rows, 0.5) * weights).sum() + (Joined(c).value(columns) * others).sum(); };
  const auto asked = torch::autograd::grad({loss()}, {a->value, b->value, c->value});
  EXPECT_TRUE(at::equal(asked[0], of_a));
  EXPECT_TRUE(at::equal(asked[1], of_b));
  EXPECT_TRUE(at::equal(asked[2], of_c));
  EXPECT_EQ(list.flat_grad().abs().sum().item<double>(), 0);
  const auto again = loss();
  again.backward({}, true);
  again.backward();
  EXPECT_TRUE(at::equal(a->value.grad(), 2 * of_a));
  EXPECT_TRUE(at::equal(b->value.grad(), 2 * of_b));
  EXPECT_TRUE(at::equal(c->value.grad(), 2 * of_c));
}

TEST(Parameters, AreListedInOrderOfDeclaration) {
  ParameterList list;
  list.set_prefix("layers.0.");
  list.ones("norm", 2);
  list.set_prefix("");
  list.ones("last", 2);
  EXPECT_EQ(list.all()[0].name, "layers.0.norm");
  EXPECT_EQ(list.all()[1].name, "last");
  EXPECT_NE(list.find("layers.0.norm"), nullptr);
  EXPECT_EQ(list.find("norm"), nullptr);
}

}  // namespace
}  // namespace sb
