// Linear attention: S_t = S_{t-1} + phi_k(k_t) v_t^T;  o_t = K^{-1/2} phi_q(q_t)^T S_t;  out = o_proj(RMS(o))
//   linear_attn:     phi(x) = (W1 x + c1) o (W2 x + c2), learned, shared by heads
//   linear_attn_elu: phi(x) = elu(x) + 1, and o_t is divided by K^{-1/2} phi(q_t) . sum_{s<=t} phi(k_s) + 1e-10
#include "base/torch_pch.h"
#include "kernels/elementwise.h"
#include "models/ops.h"
#include "models/registry.h"

namespace sb {
namespace {

// The learned feature map of one of q, k.
struct ProductMap {
  ProductMap(ParameterList& p, const std::string& name, int64_t K, int64_t heads) {
    const auto layer = [&](const std::string& which) {
      const Param matrix = p.add(name + "." + which + ".weight", {K, K}, Init::fan_in(K), heads);
      return std::pair(matrix, p.bias(name + "." + which + ".bias", K, K));
    };
    const auto first = layer("layer1"), second = layer("layer2");
    weight = p.join({first.first, second.first});
    bias = p.join({first.second, second.second});
  }
  at::Tensor operator()(const at::Tensor& x) const {
    const auto both = project(x, weight, bias).chunk(2, -1);
    return both[0] * both[1];
  }
  Joined weight, bias;
};

class LinearAttention : public Mixer {
 public:
  LinearAttention(const MixerOptions& options, ParameterList& p, bool learned)
      : o_(options), keys_(o_.heads() * o_.key_width()), values_(o_.heads() * o_.value_width()) {
    if (learned) {
      phi_q_.emplace(p, "feature_map_q", o_.key_width(), o_.heads());
      phi_k_.emplace(p, "feature_map_k", o_.key_width(), o_.heads());
    }
    in_ = p.join({p.matrix("q_proj.weight", keys_, o_.width), p.matrix("k_proj.weight", keys_, o_.width),
                  p.matrix("v_proj.weight", values_, o_.width)});
    norm_ = p.ones("norm.weight", o_.value_width());
    out_ = p.matrix("o_proj.weight", o_.width, values_);
  }

  at::Tensor forward(const at::Tensor& x, const Context& context) const override {
    const int64_t h = o_.heads(), V = o_.value_width();
    const double scale = 1 / std::sqrt(static_cast<double>(o_.key_width()));
    const auto projected = project(x, in_);
    at::Tensor o;
    if (phi_q_) {
      const auto qkv = slices(projected, {keys_, keys_, values_});
      o = carried_attention(context, (*phi_q_)(heads_of(qkv[0], h)), (*phi_k_)(heads_of(qkv[1], h)),
                            heads_of(qkv[2], h), {}, scale);
    } else {
      const auto qk_v = slices(projected, {2 * keys_, values_});
      const auto phi = slices(sb::elu(heads_of(qk_v[0], 2 * h)) + 1, {h, h}, 2);
      const auto v = heads_of(qk_v[1], h);
      // An additional column of ones in the values gives the sums of the keys.
      const auto one = at::ones({v.size(0), v.size(1), h, 1}, v.options());
      const auto summed = carried_attention(context, phi[0], phi[1], at::cat({v, one}, -1), {}, scale);
      const auto wide_sum = wide(summed);
      o = (wide_sum.narrow(-1, 0, V) / (wide_sum.narrow(-1, V, 1) + 1e-10)).to(summed.scalar_type());
    }
    return project(flat_heads(rms_norm(o, norm_->value, 1e-5)), out_);
  }

  Taxonomy taxonomy() const override {
    const int64_t columns = o_.value_width() + (phi_q_ ? 0 : 1);
    return {Taxonomy::Action::identity, false, false, false, false, o_.heads() * o_.key_width() * columns};
  }

  double mixing_flops(int64_t) const override {
    const double K = static_cast<double>(o_.key_width()), chunk = 64;
    const double V = static_cast<double>(o_.value_width() + (phi_q_ ? 0 : 1));
    return static_cast<double>(o_.heads()) * (4 * K * V + chunk * (K + V));
  }

 private:
  MixerOptions o_;
  int64_t keys_, values_;
  std::optional<ProductMap> phi_q_, phi_k_;
  Joined in_;
  Param norm_, out_;
};

struct LearnedMap : LinearAttention {
  LearnedMap(const MixerOptions& options, ParameterList& p) : LinearAttention(options, p, true) {}
};
struct EluMap : LinearAttention {
  EluMap(const MixerOptions& options, ParameterList& p) : LinearAttention(options, p, false) {}
};

std::vector<Switch> linear_switches() {
  return {switches::heads, switches::expand_k, switches::expand_v.initially(1), switches::mlp};
}

}  // namespace

ModelRow linear_attn_row() {
  return {.name = "linear_attn",
          .switches = linear_switches(),
          .make = make_mixer<LearnedMap>,
          .equations =
              "q, k, v = W x;  phi(x) = (W1 x + c1) (W2 x + c2), learned\n"
              "S_t = S_(t-1) + phi(k) v^T;  o = K^-1/2 phi(q)^T S;  out = W RMS(o)"};
}
ModelRow linear_attn_elu_row() {
  return {.name = "linear_attn_elu",
          .switches = linear_switches(),
          .make = make_mixer<EluMap>,
          .equations =
              "q, k, v = W x;  phi(x) = elu(x) + 1\n"
              "S_t = S_(t-1) + phi(k) v^T;  o = phi(q)^T S / (phi(q) . sum phi(k));  out = W RMS(o)"};
}

}  // namespace sb
