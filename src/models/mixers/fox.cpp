// Forgetting Transformer: causal attention whose scores decay with a forget gate. No rotary positions.
//   q, k, v = W x, g = logsigmoid(f_proj(x)) per head, c = cumulative g
//   out = o_proj(softmax(q k^T / sqrt(d/h) + c_t - c_s, s <= t) v)
// The carried state is a cache of all keys, values and gates.
#include "base/torch_pch.h"
#include "models/ops.h"
#include "models/registry.h"

namespace sb {
namespace {

class Fox final : public Mixer {
 public:
  Fox(const MixerOptions& options, ParameterList& p) : o_(options) {
    const int64_t d = o_.width;
    const Param q = p.matrix("q_proj.weight", d, d), k = p.matrix("k_proj.weight", d, d),
                v = p.matrix("v_proj.weight", d, d);
    forget_ = p.matrix("f_proj.weight", o_.heads(), d);
    forget_bias_ = p.bias("f_proj.bias", o_.heads(), d);
    out_ = p.matrix("o_proj.weight", d, d);
    in_ = p.join({q, k, v});
  }

  at::Tensor forward(const at::Tensor& x, const Context& context) const override {
    const int64_t h = o_.heads(), past = context.position();
    const auto qkv = slices(project(x, in_), {o_.width, o_.width, o_.width});
    auto k = heads_of(qkv[1], h), v = heads_of(qkv[2], h);
    // Padded by zeros: products are fastest if the rows of the result are aligned to 16 bytes.
    const int64_t padded = computed_width(h, forget_->copy);
    const auto gates =
        slices(project(x, Joined(forget_), Joined(forget_bias_), Padding::of_rows({{1, h, padded}})), {h, padded - h});
    auto g = log_sigmoid(wide(gates[0]), 1);
    if (context.gates) context.record("decay", g.exp());
    if (past > 0) {
      k = at::cat({context.carried("cache.k"), k}, 1);
      v = at::cat({context.carried("cache.v"), v}, 1);
      g = at::cat({context.carried("cache.g"), g}, 1);
    }
    context.carry("cache.k", k);
    context.carry("cache.v", v);
    context.carry("cache.g", g);
    return project(flat_heads(forgetting_attention(heads_of(qkv[0], h), k, v, g, past)), out_);
  }

  Taxonomy taxonomy() const override { return {Taxonomy::Action::cache, true, false, false, false, 0}; }

  double mixing_flops(int64_t length) const override {
    return 2 * static_cast<double>(o_.width) * static_cast<double>(length);
  }

 private:
  MixerOptions o_;
  Joined in_;
  Param forget_, forget_bias_, out_;
};

}  // namespace

ModelRow fox_row() {
  return {.name = "fox",
          .switches = {switches::heads, switches::mlp},
          .make = make_mixer<Fox>,
          .equations =
              "q, k, v = W x, g = logsigmoid(W x + b) per head, c = cumulative g\n"
              "out = W softmax(q k^T / sqrt(d/h) + c_t - c_s, s <= t) v"};
}

}  // namespace sb
