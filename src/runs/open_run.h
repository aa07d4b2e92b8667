// Readers of a run folder come through here: what the files say of each other is compared before any of it is believed.
// Every failure is bad_input with one line that names the file.
#pragma once
#include <optional>
#include <string>

#include "base/safetensors.h"
#include "runs/config_file.h"
#include "runs/result.h"
#include "runs/run_tree.h"

namespace sb {

// config.json of a run, sealed and of one piece with its run id, and config.toml with the digest it tells.
struct RunIdentity {
  std::string run_id;
  std::string canonical;           // as ResolvedConfig has it
  std::string config_toml_sha256;  // fits
};
RunIdentity check_identity(const std::string& folder, const RunTree& tree = RunTree::disk());

// The result of a finished run after check_identity: sealed, of that run id and that config. Weights are not looked at.
Result open_result(const std::string& folder, const RunTree& tree = RunTree::disk());

struct OpenRun {
  std::string folder;
  ResolvedConfig config;         // config.toml, resolved; its run id is config.json's
  std::optional<Result> result;  // absent: the run is not over
};
// The files that a result names fit their digests; the weights are looked at by open_weights.
OpenRun open_run(const std::string& folder, const ModelRules& rules);

// final.safetensors of a finished run: there, sealed, with the digest of result.json and the run's id.
Safetensors open_weights(const OpenRun& run);
// The same for those who know no models: run id and result as check_identity and open_result give them.
Safetensors open_weights(const std::string& folder, const std::string& run_id, const Result& result);

}  // namespace sb
