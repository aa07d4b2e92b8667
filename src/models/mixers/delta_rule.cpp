// DeltaNet, Gated DeltaNet and Gated DeltaProduct:
//   q, k = l2(silu(conv4(.))), v = silu(conv4(.)), beta = sigma(b(x)), g = -e^{A_log} softplus(a(x) + dt_bias)
//   S <- e^g S;  for every factor j: S <- S + beta_j k_j (v_j - k_j^T S);  o = K^{-1/2} q^T S
//   out = o_proj(RMS(o) * silu(g_proj(x)))
#include "base/torch_pch.h"
#include "models/ops.h"
#include "models/recorded.h"
#include "models/registry.h"

namespace sb {
namespace {

constexpr IntegerSwitch householder_factors{"householder_factors", 1, 1, 16, "delta-rule steps per token"};
constexpr TruthSwitch negative_eigenvalues{
    "negative_eigenvalues", false, "write strength in (0, 2) instead of (0, 1), which allows negative eigenvalues"};

constexpr TruthSwitch delta{"delta", true,
                            "delta rule: subtract the old value at the key before writing; off: only add"};

class DeltaRule : public Mixer {
 public:
  DeltaRule(const MixerOptions& options, ParameterList& p, bool decays, bool factors)
      : o_(options), keys_(o_.heads() * o_.key_width()), values_(o_.heads() * o_.value_width()) {
    const int64_t d = o_.width, h = o_.heads(), n = o_[householder_factors];
    if (decays) {
      A_log_ = p.add("A_log", {h}, Init::log_uniform(0, 16));
      dt_bias_ = p.add("dt_bias", {h}, Init::step_bias());
    }
    const Param q = p.matrix("q_proj.weight", keys_, d);
    const Param k = p.matrix("k_proj.weight", n * keys_, d);
    const Param v = p.matrix("v_proj.weight", n * values_, d);
    Param a = nullptr;
    if (decays && !factors) a = p.matrix("a_proj.weight", h, d);
    const Param b = p.matrix("b_proj.weight", n * h, d);
    if (decays && factors) a = p.matrix("a_proj.weight", h, d);
    if (o_[switches::short_conv]) {
      const Param q_conv = p.conv4("q_conv1d.weight", keys_), k_conv = p.conv4("k_conv1d.weight", n * keys_),
                  v_conv = p.conv4("v_conv1d.weight", n * values_);
      conv_ = p.join({q_conv, k_conv, v_conv});
      qk_conv_ = Joined({q_conv, k_conv});
      v_conv_ = Joined(v_conv);
    }
    const Param g = o_[switches::output_gate] ? p.matrix("g_proj.weight", values_, d) : nullptr;
    norm_ = p.ones("o_norm.weight", o_.value_width());
    out_ = p.matrix("o_proj.weight", d, values_);
    in_ = p.join({q, k, v, g, b, a});
    gate_width_ = g ? values_ : 0;
  }

  at::Tensor forward(const at::Tensor& x, const Context& context) const override {
    const int64_t batch = x.size(0), time = x.size(1), h = o_.heads(), n = o_[householder_factors];
    const auto copy = in_.copy();
    const int64_t K = computed_width(o_.key_width(), copy), V = computed_width(o_.value_width(), copy);
    const PaddedRows key_rows{(n + 1) * h, o_.key_width(), K}, value_rows{n * h, o_.value_width(), V};
    // Gates come last, padded by zeros: products are fastest if the rows of the result are aligned to 16 bytes.
    const int64_t gates = gate_width_ / o_.value_width(), few = n * h + (A_log_ ? h : 0),
                  most = computed_width(few, copy);
    const auto rows = Padding::of_rows({key_rows, value_rows, {gates, o_.value_width(), V}, {1, few, most}});
    // If weights have copies, queries and keys are convolved separately from values: then only their normalised form
    // must be kept for the backward pass.
    const bool apart = copy.defined();
    const int64_t keys = (n + 1) * h * K, values = n * h * V;
    std::vector<int64_t> widths{gates * V, n * h, A_log_ ? h : 0, most - few};
    const std::vector<int64_t> convolved = apart ? std::vector{keys, values} : std::vector{keys + values};
    widths.insert(widths.begin(), convolved.begin(), convolved.end());
    const auto parts = slices(project(x, in_, {}, rows), widths);
    const size_t gate = convolved.size(), strength = gate + 1, step = gate + 2;
    const auto taps = [&](const Joined& w, const std::vector<PaddedRows>& channels) {
      return w.empty() ? at::Tensor() : w.value(Padding::of_rows(channels));
    };
    const auto qk_v =
        apart ? std::vector{short_conv(parts[0], taps(qk_conv_, {key_rows}), {}, context),
                            short_conv(parts[1], taps(v_conv_, {value_rows}), {}, context, "conv.values")}
              : slices(short_conv(parts[0], taps(conv_, {key_rows, value_rows}), {}, context), {keys, values});
    const auto qk = slices(l2_normalise(heads_of(qk_v[0], (n + 1) * h)), {h, n * h}, 2);
    const auto k = qk[1].view({batch, time, n, h, K});
    const auto v = qk_v[1].view({batch, time, n, h, V});
    const auto beta = sigmoid_gate(parts[strength], o_[negative_eigenvalues] ? 2 : 1).view({batch, time, n, h});
    context.record("write", beta);
    at::Tensor g;
    if (A_log_) {
      g = bounded_below(softplus_decay(parts[step], dt_bias_->value, A_log_->value), o_[switches::a_min]);
      if (context.gates) context.record("decay", g.exp());
    }
    const double scale = 1 / std::sqrt(static_cast<double>(o_.key_width()));
    // Without the delta term there is one factor per token: S <- e^g S + k (beta v)^T.
    const auto o = o_[delta] ? carried_delta_rule(context, qk[0], k, v, beta, g, scale)
                             : carried_attention(context, qk[0], k.squeeze(2),
                                                 scale_heads(v.squeeze(2), beta.squeeze(2)), g, scale);
    const PaddedNorm norm(norm_, {1, o_.value_width(), V}, 1e-5);
    const auto normed = o_[switches::output_gate] ? rms_norm_then_gate(o, norm.gain, heads_of(parts[gate], h), norm.eps)
                                                  : rms_norm(o, norm.gain, norm.eps);
    return project(flat_heads(normed), out_, Padding::of_columns({h, o_.value_width(), V}));
  }

