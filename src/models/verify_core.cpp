#include "base/error.h"
#include "base/text.h"
#include "base/torch_pch.h"
#include "kernels/fused.h"
#include "kernels/recurrence.h"
#include "models/network.h"
#include "models/ops.h"
#include "models/verify.h"

namespace sb {
namespace {

// The inputs of one recorded recurrence, as leaves.
class Inputs {
 public:
  Inputs(const Safetensors& file, std::string name, const VerifyOptions& options)
      : file_(file), name_(std::move(name)), options_(options) {}
  const at::Tensor& operator()(const std::string& input) {
    auto& leaf = leaves_[input];
    if (!leaf.defined())
      leaf = to_tensor(file_.at(name_ + "." + input), options_.type(), options_.device).set_requires_grad(true);
    return leaf;
  }
  double scale(int64_t key_width) const {
    const auto found = file_.metadata().find("q_scale");
    return found != file_.metadata().end() && found->second == "none" ? 1
                                                                      : 1 / std::sqrt(static_cast<double>(key_width));
  }
  const std::map<std::string, at::Tensor>& leaves() const { return leaves_; }

 private:
  const Safetensors& file_;
  std::string name_;
  VerifyOptions options_;
  std::map<std::string, at::Tensor> leaves_;
};

at::Tensor attention(Inputs& in, const at::Tensor& g) {
  return decayed_attention(in("q"), in("k"), in("v"), g, in.scale(in("q").size(-1))).out;
}

at::Tensor delta(Inputs& in, const at::Tensor& g) {
  const auto& q = in("q");
  const int64_t factors = in("k").size(1) / q.size(1);
  const auto expand = [&](const at::Tensor& x) {
    auto shape = x.sizes().vec();
    shape[1] = factors;
    shape.insert(shape.begin() + 1, q.size(1));
    return x.view(shape);
  };
  return gated_delta_rule(q, expand(in("k")), expand(in("v")), expand(in("beta")), g, in.scale(q.size(-1))).out;
}

at::Tensor channel_delta(Inputs& in) {
  const auto strength = in("beta").unsqueeze(-1);
  return general_delta_rule({in("q"), in("k"), strength * in("v"), in("k"), strength * in("k"), in("g")},
                            in.scale(in("q").size(-1)), EraseFrom::after_decay)
      .out;
}

// S_t = (diag(e^w) + b a^T) S_{t-1} + k v^T
at::Tensor diagonal_plus_low_rank(Inputs& in) {
  return general_delta_rule({in("q"), in("k"), in("v"), in("a"), -in("b"), in("w")}, in.scale(in("q").size(-1)),
                            EraseFrom::before_decay)
      .out;
}

at::Tensor mamba3(Inputs& in) {
  const auto by_frame = [&](const char* name) { return in(name).transpose(1, 2); };
  const auto delta = by_frame("DT"), here = at::sigmoid(by_frame("Trap")) * delta;
  const auto theta = (M_PI * at::tanh(in("Angles")) * delta.unsqueeze(-1)).to(at::kDouble).cumsum(1);
  const auto q = rotate_pairs(in("Q") + in("Q_bias"), theta), k = rotate_pairs(in("K") + in("K_bias"), theta);
  const auto read = trapezoid_attention(q, k, in("V"), by_frame("ADT"), here, delta - here, in("D"), 1).out;
  return gate_silu(read, in("Z"));
}

at::Tensor mesa(Inputs& in) {
  return mesa_attention(in("q"), in("k"), in("v"), in("beta"), in("g"), in("lamb"), 30).out;
}

at::Tensor retention(Inputs& in) {
  const auto heads = at::arange(in("q").size(2), in("q").options().requires_grad(false).dtype(at::kDouble));
  return attention(in, at::log1p(-at::exp2(-5 - heads)).to(in("q").scalar_type()));
}

at::Tensor ssd(Inputs& in) {
  const auto step = at::softplus(in("dt") + in("dt_bias"));
  const auto read = decayed_attention(in("C"), in("B"), in("x") * step.unsqueeze(-1), step * in("A"), 1).out;
  return read + in("D").unsqueeze(-1) * in("x");
}

at::Tensor scan(Inputs& in) {
  const auto frames_first = [&](const char* name) { return in(name).transpose(1, 2); };
  const auto step = at::softplus(frames_first("delta") + in("delta_bias"));
  const auto y =
      selective_scan(frames_first("u"), step, (-in("A")).log(), frames_first("B"), frames_first("C"), in("D")).out;
  return gate_silu(y, frames_first("z")).transpose(1, 2);
}

using Runner = at::Tensor (*)(Inputs&);
const std::map<std::string, Runner>& runners() {
  static const std::map<std::string, Runner> all = {
      {"linear_attn", [](Inputs& in) { return attention(in, {}); }},
      {"simple_gla", [](Inputs& in) { return attention(in, in("g")); }},
      {"gla", [](Inputs& in) { return attention(in, in("g")); }},
      {"retention", retention},
      {"delta_rule", [](Inputs& in) { return delta(in, {}); }},
      {"gated_delta_rule", [](Inputs& in) { return delta(in, in("g")); }},
      {"gated_delta_product", [](Inputs& in) { return delta(in, in("g")); }},
      {"kda", channel_delta},
      {"dplr", diagonal_plus_low_rank},
      {"fox", [](Inputs& in) { return forgetting_attention(in("q"), in("k"), in("v"), in("g")); }},
      {"mamba3", mamba3},
      {"mesa", mesa},
      {"log_linear",
       [](Inputs& in) {
         return log_linear_attention(in("q"), in("k"), in("v"), in("g"), in("level_scales"), 0, {}, false).out;
       }},
      {"ssd", ssd},
      {"selective_scan", scan},
  };
  return all;
}

}  // namespace

void verify_core(const Safetensors& file, const VerifyOptions& options, VerifyRow& row) {
  std::string name;
  for (const auto& tensor : file.tensors())
    if (tensor.name.ends_with(".cot")) name = tensor.name.substr(0, tensor.name.size() - 4);
  row.subject = "recurrence " + printable(name);
  const auto runner = runners().find(name);
  if (runner == runners().end()) {
    row.reason = "this build has no recurrence '" + printable(name) + "'";
    return;
  }
  Inputs in(file, name, options);
  const auto out = runner->second(in);
  const auto compare = [&](WorstError& group, const std::string& tensor, const at::Tensor& got) {
    const auto* stored = file.find(name + "." + tensor);
    if (!stored) return;
    group.add(tensor, got, to_tensor(*stored, at::kDouble), allowed_error(options, 1e-11, 2e-6, stored->dtype));
  };
  compare(row.outputs, "out", out);
  out.backward(to_tensor(file.at(name + ".cot"), options.type(), options.device));
  for (const auto& [input, leaf] : in.leaves())
    compare(row.input_gradients, "grad_" + input, leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf));
}

}  // namespace sb
