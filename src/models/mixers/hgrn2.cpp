// HGRN2, K = V = d/h:
//   q = silu(q_proj(x)), v = i_proj(x), e^g = sigma(f_proj(x)) per key channel, k = 1 - e^g
//   S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T;  o_t = K^{-1/2} q_t^T S_t;  out = o_proj(RMS(o)), the norm over all heads
// With a_min, e^g = a_min + (1 - a_min) sigma: the lower bound of the paper.
#include "base/torch_pch.h"
#include "kernels/elementwise.h"
#include "models/ops.h"
#include "models/registry.h"

namespace sb {
namespace {

class Hgrn2 final : public Mixer {
 public:
  Hgrn2(const MixerOptions& options, ParameterList& p) : o_(options), head_(o_.width / o_.heads()) {
    const int64_t d = o_.width;
    const Param q = p.matrix("q_proj.weight", d, d), f = p.matrix("f_proj.weight", d, d),
                i = p.matrix("i_proj.weight", d, d);
    norm_ = p.ones("g_norm.weight", d);
    out_ = p.matrix("o_proj.weight", d, d);
    in_ = p.join({q, f, i});
  }

  at::Tensor forward(const at::Tensor& x, const Context& context) const override {
    const int64_t d = o_.width, h = o_.heads();
    const double lowest = o_[switches::a_min];
    const auto parts = slices(project(x, in_), {d, d, d});
    auto [q, k, g] = hgrn2_keys(parts[0], parts[1]);
    if (lowest > 0) {
      const auto forgotten = (1 - lowest) * sb::sigmoid(-wide(parts[1]));
      k = forgotten.to(x.scalar_type());
      g = at::log1p(-forgotten);
    }
    if (context.gates) {
      context.record("decay", g.exp());
      context.record("write", wide(k));
    }
    const auto o = carried_attention(context, heads_of(q, h), heads_of(k, h), heads_of(parts[2], h), heads_of(g, h),
                                     1 / std::sqrt(static_cast<double>(head_)));
    return project(rms_norm(flat_heads(o), norm_->value, 1e-5), out_);
  }

  Taxonomy taxonomy() const override {
    return {Taxonomy::Action::elementwise, true, true, o_[switches::a_min] <= reach_threshold, false, o_.width * head_};
  }

  double mixing_flops(int64_t) const override {
    const double K = static_cast<double>(head_), chunk = 64;
    return static_cast<double>(o_.heads()) * (4 * K * K + 2 * chunk * K);
  }

 private:
  MixerOptions o_;
  int64_t head_;
  Param norm_, out_;
  Joined in_;
};

}  // namespace

ModelRow hgrn2_row() {
  return {.name = "hgrn2",
          .switches = {switches::heads, switches::a_min, switches::mlp},
          .make = make_mixer<Hgrn2>,
          .equations =
              "q = silu(W x), v = W x, e^g = sigma(W x) per key channel, k = 1 - e^g\n"
              "S_t = diag(e^g) S_(t-1) + k v^T;  o = K^-1/2 q^T S;  out = W RMS(o)\n"
              "a_min: e^g = a_min + (1 - a_min) sigma(W x)"};
}

}  // namespace sb
