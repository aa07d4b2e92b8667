#include "store/run_check.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "store/checkpoint.h"
#include "store/evaluation_file.h"
#include "store/json_fields.h"
#include "store/seal.h"
#include "store/thinned_metrics.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr const char* weights_name = "final.safetensors";
constexpr const char* metrics_name = "metrics.jsonl";
constexpr int64_t most_updates = int64_t{1} << 53;
constexpr int64_t config_schema = 3;
constexpr int deepest_folder = 4;  // folders below the root in which runs are looked for

std::string file_in(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

bool is_there(const std::string& path) {
  return RunTree::disk().exists(path);
}

// The member's value as it stands on its line of the file: digests are of these bytes. "" where there is none.
std::string line_of(const std::string& text, const std::string& key) {
  const std::string start = "\n  " + json_quoted(key) + ": ";
  const size_t at = text.find(start);
  const size_t end = at == std::string::npos ? at : text.find('\n', at + start.size());
  if (end == std::string::npos) return "";
  std::string value = text.substr(at + start.size(), end - at - start.size());
  if (value.ends_with(',')) value.pop_back();
  return value;
}

// The schema that an object of JSON names; 0: none that can be read.
int64_t schema_of(const std::string& text, const std::string& path) {
  try {
    const nlohmann::json parsed = parse_bounded(text, kMaxResultBytes, "run", path);
    const auto found = parsed.find("schema");
    return found != parsed.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
  } catch (const Error&) {
    return 0;
  }
}

OtherSchema other_schema(int64_t schema, int64_t expected, const std::string& path) {
  return OtherSchema(
      schema, expected,
      "[run] " + path + ": schema " + std::to_string(schema) + ", this program reads " + std::to_string(expected));
}

// Older schemas had other seals.
void check_seal(const std::string& text, const std::string& path, int64_t expected) {
  if (is_sealed(text)) return;
  const int64_t schema = schema_of(text, path);
  if (schema > 0 && schema < expected && was_sealed(text)) throw other_schema(schema, expected, path);
  throw bad_input("run", path + ": SHA-256 mismatch");
}

bool is_run(const std::string& folder, const RunTree& tree) {
  return tree.is_folder(folder) &&
         (tree.exists(file_in(folder, "config.json")) || tree.exists(file_in(folder, "result.json")));
}

// Folders and archives below a root; `archives`: null where these are not opened.
class Search {
 public:
  Search(const RunTree& tree, RunTree* archives) : tree_(tree), archives_(archives) {}

  FoundFolders look(const std::string& root) {
    if (is_run(root, tree_)) found_.runs.push_back(root);
    look_into(root, 0);
    std::sort(found_.runs.begin(), found_.runs.end());
    return std::move(found_);
  }

 private:
  void note(const std::string& path, const std::string& why) {
    found_.notes.push_back("not looked into, " + why + ": " + printable(path, 400));
  }

  void look_into(const std::string& folder, int depth) {
    found_.folders.push_back(folder);
    std::error_code failed;
    const auto names = tree_.names(folder, failed);
    if (failed && tree_.is_folder(folder)) note(folder, failed.message());
    for (const auto& name : names) {
      const std::string inner = file_in(folder, name);
      if (tree_.is_folder(inner)) {
        look_at(inner, depth);
      } else if (archives_ && RunTree::is_archive_name(name)) {
        open(inner, depth);
      }
    }
  }

  void look_at(const std::string& folder, int depth) {
    if (is_run(folder, tree_)) {
      found_.runs.push_back(folder);
    } else if (tree_.is_link(folder)) {
      note(folder, "a link to a folder");
    } else if (depth == deepest_folder) {
      note(folder, "more than " + std::to_string(deepest_folder) + " folders down");
    } else {
      look_into(folder, depth + 1);
    }
  }

  void open(const std::string& archive, int depth) {
    try {
      archives_->open(archive);
      look_at(archive, depth);
    } catch (const Error& error) {
      found_.damaged.push_back({archive, error.what()});
    }
  }

  const RunTree& tree_;
  RunTree* archives_;
  FoundFolders found_;
};

// Looks at one run; every check that fails leaves a line.
class Inspector {
 public:
  Inspector(const std::string& folder, const RunTree& tree) : tree_(tree) { out_.folder = folder; }

  RunReport look(CheckScope upto) {
    const bool config = attempt([&] { look_at_config(); });
    if (!tree_.exists(path("result.json"))) {
      out_.state = RunState::unfinished;
    } else {
      out_.result_stands = attempt([&] { look_at_result(); }) && config;
      out_.state = packed_ ? RunState::packed : lacks_weights_ ? RunState::without_weights : RunState::whole;
    }
    if (upto == CheckScope::all) {
      look_at_checkpoints();
      look_at_evaluations();
    }
    if (!out_.problems.empty()) out_.state = RunState::damaged;
    if (other_) out_.state = *other_;
    if (other_) out_.result_stands = false;
    if (!out_.result_stands) out_.result = nullptr;
    return std::move(out_);
  }

 private:
  std::string path(const std::string& name) const { return file_in(out_.folder, name); }

  template <class Check>
  bool attempt(const Check& check) {
    const size_t before = out_.problems.size();
    try {
      check();
    } catch (const OtherSchema& other) {
      other_ = other.newer() ? RunState::newer : RunState::older;
      out_.problems.emplace_back(other.what());
    } catch (const Error& error) {
      out_.problems.emplace_back(error.what());
    }
    return out_.problems.size() == before;
  }

  void expect(const std::string& name, const std::string& digest, size_t limit) {
    attempt([&] {
      if (sha256_hex(tree_.read(path(name), limit)) != digest)
        throw bad_input("run", path(name) + ": SHA-256 differs from the recorded one");
    });
  }

  void look_at_config() {
    const StoredConfig config = read_stored_config(out_.folder, tree_);
    out_.run_id = config.run_id;
    canonical_ = config.canonical;
    out_.updates = config.updates;
    expect("config.toml", sha256_hex(config.toml), kMaxConfigFileBytes);
    if (!config.automaton_digest.empty()) expect("automaton.json", config.automaton_digest, kMaxAutomatonBytes);
  }

  void look_at_checkpoints() {
    auto& lines = out_.result_stands ? out_.not_needed : out_.problems;
    for (const auto& stored : list_checkpoints(out_.folder)) {
      try {
        const Safetensors file = load_sealed_safetensors(stored.path);
        const auto id = file.metadata().find("run_id");
        if (!out_.run_id.empty() && (id == file.metadata().end() || id->second != out_.run_id))
          throw bad_input("run", stored.path + ": checkpoint of another run, expected run " + out_.run_id);
        out_.checkpoint = std::max(out_.checkpoint.value_or(0), stored.update);
        if (out_.status.empty()) out_.update = *out_.checkpoint;
      } catch (const Error& error) {
        lines.emplace_back(error.what());
      }
    }
  }

  // They say nothing of the result: it stands with or without them.
  void look_at_evaluations() {
    if (out_.run_id.empty()) return;
    for (const auto& saved : load_evaluations(out_.folder, out_.run_id, &out_.problems, tree_)) {
      if (!out_.result_stands || saved.weights != "final" || saved.weights_sha256 == weights_digest_) continue;
      out_.problems.push_back("[run] " + path(evaluation_name(saved)) +
                              ": measured on other final weights than those of result.json");
    }
  }

  void look_at_result() {
    const std::string text = load_result_text(out_.folder, tree_);
    Result parsed = parse_result(text, path("result.json"));
    const Result& result = parsed;
    if (line_of(text, "numbers_sha256") != json_quoted(sha256_hex(comparable_text(result))))
      throw bad_input("run", path("result.json") + ": its numbers do not match its numbers_sha256");
    out_.status = result.status;
    out_.update = result.updates;
    if (!out_.run_id.empty() && result.run_id != out_.run_id)
      throw bad_input("run",
                      path("result.json") + ": expected run " + out_.run_id + ", got " + printable(result.run_id));
    if (!canonical_.empty() && result.config != config_map(canonical_))
      throw bad_input("run", path("result.json") + ": its config differs from that of config.json");
    out_.result = std::make_shared<const Result>(std::move(parsed));
    for (const auto& [name, digest] : out_.result->files) {
      if (name.empty() || name.find('/') != std::string::npos)
        throw bad_input("run", path("result.json") + ": names a file '" + printable(name) + "' outside of the folder");
      if (name == weights_name) weights_digest_ = digest;
      if (name == weights_name && !tree_.exists(path(name))) {
        lacks_weights_ = true;
      } else if (name == metrics_name && !tree_.exists(path(name)) && tree_.exists(path(thinned_metrics_name))) {
        attempt([&, &digest = digest] { look_at_thinned(digest); });
      } else {
        expect(name, digest, name == weights_name ? kMaxWeightsBytes : kMaxMetricsBytes);
      }
    }
  }

  void look_at_thinned(const std::string& digest) {
    const std::string file = path(thinned_metrics_name);
    const ThinnedMetrics thinned = parse_thinned(tree_.read(file, kMaxMetricsBytes), file);
    if ((!out_.run_id.empty() && thinned.run_id != out_.run_id) || thinned.metrics_sha256 != digest)
      throw bad_input("run", file + ": made from other metrics than those of result.json");
    packed_ = true;
  }

  const RunTree& tree_;
  RunReport out_;
  std::string canonical_;          // empty where config.json cannot be read
  std::string weights_digest_;     // as result.json has it; empty where it names none
  std::optional<RunState> other_;  // older or newer
  bool lacks_weights_ = false, packed_ = false;
};

}  // namespace

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
  check_seal(text, path, config_schema);
  const nlohmann::json parsed = parse_bounded(text, kMaxConfigFileBytes, "run", path);
  FieldReader reader(parsed, "run", path);
  int64_t schema = 1;  // before it was named
  if (parsed.contains("schema")) reader.whole("schema", schema, 1, most_updates);
  if (schema != config_schema) throw other_schema(schema, config_schema, path);
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
  check_seal(text, path, result_schema);
  return text;
}

