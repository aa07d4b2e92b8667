// Reads recorded layers and networks from safetensors files: sizes (from metadata and shapes), weights, projections.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <utility>

#include "base/safetensors.h"
#include "models/options.h"
#include "models/parameters.h"

namespace sb {

// Shapes of one layer's stored parameters, from which ModelRow::read_recorded derives switches.
class RecordedLayer {
 public:
  RecordedLayer(const Safetensors& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}
  int64_t extent(const std::string& parameter, size_t axis) const;  // size of the axis; 0 if absent

 private:
  const Safetensors& file_;
  std::string prefix_;
};

// Values from the file's metadata. Both throw bad_input if the key is missing or invalid; integers are in 1..2^20.
int64_t recorded_integer(const Safetensors& file, const std::string& key);
double recorded_number(const Safetensors& file, const std::string& key);
// Returns the options of the mixer whose parameters are stored under `prefix`. They come from the metadata (d_model,
// n_head, layer_index unless it is 0, and switches by name), then from the shapes of q_proj, k_proj, v_proj, g_proj and
// q_conv1d, then from ModelRow::read_recorded; later sources override earlier ones.
MixerOptions recorded_options(const Safetensors& file, const std::string& model, const std::string& prefix);
// Loads all parameters stored under `prefix`. Returns an empty string, or why names or shapes do not match.
std::string load_recorded(const Safetensors& file, const std::string& prefix, ParameterList& parameters);
// Returns the product of the matrix and the file's vector "probe.<number of columns>".
at::Tensor projection(const Safetensors& file, const at::Tensor& matrix);

}  // namespace sb
