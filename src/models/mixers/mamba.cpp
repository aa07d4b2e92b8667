// Mamba, D = 2d channels, N states per channel:
//   (x, z) = in_proj(u), x = silu(conv4(x)), (r, B, C) = x_proj(x), Delta = softplus(dt_proj(r))
//   h_t[c,n] = exp(-Delta_t[c] e^{A_log[c,n]}) h_{t-1}[c,n] + Delta_t[c] B_t[n] x_t[c];  y = C h + Dskip x
//   out = out_proj(y * silu(z))
// Without complementary gating, the write strength is softplus(dt_proj.bias) instead of Delta. a_min bounds the decay
// of every state from below; it does not change the write strength.
#include "base/torch_pch.h"
#include "kernels/elementwise.h"
#include "models/ops.h"
#include "models/recorded.h"
#include "models/registry.h"

namespace sb {
namespace {

class Mamba final : public Mixer {
 public:
  Mamba(const MixerOptions& options, ParameterList& p)
      : o_(options), channels_(2 * o_.width), rank_((o_.width + 15) / 16) {
    const int64_t d = o_.width, D = channels_, N = o_[switches::d_state];
    A_log_ = p.add("A_log", {D, N}, Init::log_position());
    skip_ = p.ones("D", D);
    in_ = p.matrix("in_proj.weight", o_[switches::output_gate] ? 2 * D : D, d);
    if (o_[switches::short_conv]) {
      conv_ = p.conv4("conv1d.weight", D);
      conv_bias_ = p.bias("conv1d.bias", D, 4);
    }
    x_ = p.matrix("x_proj.weight", rank_ + 2 * N, D);
    dt_ = p.matrix("dt_proj.weight", D, rank_);
    dt_bias_ = p.add("dt_proj.bias", {D}, Init::step_bias());
    out_ = p.matrix("out_proj.weight", d, D);
  }

  at::Tensor forward(const at::Tensor& u, const Context& context) const override {
    const int64_t N = o_[switches::d_state];
    const auto xz = slices(project(u, in_), {channels_, o_[switches::output_gate] ? channels_ : 0});
    const auto x =
        conv_ ? short_conv(xz[0], conv_->value, conv_bias_->value, context) : short_conv(xz[0], {}, {}, context);
    const int64_t rank = computed_width(rank_, x_->copy);
    const PaddedRows ranks{1, rank_, rank};
    const auto rBC = slices(project(x, x_, Padding::of_rows({ranks, {2 * N, 1, 1}})), {rank, N, N});
    const auto steps = project(rBC[0], dt_, Padding::of_columns(ranks));
    const auto delta = softplus_bias(steps, dt_bias_->value);
    at::Tensor write;
    if (!o_[switches::complementary]) write = sb::softplus(dt_bias_->value).expand_as(delta);
    if (context.gates)
      context.record("decay", (-delta * A_log_->value.exp().mean(1)).exp().clamp_min(o_[switches::a_min]));
    context.record("step", delta);
    context.record("write", write.defined() ? write : delta);
    const auto y = carried_selective_scan(context, x, delta, A_log_->value, rBC[1], rBC[2], skip_->value, write,
                                          o_[switches::a_min]);
    return project(o_[switches::output_gate] ? gate_silu(y, xz[1]) : y, out_);
  }

  Taxonomy taxonomy() const override {
    return {Taxonomy::Action::elementwise,          true,  o_[switches::complementary],
            o_[switches::a_min] <= reach_threshold, false, channels_ * o_[switches::d_state]};
  }

  double mixing_flops(int64_t) const override { return 9 * static_cast<double>(channels_ * o_[switches::d_state]); }

 private:
  MixerOptions o_;
  int64_t channels_, rank_;
  Param A_log_, skip_, in_, conv_ = nullptr, conv_bias_ = nullptr, x_, dt_, dt_bias_, out_;
};

void read_recorded_mamba(const RecordedLayer& layer, MixerOptions& options) {
  options.set(switches::d_state, layer.extent("A_log", 1));
  options.set(switches::short_conv, layer.extent("conv1d.weight", 0) > 0);
  options.set(switches::output_gate, layer.extent("in_proj.weight", 0) == 4 * options.width);
}

}  // namespace

ModelRow mamba_row() {
  return {
      .name = "mamba",
      .switches = {switches::d_state.initially(64), switches::complementary, switches::short_conv,
                   switches::output_gate, switches::a_min, switches::mlp},
      .make = make_mixer<Mamba>,
      .equations =
          "(x, z) = W u, x = silu(conv4(x)), (r, B, C) = W x, Delta = softplus(W r);  D = 2 d channels, N = d_state\n"
          "h_t = exp(-Delta e^A) h_(t-1) + Delta B x_t;  y = C h + D x;  out = W (y silu(z))\n"
          "not complementary: a learned constant writes instead of Delta",
      .read_recorded = read_recorded_mamba};
}

}  // namespace sb
