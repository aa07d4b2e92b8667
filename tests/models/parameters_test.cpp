#include "models/parameters.h"

#include <gtest/gtest.h>

#include "base/torch_pch.h"

namespace sb {
namespace {

TEST(Parameters, AreViewsIntoOneBufferAndTheirGradientsIntoAnother) {
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

TEST(Parameters, JoinedPartsLieSideBySideWhateverTheOrderOfDeclaration) {
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

TEST(Parameters, CopiesOfJoinedPartsAreTheirValuesWhereverTheyLie) {
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

TEST(Parameters, AllNamesAreInOrderOfDeclaration) {
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
