#include <memory>

#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/shipped.h"
#include "cli/training.h"
#include "config/rank_place.h"
#include "suites/suite.h"

namespace sb::cli {
namespace config_command {

struct Options {
  std::string file, json;
  std::vector<std::string> overrides;
};

std::string suite_text(const Suite& suite, const Options& options) {
  const std::vector<std::string> keys = varying_keys(suite.runs);
  std::string out = "# a suite" + (suite.name.empty() ? "" : " '" + printable(suite.name) + "'") + " of " +
                    grouped(suite.runs.size()) + (suite.runs.size() == 1 ? " run" : " runs");
  if (suite.merged > 0) out += ", " + grouped(suite.merged) + " duplicate combinations";
  if (suite.skipped > 0) out += ", " + grouped(suite.skipped) + " skipped";
  out += "; `selectivbench suite " + printable(options.file, 200) + "` runs it\n";
  std::vector<std::string> header = {"run"};
  header.insert(header.end(), keys.begin(), keys.end());
  TextTable table(header, std::string(header.size(), 'l'));
  for (const auto& run : suite.runs) {
    std::vector<std::string> cells = {run.run_id};
    for (const auto& key : keys) cells.push_back(printable(value_text(run, key)));
    table.row(cells);
  }
  return out + table.text() + "# common to all runs:\n" + common_toml(suite.runs);
}

std::string suite_json(const Suite& suite) {
  const std::vector<std::string> keys = varying_keys(suite.runs);
  Json runs = Json::array();
  for (const auto& run : suite.runs) {
    Json& entry = runs.emplace_back(Json::object({{"run_id", run.run_id}}));
    for (const auto& key : keys) entry[key] = value_text(run, key);
  }
  return json_document({{"suite", suite.name},
                        {"merged", suite.merged},
                        {"skipped", suite.skipped},
                        {"varies", keys},
                        {"runs", std::move(runs)}});
}

Exit show(const Options& options) {
  ModelRules rules = model_rules();
  rules.shipped = shipped_folder();
  const std::string text = read_config_text(options.file);
  if (is_suite(text, options.file)) {
    const Suite suite = parse_suite(text, options.file, options.overrides, rules);
    deliver_both(options.json, suite_json(suite), suite_text(suite, options));
    return Exit::done;
  }
  const ResolvedConfig config = resolve_config_text(text, options.file, options.overrides, rules);
  for (const auto& note : config.notes) complain("note: " + note);
  const RankPlace place = rank_place(process_environment());
  if (!options.json.empty()) {
    Json shown = Json::parse(config_json(config));
    shown["world"] = place.size;
    deliver(options.json, json_document(shown, 2));
  }
  if (options.json != "-") {
    print(config_toml(config, true) + "\n# world = " + std::to_string(place.size) + "  # ranks, by the environment" +
          (place.origin.empty() ? "" : " (" + place.origin + ")") + "; not a config key, not part of the run id\n");
  }
  return Exit::done;
}

Exit keys(const Options& options) {
  deliver_both(options.json, parameter_json(model_rules()), parameter_table(model_rules()));
  return Exit::done;
}

}  // namespace config_command

void add_config(Program& program) {
  using namespace config_command;
  program.group("config", "Show a resolved config (show), or list all keys (keys)");
  auto shown = std::make_shared<Options>();
  Arguments& arguments =
      program.command("config show", "Show a resolved config with the origin of every value, or the runs of a suite",
                      {"selectivbench config show configs/example.toml --set train.lr=5e-4",
                       "selectivbench config show configs/quick.toml"},
                      [shown] {
                        shown->file = shipped_config("config show FILE", shown->file);
                        return show(*shown);
                      });
  arguments.positional("FILE", shown->file, true,
                       "Config of a run or a suite (TOML file), or the name of a shipped one");
  add_set(arguments, shown->overrides);
  arguments.text("--json", shown->json, "FILE", "Write it as JSON, - for standard output");

  auto listed = std::make_shared<Options>();
  Arguments& list =
      program.command("config keys", "List every config key and every model's switches: default, range, meaning",
                      {"selectivbench config keys"}, [listed] { return keys(*listed); });
  list.text("--json", listed->json, "FILE", "Write it as JSON, - for standard output");
}

}  // namespace sb::cli
