// Transformer layer; nrm(x; w) = w x / (||x|| / sqrt(n) + 1e-8):
//   q, k = rope(nrm(.)), att = softmax(q k^T / sqrt(d/h), causal) v, z = nrm(out(att)); in pre z = out(att)
//   mlp(x) = linear2(a sigma(beta a) b), [a, b] = linear1(x)
// With conv = 4, a causal convolution over 4 frames follows the projections to q, k and v.
// There is no recurrence: the carried state is a cache of all keys and values, which grows by 2d elements per frame.

#include "base/error.h"
#include "base/format.h"
#include "base/torch_pch.h"
#include "models/ops.h"
#include "models/recorded.h"
#include "models/registry.h"

namespace sb {
namespace {

constexpr IntegerSwitch conv{
    "conv", 0, 0, 4, "frames of a causal convolution over queries, keys and values; 0: none", "0 or 4", [](int64_t v) {
      return v == 0 || v == 4;
    }};

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
    if (o_[conv] > 0) conv_ = p.conv4("conv1d.weight", 3 * d);
    out_ = p.matrix("out_proj.weight", d, d);
    out_bias_ = p.bias("out_proj.bias", d, d);
    q_norm_ = p.ones("q_norm.weight", head);
    k_norm_ = p.ones("k_norm.weight", head);
    if (o_.residual != Residual::pre) out_norm_ = p.ones("out_norm.weight", d);
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
    auto projected = project(x, in_, in_bias_);
    if (conv_) projected = carried_conv(projected, conv_->value, {}, context, Activation::none);
    const auto qkv = slices(projected, {o_.width, o_.width, o_.width});
    const auto turned = [&](const at::Tensor& y, Param norm) {
      const auto normed = rms_norm_outer_eps(heads_of(y, h), norm->value);
      const double base = o_[switches::rope_base];
      return context.positions.defined() ? rope_at(normed, base, context.positions) : rope(normed, base, 1, past);
    };
    const auto q = turned(qkv[0], q_norm_);
    auto k = turned(qkv[1], k_norm_);
    auto v = heads_of(qkv[2], h);
    if (past > 0) {
      k = at::cat({context.carried("cache.k"), k}, 1);
      v = at::cat({context.carried("cache.v"), v}, 1);
    }
    context.carry("cache.k", k);
    context.carry("cache.v", v);
    const auto attended = project(flat_heads(causal_attention(q, k, v, past)), out_, out_bias_);
    return out_norm_ ? rms_norm_outer_eps(attended, out_norm_->value) : attended;
  }

  at::Tensor feed_forward(const at::Tensor& x, const Context&) const override {
    if (!up_) return {};
    return project(gate_swish(project(x, up_, up_bias_), beta_->value), down_, down_bias_);
  }

  Taxonomy taxonomy() const override { return {Taxonomy::Action::cache, true, false, false, false, 0}; }

  double mixing_flops(int64_t length) const override {
    return 2 * static_cast<double>(o_.width) * static_cast<double>(length);
  }

 private:
  MixerOptions o_;
  Joined in_, in_bias_;
  Param beta_ = nullptr, conv_ = nullptr, out_, out_bias_, q_norm_, k_norm_, out_norm_ = nullptr;
  Param up_ = nullptr, up_bias_ = nullptr, down_ = nullptr, down_bias_ = nullptr;
};

// The requested width 648 stands for 768 channels and 1296 for 1280. The number of heads follows from the requested
// width.
int64_t labelled_width(int64_t label) {
  if (label == 960)
    throw bad_input("model.width", "the transformer has no width 960 (the paper skips it), expected e.g. 768 or 1024");
  return label == 648 ? 768 : label == 1296 ? 1280 : label;
}

void read_recorded(const RecordedLayer& layer, MixerOptions& options) {
  options.set(switches::mlp, layer.extent("linear1.weight", 0) / (2 * options.width));
  options.residual = Residual::doubled;  // the recorded outputs include the layer's input
}

}  // namespace

ModelRow transformer_row() {
  return {.name = "transformer",
          .switches = {switches::heads, switches::mlp.initially(4), switches::rope_base.initially(1000), conv},
          .make = make_mixer<Transformer>,
          .equations =
              "q, k = rope(norm(W x)), v = W x;  att = softmax(q k^T / sqrt(d/h), causal) v\n"
              "z = norm(W att), without the norm in pre;  mlp(x) = W (a sigma(beta a) b), [a, b] = W x\n"
              "conv 4: a causal convolution over 4 frames of q, k and v",
          .traits = {.has_mlp = true, .has_positions = true},
          .width = labelled_width,
          .read_recorded = read_recorded};
}

}  // namespace sb
