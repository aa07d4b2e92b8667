// Mamba-3 (SISO), D = 2d channels in 2h heads of P = d/h, N states:
//   (z, x, B, C, dt, A, trap, angles) = in_proj(u);  Delta = softplus(dt + dt_bias);  lambda = sigma(trap)
//   g = -max(1e-4, f(A)) Delta,  f(u) = 1 + u for u >= 0, else 1 / (1 - u)
//   B, C = RMS(.) + a bias per head, with the pairs of channels (2j, 2j + 1), j < N/4, rotated by the angle
//   theta_t = theta_{t-1} + pi tanh(angles) Delta
//   S_t = e^g (S_{t-1} + (1 - lambda) Delta B_{t-1} x_{t-1}^T) + lambda Delta B_t x_t^T;  y = C^T S + D x
//   out = out_proj(y * silu(z))
#include "base/torch_pch.h"
#include "models/ops.h"
#include "models/recorded.h"
#include "models/registry.h"

namespace sb {
namespace {

constexpr IntegerSwitch states{"d_state", 128, 4, 4096, "state size per channel"};

class Mamba3 final : public Mixer {
 public:
  Mamba3(const MixerOptions& options, ParameterList& p)
      : o_(options),
        channels_(2 * o_.width),
        heads_(2 * o_.heads()),
        head_(o_.width / o_.heads()),
        angles_(o_[states] / 4) {
    const int64_t d = o_.width, D = channels_, N = o_[states];
    dt_bias_ = p.add("dt_bias", {heads_}, Init::step_bias());
    B_bias_ = p.add("B_bias", {heads_, 1, N}, Init::constant(1));
    C_bias_ = p.add("C_bias", {heads_, 1, N}, Init::constant(1));
    skip_ = p.ones("D", heads_);
    widths_ = {o_[switches::output_gate] ? D : 0, D, N, N, heads_, heads_, heads_, angles_};
    in_ = p.matrix("in_proj.weight", std::accumulate(widths_.begin(), widths_.end(), int64_t{0}), d);
    B_norm_ = p.ones("B_norm.weight", N);
    C_norm_ = p.ones("C_norm.weight", N);
    out_ = p.matrix("out_proj.weight", d, D);
  }

  at::Tensor forward(const at::Tensor& u, const Context& context) const override {
    const auto parts = slices(project(u, in_), widths_);
    const auto x = heads_of(parts[1], heads_);
    const auto [delta, decay, here, before] = mamba3_gates(parts[4], parts[5], parts[6], dt_bias_->value);
    const auto g = bounded_below(decay, o_[switches::a_min]);
    context.record("step", delta);
    context.record("write", here);
    if (context.gates) context.record("decay", g.exp());
    const auto [k, q, angle] = mamba3_keys(
        {parts[2], parts[3], B_norm_->value, C_norm_->value, B_bias_->value.squeeze(1), C_bias_->value.squeeze(1)},
        parts[7], delta, context.carried("angle"));
    const auto read =
        trapezoid_attention(q, k, x, g, here, before, skip_->value, 1,
                            {context.carried("state"), context.carried("last.k"), context.carried("last.v")});
    const int64_t last = u.size(1) - 1;
    context.carry("angle", angle);
    context.carry("state", read.state);
    context.carry("last.k", k.select(1, last));
    context.carry("last.v", x.select(1, last));
    const auto y = flat_heads(read.out);
    return project(widths_[0] > 0 ? gate_silu(y, parts[0]) : y, out_);
  }

  Taxonomy taxonomy() const override {
    return {Taxonomy::Action::scalar, true, true, o_[switches::a_min] <= reach_threshold, false,
            channels_ * o_[states]};
  }

  double mixing_flops(int64_t length) const override {
    const double chunk = static_cast<double>(std::min<int64_t>(64, length)), N = static_cast<double>(o_[states]);
    const double P = static_cast<double>(head_);
    return static_cast<double>(heads_) * (chunk * (P + N) + 4 * N * P);
  }

 private:
  MixerOptions o_;
  int64_t channels_, heads_, head_, angles_;
  Param dt_bias_, B_bias_, C_bias_, skip_, in_, B_norm_, C_norm_, out_;
  std::vector<int64_t> widths_;
};

void read_recorded_mamba3(const RecordedLayer& layer, MixerOptions& options) {
  const int64_t N = layer.extent("B_norm.weight", 0), rows = layer.extent("in_proj.weight", 0);
  const int64_t rest = 2 * N + 3 * layer.extent("dt_bias", 0) + N / 4;
  options.set(states, N);
  options.set(switches::output_gate, rows - rest == 4 * options.width);
}

}  // namespace

ModelRow mamba3_row() {
  return {
      .name = "mamba3",
      .switches = {switches::heads, states, switches::output_gate, switches::a_min, switches::mlp},
      .make = make_mixer<Mamba3>,
      .equations =
          "(z, x, B, C, dt, A, trap, angles) = W u, Delta = softplus(dt + b), lambda = sigma(trap);  2 h heads of d/h\n"
          "g = -max(1e-4, f(A)) Delta, f(u) = 1 + u for u >= 0, else 1 / (1 - u)\n"
          "B, C = RMS(.) + bias, half of their channels rotated in pairs by theta_t = theta_(t-1) + pi tanh(angles) "
          "Delta\n"
          "S_t = e^g (S_(t-1) + (1 - lambda) Delta B_(t-1) x_(t-1)^T) + lambda Delta B x^T per head\n"
          "y = C^T S + D x;  out = W (y silu(z))",
      .read_recorded = read_recorded_mamba3};
}

}  // namespace sb
