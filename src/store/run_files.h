// config.json and result.json of a run folder: sealed texts, checked when they are read.
#pragma once
#include <cstdint>
#include <string>

#include "base/file_system.h"
#include "store/result.h"
#include "store/run_tree.h"

namespace sb {

std::string file_in(const std::string& folder, const std::string& name);  // path of a file

constexpr size_t kMaxConfigFileBytes = size_t{4} << 20;  // bytes of config.toml, and of config.json
constexpr size_t kMaxMetricsBytes = size_t{1} << 31;
constexpr size_t kMaxWeightsBytes = size_t{1} << 34;
constexpr size_t kMaxAutomatonBytes = size_t{1} << 30;

// Content of config.json, after its seal and run id were checked.
struct StoredConfig {
  std::string run_id, toml, canonical, automaton_digest;  // the digest is empty if the grammar is generated
  int64_t updates = 0;
};
std::string stored_config_text(const StoredConfig& config);  // sealed
// Throws bad_input that names the file, OtherSchema for other versions.
StoredConfig read_stored_config(const std::string& folder, const RunTree& tree = RunTree::disk());
StoredConfig parse_stored_config(const std::string& text, const std::string& path);

// The result of a finished run: sealed, validated, with the numbers of its numbers_sha256 and without contradictions.
// Throws bad_input that names the file if it is absent, truncated or changed, OtherSchema for other versions.
Result load_result(const std::string& folder, const RunTree& tree = RunTree::disk());
// Throws bad_input if the result is not of this run, or has another config.
void expect_result_of(const Result& result, const std::string& run_id, const std::string& canonical,
                      const std::string& folder);
// The text of the result: bounded and with a valid seal, but not parsed.
std::string load_result_text(const std::string& folder, const RunTree& tree = RunTree::disk());

// A member's value, exactly as in its line of such a file; digests are computed over these bytes. Empty if absent.
std::string line_of(const std::string& text, const std::string& key);

// If `path` is the changed config.toml of a run folder, restores it from config.json and returns true. A link of that
// name is replaced, and the file it leads to is left alone. Throws bad_input if automaton.json of the folder does not
// match config.json: it would be another run.
bool restore_config(const std::string& path, FileSystem& files = real_file_system());

}  // namespace sb
