// GRU, gates in the order (r, z, n):
//   r, z = sigma(W_i x + b_i + W_h h + b_h);  n = tanh(W_in x + b_in + r (W_hn h + b_hn));  h' = (1 - z) n + z h
// z is at least a_min.
#include "base/torch_pch.h"
#include "kernels/elementwise.h"
#include "models/ops.h"
#include "models/registry.h"

namespace sb {
namespace {

class Gru final : public Mixer {
 public:
  Gru(const MixerOptions& options, ParameterList& p) : width_(options.width), a_min_(options[switches::a_min]) {
    weight_ih_ = p.matrix("weight_ih_l0", 3 * width_, width_);
    weight_hh_ = p.matrix("weight_hh_l0", 3 * width_, width_);
    bias_ih_ = p.bias("bias_ih_l0", 3 * width_, width_);
    bias_hh_ = p.bias("bias_hh_l0", 3 * width_, width_);
  }

  at::Tensor forward(const at::Tensor& x, const Context& context) const override {
    auto first = context.carried("state");
    const auto gates = project(x, weight_ih_, bias_ih_);
    if (!first.defined()) first = at::zeros({x.size(0), width_}, gates.options().dtype(wide_type(gates)));
    const auto h = gru_sequence(gates, weight_hh_->value, bias_hh_->value, first, a_min_);
    if (context.gates) {
      const auto before = at::cat({first.unsqueeze(1), h.narrow(1, 0, x.size(1) - 1)}, 1);
      const auto hidden = project(before, weight_hh_, bias_hh_);
      const auto z = sb::sigmoid(wide(gates + hidden).narrow(2, width_, width_)).clamp_min(a_min_);
      context.record("decay", z);
      context.record("write", 1 - z);
    }
    if (context.state) context.carry("state", h.select(1, x.size(1) - 1).contiguous());
    return h.to(x.scalar_type());
  }

  Taxonomy taxonomy() const override {
    return {Taxonomy::Action::nonlinear, true, true, a_min_ <= reach_threshold, true, width_};
  }
  double mixing_flops(int64_t) const override { return 12 * static_cast<double>(width_); }

 private:
  int64_t width_;
  double a_min_;
  Param weight_ih_, weight_hh_, bias_ih_, bias_hh_;
};

}  // namespace

ModelRow gru_row() {
  return {
      .name = "gru",
      .switches = {switches::a_min, switches::mlp},
      .make = make_mixer<Gru>,
      .equations = "r, z = sigma(W x + U h + b);  n = tanh(W x + b + r (U h + c));  h' = (1 - z) n + z h;  out = h'"};
}

}  // namespace sb