Result load_result(const std::string& folder, const RunTree& tree) {
  return parse_result(load_result_text(folder, tree), file_in(folder, "result.json"));
}

const char* to_string(RunState state) {
  switch (state) {
    case RunState::whole:
      return "intact";
    case RunState::without_weights:
      return "intact without weights";
    case RunState::packed:
      return "intact, packed";
    case RunState::unfinished:
      return "unfinished";
    case RunState::damaged:
      return "damaged";
    case RunState::older:
      return "older format";
    case RunState::newer:
      break;
  }
  return "newer format";
}

RunReport inspect_run(const std::string& folder, CheckScope look, const RunTree& tree) {
  return Inspector(folder, tree).look(look);
}

std::vector<std::string> verify_run(const std::string& folder) {
  RunReport report = inspect_run(folder);
  report.problems.insert(report.problems.end(), report.not_needed.begin(), report.not_needed.end());
  return std::move(report.problems);
}

bool has_result(const std::string& folder) {
  if (!is_there(file_in(folder, "result.json"))) return false;
  const RunReport report = inspect_run(folder, CheckScope::result);
  return report.result_stands && fs::path(folder).filename() == report.run_id;
}

void expect_folder_or_archive(const std::string& root, const std::string& where) {
  std::error_code failed;
  if (fs::is_directory(root, failed)) return;
  if (!fs::is_regular_file(root, failed))
    throw bad_input(where, "expected a folder of runs or an archive, got '" + printable(root, 400) + "'");
  if (!RunTree::is_archive(root))
    throw bad_input(where,
                    "expected a folder of runs or an archive of `selectivbench pack`, got a file that is neither tar "
                    "nor gzip, '" +
                        printable(root, 400) + "'");
}

