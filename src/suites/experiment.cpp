#include "suites/experiment.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr size_t longest_text = 1000, most_items = 100, most_steps = 1000;

// Files in SHIPPED/experiments that are not experiments, and the experiments that come first in the catalogue.
const std::vector<std::string> others = {"claims", "queue"};
const std::vector<std::string> first_names = {"main_table", "task1_complexity", "task1_size", "task2", "task3",
                                              "task4"};

Error fault(const std::string& where, const std::string& what, const Place& place) {
  return bad_input(where, what + ", " + place.text());
}

std::string text_of(const TomlMember& member, const std::string& where) {
  const auto* text = member.value.text();
  if (!text || text->empty() || text->size() > longest_text)
    throw fault(where + "." + member.key,
                "expected a text of at most " + std::to_string(longest_text) + " bytes, got " + shown(member.value),
                member.value.place);
  return *text;
}

std::vector<std::string> texts_of(const TomlMember& member, const std::string& where) {
  const auto* items = member.value.list();
  if (!items || items->size() > most_items)
    throw fault(where + "." + member.key, "expected a list of texts, got " + shown(member.value), member.value.place);
  std::vector<std::string> out;
  for (const auto& item : *items) out.push_back(text_of({member.key, item.place, item}, where));
  return out;
}

Error unknown_key(const TomlMember& member, const std::string& where, const std::vector<std::string>& names) {
  return fault(where, "unknown key '" + printable(member.key) + "'" + did_you_mean(member.key, names), member.place);
}

void require(bool there, const std::string& where, const char* key, const Place& place) {
  if (!there) throw fault(where, std::string("expected ") + key, place);
}

std::string scale_of(const TomlMember& member) {
  const std::string scale = text_of(member, "step");
  const auto& names = experiment_scales();
  if (std::find(names.begin(), names.end(), scale) == names.end())
    throw fault("step.scale", "expected " + join_or(names) + ", got '" + printable(scale) + "'", member.value.place);
  return scale;
}

QueueStep step_of(const TomlValue& block, const std::vector<Experiment>& all) {
  QueueStep step;
  if (!block.table()) throw fault("step", "expected blocks [[step]]", block.place);
  for (const auto& member : *block.table()) {
    if (member.key == "title") {
      step.title = text_of(member, "step");
    } else if (member.key == "experiment") {
      step.experiment = text_of(member, "step");
      try {
        find_experiment(all, step.experiment, "step.experiment");
      } catch (const Error& error) {
        throw Error(error.code(), std::string(error.what()) + ", " + member.value.place.text());
      }
    } else if (member.key == "scale") {
      step.scale = scale_of(member);
    } else if (member.key == "where") {
      step.where = texts_of(member, "step");
    } else if (member.key == "set") {
      step.set = texts_of(member, "step");
    } else {
      throw unknown_key(member, "step", {"title", "experiment", "scale", "where", "set"});
    }
  }
  require(!step.title.empty() && !step.experiment.empty() && !step.scale.empty(), "step",
          "a title, an experiment and a scale", block.place);
  return step;
}

}  // namespace

const std::vector<std::string>& experiment_scales() {
  static const std::vector<std::string> names = {"quick", "small", "paper"};
  return names;
}

Experiment parse_experiment(std::string_view text, const std::string& path) {
  const TomlValue document = parse_toml(text, path);
  const auto& members = *document.table();
  const auto found = std::find_if(members.begin(), members.end(), [](auto& m) { return m.key == "experiment"; });
  if (found == members.end() || !found->value.table())
    throw fault("experiment", "expected a section [experiment]", {path, 1, 1});
  Experiment out;
  out.name = fs::path(path).stem().string();
  out.path = path;
  for (const auto& member : *found->value.table()) {
    if (member.key == "title") {
      out.title = text_of(member, "experiment");
    } else if (member.key == "sentence") {
      out.sentence = text_of(member, "experiment");
    } else if (member.key == "claims") {
      out.claims = texts_of(member, "experiment");
    } else {
      throw unknown_key(member, "experiment", {"title", "sentence", "claims"});
    }
  }
  require(!out.title.empty() && !out.sentence.empty(), "experiment", "a title and a sentence", found->place);
  return out;
}

std::vector<Experiment> read_catalogue(const std::string& shipped) {
  std::vector<Experiment> out;
  std::error_code failed;
  for (fs::directory_iterator at(fs::path(shipped) / "experiments", failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string stem = at->path().stem().string();
    if (at->path().extension() != ".toml" || std::find(others.begin(), others.end(), stem) != others.end()) continue;
    out.push_back(parse_experiment(read_config_text(at->path().string()), at->path().string()));
  }
  if (out.empty())
    throw bad_input("experiments",
                    "shipped configs not found" + (shipped.empty() ? "" : ", " + printable(shipped, 400)));
  const auto rank = [](const Experiment& each) {
    return std::pair(std::find(first_names.begin(), first_names.end(), each.name) - first_names.begin(), each.name);
  };
  std::sort(out.begin(), out.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return out;
}

const Experiment& find_experiment(const std::vector<Experiment>& all, const std::string& name, std::string_view where) {
  std::vector<std::string> names;
  for (const auto& each : all) {
    if (each.name == name) return each;
    names.push_back(each.name);
  }
  throw bad_input(std::string(where),
                  "expected " + join_or(names) + ", got '" + printable(name) + "'" + did_you_mean(name, names));
}

Suite experiment_suite(const Experiment& experiment, const SuiteChoice& choice,
                       const std::vector<std::string>& overrides, const ModelRules& rules) {
  Suite suite = read_suite(experiment.path, overrides, rules, choice);
  if (suite.name.empty()) suite.name = experiment.title + ", " + choice.scale;
  return suite;
}

std::vector<QueueStep> parse_queue(std::string_view text, const std::string& path, const std::vector<Experiment>& all) {
  std::vector<QueueStep> out;
  const TomlValue document = parse_toml(text, path);
  for (const auto& member : *document.table()) {
    if (member.key != "step" || !member.value.list())
      throw fault("queue", "expected blocks [[step]], got '" + printable(member.key) + "'", member.place);
    for (const auto& block : *member.value.list()) out.push_back(step_of(block, all));
  }
  if (out.empty() || out.size() > most_steps)
    throw fault("queue",
                "expected 1 to " + std::to_string(most_steps) + " blocks [[step]], got " + std::to_string(out.size()),
                {path, 1, 1});
  return out;
}

std::vector<QueueStep> read_queue(const std::string& shipped, const std::vector<Experiment>& all) {
  const std::string path = (fs::path(shipped) / "experiments" / "queue.toml").string();
  return parse_queue(read_config_text(path), path, all);
}

}  // namespace sb
