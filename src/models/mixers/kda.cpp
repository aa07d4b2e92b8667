// Kimi Delta Attention and Gated DeltaNet-2: delta rules whose log-decay g has one value per key channel.
//   q, k = l2(silu(conv4(.))), v = silu(conv4(.)), g = -e^{A_log} softplus(f2 f1 x + dt_bias), A_log per head
//   KDA:   S <- diag(e^g) S,  S <- S + beta k (v - k^T S),  beta = sigma(b(x)) per head
//   GDN-2: S <- diag(e^g) S,  S <- S + k (w v - (b k)^T S),  b = sigma(b(x)) per key channel, w = sigma(w(x)) per value
//   o = K^{-1/2} q^T S;  out = o_proj(RMS(o) * sigma(g2 g1 x + bias))
#include "base/torch_pch.h"
#include "models/ops.h"
#include "models/recorded.h"
#include "models/registry.h"

namespace sb {
namespace {

enum class Strength { per_head, per_channel };

constexpr TruthSwitch negative_eigenvalues{
    "negative_eigenvalues", false, "erase strength in (0, 2) instead of (0, 1), which allows negative eigenvalues"};

constexpr TruthSwitch output_gate{"output_gate", true,
                                  "the output is multiplied by sigma of a projection of the input"};

class ChannelDelta : public Mixer {
 public:
  ChannelDelta(const MixerOptions& options, ParameterList& p, Strength strength)
      : o_(options), strength_(strength), keys_(o_.heads() * o_.key_width()), values_(o_.heads() * o_.value_width()) {
    const int64_t d = o_.width, h = o_.heads(), rank = o_.value_width();
    const bool channels = strength == Strength::per_channel;
    A_log_ = p.add("A_log", {h}, Init::log_uniform(1, 16));
    dt_bias_ = p.add("dt_bias", {keys_}, Init::step_bias());
    const Param q = p.matrix("q_proj.weight", keys_, d), k = p.matrix("k_proj.weight", keys_, d),
                v = p.matrix("v_proj.weight", values_, d);
    if (o_[switches::short_conv])
      conv_ = p.join(
          {p.conv4("q_conv1d.weight", keys_), p.conv4("k_conv1d.weight", keys_), p.conv4("v_conv1d.weight", values_)});
    const Param f = p.matrix("f_proj.0.weight", rank, d);
    decay_out_ = p.matrix("f_proj.1.weight", keys_, rank);
    const Param b = p.matrix("b_proj.weight", channels ? keys_ : h, d);
    const Param w = channels ? p.matrix("w_proj.weight", values_, d) : nullptr;
    Param g = nullptr;
    if (o_[output_gate]) {
      g = p.matrix("g_proj.0.weight", rank, d);
      gate_out_ = p.matrix("g_proj.1.weight", values_, rank);
      gate_bias_ = p.bias("g_proj.1.bias", values_, rank);
    }
    norm_ = p.ones("o_norm.weight", o_.value_width());
    out_ = p.matrix("o_proj.weight", d, values_);
    in_ = p.join({q, k, v, f, g, b, w});
    widths_ = {2 * keys_ + values_, rank, g ? rank : 0, channels ? keys_ : h, w ? values_ : 0};
  }

