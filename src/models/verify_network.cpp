#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/text.h"
#include "base/torch_pch.h"
#include "models/network.h"
#include "models/recorded.h"
#include "models/verify.h"

namespace sb {
namespace {

// The model's name: from the metadata, else the longest registered name that the file name has after "net_".
std::string recorded_model(const Safetensors& file, const std::string& stem) {
  for (const char* key : {"model", "layer", "mixer"})
    if (const auto found = file.metadata().find(key); found != file.metadata().end()) return found->second;
  const std::string rest = stem.starts_with("net_") ? stem.substr(4) : stem;
  std::string best;
  for (const auto& name : model_names())
    if (rest.starts_with(name) && name.size() > best.size() &&
        (rest.size() == name.size() || !std::isalnum(static_cast<unsigned char>(rest[name.size()]))))
      best = name;
  // A known name must be followed by sizes; otherwise the file is of another model whose name begins alike.
  if (best.size() < rest.size() && rest.find_first_of("0123456789", best.size()) == std::string::npos) return rest;
  return best.empty() ? rest : best;
}

// Adam (0.9, 0.999, 1e-8) over the flat buffers, in the network's own precision.
struct Adam {
  explicit Adam(const ParameterList& parameters)
      : values(parameters.flat()),
        grads(parameters.flat_grad()),
        m(at::zeros_like(values)),
        v(at::zeros_like(values)) {}
  void update(double lr, int64_t step) {
    m.mul_(0.9).add_(grads, 0.1);
    v.mul_(0.999).addcmul_(grads, grads, 0.001);
    const double first = 1 - std::pow(0.9, static_cast<double>(step));
    const double second = 1 - std::pow(0.999, static_cast<double>(step));
    values.addcdiv_(m, (v.sqrt() / std::sqrt(second)).add_(1e-8), -lr / first);
  }
  at::Tensor values, grads, m, v;
};

// s / warm up to `warm`, then half a cosine to 0 at `total`.
double warmup_cosine(int64_t update, int64_t warm, int64_t total) {
  if (update < warm) return static_cast<double>(update) / static_cast<double>(warm);
  const double share = static_cast<double>(update - warm) / static_cast<double>(std::max<int64_t>(1, total - warm));
  return (1 + std::cos(std::numbers::pi * std::min(share, 1.0))) / 2;
}

double global_norm(const at::Tensor& grads) {
  return std::sqrt(grads.to(at::kDouble).square().sum().item<double>());
}

class Replay {
 public:
  Replay(const Safetensors& file, const VerifyOptions& options, VerifyRow& row)
      : file_(file), options_(options), row_(row), tolerance64_(1e-9), tolerance32_(1e-5) {}

  void compare(WorstError& group, const std::string& name, const at::Tensor& got) {
    if (const auto* stored = file_.find(name))
      group.add(name, got, to_tensor(*stored, at::kDouble),
                allowed_error(options_, tolerance64_, tolerance32_, stored->dtype));
  }

