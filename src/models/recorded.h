// Reading recorded layers and networks: sizes from metadata and shapes, weights, projected matrices.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <utility>

#include "base/safetensors.h"
#include "models/options.h"
#include "models/parameters.h"

namespace sb {

// The stored parameters of one layer, for rows that read their switches from them.
class RecordedLayer {
 public:
  RecordedLayer(const Safetensors& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}
  int64_t extent(const std::string& parameter, size_t axis) const;  // 0 where absent

 private:
  const Safetensors& file_;
  std::string prefix_;
};

int64_t recorded_integer(const Safetensors& file, const std::string& key);
double recorded_number(const Safetensors& file, const std::string& key);
// The options of the mixer whose parameters are stored under `prefix`: d_model and n_head; switches by their names in
// the metadata; what the usual projections (q_proj, k_proj, v_proj, g_proj, q_conv1d) tell; the row's own reading.
MixerOptions recorded_options(const Safetensors& file, const std::string& model, const std::string& prefix);
// Empty, or why the stored parameters are not those of this mixer.
std::string load_recorded(const Safetensors& file, const std::string& prefix, ParameterList& parameters);
// matrix times the recorded vector probe.<columns>
at::Tensor projection(const Safetensors& file, const at::Tensor& matrix);

}  // namespace sb
