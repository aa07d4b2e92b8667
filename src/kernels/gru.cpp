#include "base/torch_pch.h"
#include "kernels/check.h"
#include "kernels/operations.h"
#include "kernels/recurrence.h"

namespace sb {

at::Tensor gru_sequence(const at::Tensor& input_gates, const at::Tensor& weight_hh, const at::Tensor& bias_hh,
                        const at::Tensor& first, double a_min) {
  const char* where = "gru_sequence";
  kernels::check_shape(where, "input_gates", input_gates, {-1, -1, -1});
  kernels::check_shape(where, "weight_hh", weight_hh, {-1, -1});
  const int64_t batch = input_gates.size(0), d = weight_hh.size(1);
  kernels::check_shape(where, "input_gates", input_gates, {batch, input_gates.size(1), 3 * d});
  kernels::check_shape(where, "weight_hh", weight_hh, {3 * d, d});
  kernels::check_shape(where, "bias_hh", bias_hh, {3 * d});
  kernels::check_shape(where, "first", first, {batch, d});
  kernels::check_alike(where, input_gates, {weight_hh, bias_hh, first}, /*float32_too=*/true);
  return kernels::run(op::Gru{a_min}, {input_gates, weight_hh, bias_hh, first})[0];
}

}  // namespace sb
