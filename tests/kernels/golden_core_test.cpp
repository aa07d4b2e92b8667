// The bare recurrences against recorded vectors: outputs in float64, gradients computed in float64 and stored in
// float32.
#include "base/safetensors.h"
#include "recurrence_run.h"

namespace sb::test {
namespace {

constexpr double kStorage = 6e-8;  // half a unit in the last place of float32

struct Golden {
  std::string name;
  Safetensors file;
  explicit Golden(const std::string& recurrence)
      : name(recurrence), file(Safetensors::load(SB_TEST_DATA "/layers/core_" + recurrence + ".safetensors")) {}
  Tensor operator[](const std::string& tensor) const {
    const StoredTensor& stored = file.at(name + "." + tensor);
    return at::tensor(stored.as_doubles(), at::kDouble).reshape(stored.shape);
  }
};

using Forward = std::function<Tensor(const Tensors&)>;

// Output and all gradients, in double and in float.
void expect_reproduced(const std::string& recurrence, const std::vector<std::string>& names, const Forward& forward) {
  const Golden golden(recurrence);
  for (const auto type : {at::kDouble, at::kFloat}) {
    Tensors inputs;
    for (const std::string& name : names) inputs.push_back(golden[name].to(type).set_requires_grad(true));
    const Tensor out = forward(inputs);
    const bool exact = type == at::kDouble;
    EXPECT_LE(relative_error(out.detach(), golden["out"]), exact ? 1e-11 : 2e-6) << recurrence;
    (out * golden["cot"].to(type)).sum().backward();
    for (size_t i = 0; i < names.size(); ++i) {
      EXPECT_LE(relative_error(inputs[i].grad(), golden["grad_" + names[i]]), exact ? kStorage : 2e-6)
          << recurrence << ": d " << names[i];
    }
  }
}

double scale_of(const Tensor& q) {
  return 1 / std::sqrt(static_cast<double>(q.size(-1)));
}

using GoldenCore = RecurrenceTest;

TEST_F(GoldenCore, LinearAttention) {
  expect_reproduced("linear_attn", {"q", "k", "v"},
                    [](const Tensors& x) { return decayed_attention(x[0], x[1], x[2], {}, scale_of(x[0])).out; });
}

TEST_F(GoldenCore, Retention) {
  expect_reproduced("retention", {"q", "k", "v"}, [](const Tensors& x) {
    const Tensor head = at::arange(x[2].size(2), at::kDouble);
    const Tensor g = at::log1p(-at::pow(2.0, -5 - head)).to(x[0].scalar_type());
    return decayed_attention(x[0], x[1], x[2], g, scale_of(x[0])).out;
  });
}

TEST_F(GoldenCore, ScalarAndVectorDecay) {
  for (const char* name : {"simple_gla", "gla"}) {
    expect_reproduced(name, {"q", "k", "v", "g"},
                      [](const Tensors& x) { return decayed_attention(x[0], x[1], x[2], x[3], scale_of(x[0])).out; });
  }
}

TEST_F(GoldenCore, StateSpaceDual) {
  expect_reproduced("ssd", {"x", "dt", "A", "B", "C", "D", "dt_bias"}, [](const Tensors& p) {
    const Tensor delta = at::softplus(p[1] + p[6]);
    const Tensor y = decayed_attention(p[4], p[3], p[0] * delta.unsqueeze(-1), delta * p[2], 1).out;
    return y + p[0] * p[5].unsqueeze(-1);
  });
}

TEST_F(GoldenCore, DeltaRule) {
  expect_reproduced("delta_rule", {"q", "k", "v", "beta"}, [](const Tensors& x) {
    return gated_delta_rule(x[0], x[1].unsqueeze(2), x[2].unsqueeze(2), x[3].unsqueeze(2), {}, scale_of(x[0])).out;
  });
}

TEST_F(GoldenCore, GatedDeltaRule) {
  expect_reproduced("gated_delta_rule", {"q", "k", "v", "beta", "g"}, [](const Tensors& x) {
    return gated_delta_rule(x[0], x[1].unsqueeze(2), x[2].unsqueeze(2), x[3].unsqueeze(2), x[4], scale_of(x[0])).out;
  });
}

TEST_F(GoldenCore, GatedDeltaProduct) {
  expect_reproduced("gated_delta_product", {"q", "k", "v", "beta", "g"}, [](const Tensors& x) {
    const auto factors = [&](const Tensor& y) {
      std::vector<int64_t> sizes = {y.size(0), x[0].size(1), y.size(1) / x[0].size(1)};
      for (int64_t axis = 2; axis < y.dim(); ++axis) sizes.push_back(y.size(axis));
      return y.reshape(sizes);
    };
    return gated_delta_rule(x[0], factors(x[1]), factors(x[2]), factors(x[3]), x[4], scale_of(x[0])).out;
  });
}

}  // namespace
}  // namespace sb::test
