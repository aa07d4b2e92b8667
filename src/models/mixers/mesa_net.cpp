// MesaNet, K = V = d/h:
//   q, k = l2(silu(conv4(.))), v = v_proj(x), beta = sigma(b(x)), g = logsigmoid(a(x)) per head
//   G_t = e^g G_{t-1} + beta k k^T,  S_t = e^g S_{t-1} + beta k v^T
//   o_t = S_t^T (G_t + diag(softplus(lambda) + 1/4))^{-1} q_t, by 30 steps of conjugate gradients
//   out = o_proj(RMS(o))
#include "base/torch_pch.h"
#include "kernels/elementwise.h"
#include "models/ops.h"
#include "models/registry.h"

namespace sb {
namespace {

constexpr int64_t solver_steps = 30;

class MesaNet final : public Mixer {
 public:
  MesaNet(const MixerOptions& options, ParameterList& p) : o_(options), head_(o_.width / o_.heads()) {
    const int64_t d = o_.width, h = o_.heads();
    lambda_ = p.add("lambda_params", {d}, Init::constant(portable::log(portable::exp(0.75) - 1)));
    const Param q = p.matrix("q_proj.weight", d, d), k = p.matrix("k_proj.weight", d, d),
                v = p.matrix("v_proj.weight", d, d);
    const Param a = p.matrix("a_proj.weight", h, d), a_bias = p.bias("a_proj.bias", h, d);
    const Param b = p.matrix("b_proj.weight", h, d), b_bias = p.bias("b_proj.bias", h, d);
    if (o_[switches::short_conv]) conv_ = p.join({p.conv4("q_conv1d.weight", d), p.conv4("k_conv1d.weight", d)});
    norm_ = p.ones("o_norm.weight", head_);
    out_ = p.matrix("o_proj.weight", d, d);
    in_ = p.join({q, k, v});
    gates_ = p.join({a, b});
    gate_bias_ = p.join({a_bias, b_bias});
  }

  at::Tensor forward(const at::Tensor& x, const Context& context) const override {
    const int64_t d = o_.width, h = o_.heads();
    const auto parts = slices(project(x, in_), {2 * d, d});
    const auto gates = slices(wide(project(x, gates_, gate_bias_)), {h, h});
    const auto mixed = short_conv(parts[0], conv_.empty() ? at::Tensor() : conv_.value(), {}, context);
    // The solver amplifies the rounding of keys, not that of values.
    const auto qk = slices(l2_normalise(wide(heads_of(mixed, 2 * h))), {h, h}, 2);
    const auto g = bounded_below(log_sigmoid(gates[0], 1), o_[switches::a_min]);
    const auto beta = sigmoid_gate(gates[1], 1);
    context.record("write", beta);
    if (context.gates) context.record("decay", g.exp());
    const auto ridge = (sb::softplus(wide(lambda_->value)) + 0.25).view({h, head_});
    const auto read =
        mesa_attention(qk[0], qk[1], heads_of(parts[1], h), beta, g, ridge, solver_steps, context.carried("state"));
    context.carry("state", read.state);
    return project(flat_heads(rms_norm(read.out.to(x.scalar_type()), norm_->value, 1e-5)), out_);
  }

  Taxonomy taxonomy() const override {
    return {Taxonomy::Action::scalar, true, false, o_[switches::a_min] <= reach_threshold, false, 2 * o_.width * head_};
  }

  double mixing_flops(int64_t) const override {
    const double K = static_cast<double>(head_), chunk = 64;
    return static_cast<double>(o_.heads() * (solver_steps + 1)) * (4 * K * K + 2 * chunk * K);
  }

 private:
  MixerOptions o_;
  int64_t head_;
  Param lambda_, norm_, out_;
  Joined in_, conv_, gates_, gate_bias_;
};

}  // namespace

ModelRow mesa_net_row() {
  return {.name = "mesa_net",
          .switches = {switches::heads, switches::short_conv, switches::a_min, switches::mlp},
          .make = make_mixer<MesaNet>,
          .equations =
              "q, k = l2(silu(conv4(W x))), v = W x, beta = sigma(W x + b), g = logsigmoid(W x + b) per head\n"
              "G_t = e^g G_(t-1) + beta k k^T, S_t = e^g S_(t-1) + beta k v^T\n"
              "o = S^T (G + diag(softplus(lambda) + 1/4))^-1 q by 30 steps of conjugate gradients;  out = W RMS(o)"};
}

}  // namespace sb