  Taxonomy taxonomy() const override {
    return {o_[delta] ? Taxonomy::Action::matrix : Taxonomy::Action::scalar,
            true,
            o_[delta],
            A_log_ != nullptr && o_[switches::a_min] <= reach_threshold,
            o_[delta],
            o_.heads() * o_.key_width() * o_.value_width()};
  }

  double mixing_flops(int64_t) const override {
    const double K = static_cast<double>(o_.key_width()), V = static_cast<double>(o_.value_width()), chunk = 64;
    if (!o_[delta]) return static_cast<double>(o_.heads()) * (chunk * (K + V) + 4 * K * V);
    const double factor = 4 * K * V + 2 * chunk * (K + V) + chunk * K;
    return static_cast<double>(o_.heads()) * (static_cast<double>(o_[householder_factors]) * factor + 2 * K * V);
  }

 private:
  MixerOptions o_;
  int64_t keys_, values_, gate_width_ = 0;
  Param A_log_ = nullptr, dt_bias_ = nullptr, norm_, out_;
  Joined in_, conv_, qk_conv_, v_conv_;
};

struct DeltaNet : DeltaRule {
  DeltaNet(const MixerOptions& options, ParameterList& p) : DeltaRule(options, p, false, false) {}
};
struct GatedDeltaNet : DeltaRule {
  GatedDeltaNet(const MixerOptions& options, ParameterList& p) : DeltaRule(options, p, true, false) {}
};
struct GatedDeltaProduct : DeltaRule {
  GatedDeltaProduct(const MixerOptions& options, ParameterList& p) : DeltaRule(options, p, true, true) {}
};

}  // namespace

ModelRow delta_net_row() {
  return {.name = "delta_net",
          .switches = {switches::heads, switches::expand_k, switches::expand_v, negative_eigenvalues,
                       switches::short_conv, switches::output_gate.initially(false), switches::mlp},
          .make = make_mixer<DeltaNet>,
          .equations =
              "q, k = l2(silu(conv4(W x))), v = silu(conv4(W x)), beta = sigma(W x)\n"
              "S_t = S_(t-1) + beta k (v - k^T S_(t-1))^T;  o = K^-1/2 q^T S;  out = W RMS(o)"};
}

ModelRow gated_delta_net_row() {
  return {.name = "gated_delta_net",
          .switches = {switches::heads, switches::expand_k, switches::expand_v, negative_eigenvalues,
                       switches::short_conv, switches::output_gate, switches::a_min, delta, switches::mlp},
          .make = make_mixer<GatedDeltaNet>,
          .equations =
              "q, k = l2(silu(conv4(W x))), v = silu(conv4(W x)), beta = sigma(W x), g = -e^A softplus(W x + b)\n"
              "S = e^g S_(t-1), S_t = S + beta k (v - k^T S)^T;  o = K^-1/2 q^T S;  out = W (RMS(o) silu(W x))\n"
              "delta off: S_t = S + beta k v^T"};
}

ModelRow gated_delta_product_row() {
  return {.name = "gated_delta_product",
          .switches = {switches::heads, switches::expand_k, switches::expand_v, householder_factors.initially(4),
                       negative_eigenvalues.initially(true), switches::short_conv, switches::output_gate,
                       switches::a_min, switches::mlp},
          .make = make_mixer<GatedDeltaProduct>,
          .equations =
              "as gated_delta_net, with n = householder_factors keys, values and strengths per token:\n"
              "S = e^g S_(t-1), then for j = 1..n: S = S + beta_j k_j (v_j - k_j^T S)^T;  o = K^-1/2 q^T S",
          .read_recorded = [](const RecordedLayer& layer, MixerOptions& options) {
            const int64_t q = layer.extent("q_proj.weight", 0), k = layer.extent("k_proj.weight", 0);
            if (q > 0 && k % q == 0) options.set(householder_factors, std::max<int64_t>(1, k / q));
          }};
}

}  // namespace sb
