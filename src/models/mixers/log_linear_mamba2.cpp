// Log-linear Mamba2, D = 2d channels in 2h heads of P = d/h, N states. The past is kept as a Fenwick tree of blocks of
// 1, 2, 4, … frames; frame s is in level 0 of frame t if s = t, else in level 1 + floor(log2(t xor s)).
//   (z, xBC, dt, dl) = in_proj(u), (x, B, C) = silu(conv4(xBC)), Delta = softplus(dt + dt_bias)
//   y_t = sum over levels l of softplus(L_l dl_l) C_t^T S_t[l] + D x_t,  S_t[l] = sum over s in l of decay B_s (Delta
//   x_s)^T with the decay of Mamba2, exp(-Delta e^{A_log}) per frame;  out = out_proj(RMS(y * silu(z)))
#include "base/torch_pch.h"
#include "kernels/elementwise.h"
#include "models/ops.h"
#include "models/recorded.h"
#include "models/registry.h"

namespace sb {
namespace {

constexpr int64_t levels = 15;  // 2^14 frames; what lies further back stays in the last level

class LogLinearMamba2 final : public Mixer {
 public:
  LogLinearMamba2(const MixerOptions& options, ParameterList& p)
      : o_(options), channels_(2 * o_.width), heads_(2 * o_.heads()), head_(o_.width / o_.heads()) {
    const int64_t d = o_.width, D = channels_, N = o_[switches::d_state];
    dt_bias_ = p.add("dt_bias", {heads_}, Init::step_bias());
    A_log_ = p.add("A_log", {heads_}, Init::log_position());
    level_ = p.add("L", {heads_, levels}, Init::constant(1));
    skip_ = p.ones("D", heads_);
    conv_ = p.conv4("conv1d.weight", D + 2 * N);
    widths_ = {D, D + 2 * N, heads_, heads_ * levels};
    const int64_t rows = 2 * D + 2 * N + heads_ * (1 + levels);
    in_ = p.matrix("in_proj.weight", rows, d);
    in_bias_ = p.bias("in_proj.bias", rows, d);
    norm_ = p.ones("norm.weight", D);
    out_ = p.matrix("out_proj.weight", d, D);
    out_bias_ = p.bias("out_proj.bias", d, D);
  }

  at::Tensor forward(const at::Tensor& u, const Context& context) const override {
    const int64_t N = o_[switches::d_state];
    const auto parts = slices(project(u, in_, in_bias_), widths_);
    const auto xBC = slices(short_conv(parts[1], conv_->value, {}, context), {channels_, N, N});
    const auto x = heads_of(xBC[0], heads_);
    const auto [delta, decay] = softplus_gates(wide(parts[2]), wide(dt_bias_->value), wide(A_log_->value));
    const auto g = bounded_below(decay, o_[switches::a_min]);
    const auto weights = sb::softplus(level_->value * heads_of(wide(parts[3]), heads_));
    context.record("step", delta);
    context.record("write", delta);
    if (context.gates) context.record("decay", g.exp());
    const auto read =
        carried_log_linear(context, xBC[2].unsqueeze(2), xBC[1].unsqueeze(2), scale_heads(x, delta), g, weights);
    const auto normed = skip_then_gate_then_rms_norm(read, x, skip_->value, norm_->value, parts[0], 1e-5);
    return project(normed, out_, out_bias_);
  }

  Taxonomy taxonomy() const override {
    return {Taxonomy::Action::scalar,
            true,
            true,
            o_[switches::a_min] <= reach_threshold,
            false,
            (levels - 1) * channels_ * o_[switches::d_state]};
  }

  // A sequence of T frames has log2(T) blocks.
  double mixing_flops(int64_t length) const override {
    const double chunk = static_cast<double>(std::min<int64_t>(64, length)),
                 N = static_cast<double>(o_[switches::d_state]);
    const double P = static_cast<double>(head_), blocks = std::log2(std::max(2.0, static_cast<double>(length) / 64));
    return chunk * N + static_cast<double>(heads_) * (chunk * P + 2 * N * P * (1 + blocks));
  }

 private:
  MixerOptions o_;
  int64_t channels_, heads_, head_;
  Param dt_bias_, A_log_, level_, skip_, conv_, in_, in_bias_, norm_, out_, out_bias_;
  std::vector<int64_t> widths_;
};

void read_recorded_log_linear_mamba2(const RecordedLayer& layer, MixerOptions& options) {
  options.set(switches::d_state, (layer.extent("conv1d.weight", 0) - 2 * options.width) / 2);
}

}  // namespace

ModelRow log_linear_mamba2_row() {
  return {.name = "log_linear_mamba2",
          .switches = {switches::heads, switches::d_state, switches::a_min, switches::mlp},
          .make = make_mixer<LogLinearMamba2>,
          .equations =
              "as mamba2, with the past split into levels: frame s is in level 0 of frame t if s = t, else in level\n"
              "1 + floor(log2(t xor s));  S_t[l] is the state of Mamba2 that holds the frames of level l\n"
              "y = sum_l softplus(L_l W u) C^T S[l] + D x;  out = W RMS(y silu(z)) + b",
          .read_recorded = read_recorded_log_linear_mamba2};
}

}  // namespace sb
