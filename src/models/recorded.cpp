#include "models/recorded.h"

#include <fmt/ranges.h>

#include <cmath>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "base/torch_pch.h"
#include "models/network.h"

namespace sb {
namespace {

const std::string& metadata(const Safetensors& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) throw bad_input("verify", fmt::format("{}: no metadata '{}'", file.name(), key));
  return found->second;
}

// base from f_1 = base^{-2/n}; files hold it in float, so that whole numbers are meant.
double rotary_base(const StoredTensor& frequencies) {
  const auto f = frequencies.as_doubles();
  if (f.size() < 2) return 10000;
  const double base = std::pow(f[1], -static_cast<double>(f.size()));
  return std::abs(base - std::round(base)) < 1e-4 * base ? std::round(base) : base;
}

}  // namespace

int64_t recorded_integer(const Safetensors& file, const std::string& key) {
  const auto value = parse_integer(metadata(file, key));
  if (!value || *value < 1 || *value > 1 << 20)
    throw bad_input("verify", fmt::format("{}: metadata '{}' is not a size: '{}'", file.name(), key,
                                          printable(metadata(file, key))));
  return *value;
}

double recorded_number(const Safetensors& file, const std::string& key) {
  const auto value = parse_finite(metadata(file, key));
  if (!value)
    throw bad_input("verify", fmt::format("{}: metadata '{}' is not a number: '{}'", file.name(), key,
                                          printable(metadata(file, key))));
  return *value;
}

MixerOptions recorded_options(const Safetensors& file, const std::string& model, const std::string& prefix) {
  const ModelRow& row = find_model(model);
  MixerOptions out = row.defaults;
  out.dropout = 0;
  out.width = recorded_integer(file, "d_model");
  out.heads = recorded_integer(file, "n_head");
  const auto extent = [&](const char* name, size_t axis) -> int64_t {
    const auto* stored = file.find(prefix + name);
    return stored && stored->shape.size() > axis ? stored->shape[axis] : 0;
  };
  const double d = static_cast<double>(out.width);
  if (const int64_t q = extent("q_proj.weight", 0); q > 0 && model != "transformer") {
    out.expand_k = static_cast<double>(q) / d;
    if (const int64_t k = extent("k_proj.weight", 0); k % q == 0) out.factors = std::max<int64_t>(1, k / q);
    out.expand_v = static_cast<double>(extent("v_proj.weight", 0)) / static_cast<double>(out.factors) / d;
    out.short_conv = extent("q_conv1d.weight", 0) > 0;
    out.output_gate = extent("g_proj.weight", 0) > 0;
  }
  if (model == "transformer") {
    out.mlp = extent("linear1.weight", 0) / (2 * out.width);
    out.double_residual = true;  // recorded layers hold their input
  }
  if (model == "mamba") {
    out.d_state = extent("A_log", 1);
    out.short_conv = extent("conv1d.weight", 0) > 0;
    out.output_gate = extent("in_proj.weight", 0) == 4 * out.width;
  }
  if (model == "mamba2") {
    const int64_t heads = extent("A_log", 0), conv = extent("conv1d.weight", 0), rows = extent("in_proj.weight", 0);
    out.short_conv = conv > 0;
    out.output_gate = !out.short_conv || rows - conv - heads == 2 * out.width;
    out.d_state = (rows - heads - (out.output_gate ? 4 : 2) * out.width) / 2;
  }
  if (model == "s4") out.d_state = 2 * extent("kernel.C", 1);
  if (file.metadata().contains("rope_base")) out.rope_base = recorded_number(file, "rope_base");
  if (const auto* frequencies = file.find("b.rotary.inv_freq")) out.rope_base = rotary_base(*frequencies);
  check_options(model, out, row.switches);
  return out;
}

std::string load_recorded(const Safetensors& file, const std::string& prefix, ParameterList& parameters) {
  for (const auto& stored : file.tensors())
    if (stored.name.starts_with(prefix) && !parameters.find(stored.name.substr(prefix.size())))
      return "this build's layer has no parameter '" + printable(stored.name.substr(prefix.size())) + "'";
  const at::NoGradGuard no_gradients;
  for (const auto& parameter : parameters.all()) {
    const auto* stored = file.find(prefix + parameter.name);
    if (!stored) return "no parameter '" + parameter.name + "' in the file";
    if (stored->shape != parameter.shape)
      return fmt::format("'{}' has shape [{}], this build's [{}]", parameter.name, fmt::join(stored->shape, ","),
                         fmt::join(parameter.shape, ","));
    parameter.value.detach().copy_(to_tensor(*stored, at::kDouble));
  }
  return "";
}

at::Tensor projection(const Safetensors& file, const at::Tensor& matrix) {
  const auto rows =
      matrix.detach().to(at::TensorOptions().dtype(at::kDouble).device(at::kCPU)).reshape({matrix.size(0), -1});
  return at::mv(rows, to_tensor(file.at(fmt::format("probe.{}", rows.size(1))), at::kDouble));
}

}  // namespace sb
