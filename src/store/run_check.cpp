#include "store/run_check.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"
#include "store/checkpoint.h"
#include "store/evaluation_file.h"
#include "store/open_run.h"
#include "store/thinned_metrics.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr const char* weights_name = "final.safetensors";
constexpr const char* metrics_name = "metrics.jsonl";

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

  void expect(const std::string& name, const std::string& digest, size_t limit, const std::string& record) {
    attempt([&] {
      if (sha256_hex(tree_.read(path(name), limit)) != digest)
        throw bad_input("run", path(name) + ": SHA-256 differs from that in " + record);
    });
  }

  void look_at_config() {
    const StoredConfig config = read_stored_config(out_.folder, tree_);
    out_.run_id = config.run_id;
    canonical_ = config.canonical;
    out_.updates = config.updates;
    expect("config.toml", sha256_hex(config.toml), kMaxConfigFileBytes, "config.json");
    attempt([&] { expect_stored_toml(config.toml, path("config.toml")); });
    if (!config.automaton_digest.empty())
      expect("automaton.json", config.automaton_digest, kMaxAutomatonBytes, "config.json");
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

  // Problems of saved evaluations do not affect the result.
  void look_at_evaluations() {
    if (out_.run_id.empty()) return;
    const EvaluatedRun run = evaluated_run(out_.run_id, config_map(canonical_));
    for (const auto& saved : load_evaluations(out_.folder, run, &out_.problems, tree_)) {
      if (!out_.result_stands || saved.weights != "final" || saved.weights_sha256 == weights_digest_) continue;
      out_.problems.push_back("[run] " + path(evaluation_name(saved)) +
                              ": measured on other final weights than those of result.json");
    }
  }

  void look_at_result() {
    const auto result = std::make_shared<const Result>(load_result(out_.folder, tree_));
    out_.status = result->status;
    out_.update = result->updates;
    if (!out_.run_id.empty()) expect_result_of(*result, out_.run_id, canonical_, out_.folder);
    out_.result = result;
    // Python records runs without weights.
    lacks_weights_ = result->status == "done" && !result->files.contains(weights_name);
    for (const auto& [name, digest] : out_.result->files) {
      if (name.empty() || name.find('/') != std::string::npos)
        throw bad_input("run", path("result.json") + ": names a file '" + printable(name) + "' outside of the folder");
      if (name == weights_name) weights_digest_ = digest;
      if (name == weights_name && !tree_.exists(path(name))) {
        lacks_weights_ = true;
      } else if (name == metrics_name) {
        packed_ = !tree_.exists(path(name)) && tree_.exists(path(thinned_metrics_name));
        attempt([&] { load_metrics(out_.folder, *result, tree_); });
      } else if (name == weights_name && result->status == "done") {
        attempt([&] { open_weights(out_.folder, result->run_id, *result, tree_); });
      } else {
        expect(name, digest, kMaxMetricsBytes, "result.json");
      }
    }
  }

  const RunTree& tree_;
  RunReport out_;
  std::string canonical_;          // empty if config.json cannot be read
  std::string weights_digest_;     // as in result.json; empty if it has none
  std::optional<RunState> other_;  // older or newer
  bool lacks_weights_ = false, packed_ = false;
};

}  // namespace

const char* to_string(RunState state) {
  static constexpr const char* names[] = {"intact",  "intact without weights", "intact, packed", "unfinished",
                                          "damaged", "older format",           "newer format"};
  return names[static_cast<size_t>(state)];
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
  if (!RunTree::disk().exists(file_in(folder, "result.json"))) return false;
  const RunReport report = inspect_run(folder, CheckScope::result);
  return report.result_stands && fs::path(folder).filename() == report.run_id;
}

}  // namespace sb
