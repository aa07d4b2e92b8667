// Mamba2, D = 2d channels in 2h heads of P = d/h, N states:
//   (z, xBC, dt) = in_proj(u), (x, B, C) = silu(conv4(xBC)), Delta = softplus(dt + dt_bias)
//   S_t = exp(-Delta e^{A_log}) S_{t-1} + B_t (Delta x_t)^T;  y_t = C_t^T S_t + Dskip x_t    per head; B, C shared
//   out = out_proj(RMS(y * silu(z)))
// Without complementary gating, the write strength is softplus(dt_bias) instead of Delta.
#include "base/torch_pch.h"
#include "kernels/elementwise.h"
#include "models/ops.h"
#include "models/recorded.h"
#include "models/registry.h"

namespace sb {
namespace {

class Mamba2 final : public Mixer {
 public:
  Mamba2(const MixerOptions& options, ParameterList& p)
      : o_(options), channels_(2 * o_.width), heads_(2 * o_.heads()), head_(o_.width / o_.heads()) {
    const int64_t d = o_.width, D = channels_, N = o_[switches::d_state];
    dt_bias_ = p.add("dt_bias", {heads_}, Init::step_bias());
    A_log_ = p.add("A_log", {heads_}, Init::log_uniform(1, 16));
    skip_ = p.ones("D", heads_);
    widths_ = {o_[switches::output_gate] ? D : 0, D + 2 * N, heads_};
    in_ = p.matrix("in_proj.weight", widths_[0] + widths_[1] + widths_[2], d);
    if (o_[switches::short_conv]) {
      conv_ = p.conv4("conv1d.weight", D + 2 * N);
      conv_bias_ = p.bias("conv1d.bias", D + 2 * N, 4);
    }
    norm_ = p.ones("norm.weight", D);
    out_ = p.matrix("out_proj.weight", d, D);
  }

  at::Tensor forward(const at::Tensor& u, const Context& context) const override {
    const int64_t N = o_[switches::d_state], P = computed_width(head_, in_->copy), D = heads_ * P;
    const PaddedRows heads{heads_, head_, P}, states{2 * N, 1, 1};
    const std::vector<PaddedRows> rows{{widths_[0] / head_, head_, P}, heads, states, {heads_, 1, 1}};
    const auto parts = slices(project(u, in_, Padding::of_rows(rows)), {widths_[0] / head_ * P, D + 2 * N, heads_});
    const auto conv = [&](Param p) { return Joined(p).value(Padding::of_rows({heads, states})); };
    const auto mixed =
        conv_ ? short_conv(parts[1], conv(conv_), conv(conv_bias_), context) : short_conv(parts[1], {}, {}, context);
    const auto xBC = slices(mixed, {D, N, N});
    const auto x = heads_of(xBC[0], heads_);
    const auto [delta, decay] = softplus_gates(parts[2], dt_bias_->value, A_log_->value);
    const auto g = bounded_below(decay, o_[switches::a_min]);
    const auto write = o_[switches::complementary] ? delta : sb::softplus(dt_bias_->value).expand_as(delta);
    context.record("step", delta);
    context.record("write", write);
    if (context.gates) context.record("decay", g.exp());
    const auto q = xBC[2].unsqueeze(2), k = xBC[1].unsqueeze(2), state = context.carried("state");
    const PaddedNorm norm(norm_, heads, 1e-5);
    const auto columns = Padding::of_columns(heads);
    if (x.size(1) > 1 && o_[switches::output_gate] && attention_writes(q, k, x, g, write, skip_->value, state)) {
      const auto read = written_attention(q, k, x, g, write, skip_->value, 1, state);
      context.carry("state", read.state);
      return project(gate_then_rms_norm(flat_heads(read.out), norm.gain, parts[0], norm.eps), out_, columns);
    }
    const auto read = carried_attention(context, q, k, scale_heads(x, write), g, 1);
    at::Tensor normed;
    if (o_[switches::output_gate])
      normed = skip_then_gate_then_rms_norm(read, x, skip_->value, norm.gain, parts[0], norm.eps);
    else
      normed = rms_norm(flat_heads((read + skip_->value.unsqueeze(-1) * x).to(x.scalar_type())), norm.gain, norm.eps);
    return project(normed, out_, columns);
  }

  Taxonomy taxonomy() const override {
    return {Taxonomy::Action::scalar,
            true,
            o_[switches::complementary],
            o_[switches::a_min] <= reach_threshold,
            false,
            channels_ * o_[switches::d_state]};
  }

  double mixing_flops(int64_t length) const override {
    const double chunk = static_cast<double>(std::min<int64_t>(256, length)),
                 N = static_cast<double>(o_[switches::d_state]);
    const double P = static_cast<double>(head_);
    return chunk * N + static_cast<double>(heads_) * (chunk * P + 4 * N * P);
  }

 private:
  MixerOptions o_;
  int64_t channels_, heads_, head_;
  Param dt_bias_, A_log_, skip_, in_, conv_ = nullptr, conv_bias_ = nullptr, norm_, out_;
  std::vector<int64_t> widths_;
};

void read_recorded(const RecordedLayer& layer, MixerOptions& options) {
  const int64_t heads = layer.extent("A_log", 0), conv = layer.extent("conv1d.weight", 0);
  const int64_t rows = layer.extent("in_proj.weight", 0), d = options.width;
  const bool gated = conv == 0 || rows - conv - heads == 2 * d;
  options.set(switches::short_conv, conv > 0);
  options.set(switches::output_gate, gated);
  options.set(switches::d_state, (rows - heads - (gated ? 4 : 2) * d) / 2);
}

}  // namespace

ModelRow mamba2_row() {
  return {.name = "mamba2",
          .switches = {switches::heads, switches::d_state, switches::complementary, switches::short_conv,
                       switches::output_gate, switches::a_min, switches::mlp},
          .make = make_mixer<Mamba2>,
          .equations =
              "(z, x, B, C, dt) = W u, (x, B, C) = silu(conv4(.)), Delta = softplus(dt + b);  2 h heads of d/h, N = "
              "d_state\n"
              "S_t = exp(-Delta e^A) S_(t-1) + B (Delta x_t)^T per head;  y = C^T S + D x;  out = W RMS(y silu(z))\n"
              "not complementary: a learned constant writes instead of Delta",
          .read_recorded = read_recorded};
}

}  // namespace sb
