// Whose config a run folder holds. `check`, `eval` and everybody who opens a run decide by the same functions.
#pragma once
#include <string>

#include "config/config_file.h"
#include "store/run_tree.h"

namespace sb {

// Identity of a run: config.json with a valid seal and run id, and config.toml with the digest recorded in it.
struct RunIdentity {
  std::string run_id;
  std::string canonical;           // as ResolvedConfig has it
  std::string config_toml_sha256;  // verified
};
RunIdentity check_identity(const std::string& folder, const RunTree& tree = RunTree::disk());

// Whether a canonical config names the same run, as this or an earlier version wrote it: keys without effect may
// differ.
bool is_same_run(const ResolvedConfig& config, const std::string& canonical);

// The config of a run, from config.toml and automaton.json of its folder; throws bad_input where it cannot be resolved.
ResolvedConfig resolve_stored(const std::string& folder, const RunTree& tree, const ModelRules& rules);
// Throws bad_input where that is another run than config.json says.
void expect_run(const ResolvedConfig& config, const RunIdentity& identity, const std::string& folder);

// What `eval` makes of the config of a folder whose files fit their digests.
struct ConfigVerdict {
  std::string problem;        // of another run than config.json says
  std::string not_evaluated;  // cannot be resolved, as configs of another version or of models elsewhere
};
ConfigVerdict judge_config(const std::string& folder, const RunTree& tree, const ModelRules& rules);

}  // namespace sb