  void run(Network& network) {
    const auto x = to_tensor(file_.at("x"), options_.type(), options_.device);
    const auto labels = to_tensor(file_.at("labels"), at::kLong, options_.device);
    const auto mask = to_tensor(file_.at("mask"), at::kBool, options_.device);
    const auto target = at::where(mask, labels, at::full_like(labels, -1));
    const int64_t updates = recorded_integer(file_, "updates");
    const auto warm = static_cast<int64_t>(recorded_number(file_, "warmup"));
    const int64_t total = recorded_integer(file_, "total_steps");
    const double lr = recorded_number(file_, "lr");
    ParameterList& parameters = network.parameters();
    const bool first = holds_first_gradient(parameters);
    Adam adam(parameters);
    std::vector<double> losses, norms, rates;
    {
      const at::NoGradGuard no_gradients;
      compare(row_.outputs, "logits0", network.logits(x));
    }
    for (int64_t s = 0; s < updates; ++s) {
      parameters.flat_grad().zero_();
      const auto loss = network.loss(x, target);
      loss.backward();
      losses.push_back(loss.item<double>());
      norms.push_back(global_norm(parameters.flat_grad()));
      rates.push_back(lr * warmup_cosine(s, warm, total));
      const at::NoGradGuard no_gradients;
      if (!first || s > 0) parameters.flat_grad().mul_(clip(norms.back()));
      if (s == (first ? 0 : updates - 1))
        for (const auto& parameter : parameters.all())
          compare(row_.parameter_gradients, "g0." + parameter.name, parameter.value.grad());
      if (first && s == 0) parameters.flat_grad().mul_(clip(norms.back()));
      adam.update(rates.back(), s + 1);
    }
    const at::NoGradGuard no_gradients;
    compare(row_.outputs, "losses", at::tensor(losses, at::kDouble));
    compare(row_.outputs, "grad_norms", at::tensor(norms, at::kDouble));
    compare(row_.outputs, "lrs", at::tensor(rates, at::kDouble));
    compare(row_.outputs, "logits_end", network.logits(x));
    for (const auto& parameter : parameters.all()) {
      compare(row_.final_weights, "p_end." + parameter.name, parameter.value);
      const std::string projected = "pp_end." + parameter.name;
      if (file_.find(projected)) compare(row_.final_weights, projected, projection(file_, parameter.value));
    }
  }

 private:
  static double clip(double norm) { return std::min(1.0, 1 / (norm + 1e-6)); }

  // g0.* is the gradient of the first update. But if the recorder stored the buffers instead of copies, it is the
  // clipped gradient of the last update. The recorded norm tells which.
  bool holds_first_gradient(const ParameterList& parameters) const {
    double squares = 0;
    for (const auto& parameter : parameters.all())
      if (const auto* stored = file_.find("g0." + parameter.name))
        for (const double v : stored->as_doubles()) squares += v * v;
    const double norm = file_.at("grad_norms").as_doubles().at(0);
    return std::abs(std::sqrt(squares) - norm) < 1e-5 * norm;
  }

  const Safetensors& file_;
  const VerifyOptions& options_;
  VerifyRow& row_;
  double tolerance64_, tolerance32_;
};

std::string unsupported(const Safetensors& file, const VerifyOptions& options) {
  const auto says = [&](const char* key, std::string_view text) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() || found->second == text;
  };
  if (!says("optimizer", "Adam, clip 1.0, LambdaLR"))
    return "optimiser '" + printable(file.metadata().at("optimizer")) + "' is not replayed";
  if (!says("special_groups", "{}")) return "parameter groups with rates of their own are not replayed";
  if (options.precision == VerifyPrecision::bf16 || options.precision == VerifyPrecision::tf32)
    return "updates by Adam have no bound in this precision";
  return "";
}

}  // namespace

void verify_network(const Safetensors& file, const VerifyOptions& options, VerifyRow& row) {
  const std::string model = recorded_model(file, row.file);
  row.subject = "network " + printable(model);
  if (const auto names = model_names(); std::find(names.begin(), names.end(), model) == names.end()) {
    row.reason = "this build has no model '" + printable(model) + "'";
    return;
  }
  if (!(row.reason = unsupported(file, options)).empty()) return;
  ModelConfig config;
  config.name = model;
  config.mixer = recorded_options(file, model, "p0.layers.0.");
  config.width = config.mixer.width;
  config.layers = recorded_integer(file, "layers");
  config.inputs = recorded_integer(file, "vocab");
  config.outputs = recorded_integer(file, "outputs");
  config.dropout = 0;
  if (file.metadata().contains("dropout") && recorded_number(file, "dropout") != 0) {
    row.reason = "dropout masks of another program cannot be replayed";
    return;
  }
  Network network(config, options.type(), options.device);
  if (!(row.reason = load_recorded(file, "p0.", network.parameters())).empty()) return;
  Replay(file, options, row).run(network);
}

}  // namespace sb
