// RWKV-7 time mixing, K = V = d/h. Inputs are mixed with the frame before: x_c = x_t + mu_c (x_{t-1} - x_t) for
// c = r, w, k, v, a, g; a lora is W2 act(W1 x_c) + bias.
//   r, k, v = W x_c,  g = -e^{-1/2} sigma(lora(x_w)) per key channel (tanh inside),  a = sigma(lora(x_a))
//   kk = normalised k k_k per head,  k <- k (1 + (a - 1) k_a),  v <- v + sigma(lora(x_v)) (v_first - v) after layer 0
//   S_t = diag(e^g) S_{t-1} - (a kk) (kk^T S_{t-1}) + k v^T;  o = r^T S_t
//   out = o_proj((GroupNorm(o) + (sum_K r k r_k) v) * lora(x_g))  (sigmoid inside, no bias)
#include "base/error.h"
#include "base/torch_pch.h"
#include "kernels/elementwise.h"
#include "models/ops.h"
#include "models/registry.h"

namespace sb {
namespace {

constexpr const char* first_values = "v_first";

// The same bits on every machine, unlike std::pow.
double power(double base, double exponent) {
  return base > 0 ? portable::exp(exponent * portable::log(base)) : 0;
}

struct Lora {
  Param in = nullptr, out = nullptr, bias = nullptr;
};

class Rwkv7 final : public Mixer {
 public:
  Rwkv7(const MixerOptions& options, ParameterList& p) : o_(options), head_(o_.width / o_.heads()) {
    const int64_t d = o_.width;
    const double depth = static_cast<double>(o_.layer), layers = static_cast<double>(o_.layers);
    const double rest = 1 - depth / layers, share = o_.layers > 1 ? depth / (layers - 1) : 0;
    const auto shift = [&](const char* name, double power) {
      return p.add(name, {1, 1, d}, Init::power_complement(power * rest));
    };
    mu_r_ = shift("x_r", 0.2);
    mu_w_ = shift("x_w", 0.9);
    mu_k_ = shift("x_k", 0.7);
    mu_v_ = shift("x_v", 0.7);
    mu_a_ = shift("x_a", 0.9);
    mu_g_ = shift("x_g", 0.2);
    key_scale_ = p.add("k_k", {d}, Init::curve({.offset = 0.71, .slope = -0.1}));
    key_rate_ = p.add("k_a", {d}, Init::constant(1.02));
    bonus_ = p.add("r_k", {o_.heads(), head_}, Init::constant(-0.04));
    // The published layer draws orthogonal matrices; these have the same variance.
    const double orthogonal = 1 / std::sqrt(static_cast<double>(d));
    r_ = p.add("r_proj.weight", {d, d}, Init::normal(orthogonal), 1);
    k_ = p.add("k_proj.weight", {d, d}, Init::normal(0.1 * orthogonal), 1);
    v_ = p.add("v_proj.weight", {d, d}, Init::normal(orthogonal), 1);
    out_ = p.add("o_proj.weight", {d, d}, Init::constant(0), 1);
    const auto lora = [&](const std::string& name, int64_t rank, const Init* bias) -> Lora {
      return {p.add(name + ".lora.0.weight", {rank, d}, Init::constant(0), 1),
              p.add(name + ".lora.2.weight", {d, rank}, Init::normal(0.1 * orthogonal), 1),
              bias ? p.add(name + ".lora.2.bias", {d}, *bias) : nullptr};
    };
    const double wide_head = static_cast<double>(head_) / 64;
    const Init decay =
        Init::curve({.offset = -5.5, .zigzag = 2.5, .period = head_, .scale = 6, .power = 1 + power(share, 0.3)});
    const Init rate = Init::curve({.offset = -0.19, .slope = 0.4, .zigzag = 0.3, .period = head_});
    const Init mix = Init::curve({.offset = 0.73, .slope = -0.4});
    decay_ = lora("w_lora", rank(2.5 * wide_head), &decay);
    if (o_.layer > 0) mix_ = lora("v_lora", rank(1.7 * wide_head), &mix);
    rate_ = lora("a_lora", rank(2.5 * wide_head), &rate);
    gate_ = lora("g_lora", rank(5), nullptr);
    norm_ = p.add("g_norm.weight", {d}, Init::constant(power((depth + 1) / layers, 0.7)));
    norm_bias_ = p.add("g_norm.bias", {d}, Init::constant(0));
  }