FoundFolders find_runs(const std::string& root) {
  return Search(RunTree::disk(), nullptr).look(root);
}

FoundFolders find_runs(const std::string& root, RunTree& tree) {
  std::error_code ignored;
  if (fs::is_regular_file(root, ignored)) tree.open(root);
  return Search(tree, &tree).look(root);
}

bool restore_config(const std::string& path, FileSystem& files) {
  const fs::path file(path);
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  if (file.filename() != "config.toml" || !is_there(file_in(folder, "config.json"))) return false;
  StoredConfig config;
  try {
    config = read_stored_config(folder);
  } catch (const Error&) {
    return false;  // nothing to restore it from
  }
  // Another automaton would be another run, begun without a word.
  const std::string automaton = file_in(folder, "automaton.json");
  if (!config.automaton_digest.empty() &&
      sha256_hex(read_file(automaton, kMaxAutomatonBytes)) != config.automaton_digest)
    throw bad_input(
        "run", printable(automaton, 400) + ": changed after the run began: SHA-256 differs from that in config.json");
  try {
    if (read_file(path, kMaxConfigFileBytes) == config.toml) return false;
  } catch (const Error&) {  // unreadable: written anew
  }
  write_file_atomically(path, config.toml, files);
  return true;
}

}  // namespace sb
