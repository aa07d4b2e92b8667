// Checks this build on this machine against recorded vectors: recurrences, layers and small training runs.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "base/safetensors.h"

namespace sb {

enum class VerifyPrecision { fp64, fp32, tf32, bf16 };

struct VerifyOptions {
  at::Device device = at::kCPU;
  VerifyPrecision precision = VerifyPrecision::fp64;
  at::ScalarType type() const;
};

// The worst tensor of a group: the one with the largest error relative to its tolerance.
struct WorstError {
  double error = 0;      // max |got - expected| / max |expected|
  double tolerance = 0;  // 0: the file has no tensor of this group
  std::string tensor;
  void add(const std::string& name, const at::Tensor& got, const at::Tensor& expected, double allowed);
  bool passes() const { return error <= tolerance; }
};

struct VerifyRow {
  enum class Status { pass, fail, skip };
  std::string file;
  std::string subject;  // e.g. "layer mamba2"
  Status status = Status::skip;
  std::string reason;  // why the file was skipped or could not be compared; else empty
  WorstError outputs, input_gradients, parameter_gradients, final_weights;
};

// Verifies every *.safetensors file of a folder, in order of file names. on_row is called after each file. Throws
// Error(bad_input) if the folder or a file cannot be read.
std::vector<VerifyRow> verify_directory(const std::string& directory, const VerifyOptions& options,
                                        const std::function<void(const VerifyRow&)>& on_row = {});
VerifyRow verify_file(const Safetensors& file, const std::string& name, const VerifyOptions& options);

// One function per kind of recorded vector. Each fills the row or marks it as skipped.
void verify_core(const Safetensors& file, const VerifyOptions& options, VerifyRow& row);
void verify_layer(const Safetensors& file, const VerifyOptions& options, VerifyRow& row);
void verify_network(const Safetensors& file, const VerifyOptions& options, VerifyRow& row);

// Tolerance for a tensor stored as `stored`: `fp64` or `fp32`, selected by options.precision (tf32 and bf16 have fixed
// tolerances), but at least the rounding error of the stored type.
double allowed_error(const VerifyOptions& options, double fp64, double fp32, Dtype stored);

}  // namespace sb
