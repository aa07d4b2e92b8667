#include "models/recorded.h"

#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "base/torch_pch.h"
#include "models/network.h"

namespace sb {
namespace {

const std::string& metadata(const Safetensors& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) throw bad_input("verify", formatted("{}: no metadata '{}'", file.name(), key));
  return found->second;
}

// Computes the base from f_1 = base^{-2/n}. Files store f_1 in float, so a result near an integer is rounded to it.
double rotary_base(const StoredTensor& frequencies) {
  const auto f = frequencies.as_doubles();
  if (f.size() < 2) return 10000;
  const double base = std::pow(f[1], -static_cast<double>(f.size()));
  return std::abs(base - std::round(base)) < 1e-4 * base ? std::round(base) : base;
}

void read_projections(const RecordedLayer& layer, MixerOptions& out) {
  const double d = static_cast<double>(out.width);
  const int64_t q = layer.extent("q_proj.weight", 0), k = layer.extent("k_proj.weight", 0);
  const int64_t keys = k % q == 0 ? std::max<int64_t>(1, k / q) : 1;  // a token and head
  out.set(switches::expand_k, static_cast<double>(q) / d);
  out.set(switches::expand_v, static_cast<double>(layer.extent("v_proj.weight", 0)) / static_cast<double>(keys) / d);
  out.set(switches::short_conv, layer.extent("q_conv1d.weight", 0) > 0);
  out.set(switches::output_gate, layer.extent("g_proj.weight", 0) > 0);
}

}  // namespace

int64_t recorded_integer(const Safetensors& file, const std::string& key) {
  const auto value = parse_integer(metadata(file, key));
  if (!value || *value < 1 || *value > 1 << 20)
    throw bad_input(
        "verify", formatted("{}: metadata '{}' is not a size: '{}'", file.name(), key, printable(metadata(file, key))));
  return *value;
}

double recorded_number(const Safetensors& file, const std::string& key) {
  const auto value = parse_finite(metadata(file, key));
  if (!value)
    throw bad_input("verify", formatted("{}: metadata '{}' is not a number: '{}'", file.name(), key,
                                        printable(metadata(file, key))));
  return *value;
}

int64_t RecordedLayer::extent(const std::string& parameter, size_t axis) const {
  const auto* stored = file_.find(prefix_ + parameter);
  return stored && stored->shape.size() > axis ? stored->shape[axis] : 0;
}

MixerOptions recorded_options(const Safetensors& file, const std::string& model, const std::string& prefix) {
  const ModelRow& row = find_model(model);
  MixerOptions out(row.switches);
  out.width = recorded_integer(file, "d_model");
  for (const auto& each : row.switches)
    if (const auto found = file.metadata().find(each.name()); found != file.metadata().end())
      out.set(each.name(), each.parse(found->second));
  if (file.metadata().contains("layer_index")) {
    out.layer = recorded_integer(file, "layer_index");
    out.layers = out.layer + 1;
  }
  out.set(switches::heads, recorded_integer(file, "n_head"));
  if (const auto* frequencies = file.find("b.rotary.inv_freq")) out.set(switches::rope_base, rotary_base(*frequencies));
  const RecordedLayer layer(file, prefix);
  if (layer.extent("q_proj.weight", 0) > 0) read_projections(layer, out);
  if (row.read_recorded) row.read_recorded(layer, out);
  check_options(row, out);
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
      return formatted("'{}' has shape [{}], this build's [{}]", parameter.name, joined(stored->shape, ","),
                       joined(parameter.shape, ","));
    parameter.value.detach().copy_(to_tensor(*stored, at::kDouble));
  }
  return "";
}

at::Tensor projection(const Safetensors& file, const at::Tensor& matrix) {
  const auto rows =
      matrix.detach().to(at::TensorOptions().dtype(at::kDouble).device(at::kCPU)).reshape({matrix.size(0), -1});
  return at::mv(rows, to_tensor(file.at(formatted("probe.{}", rows.size(1))), at::kDouble));
}

}  // namespace sb
