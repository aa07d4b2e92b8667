#include "store/open_run.h"

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/text.h"
#include "store/run_files.h"
#include "store/seal.h"
#include "store/thinned_metrics.h"

namespace sb {
namespace {

Error refused(const std::string& path, const std::string& what) {
  return bad_input("run", printable(path, 400) + ": " + what);
}

Result result_of(const std::string& folder, const StoredConfig& identity, const RunTree& tree) {
  Result result = load_result(folder, tree);
  expect_result_of(result, identity.run_id, identity.canonical, folder);
  return result;
}

void check_files(const std::string& folder, const Result& result) {
  for (const auto& [name, digest] : result.files) {
    if (name == "final.safetensors") continue;
    if (name.empty() || name.find('/') != std::string::npos) {
      throw refused(file_in(folder, "result.json"), "names a file '" + printable(name) + "' outside of the folder");
    }
    const std::string path = file_in(folder, name);
    if (name == "metrics.jsonl") {
      load_metrics(folder, result);
      continue;
    }
    if (sha256_hex(read_file(path, kMaxMetricsBytes)) != digest) {
      throw refused(path, "SHA-256 differs from that in result.json");
    }
  }
}

}  // namespace

Result open_result(const std::string& folder, const RunTree& tree) {
  return result_of(folder, check_identity(folder, tree), tree);
}

OpenRun open_run(const std::string& folder, const ModelRules& rules) {
  const StoredConfig identity = check_identity(folder);
  OpenRun run;
  run.folder = folder;
  run.config = resolve_stored(folder, RunTree::disk(), rules);
  expect_run(run.config, identity, folder);
  run.config.run_id = identity.run_id;
  run.config.canonical = identity.canonical;
  if (is_there(file_in(folder, "result.json"))) run.result = result_of(folder, identity, RunTree::disk());
  if (run.result) check_files(folder, *run.result);
  return run;
}

Safetensors open_weights(const OpenRun& run) {
  if (!run.result) throw refused(file_in(run.folder, "result.json"), "the run is not finished");
  return open_weights(run.folder, run.config.run_id, *run.result);
}

Safetensors open_weights(const std::string& folder, const std::string& run_id, const Result& result,
                         const RunTree& tree) {
  const std::string path = file_in(folder, "final.safetensors");
  if (result.status == "diverged") throw refused(folder, "the run diverged and left no weights");
  const auto digest = result.files.find("final.safetensors");
  if (digest == result.files.end()) {
    throw refused(file_in(folder, "result.json"), "expected the digest of final.safetensors, got none");
  }
  std::string content = tree.read(path, kMaxWeightsBytes);
  if (sha256_hex(content) != digest->second) throw refused(path, "SHA-256 differs from that in result.json");
  if (!is_sealed(content)) throw refused(path, "SHA-256 mismatch");
  Safetensors file = Safetensors::parse(std::move(content), path);
  const auto id = file.metadata().find("run_id");
  if (id == file.metadata().end() || id->second != run_id) {
    throw refused(path, "expected weights of run " + run_id + ", got " +
                            (id == file.metadata().end() ? "none named" : printable(id->second)));
  }
  return file;
}

}  // namespace sb
