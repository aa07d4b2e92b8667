// "Is this build right on this machine?": recorded vectors (bare recurrences, layers, small training runs) against it.
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

// The worst tensor of a group: largest error relative to what is allowed.
struct WorstError {
  double error = 0;      // max |got - expected| / max |expected|
  double tolerance = 0;  // 0: nothing of this group in the file
  std::string tensor;
  void add(const std::string& name, const at::Tensor& got, const at::Tensor& expected, double allowed);
  bool passes() const { return error <= tolerance; }
};

struct VerifyRow {
  enum class Status { pass, fail, skip };
  std::string file;
  std::string subject;  // e.g. "layer mamba2"
  Status status = Status::skip;
  std::string reason;  // of a skip or of a failure without numbers
  WorstError outputs, input_gradients, parameter_gradients, final_weights;
};

// Throws Error(bad_input) for a folder or file that cannot be read. on_row sees the rows as they come, files by name.
std::vector<VerifyRow> verify_directory(const std::string& directory, const VerifyOptions& options,
                                        const std::function<void(const VerifyRow&)>& on_row = {});
VerifyRow verify_file(const Safetensors& file, const std::string& name, const VerifyOptions& options);

// The kinds of vectors; each fills the row or sets it to skip.
void verify_core(const Safetensors& file, const VerifyOptions& options, VerifyRow& row);
void verify_layer(const Safetensors& file, const VerifyOptions& options, VerifyRow& row);
void verify_network(const Safetensors& file, const VerifyOptions& options, VerifyRow& row);

// What is allowed for a tensor stored in this type where the kind's own tolerance is `wanted`.
double allowed_error(const VerifyOptions& options, double fp64, double fp32, Dtype stored);

}  // namespace sb
