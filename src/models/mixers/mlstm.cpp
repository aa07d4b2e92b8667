// mLSTM of xLSTM, K = V/2 by default:
//   i, f = 15 tanh((W x + b) / 15) per head, o = sigma(ogate_preact(x))
//   C_t = sigma(f) C_{t-1} + e^i k v^T,  n_t = sigma(f) n_{t-1} + e^i k,  h = C^T q / max(|n^T q|, 1)
//   out = out_proj(o * LayerNorm(h)), the norm per head; q is scaled by K^{-1/2}
// Within a piece of the sequence, C and n are multiples of e^m, m_t = max(m_{t-1} + ln sigma(f), i), which keeps gates
// and decays at most 1. h does not depend on m. So h is a decayed attention with log-decay ln sigma(f) + m_{t-1} - m_t,
// keys e^{i-m} k, and values extended by a column of ones, which gives n. The carried state is C and n themselves: i is
// at most 15.
#include "base/torch_pch.h"
#include "kernels/elementwise.h"
#include "models/ops.h"
#include "models/recorded.h"
#include "models/registry.h"

namespace sb {
namespace {

constexpr double gate_cap = 15;

constexpr TruthSwitch mlstm_output_gate{"output_gate", true,
                                        "the output is multiplied by sigma of a projection of the input"};

class Mlstm final : public Mixer {
 public:
  Mlstm(const MixerOptions& options, ParameterList& p)
      : o_(options), keys_(o_.heads() * o_.key_width()), values_(o_.heads() * o_.value_width()) {
    const int64_t d = o_.width, h = o_.heads();
    const Param q = p.matrix("q.weight", keys_, d), k = p.matrix("k.weight", keys_, d),
                v = p.matrix("v.weight", values_, d);
    const Param o = o_[mlstm_output_gate] ? p.matrix("ogate_preact.weight", values_, d) : nullptr;
    gates_ = p.join({p.matrix("igate_preact.weight", h, d), p.matrix("fgate_preact.weight", h, d)});
    gate_bias_ = p.join({p.add("igate_preact.bias", {h}, Init::constant(-10)),
                         p.add("fgate_preact.bias", {h}, Init::curve({.offset = 4.5, .slope = 3}))});
    norm_ = p.ones("multihead_norm.weight", values_);
    out_ = p.matrix("out_proj.weight", d, values_);
    in_ = p.join({q, k, v, o});
    widths_ = {keys_, keys_, values_, o ? values_ : 0};
  }

  at::Tensor forward(const at::Tensor& x, const Context& context) const override {
    const int64_t h = o_.heads(), V = o_.value_width();
    const auto parts = slices(project(x, in_), widths_);
    // Padded by zeros: products are fastest if the rows of the result are aligned to 16 bytes.
    const int64_t padded = computed_width(2 * h, gates_.copy());
    const auto both =
        slices(project(x, gates_, {}, Padding::of_rows({{1, 2 * h, padded}})), {2 * h, padded - 2 * h})[0];
    const auto gates = slices(gate_cap * at::tanh((wide(both) + wide(gate_bias_.value())) / gate_cap), {h, h});
    const auto &input = gates[0], forget = log_sigmoid(gates[1], 1);
    const auto m = stabiliser(input, forget);
    const auto g = forget + (before(m) - m), write = at::exp(input - m);
    if (context.gates) {
      context.record("decay", forget.exp());
      context.record("write", sb::sigmoid(input));  // of i alone: e^{i-m} depends on the frames before
    }
    const auto k = scale_heads(heads_of(parts[1], h), write), v = heads_of(parts[2], h);
    std::vector<at::Tensor> columns{v, at::ones_like(v.narrow(3, 0, 1))};
    auto state = context.carried("state");
    // Zeros that align rows of bfloat16 to 16 bytes
    if (const int64_t behind = computed_width(V + 1, out_->copy) - (V + 1); behind > 0) {
      columns.push_back(v.new_zeros({v.size(0), v.size(1), h, behind}));
      if (state.defined()) state = at::constant_pad_nd(state, {0, behind});
    }
    const auto scan = decayed_attention(heads_of(parts[0], h), k, at::cat(columns, 3), g,
                                        1 / std::sqrt(static_cast<double>(o_.key_width())), state);
    context.carry("state",
                  scan.state.narrow(3, 0, V + 1) * m.select(1, m.size(1) - 1).exp().unsqueeze(-1).unsqueeze(-1));
    return project(mlstm_read(scan.out, m, norm_->value, widths_[3] > 0 ? parts[3] : at::Tensor()), out_);
  }

  Taxonomy taxonomy() const override {
    return {Taxonomy::Action::scalar, true, false, true, false, o_.heads() * o_.key_width() * (o_.value_width() + 1)};
  }

  double mixing_flops(int64_t) const override {
    const double K = static_cast<double>(o_.key_width()), V = static_cast<double>(o_.value_width() + 1), chunk = 64;
    return static_cast<double>(o_.heads()) * (4 * K * V + chunk * (K + V));
  }

 private:
  // m after every frame, from 0 before the first, without gradient: h does not depend on m.
  static at::Tensor stabiliser(const at::Tensor& input, const at::Tensor& forget) {
    const at::NoGradGuard no_gradients;
    const auto total = forget.to(at::kDouble).cumsum(1);
    const auto highest = std::get<0>((input - total).cummax(1)).clamp_min(0);
    return (total + highest).to(input.scalar_type());
  }
  static at::Tensor before(const at::Tensor& m) {
    return at::cat({at::zeros_like(m.narrow(1, 0, 1)), m.narrow(1, 0, m.size(1) - 1)}, 1);
  }

  MixerOptions o_;
  int64_t keys_, values_;
  Param norm_, out_;
  Joined in_, gates_, gate_bias_;
  std::vector<int64_t> widths_;
};

void read_recorded_mlstm(const RecordedLayer& layer, MixerOptions& options) {
  const double d = static_cast<double>(options.width);
  options.set(switches::expand_k, static_cast<double>(layer.extent("q.weight", 0)) / d);
  options.set(switches::expand_v, static_cast<double>(layer.extent("v.weight", 0)) / d);
  options.set(mlstm_output_gate, layer.extent("ogate_preact.weight", 0) > 0);
}

}  // namespace

ModelRow mlstm_row() {
  return {.name = "mlstm",
          .switches = {switches::heads, switches::expand_k.initially(0.5), switches::expand_v.initially(1),
                       mlstm_output_gate, switches::mlp},
          .make = make_mixer<Mlstm>,
          .equations =
              "q, k, v = W x, i and f = 15 tanh((W x + b) / 15) per head\n"
              "C_t = sigma(f) C_(t-1) + e^i k v^T, n_t = sigma(f) n_(t-1) + e^i k;  q scaled by K^-1/2\n"
              "h = C^T q / max(|n^T q|, 1);  out = W (sigma(W x) LayerNorm(h))",
          .read_recorded = read_recorded_mlstm};
}

}  // namespace sb
