#include "runs/open_run.h"

#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/text.h"
#include "runs/json_fields.h"
#include "runs/run_store.h"
#include "runs/seal.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr size_t largest_config = size_t{1} << 20;

std::string inside(const std::string& folder, const char* name) {
  return (fs::path(folder) / name).string();
}

Error refused(const std::string& path, const std::string& what) {
  return bad_input("run", printable(path, 400) + ": " + what);
}

// The text of the member as it stands there: the run id is the digest of these bytes.
std::string canonical_of(const std::string& text, const std::string& path) {
  static constexpr std::string_view key = "\n  \"canonical\": ";
  const size_t at = text.find(key);
  const size_t end = at == std::string::npos ? at : text.find('\n', at + key.size());
  if (end == std::string::npos) throw refused(path, "expected a line \"canonical\", got none");
  std::string out = text.substr(at + key.size(), end - at - key.size());
  if (out.ends_with(',')) out.pop_back();
  return out;
}

std::string text_member(const nlohmann::json& object, const char* key, const std::string& path) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) throw refused(path, std::string("expected text under ") + key);
  return found->get<std::string>();
}

}  // namespace

RunIdentity check_identity(const std::string& folder) {
  const std::string path = inside(folder, "config.json"), toml = inside(folder, "config.toml");
  const std::string text = read_file(path, largest_config);
  if (!is_sealed(text)) throw refused(path, "its bytes do not fit its sha256");
  const nlohmann::json parsed = parse_bounded(text, largest_config, "run", path);
  RunIdentity out{text_member(parsed, "run_id", path), canonical_of(text, path),
                  text_member(parsed, "config_toml_sha256", path)};
  const std::string id = sha256_hex(out.canonical).substr(0, 16);
  if (id != out.run_id) {
    throw refused(path, "expected run id " + id + " of its canonical config, got " + printable(out.run_id));
  }
  if (sha256_hex(read_file(toml, largest_config)) != out.config_toml_sha256) {
    throw refused(toml, "changed after the run began, its bytes do not fit the digest in config.json");
  }
  return out;
}

namespace {

Result result_of(const std::string& folder, const RunIdentity& identity) {
  const std::string path = inside(folder, "result.json");
  Result result = load_result(folder);
  if (result.run_id != identity.run_id) {
    throw refused(path, "expected run " + identity.run_id + ", got " + printable(result.run_id));
  }
  if (result.config != config_map(identity.canonical)) throw refused(path, "its config is not that of config.json");
  return result;
}

}  // namespace

Result open_result(const std::string& folder) {
  return result_of(folder, check_identity(folder));
}

OpenRun open_run(const std::string& folder, const ModelRules& rules) {
  const RunIdentity identity = check_identity(folder);
  OpenRun run;
  run.folder = folder;
  run.config = resolve_config(inside(folder, "config.toml"), {}, rules);
  if (run.config.run_id != identity.run_id) {
    const bool kept = config_map(identity.canonical).contains("grammar.automaton");
    throw refused(inside(folder, kept ? "automaton.json" : "config.toml"),
                  "expected run " + identity.run_id + " of config.json, got " + run.config.run_id);
  }
  std::error_code failed;
  if (fs::exists(inside(folder, "result.json"), failed)) run.result = result_of(folder, identity);
  return run;
}

Safetensors open_weights(const OpenRun& run) {
  const std::string path = inside(run.folder, "final.safetensors");
  if (!run.result) throw refused(inside(run.folder, "result.json"), "expected a finished run, got none yet");
  if (run.result->status == "diverged") throw refused(run.folder, "the run diverged and left no weights");
  const auto digest = run.result->files.find("final.safetensors");
  if (digest == run.result->files.end()) {
    throw refused(inside(run.folder, "result.json"), "expected the digest of final.safetensors, got none");
  }
  std::string content = read_file(path, std::numeric_limits<size_t>::max());
  if (sha256_hex(content) != digest->second) throw refused(path, "its bytes do not fit the digest in result.json");
  if (!is_sealed(content)) throw refused(path, "its bytes do not fit its sha256");
  Safetensors file = Safetensors::parse(std::move(content), path);
  const auto id = file.metadata().find("run_id");
  if (id == file.metadata().end() || id->second != run.config.run_id) {
    throw refused(path, "expected weights of run " + run.config.run_id + ", got " +
                            (id == file.metadata().end() ? "none named" : printable(id->second)));
  }
  return file;
}

}  // namespace sb
