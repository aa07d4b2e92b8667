// Reading recorded layers and networks: sizes from metadata and shapes, weights, projected matrices.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>

#include "base/safetensors.h"
#include "models/options.h"
#include "models/parameters.h"

namespace sb {

int64_t recorded_integer(const Safetensors& file, const std::string& key);
double recorded_number(const Safetensors& file, const std::string& key);
// The options of the mixer whose parameters are stored under `prefix`.
MixerOptions recorded_options(const Safetensors& file, const std::string& model, const std::string& prefix);
// Empty, or why the stored parameters are not those of this mixer.
std::string load_recorded(const Safetensors& file, const std::string& prefix, ParameterList& parameters);
// matrix times the recorded vector probe.<columns>
at::Tensor projection(const Safetensors& file, const at::Tensor& matrix);

}  // namespace sb
