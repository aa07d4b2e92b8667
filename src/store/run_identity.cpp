#include "store/run_identity.h"

#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "base/json_layout.h"
#include "base/number.h"
#include "base/sha256.h"
#include "base/text.h"
#include "config/automaton_file.h"
#include "grammar/automaton_json.h"
#include "store/result.h"
#include "store/run_files.h"

namespace sb {

StoredConfig check_identity(const std::string& folder, const RunTree& tree) {
  StoredConfig stored = read_stored_config(folder, tree);
  const std::string toml = file_in(folder, "config.toml");
  if (tree.read(toml, kMaxConfigFileBytes) != stored.toml) {
    throw bad_input("run",
                    printable(toml, 400) + ": changed after the run began: SHA-256 differs from that in config.json");
  }
  return stored;
}

bool is_same_run(const ResolvedConfig& config, const std::string& canonical) {
  if (canonical == config.canonical) return true;
  auto stored = config_map(canonical), now = config_map(config.canonical);
  for (const auto& key : config.keys_without_effect) {
    stored.erase(key);
    now.erase(key);
  }
  const auto at_the_end = [&](const std::string& text) {
    const auto every = parse_integer(text);
    return every && (*every == 0 || *every >= config.values.train.updates);
  };
  if (at_the_end(stored["eval.every"]) && at_the_end(now["eval.every"])) stored["eval.every"] = now["eval.every"];
  const auto& file = config.values.grammar.file;
  // Earlier versions digested the file's bytes, then its layout with a byte order mark.
  if (file && (stored["grammar.automaton"] == json_quoted(file->sha256) ||
               stored["grammar.automaton"] == json_quoted(sha256_hex(json_laid_out(file->text)))))
    stored["grammar.automaton"] = json_quoted(automaton_identity(*file));
  return stored == now;
}

void expect_stored_toml(const std::string& text, const std::string& path) {
  const TomlValue document = parse_toml(text, path);
  for (const auto& member : *document.table())
    if (member.key == "extends")
      throw bad_input("run", "expected a complete config, got one that extends another, " + member.place.text());
}

ResolvedConfig resolve_stored(const std::string& folder, const RunTree& tree, const ModelRules& rules) {
  const std::string path = file_in(folder, "config.toml"), automaton = file_in(folder, "automaton.json");
  const std::string text = tree.read(path, kMaxConfigFileBytes);
  expect_stored_toml(text, path);
  const Settings settings = parse_settings(text, path, rules.shipped);
  ConfigFiles files;
  const auto named = settings.find("grammar.automaton");
  const auto* file = named == settings.end() ? nullptr : named->second.value.text();
  if (file && *file == std::filesystem::path(automaton).lexically_normal() && tree.exists(automaton))
    files.automata[*file] =
        parse_automaton_file(tree.read(automaton, kMaxAutomatonFile), automaton, named->second.origin);
  return resolve(settings, rules, path, &files);
}

namespace {

// The fault of a file outside of the run folder that a key of the task names, or "".
std::string changed_task_file(const ResolvedConfig& config, const StoredConfig& identity) {
  const auto stored = config_map(identity.canonical);
  for (const auto& [key, file] : config.values.task.files) {
    const auto digest = stored.find("task." + key);
    if (digest != stored.end() && digest->second != json_quoted(file->sha256))
      return "[task." + key + "] " + printable(file->path, 400) +
             ": changed after the run began: SHA-256 differs from that in config.json";
  }
  return "";
}

}  // namespace

void expect_run(const ResolvedConfig& config, const StoredConfig& identity, const std::string& folder) {
  if (is_same_run(config, identity.canonical)) return;
  if (const std::string fault = changed_task_file(config, identity); !fault.empty())
    throw Error(Exit::bad_input, fault);
  const bool kept = config_map(identity.canonical).contains("grammar.automaton");
  throw bad_input("run", printable(file_in(folder, kept ? "automaton.json" : "config.toml"), 400) + ": expected run " +
                             identity.run_id + " of config.json, got " + config.run_id);
}

ConfigVerdict judge_config(const std::string& folder, const RunTree& tree, const ModelRules& rules) {
  ResolvedConfig config;
  try {
    config = resolve_stored(folder, tree, rules);
  } catch (const Error& error) {
    if (error.code() != Exit::bad_input) throw;
    return {"", error.what()};
  }
  try {
    const StoredConfig identity = check_identity(folder, tree);
    if (std::string fault = changed_task_file(config, identity); !fault.empty()) return {"", std::move(fault)};
    expect_run(config, identity, folder);
  } catch (const Error& error) {
    return {error.what(), ""};
  }
  return {};
}

}  // namespace sb
