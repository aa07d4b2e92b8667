#include "models/verify.h"
#include "base/format.h"

#include <map>
#include <memory>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace sb::cli {
namespace verify_command {

struct Options {
  std::string folder, device = "cpu", precision = "fp64", json;
};

const char* status_name(VerifyRow::Status status) {
  return status == VerifyRow::Status::pass ? "pass" : status == VerifyRow::Status::fail ? "FAIL" : "skip";
}

std::string shown(const WorstError& group) {
  return group.tolerance > 0 ? formatted("{:.1e}", group.error) : "-";
}

// The group nearest to its limit, or furthest beyond it.
const WorstError& critical(const VerifyRow& row) {
  const WorstError* worst = &row.outputs;
  for (const auto* group : {&row.input_gradients, &row.parameter_gradients, &row.final_weights})
    if (group->tolerance > 0 &&
        (worst->tolerance <= 0 || group->error / group->tolerance > worst->error / worst->tolerance))
      worst = group;
  return *worst;
}

int count(const std::vector<VerifyRow>& rows, VerifyRow::Status status) {
  int n = 0;
  for (const auto& row : rows) n += row.status == status;
  return n;
}

std::string as_text(const std::vector<VerifyRow>& rows, const Options& options) {
  TextTable table({"file", "outputs", "input grads", "param grads", "weights", "allowed", "worst tensor", "result"},
                  "lrrrrrll");
  for (const auto& row : rows) {
    const WorstError& worst = critical(row);
    const bool any = worst.tolerance > 0;
    table.row(
        {row.file, shown(row.outputs), shown(row.input_gradients), shown(row.parameter_gradients),
         shown(row.final_weights), any ? formatted("{:.1e}", worst.tolerance) : "-", worst.tensor,
         row.reason.empty() ? status_name(row.status) : formatted("{}: {}", status_name(row.status), row.reason)});
  }
  return table.text() + formatted(
                            "{} passed, {} failed, {} skipped; largest error relative to the largest recorded "
                            "value, {} on {}\n",
                            count(rows, VerifyRow::Status::pass), count(rows, VerifyRow::Status::fail),
                            count(rows, VerifyRow::Status::skip), options.precision, options.device);
}

std::string as_json(const std::vector<VerifyRow>& rows, const Options& options) {
  Json json = {{"device", options.device},
               {"precision", options.precision},
               {"passed", count(rows, VerifyRow::Status::pass)},
               {"failed", count(rows, VerifyRow::Status::fail)},
               {"skipped", count(rows, VerifyRow::Status::skip)},
               {"files", Json::array()}};
  for (const auto& row : rows) {
    Json& entry = json["files"].emplace_back(
        Json{{"file", row.file},
             {"subject", row.subject},
             {"result", row.status == VerifyRow::Status::fail ? "fail" : status_name(row.status)}});
    if (!row.reason.empty()) entry["reason"] = row.reason;
    const auto group = [&](const char* name, const WorstError& worst) {
      if (worst.tolerance <= 0) return;
      entry[name] = {{"error", worst.error}, {"tolerance", worst.tolerance}, {"tensor", worst.tensor}};
    };
    group("outputs", row.outputs);
    group("input_gradients", row.input_gradients);
    group("parameter_gradients", row.parameter_gradients);
    group("final_weights", row.final_weights);
  }
  return json_document(json);
}

Exit run(const Options& options) {
  const std::map<std::string, VerifyPrecision> precisions = {{"fp64", VerifyPrecision::fp64},
                                                             {"fp32", VerifyPrecision::fp32},
                                                             {"tf32", VerifyPrecision::tf32},
                                                             {"bf16", VerifyPrecision::bf16}};
  VerifyOptions asked;
  asked.device = options.device == "cuda" ? at::kCUDA : at::kCPU;
  asked.precision = precisions.at(options.precision);
  const auto rows = verify_directory(options.folder, asked);
  if (count(rows, VerifyRow::Status::skip) == static_cast<int>(rows.size()))
    throw bad_input("verify", formatted("no usable vector in '{}', {} skipped; {}: {}", one_line(options.folder),
                                        rows.size(), one_line(rows.front().file), one_line(rows.front().reason)));
  if (options.json.empty())
    print(as_text(rows, options));
  else
    deliver(options.json, as_json(rows, options));
  return count(rows, VerifyRow::Status::fail) > 0 ? Exit::check_failed : Exit::done;
}

}  // namespace verify_command

void add_verify(Program& program) {
  using namespace verify_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments = program.command("verify", "Compare the kernels and layers of this build with recorded vectors",
                                         {"selectivbench verify tests/golden/layers",
                                          "selectivbench verify tests/golden/layers --precision fp32 --json -"},
                                         [options] { return run(*options); });
  arguments.positional("DIR", options->folder, true, "Folder of recorded vectors (*.safetensors)");
  arguments.choice("--device", options->device, {"cpu", "cuda"}, "Device");
  arguments.choice("--precision", options->precision, {"fp64", "fp32", "tf32", "bf16"}, "Precision of all tensors");
  arguments.text("--json", options->json, "FILE", "Write JSON there, - for standard output");
}

}  // namespace sb::cli
