#include "store/run_files.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "base/replace_file.h"
#include "base/sha256.h"
#include "base/text.h"
#include "store/json_fields.h"
#include "store/seal.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr int64_t most_updates = int64_t{1} << 53;
constexpr int64_t config_schema = 3;

void check_seal(const std::string& text, const std::string& path) {
  if (!is_sealed(text)) throw bad_input("run", path + ": SHA-256 mismatch");
}

}  // namespace

std::string file_in(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

std::string line_of(const std::string& text, const std::string& key) {
  const std::string start = "\n  " + json_quoted(key) + ": ";
  const size_t at = text.find(start);
  const size_t end = at == std::string::npos ? at : text.find('\n', at + start.size());
  if (end == std::string::npos) return "";
  std::string value = text.substr(at + start.size(), end - at - start.size());
  if (value.ends_with(',')) value.pop_back();
  return value;
}

std::string stored_config_text(const StoredConfig& config) {
  const auto line = [](const std::string& key, const std::string& value) {
    return "  " + json_quoted(key) + ": " + value;
  };
  std::string out = "{\n" + line("schema", std::to_string(config_schema));
  out += ",\n" + line("run_id", json_quoted(config.run_id));
  out += ",\n" + line("updates", std::to_string(config.updates));
  if (!config.automaton_digest.empty()) out += ",\n" + line("automaton_sha256", json_quoted(config.automaton_digest));
  out += ",\n" + line("config_toml_sha256", json_quoted(sha256_hex(config.toml)));
  out += ",\n" + line("config_toml", json_quoted(config.toml));
  return sealed_json(out + ",\n" + line("canonical", config.canonical) + "\n}");
}

StoredConfig read_stored_config(const std::string& folder, const RunTree& tree) {
  const std::string path = file_in(folder, "config.json");
  return parse_stored_config(tree.read(path, kMaxConfigFileBytes), path);
}

StoredConfig parse_stored_config(const std::string& text, const std::string& path) {
  check_seal(text, path);
  const nlohmann::json parsed = parse_bounded(text, kMaxConfigFileBytes, "run", path);
  FieldReader reader(parsed, "run", path);
  int64_t schema = 1;  // before it was named
  if (parsed.contains("schema")) reader.whole("schema", schema, 1, most_updates);
  if (schema != config_schema)
    throw OtherSchema(schema, config_schema,
                      formatted("[run] {}: schema {}, this program reads {}", path, schema, config_schema));
  StoredConfig config;
  std::string digest;
  reader.text("run_id", config.run_id);
  reader.whole("updates", config.updates, 0, most_updates);
  if (parsed.contains("automaton_sha256")) reader.text("automaton_sha256", config.automaton_digest);
  reader.text("config_toml_sha256", digest);
  reader.text("config_toml", config.toml, kMaxConfigFileBytes);
  config.canonical = line_of(text, "canonical");
  if (sha256_hex(config.canonical).substr(0, 16) != config.run_id)
    throw bad_input("run", path + ": its canonical config does not match its run id");
  if (sha256_hex(config.toml) != digest) throw bad_input("run", path + ": its config_toml does not match its SHA-256");
  return config;
}

std::string load_result_text(const std::string& folder, const RunTree& tree) {
  const std::string path = file_in(folder, "result.json");
  std::string text = tree.read(path, kMaxResultBytes);
  check_seal(text, path);
  return text;
}

Result load_result(const std::string& folder, const RunTree& tree) {
  const std::string path = file_in(folder, "result.json"), text = load_result_text(folder, tree);
  Result result = parse_result(text, path);
  if (line_of(text, "numbers_sha256") != json_quoted(sha256_hex(comparable_text(result))))
    throw bad_input("run", printable(path, 400) + ": its numbers do not match its numbers_sha256");
  if (const std::string fault = contradiction_in(result); !fault.empty())
    throw bad_input("run", printable(path, 400) + ": " + fault);
  return result;
}

void expect_result_of(const Result& result, const std::string& run_id, const std::string& canonical,
                      const std::string& folder) {
  const auto refused = [&](const std::string& what) {
    return bad_input("run", printable(file_in(folder, "result.json"), 400) + ": " + what);
  };
  if (result.run_id != run_id) throw refused("expected run " + run_id + ", got " + printable(result.run_id));
  if (result.config != config_map(canonical)) throw refused("its config differs from that of config.json");
}

bool restore_config(const std::string& path, FileSystem& files) {
  const fs::path file(path);
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  if (file.filename() != "config.toml" || !RunTree::disk().exists(file_in(folder, "config.json"))) return false;
  StoredConfig config;
  try {
    config = read_stored_config(folder);
  } catch (const Error&) {
    return false;  // nothing to restore it from
  }
  // Another automaton would silently start another run.
  const std::string automaton = file_in(folder, "automaton.json");
  if (!config.automaton_digest.empty() &&
      sha256_hex(read_file(automaton, kMaxAutomatonBytes)) != config.automaton_digest)
    throw bad_input(
        "run", printable(automaton, 400) + ": changed after the run began: SHA-256 differs from that in config.json");
  try {
    if (read_file(path, kMaxConfigFileBytes) == config.toml) return false;
  } catch (const Error&) {  // unreadable: written anew
  }
  replace_file(path, config.toml, files);
  return true;
}

}  // namespace sb
