// What slices() promises on a device: the gradients of split_with_sizes, whoever writes them, and no copy where every
// slice is used once by an operation that writes in place.
#pragma once
#include <functional>
#include <thread>

#include "base/torch_pch.h"
#include "kernels/gradient_place.h"
#include "kernels/operation.h"
#include "recurrence_run.h"

namespace sb::test {

// y = factor x; the gradient is written to its place where there is one.
struct Scaled {
  double factor;
};
inline std::vector<const void*> scaled_places;  // of the gradients that were written to theirs
inline kernels::Tensors scaled_forward(const Scaled& op, const kernels::Tensors& in, kernels::Tensors*) {
  return {in[0] * op.factor};
}
inline kernels::Tensors scaled_back(const Scaled& op, const kernels::Back& back) {
  const Tensor place = back.place(0);
  if (!place.defined()) return {back.d_out[0] * op.factor};
  scaled_places.push_back(place.data_ptr());
  place.copy_(back.d_out[0] * op.factor);
  return {place};
}

}  // namespace sb::test

namespace sb::kernels {
template <>
inline const Operation<test::Scaled>& row_of<test::Scaled>() {
  static constexpr Kernel<test::Scaled> own{test::scaled_forward, test::scaled_back};
  static constexpr Operation<test::Scaled> row{"Scaled", {}, own, own, own};
  return row;
}
}  // namespace sb::kernels

