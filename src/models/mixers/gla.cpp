// Gated linear attention:
//   q, k, v = silu(conv4(.)), g = logsigmoid(gk(x)) / 16 per key channel
//   S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T;  o_t = K^{-1/2} q_t^T S_t
//   out = o_proj(RMS(o) * silu(g_proj(x)))
// With complementary gating, k_t (1 - e^{g_t}) is written instead of k_t.
#include "base/torch_pch.h"
#include "models/ops.h"
#include "models/registry.h"

namespace sb {
namespace {

constexpr int64_t gate_rank = 16;
constexpr double gate_divisor = 16;

class Gla final : public Mixer {
 public:
  Gla(const MixerOptions& options, ParameterList& p)
      : o_(options), keys_(o_.heads() * o_.key_width()), values_(o_.heads() * o_.value_width()) {
    const int64_t d = o_.width;
    const Param q = p.matrix("q_proj.weight", keys_, d);
    const Param k = p.matrix("k_proj.weight", keys_, d);
    const Param v = p.matrix("v_proj.weight", values_, d);
    const Param g = o_[switches::output_gate] ? p.matrix("g_proj.weight", values_, d) : nullptr;
    if (o_[switches::short_conv])
      conv_ = p.join(
          {p.conv4("q_conv1d.weight", keys_), p.conv4("k_conv1d.weight", keys_), p.conv4("v_conv1d.weight", values_)});
    const Param gate_in = p.matrix("gk_proj.0.weight", gate_rank, d);
    gate_out_ = p.matrix("gk_proj.1.weight", keys_, gate_rank);
    gate_bias_ = p.bias("gk_proj.1.bias", keys_, gate_rank);
    out_ = p.matrix("o_proj.weight", d, values_);
    norm_ = p.ones("g_norm_swish_gate.weight", o_.value_width());
    in_ = p.join({q, k, v, g, gate_in});
    widths_ = {2 * keys_ + values_, g ? values_ : 0, gate_rank};
  }

  at::Tensor forward(const at::Tensor& x, const Context& context) const override {
    const int64_t h = o_.heads();
    const auto parts = slices(project(x, in_), widths_);
    const auto qkv = slices(short_conv(parts[0], conv_.empty() ? at::Tensor() : conv_.value(), {}, context),
                            {keys_, keys_, values_});
    const auto logits = project(parts[2], gate_out_, gate_bias_);
    const auto g = bounded_below(heads_of(log_sigmoid(logits, 1 / gate_divisor), h), o_[switches::a_min]);
    auto k = heads_of(qkv[1], h);
    if (o_[switches::complementary]) k = (k * -at::expm1(g)).to(k.scalar_type());
    if (context.gates) context.record("decay", g.exp());
    const auto o = carried_attention(context, heads_of(qkv[0], h), k, heads_of(qkv[2], h), g,
                                     1 / std::sqrt(static_cast<double>(o_.key_width())));
    const auto normed = o_[switches::output_gate] ? rms_norm_then_gate(o, norm_->value, heads_of(parts[1], h), 1e-5)
                                                  : rms_norm(o, norm_->value, 1e-5);
    return project(flat_heads(normed), out_);
  }

  Taxonomy taxonomy() const override {
    return {Taxonomy::Action::elementwise,
            true,
            o_[switches::complementary],
            false,
            false,
            o_.heads() * o_.key_width() * o_.value_width()};
  }

  double mixing_flops(int64_t) const override {
    const double K = static_cast<double>(o_.key_width()), V = static_cast<double>(o_.value_width()), chunk = 64;
    return static_cast<double>(o_.heads()) * (4 * K * V + chunk * (K + V));
  }

 private:
  MixerOptions o_;
  int64_t keys_, values_;
  Param gate_out_, gate_bias_, out_, norm_;
  Joined in_, conv_;
  std::vector<int64_t> widths_;
};

}  // namespace

ModelRow gla_row() {
  return {
      .name = "gla",
      .switches = {switches::heads, switches::expand_k, switches::expand_v, switches::complementary.initially(false),
                   switches::short_conv, switches::output_gate, switches::a_min, switches::mlp},
      .make = make_mixer<Gla>,
      .equations =
          "q, k, v = silu(conv4(W x)), g = logsigmoid(W W x) / 16 per key channel\n"
          "S_t = diag(e^g) S_(t-1) + k v^T, k (1 - e^g) if complementary;  o = K^-1/2 q^T S\n"
          "out = W (RMS(o) silu(W x))"};
}

}  // namespace sb
