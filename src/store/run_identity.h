// Decides to which run the config in a run folder belongs. Every command that opens a run uses these functions.
#pragma once
#include <string>

#include "config/config_file.h"
#include "store/run_files.h"

namespace sb {

// Reads config.json with a valid seal and run id, and checks that config.toml has the text recorded in it.
StoredConfig check_identity(const std::string& folder, const RunTree& tree = RunTree::disk());

// Whether a canonical config, written by this or an earlier version, is of the same run. Keys without effect may
// differ.
bool is_same_run(const ResolvedConfig& config, const std::string& canonical);

// Throws bad_input if config.toml of a run, which RunStore writes complete, is not TOML or extends another file.
void expect_stored_toml(const std::string& text, const std::string& path);
// The config of a run, from config.toml and automaton.json of its folder; throws bad_input on failure.
ResolvedConfig resolve_stored(const std::string& folder, const RunTree& tree, const ModelRules& rules);
// Throws bad_input if the config is of another run than config.json.
void expect_run(const ResolvedConfig& config, const StoredConfig& identity, const std::string& folder);

// Whether `eval` can use the config of a folder whose files match their digests.
struct ConfigVerdict {
  std::string problem;        // the config is of another run than config.json
  std::string not_evaluated;  // why it cannot be resolved, e.g. a config of another version, or an unknown model
};
ConfigVerdict judge_config(const std::string& folder, const RunTree& tree, const ModelRules& rules);

}  // namespace sb