namespace sb::test {

inline Tensor scaled(const Tensor& x, double factor) {
  return kernels::run(Scaled{factor}, {x})[0];
}

struct SlicesCase {
  std::string name;
  size_t in_place;  // gradients written to their places
  std::function<Tensor(const Tensors&)> use;
};

// Of slices [2,5,6], [2,5,4], [2,5,3], [2,5,0] of [2,5,13]; products with what stands beside them make the gradient of
// every element another.
inline std::vector<SlicesCase> slices_cases() {
  const auto sum = [](const Tensor& x) {
    return (x * at::arange(1, x.numel() + 1, x.options()).view(x.sizes())).sum();
  };
  const auto heads = [](const Tensor& x) { return x.view({x.size(0), x.size(1), 2, x.size(2) / 2}); };
  return {
      {"each once, in other shapes", 3,
       [=](const Tensors& s) {
         return sum(scaled(heads(s[0]), 2)) + sum(scaled(s[1].unsqueeze(2), 3)) + sum(scaled(s[2], 5));
       }},
      {"one twice", 3,
       [=](const Tensors& s) {
         return sum(scaled(s[0], 2)) + sum(scaled(heads(s[0]), 7)) + sum(scaled(s[1], 3)) + sum(scaled(s[2], 5));
       }},
      {"one twice in one operation of ATen's", 2,
       [=](const Tensors& s) { return sum(s[0] * s[0]) + sum(scaled(s[1], 3)) + sum(scaled(s[2], 5)); }},
      {"two never", 1, [=](const Tensors& s) { return sum(scaled(s[1], 3)); }},
      {"none in place", 0, [=](const Tensors& s) { return sum(s[0].exp()) + sum(s[2]); }},
      {"part of one", 2,
       [=](const Tensors& s) {
         return sum(scaled(s[0].narrow(2, 1, 3), 2)) + sum(scaled(s[1], 3)) + sum(scaled(s[2], 5));
       }},
      {"behind another function", 1,
       [=](const Tensors& s) { return sum(scaled(s[0].sigmoid(), 2)) + sum(scaled(s[1], 3)); }},
      {"repeated", 1,
       [=](const Tensors& s) {
         return sum(scaled(s[0].unsqueeze(0).expand({3, 2, 5, 6}), 2)) + sum(scaled(s[1], 3));
       }},
      {"slices of a slice", 3,
       [=](const Tensors& s) {
         const Tensors parts = slices(scaled(s[0], 2), {2, 4});
         return sum(scaled(parts[0], 3)) + sum(scaled(parts[1], 5));
       }},
  };
}

inline Tensors cut(const Tensor& x, bool ours) {
  const std::vector<int64_t> widths{6, 4, 3, 0};
  return ours ? slices(x, widths) : x.split_with_sizes(widths, -1);
}

inline void expect_slices_hold(const at::TensorOptions& options) {
  const at::Tensor values = noise({2, 5, 13}, 3).to(options);
  const auto leaf = [&] { return values.clone().set_requires_grad(true); };
  for (const SlicesCase& each : slices_cases()) {
    SCOPED_TRACE(each.name);
    const auto gradient = [&](bool ours, bool between, bool apart) {
      const Tensor x = leaf(), whole = between ? x * 2 : x;
      const Tensor loss = each.use(cut(whole, ours));
      scaled_places.clear();
      if (apart)
        std::thread([&] { loss.backward(); }).join();
      else
        loss.backward();
      return x.grad();
    };
    const Tensor expected = gradient(false, false, false);
    EXPECT_TRUE(at::equal(gradient(true, false, false), expected));
    EXPECT_EQ(scaled_places.size(), each.in_place);
    EXPECT_TRUE(at::equal(gradient(true, true, false), gradient(false, true, false)));
    EXPECT_TRUE(at::equal(gradient(true, false, true), expected)) << "in another thread";
  }
  {  // no copy: the gradient that arrives is the memory that was written
    const Tensor x = leaf();
    const Tensor loss = slices_cases()[0].use(cut(x, true));
    scaled_places.clear();
    loss.backward();
    const char* const first = static_cast<const char*>(x.grad().data_ptr());
    for (const int64_t column : {0, 6, 10})
      EXPECT_EQ(std::count(scaled_places.begin(), scaled_places.end(), first + column * x.element_size()), 1);
  }
  {  // other axes, and a whole that does not lie in order
    const auto loss = [&](const Tensors& s) { return (scaled(s[0], 2).square().sum() + scaled(s[1], 3).exp().sum()); };
    for (const bool turned : {false, true}) {
      const Tensor x = leaf(), y = leaf();
      const auto shaped = [&](const Tensor& z) { return turned ? z.transpose(0, 1) : z; };
      loss(slices(shaped(x), turned ? std::vector<int64_t>{2, 3} : std::vector<int64_t>{1, 1}, 0)).backward();
      loss(shaped(y).split_with_sizes(turned ? std::vector<int64_t>{2, 3} : std::vector<int64_t>{1, 1}, 0)).backward();
      EXPECT_TRUE(at::equal(x.grad(), y.grad()));
    }
  }
  {  // a graph that is walked again gives the same, and leaves what it gave before alone
    const Tensor x = leaf();
    const Tensor loss = slices_cases()[0].use(cut(x, true));
    const Tensor first = torch::autograd::grad({loss}, {x}, {}, true)[0], kept = first.clone();
    const Tensor second = torch::autograd::grad({loss}, {x}, {}, true)[0];
    const Tensor last = torch::autograd::grad({loss}, {x})[0];
    EXPECT_TRUE(at::equal(first, kept));
    EXPECT_TRUE(at::equal(second, kept));
    EXPECT_TRUE(at::equal(last, kept));
  }
  {  // the gradient of a slice alone stays what it is when others of the graph follow
    const Tensor x = leaf();
    const Tensors s = cut(x, true);
    const Tensor a = scaled(s[0], 2).square().sum(), b = scaled(s[1], 4).square().sum();
    const Tensor of_slice = torch::autograd::grad({a}, {s[0]})[0], kept = of_slice.clone();
    b.backward();
    EXPECT_TRUE(at::equal(of_slice, kept));
    EXPECT_EQ(x.grad().narrow(2, 0, 6).abs().sum().item<double>(), 0);
    EXPECT_EQ(x.grad().narrow(2, 10, 3).abs().sum().item<double>(), 0);
    EXPECT_TRUE(at::equal(x.grad().narrow(2, 6, 4), 32 * values.narrow(2, 6, 4)));
  }
  {  // gradients of gradients
    const Tensor x = leaf(), y = leaf();
    const auto second = [](const Tensor& z, bool ours) {
      const Tensors s = cut(z, ours);
      const Tensor loss = s[0].pow(3).sum() + (s[1] * s[0].narrow(2, 0, 4)).sum();
      return torch::autograd::grad({torch::autograd::grad({loss}, {z}, {}, true, true)[0].square().sum()}, {z})[0];
    };
    EXPECT_TRUE(at::equal(second(x, true), second(y, false)));
  }
  {  // without gradients: views
    const at::NoGradGuard no_gradients;
    const Tensor x = leaf() * 1;
    for (const Tensor& s : cut(x, true)) {
      EXPECT_FALSE(s.requires_grad());
      EXPECT_TRUE(s.is_alias_of(x));
    }
  }
}

}  // namespace sb::test
