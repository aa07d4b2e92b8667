
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "base/torch_pch.h"
#include "models/network.h"
#include "models/recorded.h"
#include "models/verify.h"

namespace sb {
namespace {

// The recorded lengths: 0 for the whole sequence, n for tensors named dx_T<n>, g<n>.…, gp<n>.…
std::set<int64_t> recorded_lengths(const Safetensors& file) {
  std::set<int64_t> lengths{0};
  for (const auto& tensor : file.tensors())
    if (const auto mark = tensor.name.find("_T"); mark != std::string::npos)
      if (const auto length = parse_unsigned(tensor.name.substr(mark + 2)))
        lengths.insert(static_cast<int64_t>(*length));
  return lengths;
}

// The output as recorded: that of the mixer, plus input and MLP if the recorded layer includes them.
at::Tensor recorded_output(const Mixer& mixer, const MixerOptions& options, const at::Tensor& x,
                           SharedTensors& shared) {
  Context context;
  context.shared = &shared;
  const auto z = mixer.forward(x, context);
  if (options.residual != Residual::doubled) return z;
  const auto sum = x + z, more = mixer.feed_forward(sum, {});
  return more.defined() ? sum + more : sum;
}

// Tensors that the first layer left for this one, as leaves.
SharedTensors recorded_shared(const Safetensors& file, const VerifyOptions& options, int64_t length) {
  const std::string prefix = "shared.";
  SharedTensors out;
  for (const auto& tensor : file.tensors()) {
    if (!tensor.name.starts_with(prefix)) continue;
    auto value = to_tensor(tensor, options.type(), options.device);
    if (length > 0) value = value.narrow(1, 0, length).contiguous();
    out[tensor.name.substr(prefix.size())] = value.set_requires_grad(true);
  }
  return out;
}

void run_length(const Safetensors& file, const VerifyOptions& options, const Mixer& mixer,
                const MixerOptions& mixer_options, const ParameterList& parameters, int64_t length, VerifyRow& row) {
  auto x = to_tensor(file.at("x"), options.type(), options.device);
  auto cot = to_tensor(file.at("cot"), options.type(), options.device);
  if (length > x.size(1)) return;
  if (length > 0) {
    x = x.narrow(1, 0, length).contiguous();
    cot = cot.narrow(1, 0, length).contiguous();
  }
  x.set_requires_grad(true);
  const auto compare = [&](WorstError& group, const std::string& name, const at::Tensor& got) {
    if (const auto* stored = file.find(name))
      group.add(name, got, to_tensor(*stored, at::kDouble), allowed_error(options, 1e-6, 1e-5, stored->dtype));
  };
  const std::string suffix = length > 0 ? formatted("_T{}", length) : "";
  const std::string number = length > 0 ? std::to_string(length) : "";
  parameters.flat_grad().zero_();
  const SharedTensors shared = recorded_shared(file, options, length);
  SharedTensors given = shared;
  const auto y = recorded_output(mixer, mixer_options, x, given);
  y.backward(cot);
  compare(row.outputs, "y" + suffix, y);
  compare(row.input_gradients, "dx" + suffix, x.grad());
  for (const auto& [name, value] : shared) compare(row.input_gradients, "dshared." + name + suffix, value.grad());
  for (const auto& parameter : parameters.all()) {
    const auto& grad = parameter.value.grad();
    compare(row.parameter_gradients, "g" + number + "." + parameter.name, grad);
    const std::string projected = "gp" + number + "." + parameter.name;
    if (file.find(projected)) compare(row.parameter_gradients, projected, projection(file, grad));
  }
}

}  // namespace

void verify_layer(const Safetensors& file, const VerifyOptions& options, VerifyRow& row) {
  const std::string name = file.metadata().at("layer");
  row.subject = "layer " + printable(name);
  if (const auto names = model_names(); std::find(names.begin(), names.end(), name) == names.end()) {
    row.reason = "this build has no layer '" + printable(name) + "'";
    return;
  }
  const MixerOptions mixer_options = recorded_options(file, name, "p.");
  ParameterList parameters;
  const auto mixer = find_model(name).make(mixer_options, parameters);
  mixer->check_runnable();
  parameters.allocate(options.type(), options.device);
  if (!(row.reason = load_recorded(file, "p.", parameters)).empty()) return;
  for (const int64_t length : recorded_lengths(file))
    run_length(file, options, *mixer, mixer_options, parameters, length, row);
}

}  // namespace sb
