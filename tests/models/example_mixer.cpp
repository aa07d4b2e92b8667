// A leaky integrator with a data-dependent leak, as the example of docs/add-a-model.md:
//   a_t = sigma(gate(x_t)),  s_t = a_t s_{t-1} + (1 - a_t) value(x_t),  out = s_t        elementwise over d channels
#include "base/torch_pch.h"
#include "models/ops.h"
#include "models/registry.h"

namespace sb {
namespace {

class LeakyIntegrator final : public Mixer {
 public:
  LeakyIntegrator(const MixerOptions& options, ParameterList& p) : width_(options.width) {
    gate_ = p.matrix("gate.weight", width_, width_);
    gate_bias_ = p.bias("gate.bias", width_, width_);
    value_ = p.matrix("value.weight", width_, width_);
  }

  at::Tensor forward(const at::Tensor& x, const Context& context) const override {
    const auto a = at::sigmoid(project(x, gate_->value, gate_bias_->value));
    const auto v = (1 - a) * project(x, value_->value);
    context.record("decay", a);
    auto s = context.carried("state");
    if (!s.defined()) s = at::zeros({x.size(0), width_}, x.options());
    std::vector<at::Tensor> out;
    for (int64_t t = 0; t < x.size(1); ++t) {
      s = a.select(1, t) * s + v.select(1, t);
      out.push_back(s);
    }
    context.carry("state", s);
    return at::stack(out, 1);
  }

  Taxonomy taxonomy() const override {
    return {.action = Taxonomy::Action::elementwise,
            .data_dependent = true,
            .complementary = true,
            .reaches_zero = true,
            .channel_mixing = false,
            .state_elements = width_};
  }

 private:
  int64_t width_;
  Param gate_, gate_bias_, value_;
};

}  // namespace

ModelRow leaky_integrator_row() {
  return {"leaky_integrator", {"mlp"}, {}, make_mixer<LeakyIntegrator>};
}

}  // namespace sb
