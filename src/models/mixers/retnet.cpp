// Multi-scale retention:
//   q, k, v = silu(conv4(.)), q and k rotated by position, decay 1 - 2^{-5-j} fixed for head j
//   S_t = gamma_j S_{t-1} + k_t v_t^T;  o_t = K^{-1/2} q_t^T S_t
//   out = o_proj(RMS(o) * silu(g_proj(x)))

#include "base/error.h"
#include "base/format.h"
#include "base/torch_pch.h"
#include "models/ops.h"
#include "models/registry.h"

namespace sb {
namespace {

class RetNet final : public Mixer {
 public:
  RetNet(const MixerOptions& options, ParameterList& p)
      : o_(options), keys_(o_.heads() * o_.key_width()), values_(o_.heads() * o_.value_width()) {
    const int64_t d = o_.width;
    const Param q = p.matrix("q_proj.weight", keys_, d);
    const Param k = p.matrix("k_proj.weight", keys_, d);
    const Param v = p.matrix("v_proj.weight", values_, d);
    const Param g = o_[switches::output_gate] ? p.matrix("g_proj.weight", values_, d) : nullptr;
    if (o_[switches::short_conv])
      conv_ = p.join(
          {p.conv4("q_conv1d.weight", keys_), p.conv4("k_conv1d.weight", keys_), p.conv4("v_conv1d.weight", values_)});
    out_ = p.matrix("o_proj.weight", d, values_);
    norm_ = p.ones("g_norm_swish_gate.weight", o_.value_width());
    in_ = p.join({q, k, v, g});
    widths_ = {2 * keys_ + values_, g ? values_ : 0};
  }

  void check_runnable() const override {
    if (o_.key_width() % 2 != 0)
      throw bad_input("model.width", formatted("retnet rotates halves of a head: expected an even head width, got {}",
                                               o_.key_width()));
  }

  at::Tensor forward(const at::Tensor& x, const Context& context) const override {
    const int64_t h = o_.heads();
    const auto parts = slices(project(x, in_), widths_);
    const auto mixed = short_conv(parts[0], conv_.empty() ? at::Tensor() : conv_.value(), {}, context);
    const auto qk_v = slices(mixed, {2 * keys_, values_});
    const auto qk = slices(rope(heads_of(qk_v[0], 2 * h), o_[switches::rope_base], -1, context.position()), {h, h}, 2);
    const auto decays = log_decays(x);
    if (context.gates) context.record("fixed_decay", decays.exp());
    const auto o = carried_attention(context, qk[0], qk[1], heads_of(qk_v[1], h), decays,
                                     1 / std::sqrt(static_cast<double>(o_.key_width())));
    const auto normed = o_[switches::output_gate] ? rms_norm_then_gate(o, norm_->value, heads_of(parts[1], h), 1e-5)
                                                  : rms_norm(o, norm_->value, 1e-5);
    return project(flat_heads(normed), out_);
  }

  Taxonomy taxonomy() const override {
    return {Taxonomy::Action::scalar, false, false, false, false, o_.heads() * o_.key_width() * o_.value_width()};
  }

  double mixing_flops(int64_t) const override {
    const double K = static_cast<double>(o_.key_width()), V = static_cast<double>(o_.value_width()), chunk = 64;
    return static_cast<double>(o_.heads()) * (4 * K * V + chunk * (K + V));
  }

 private:
  at::Tensor log_decays(const at::Tensor& like) const {
    // at::full passes the numbers as kernel arguments. A copy from the host could not be captured in a graph.
    std::vector<at::Tensor> g;
    for (int64_t j = 0; j < o_.heads(); ++j)
      g.push_back(
          at::full({1}, std::log1p(-std::exp2(static_cast<double>(-5 - j))), like.options().dtype(at::kDouble)));
    return at::cat(g).to(wide_type(like));
  }

  MixerOptions o_;
  int64_t keys_, values_;
  Param out_, norm_;
  Joined in_, conv_;
  std::vector<int64_t> widths_;
};

}  // namespace

ModelRow retnet_row() {
  return {.name = "retnet",
          .switches = {switches::heads, switches::expand_k, switches::expand_v, switches::short_conv,
                       switches::output_gate, switches::mlp, switches::rope_base},
          .make = make_mixer<RetNet>,
          .equations =
              "q, k, v = silu(conv4(W x)), q and k rotated by position, gamma = 1 - 2^(-5-j) fixed for head j\n"
              "S_t = gamma S_(t-1) + k v^T;  o = K^-1/2 q^T S;  out = W (RMS(o) silu(W x))"};
}

}  // namespace sb
