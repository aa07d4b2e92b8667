// Transformer layer; nrm(x; w) = w x / (||x|| / sqrt(n) + 1e-8):
//   q, k = rope(nrm(.)), att = softmax(q k^T / sqrt(d/h), causal) v, x1 = x + nrm(out(att))
//   [a, b] = linear1(x1), out = x1 + Dropout(linear2(a sigma(beta a) b))
// double_residual off: the x inside x1 is left out of the result, since the network adds it.
// No recurrence: a carried state is the cache of all keys and values, which grows by 2d elements a frame.

#include "base/error.h"
#include "base/format.h"
#include "base/torch_pch.h"
#include "models/ops.h"
#include "models/recorded.h"
#include "models/registry.h"

namespace sb {
namespace {

constexpr TruthSwitch double_residual{
    "double_residual", false,
    "the layer's output holds its input, which the network adds once more; unset: quirks.double_residual"};

class Transformer final : public Mixer {
 public:
  Transformer(const MixerOptions& options, ParameterList& p) : o_(options) {
    const int64_t d = o_.width, head = d / o_.heads();
    if (o_[switches::mlp] > 0) beta_ = p.ones("beta", 1);
    std::vector<Param> weights, biases;
    for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
      weights.push_back(p.matrix(name + std::string(".weight"), d, d));
      biases.push_back(p.bias(name + std::string(".bias"), d, d));
    }
    in_ = p.join(weights);
    in_bias_ = p.join(biases);
    out_ = p.matrix("out_proj.weight", d, d);
    out_bias_ = p.bias("out_proj.bias", d, d);
    q_norm_ = p.ones("q_norm.weight", head);
    k_norm_ = p.ones("k_norm.weight", head);
    out_norm_ = p.ones("out_norm.weight", d);
    if (o_[switches::mlp] > 0) {
      up_ = p.matrix("linear1.weight", 2 * o_[switches::mlp] * d, d);
      up_bias_ = p.bias("linear1.bias", 2 * o_[switches::mlp] * d, d);
      down_ = p.matrix("linear2.weight", d, o_[switches::mlp] * d);
      down_bias_ = p.bias("linear2.bias", d, o_[switches::mlp] * d);
    }
  }

  void check_runnable() const override {
    if (o_.width / o_.heads() % 2 != 0)
      throw bad_input("model.width", formatted("the transformer rotates halves of a head: expected an even head "
                                               "width, got {}",
                                               o_.width / o_.heads()));
  }

  at::Tensor forward(const at::Tensor& x, const Context& context) const override {
    const int64_t h = o_.heads(), past = context.position();
    const auto qkv = slices(project(x, in_, in_bias_), {o_.width, o_.width, o_.width});
    const auto q = rope(rms_norm_outer_eps(heads_of(qkv[0], h), q_norm_->value), o_[switches::rope_base], 1, past);
    auto k = rope(rms_norm_outer_eps(heads_of(qkv[1], h), k_norm_->value), o_[switches::rope_base], 1, past);
    auto v = heads_of(qkv[2], h);
    if (past > 0) {
      k = at::cat({context.carried("cache.k"), k}, 1);
      v = at::cat({context.carried("cache.v"), v}, 1);
    }
    context.carry("cache.k", k);
    context.carry("cache.v", v);
    const auto attended = project(flat_heads(causal_attention(q, k, v, past)), out_, out_bias_);
    const auto z = rms_norm_outer_eps(attended, out_norm_->value);
    const auto& kept = o_[double_residual] ? x + z : z;
    if (o_[switches::mlp] == 0) return kept;
    const auto x1 = o_[double_residual] ? kept : x + z;
    const auto hidden = gate_swish(project(x1, up_, up_bias_), beta_->value);
    return kept + dropout(project(hidden, down_, down_bias_), o_.dropout, context.dropout.at(LayerDropout::own));
  }

  Taxonomy taxonomy() const override { return {Taxonomy::Action::cache, true, false, false, false, 0}; }

  double mixing_flops(int64_t length) const override {
    return 2 * static_cast<double>(o_.width) * static_cast<double>(length);
  }

 private:
  MixerOptions o_;
  Joined in_, in_bias_;
  Param beta_ = nullptr, out_, out_bias_, q_norm_, k_norm_, out_norm_;
  Param up_ = nullptr, up_bias_ = nullptr, down_ = nullptr, down_bias_ = nullptr;
};

// The label 648 stands for 768 channels and 1296 for 1280; heads come from the label.
int64_t labelled_width(int64_t label) {
  if (label == 960)
    throw bad_input("model.width", "the transformer has no width 960 (the paper skips it), expected e.g. 768 or 1024");
  return label == 648 ? 768 : label == 1296 ? 1280 : label;
}

void read_recorded(const RecordedLayer& layer, MixerOptions& options) {
  options.set(switches::mlp, layer.extent("linear1.weight", 0) / (2 * options.width));
  options.set(double_residual, true);  // recorded layers hold their input
}

}  // namespace

ModelRow transformer_row() {
  return {
      .name = "transformer",
      .switches = {switches::heads, switches::mlp.initially(4), switches::rope_base.initially(1000), double_residual},
      .make = make_mixer<Transformer>,
      .equations =
          "q, k = rope(norm(W x)), v = W x;  att = softmax(q k^T / sqrt(d/h), causal) v\n"
          "x1 = x + norm(W att);  [a, b] = W x1;  out = x1 + W (a sigma(beta a) b), without the x unless "
          "double_residual",
      .traits = {.has_mlp = true},
      .width = labelled_width,
      .read_recorded = read_recorded};
}

}  // namespace sb
