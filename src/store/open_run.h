// Opens run folders: files are checked against each other before their content is used. Every failure is bad_input with
// one line that names the file.
#pragma once
#include <optional>
#include <string>

#include "base/safetensors.h"
#include "config/config_file.h"
#include "store/result.h"
#include "store/run_identity.h"
#include "store/run_tree.h"

namespace sb {

// The result of a finished run after check_identity: sealed, with the same run id and config. Weights are not checked.
Result open_result(const std::string& folder, const RunTree& tree = RunTree::disk());

struct OpenRun {
  std::string folder;
  ResolvedConfig config;         // config.toml, resolved; its run id is config.json's
  std::optional<Result> result;  // absent: the run is not finished
};
// Checks the files that the result names against their digests; open_weights checks the weights.
OpenRun open_run(const std::string& folder, const ModelRules& rules);

// final.safetensors of a finished run. Checks its presence, its seal, the digest in result.json and the run id.
Safetensors open_weights(const OpenRun& run);
// The same without model rules: run id and result come from check_identity and open_result.
Safetensors open_weights(const std::string& folder, const std::string& run_id, const Result& result,
                         const RunTree& tree = RunTree::disk());

}  // namespace sb
