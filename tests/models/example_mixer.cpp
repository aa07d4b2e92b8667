// A leaky integrator with a data-dependent leak, elementwise over d channels:
//   a_t = sigma(sharpness gate(x_t)),  s_t = a_t s_{t-1} + (1 - a_t) value(x_t),  out = s_t
#include "base/torch_pch.h"
#include "models/ops.h"
#include "models/registry.h"

namespace sb {
namespace {

constexpr NumberSwitch sharpness{"sharpness", 1, "a number in (0, 100]", [](double v) { return v > 0 && v <= 100; },
                                 "factor before the gate's sigmoid; large: keep all or nothing"};
constexpr LearningGroup slow{.max_lr = 1e-3, .decay = false};

class LeakyIntegrator final : public Mixer {
 public:
  LeakyIntegrator(const MixerOptions& options, ParameterList& p)
      : width_(options.width), sharpness_(options[sharpness]) {
    gate_ = p.matrix("gate.weight", width_, width_);
    // Deeper layers begin with longer memories.
    gate_bias_ = p.add("gate.bias", {width_}, Init::constant(static_cast<double>(options.layer)), 0, slow);
    value_ = p.matrix("value.weight", width_, width_);
  }

  at::Tensor forward(const at::Tensor& x, const Context& context) const override {
    const auto a = at::sigmoid(sharpness_ * project(x, gate_, gate_bias_));
    const auto v = (1 - a) * project(x, value_);
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
  double mixing_flops(int64_t /*length*/) const override { return 4 * static_cast<double>(width_); }

 private:
  int64_t width_;
  double sharpness_;
  Param gate_, gate_bias_, value_;
};

}  // namespace

ModelRow leaky_integrator_row() {
  return {.name = "leaky_integrator",
          .switches = {sharpness, switches::mlp},
          .make = make_mixer<LeakyIntegrator>,
          .equations = "a = sigma(sharpness (W x + b));  s_t = a s_(t-1) + (1 - a) W x_t;  out = s_t"};
}

}  // namespace sb