  at::Tensor forward(const at::Tensor& x, const Context& context) const override {
    const int64_t h = o_.heads();
    // The gates come last, padded by zeros: products are fastest if the rows of the result are aligned to 16 bytes.
    const int64_t before = widths_[0] + widths_[1] + widths_[2], few = widths_[3] + widths_[4],
                  most = computed_width(few, in_.copy());
    auto widths = widths_;
    widths.push_back(most - few);
    const auto parts = slices(project(x, in_, {}, Padding::of_rows({{before, 1, 1}, {1, few, most}})), widths);
    const auto qk_v =
        slices(short_conv(parts[0], conv_.empty() ? at::Tensor() : conv_.value(), {}, context), {2 * keys_, values_});
    const auto qk = slices(l2_normalise(heads_of(qk_v[0], 2 * h)), {h, h}, 2);
    const auto g = bounded_below(heads_of(softplus_decay(project(parts[1], decay_out_), dt_bias_->value,
                                                         A_log_->value.repeat_interleave(o_.key_width())),
                                          h),
                                 o_[switches::a_min]);
    if (context.gates) context.record("decay", g.exp());
    DeltaOperands rule{qk[0], qk[1], {}, {}, {}, g};
    const double largest = o_[negative_eigenvalues] ? 2 : 1;
    if (strength_ == Strength::per_head) {
      const auto b = sigmoid_gate(parts[3], largest);
      context.record("write", b);
      rule.v = heads_of(qk_v[1], h);
      const auto keys = delta_keys(rule.k, b);
      rule.erase = keys.erase;
      rule.write = rule.k = keys.key;
    } else {
      if (context.gates) context.record("write", sigmoid_gate(parts[4], 1));
      rule.v = heads_of(gate_sigmoid(qk_v[1], parts[4]), h);
      rule.erase = heads_of(gate_sigmoid(flat_heads(rule.k), parts[3], largest), h);
      rule.write = rule.k;
    }
    const auto o = carried_general_delta(context, rule, 1 / std::sqrt(static_cast<double>(o_.key_width())),
                                         EraseFrom::after_decay);
    if (!gate_out_) return project(flat_heads(rms_norm(o, norm_->value, 1e-5)), out_);
    const auto gate = heads_of(project(parts[2], gate_out_, gate_bias_), h);
    return project(flat_heads(rms_norm_then_sigmoid(o, norm_->value, gate, 1e-5)), out_);
  }

  Taxonomy taxonomy() const override {
    return {Taxonomy::Action::matrix, true, strength_ == Strength::per_head,
            // With gates per channel, no input closes all channels of a head at the initial weights.
            o_[switches::a_min] <= reach_threshold && strength_ == Strength::per_head, true,
            o_.heads() * o_.key_width() * o_.value_width()};
  }

  double mixing_flops(int64_t) const override {
    const double K = static_cast<double>(o_.key_width()), V = static_cast<double>(o_.value_width()), chunk = 64;
    return static_cast<double>(o_.heads()) * (6 * K * V + 2 * chunk * (K + V) + chunk * K);
  }

 private:
  MixerOptions o_;
  Strength strength_;
  int64_t keys_, values_;
  Param A_log_, dt_bias_, decay_out_, gate_out_ = nullptr, gate_bias_ = nullptr, norm_, out_;
  Joined in_, conv_;
  std::vector<int64_t> widths_;
};

struct Kda : ChannelDelta {
  Kda(const MixerOptions& options, ParameterList& p) : ChannelDelta(options, p, Strength::per_head) {}
};
struct GatedDeltaNet2 : ChannelDelta {
  GatedDeltaNet2(const MixerOptions& options, ParameterList& p) : ChannelDelta(options, p, Strength::per_channel) {}
};

std::vector<Switch> channel_delta_switches() {
  return {switches::heads,      switches::expand_k, switches::expand_v, negative_eigenvalues,
          switches::short_conv, output_gate,        switches::a_min,    switches::mlp};
}

void read_recorded_gate(const RecordedLayer& layer, MixerOptions& options) {
  options.set(output_gate, layer.extent("g_proj.0.weight", 0) > 0);
}

}  // namespace

ModelRow kda_row() {
  return {.name = "kda",
          .switches = channel_delta_switches(),
          .make = make_mixer<Kda>,
          .equations =
              "q, k = l2(silu(conv4(W x))), v = silu(conv4(W x)), beta = sigma(W x) per head\n"
              "g = -e^A softplus(W W x + b) per key channel\n"
              "S = diag(e^g) S_(t-1), S_t = S + beta k (v - k^T S)^T;  o = K^-1/2 q^T S\n"
              "out = W (RMS(o) sigma(W W x + b))",
          .read_recorded = read_recorded_gate};
}

ModelRow gated_delta_net2_row() {
  return {.name = "gated_delta_net2",
          .switches = channel_delta_switches(),
          .make = make_mixer<GatedDeltaNet2>,
          .equations =
              "as kda, with b = sigma(W x) per key channel and w = sigma(W x) per value channel instead of beta:\n"
              "S = diag(e^g) S_(t-1), S_t = S + k (w v - (b k)^T S)^T;  o = K^-1/2 q^T S",
          .read_recorded = read_recorded_gate};
}

}  // namespace sb