  at::Tensor forward(const at::Tensor& x, const Context& context) const override {
    const int64_t h = o_.heads();
    const auto mixed =
        token_shift(x, context.carried("shift"),
                    {mu_w_->value, mu_a_->value, mu_r_->value, mu_k_->value, mu_v_->value, mu_g_->value});
    const auto &x_w = mixed[0], &x_a = mixed[1], &x_r = mixed[2], &x_k = mixed[3], &x_v = mixed[4], &x_g = mixed[5];
    context.carry("shift", x.narrow(1, x.size(1) - 1, 1));
    const auto outer = [](const at::Tensor& y, const Lora& lora) { return project(y, lora.out, lora.bias); };

    const auto decay = outer(at::tanh(project(x_w, decay_.in)), decay_), rate = outer(project(x_a, rate_.in), rate_);
    const auto r = heads_of(project(x_r, r_), h), key = project(x_k, k_);
    const auto v = heads_of(mixed_values(project(x_v, v_), x_v, context), h);
    const auto [g, k, erase, write] = rwkv7_keys(decay, rate, key, key_scale_->value, key_rate_->value, h);
    if (context.gates) {
      context.record("decay", g.exp());
      context.record("write", heads_of(sb::sigmoid(wide(rate)), h));
    }
    const auto o = carried_general_delta(context, {r, k, v, erase, write, g}, 1, EraseFrom::before_decay);
    const auto gate = outer(sb::sigmoid(project(x_g, gate_.in)), gate_);
    return project(
        rwkv7_read(o, r, k, v, bonus_->value, norm_->value, norm_bias_->value, gate, 1e-5 * static_cast<double>(head_)),
        out_);
  }

  Taxonomy taxonomy() const override { return {Taxonomy::Action::matrix, true, true, false, true, o_.width * head_}; }

  double mixing_flops(int64_t) const override {
    const double K = static_cast<double>(head_), chunk = 64;
    return static_cast<double>(o_.heads()) * (8 * K * K + 6 * chunk * K);
  }

 private:
  // A multiple of 32 near `factor` sqrt(d), and at least 32.
  int64_t rank(double factor) const {
    const double wanted = factor * std::sqrt(static_cast<double>(o_.width));
    return std::max<int64_t>(32, 32 * static_cast<int64_t>(std::nearbyint(wanted / 32)));
  }

  at::Tensor mixed_values(const at::Tensor& v, const at::Tensor& x, const Context& context) const {
    if (!mix_.in) {
      context.share(first_values, v);
      return v;
    }
    const auto first = context.shared_by_earlier(first_values);
    if (!first.defined()) throw check_failed("rwkv7", "no values of the first layer");
    const auto share = sb::sigmoid(project(project(x, mix_.in), mix_.out, mix_.bias));
    return (v + share * (first - v)).to(v.scalar_type());
  }

  MixerOptions o_;
  int64_t head_;
  Param mu_r_, mu_w_, mu_k_, mu_v_, mu_a_, mu_g_, key_scale_, key_rate_, bonus_, r_, k_, v_, out_, norm_, norm_bias_;
  Lora decay_, mix_, rate_, gate_;
};

}  // namespace

ModelRow rwkv7_row() {
  return {.name = "rwkv7",
          .switches = {switches::heads, switches::mlp},
          .make = make_mixer<Rwkv7>,
          .equations =
              "x_c = x_t + mu_c (x_(t-1) - x_t) for c = r, w, k, v, a, g;  lora(x) = W act(W x) + b\n"
              "r, k, v = W x_c, g = -e^-1/2 sigma(lora(x_w)) and a = sigma(lora(x_a)) per key channel\n"
              "kk = k k_k / |k k_k|, k = k (1 + (a - 1) k_a);  after the first layer v = v + sigma(lora(x_v)) (v_first "
              "- v)\n"
              "S_t = diag(e^g) S_(t-1) - (a kk) kk^T S_(t-1) + k v^T;  o = r^T S\n"
              "out = W ((GroupNorm(o) + (sum r k r_k) v) lora(x_g))"};
}

}  // namespace sb
