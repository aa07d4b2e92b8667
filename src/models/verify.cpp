#include "models/verify.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "base/torch_pch.h"
#include "kernels/backend.h"

namespace sb {
namespace {

bool is_core(const Safetensors& file) {
  return std::any_of(file.tensors().begin(), file.tensors().end(),
                     [](const StoredTensor& tensor) { return tensor.name.ends_with(".cot"); });
}

void settle(VerifyRow& row) {
  if (!row.reason.empty()) return;
  const WorstError* groups[] = {&row.outputs, &row.input_gradients, &row.parameter_gradients, &row.final_weights};
  const bool passes =
      std::all_of(std::begin(groups), std::end(groups), [](const auto* group) { return group->passes(); });
  const bool any =
      std::any_of(std::begin(groups), std::end(groups), [](const auto* group) { return group->tolerance > 0; });
  row.status = !any ? VerifyRow::Status::skip : passes ? VerifyRow::Status::pass : VerifyRow::Status::fail;
  if (!any) row.reason = "no recorded result in it";
}

}  // namespace

at::ScalarType VerifyOptions::type() const {
  return precision == VerifyPrecision::fp64   ? at::kDouble
         : precision == VerifyPrecision::bf16 ? at::kBFloat16
                                              : at::kFloat;
}

double allowed_error(const VerifyOptions& options, double fp64, double fp32, Dtype stored) {
  double wanted = fp64;
  if (options.precision == VerifyPrecision::fp32) wanted = fp32;
  if (options.precision == VerifyPrecision::tf32) wanted = 1e-2;
  if (options.precision == VerifyPrecision::bf16) wanted = 1e-1;
  const double storage = stored == Dtype::f64 ? 0 : stored == Dtype::f32 ? 0x1p-23 : 0x1p-7;
  return std::max(wanted, storage);
}

void WorstError::add(const std::string& name, const at::Tensor& got, const at::Tensor& expected, double allowed) {
  double now = std::numeric_limits<double>::infinity();
  if (got.sizes() == expected.sizes()) {
    const auto reference = expected.to(at::kDouble);
    const auto difference =
        (got.detach().to(at::TensorOptions().dtype(at::kDouble).device(at::kCPU)) - reference).abs();
    const double largest = reference.numel() == 0 ? 0 : reference.abs().max().item<double>();
    const double off = difference.numel() == 0 ? 0 : difference.max().item<double>();
    now = largest > 0 ? off / largest : off;
    if (!std::isfinite(now)) now = std::numeric_limits<double>::infinity();
  }
  if (tolerance > 0 && now / allowed <= error / tolerance) return;
  error = now;
  tolerance = allowed;
  tensor = name;
}

VerifyRow verify_file(const Safetensors& file, const std::string& name, const VerifyOptions& options) {
  VerifyRow row;
  row.file = name;
  try {
    if (file.metadata().contains("layer"))
      verify_layer(file, options, row);
    else if (file.find("p0.encoder.weight"))
      verify_network(file, options, row);
    else if (is_core(file))
      verify_core(file, options, row);
    else
      row.reason = "not a recorded vector (no layer, network or recurrence in it)";
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    // libtorch does not have an operation for this device or type.
    const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
    const std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
    row.status = options.precision == VerifyPrecision::bf16 ? VerifyRow::Status::skip : VerifyRow::Status::fail;
    row.reason = printable(text.substr(0, text.find('\n')), 160);
  }
  settle(row);
  return row;
}

std::vector<VerifyRow> verify_directory(const std::string& directory, const VerifyOptions& options,
                                        const std::function<void(const VerifyRow&)>& on_row) {
  if (options.device.is_cuda() && !at::hasCUDA()) throw bad_input("verify.device", "this build has no CUDA device");
  if (options.precision == VerifyPrecision::tf32) {
    if (!options.device.is_cuda()) throw bad_input("verify.precision", "tf32 needs --device cuda");
    kernels::allow_tf32(true);
  }
  // oneDNN rejects bfloat16 on processors that do not support it; ATen's own loops do not.
  if (options.precision == VerifyPrecision::bf16 && options.device.is_cpu())
    at::globalContext().setUserEnabledMkldnn(false);
  std::error_code failure;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory, failure))
    if (entry.path().extension() == ".safetensors") paths.push_back(entry.path());
  if (failure) throw bad_input("verify", formatted("cannot read the folder '{}': {}", directory, failure.message()));
  if (paths.empty()) throw bad_input("verify", formatted("no *.safetensors in '{}'", directory));
  std::sort(paths.begin(), paths.end());
  std::vector<VerifyRow> rows;
  for (const auto& path : paths) {
    rows.push_back(verify_file(Safetensors::load(path.string()), path.stem().string(), options));
    if (on_row) on_row(rows.back());
  }
  return rows;
}

}  // namespace sb
