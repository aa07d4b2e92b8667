#include "findings/claims.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/suggest.h"
#include "base/text.h"
#include "findings/toml_fields.h"
#include "runs/config_file.h"

namespace sb {
namespace {

constexpr size_t most_comparisons = 200;  // of a claim

const std::vector<std::string> statistic_names = {"accuracy", "gap_accuracy",     "retention",
                                                  "slope",    "rank_correlation", "gate_parameters"};
const std::vector<std::string> comparison_keys = {"statistic", "direction", "margin", "a",    "b",    "task",
                                                  "gaps",      "over",      "keys",   "free", "match"};

void check_id(const TomlMember& member, const std::string& id) {
  const bool plain = !id.empty() && id.size() <= 40 && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (!plain) throw toml_fault("expected up to 40 of a-z, 0-9 and _, got " + shown(member.value), member.value.place);
}

// {task.gap_max = 10, …} as Result::config has it.
ConfigMap keys_of(const TomlValue& value) {
  Settings settings;
  if (!value.table()) throw toml_fault("expected a table of section.key = value, got " + shown(value), value.place);
  add_settings(settings, *value.table(), "");
  if (!settings.faults.empty()) throw Error(Exit::bad_input, settings.faults.front());
  ConfigMap out;
  for (const auto& [name, setting] : settings) {
    const ConfigKey* key = find_config_key(name);
    if (!key || !key->identifies)
      throw toml_fault(formatted("expected a key that tells runs apart, got '{}'", printable(name)), setting.key);
    out[name] = json_text(parse_value(*key, setting.value));
  }
  return out;
}

void check_key(const std::string& name, const Place& place) {
  if (!find_config_key(name)) throw toml_fault(formatted("no key of a config, got '{}'", printable(name)), place);
}

std::string switch_value(const TomlMember& member) {
  if (const bool* truth = std::get_if<bool>(&member.value.content)) return *truth ? "on" : "off";
  return switch_text(member.key, member.value);
}

ArmModel model_of(const TomlValue& value) {
  ArmModel out;
  if (const auto* name = value.text()) {
    out.model = *name;
  } else if (const auto* table = value.table()) {
    for (const auto& member : *table) {
      if (member.key == "model") {
        out.model = toml_string(member, 1, 64);
      } else if (member.key == "quirks") {
        for (const auto& quirk : toml_strings(member)) {
          check_key("quirks." + quirk, member.value.place);
          out.quirks.insert(quirk);
        }
      } else {
        out.switches[member.key] = switch_value(member);
      }
    }
  }
  if (out.model.empty()) throw toml_fault("expected a model or a table with one, got " + shown(value), value.place);
  return out;
}

Arm arm_of(const TomlValue& value) {
  const auto* table = value.table();
  if (!table || table->size() != 1 || table->front().key != "mean") return {model_of(value)};
  Arm out;
  const auto* list = table->front().value.list();
  if (!list || list->size() < 2 || list->size() > 32)
    throw toml_fault("expected 2 to 32 models, got " + shown(table->front().value), value.place);
  for (const auto& item : *list) out.push_back(model_of(item));
  return out;
}

const TomlValue::List& listed(const TomlValue& value, TomlValue::List& one) {
  if (value.list()) return *value.list();
  one = {value};
  return one;
}

struct Defaults {
  Statistic statistic = Statistic::accuracy;
  bool above = true;
  double margin = 0;
};

// True where the member is one of them.
bool take_default(Defaults& out, const TomlMember& member) {
  if (member.key == "statistic") {
    const std::string name = toml_choice(member, statistic_names);
    out.statistic = static_cast<Statistic>(std::find(statistic_names.begin(), statistic_names.end(), name) -
                                           statistic_names.begin());
  } else if (member.key == "direction") {
    out.above = toml_choice(member, {"above", "below"}) == "above";
  } else if (member.key == "margin") {
    out.margin = toml_real(member, -1e6, 1e6);
  } else {
    return false;
  }
  return true;
}

class ComparisonReader {
 public:
  ComparisonReader(Defaults defaults, const TomlValue& row) : defaults_(defaults), row_(row) {}

  void read(std::vector<Comparison>& out) {
    if (!row_.table()) throw toml_fault("expected a table {a = …, b = …, task = …}, got " + shown(row_), row_.place);
    for (const auto& member : *row_.table()) take(member);
    if (a_.empty()) throw toml_fault("a comparison without a", row_.place);
    if (b_.empty()) b_.push_back({});
    common_.statistic = defaults_.statistic;
    common_.above = defaults_.above;
    common_.margin = defaults_.margin;
    check();
    for (const auto& a : a_)
      for (const auto& b : b_)
        for (const int task : tasks_) {
          Comparison one = common_;
          one.a = a;
          one.b = b;
          one.task = task;
          if (a == b) throw toml_fault("the same arm as a and as b", row_.place);
          out.push_back(std::move(one));
        }
    if (out.size() > most_comparisons) throw toml_fault("more than 200 comparisons of one claim", row_.place);
  }

 private:
  void take(const TomlMember& member) {
    if (take_default(defaults_, member)) return;
    TomlValue::List one;
    if (member.key == "a" || member.key == "b") {
      if (member.key == "b" && member.value.text() && *member.value.text() == "chance") {
        common_.against_chance = true;
        return;
      }
      for (const auto& item : listed(member.value, one)) (member.key == "a" ? a_ : b_).push_back(arm_of(item));
    } else if (member.key == "task") {
      tasks_.clear();
      for (const auto& item : listed(member.value, one))
        tasks_.push_back(static_cast<int>(toml_whole({member.key, member.place, item}, 1, 4)));
    } else if (member.key == "gaps") {
      for (const auto& item : listed(member.value, one))
        common_.gaps.push_back(static_cast<int>(toml_whole({member.key, member.place, item}, 1, 1 << 20)));
    } else if (member.key == "over") {
      common_.over = toml_string(member, 1, 64);
      if (common_.over != "topological_entropy" && common_.over != "params")
        check_key(common_.over, member.value.place);
    } else if (member.key == "keys") {
      common_.keys = keys_of(member.value);
    } else if (member.key == "free") {
      common_.free = toml_strings(member);
      for (const auto& key : common_.free) check_key(key, member.value.place);
    } else if (member.key == "match") {
      common_.match = toml_real(member, 1, 1e6);
    } else {
      throw unknown_toml_key(member, comparison_keys);
    }
  }

  void check() const {
    const Statistic s = common_.statistic;
    const bool levels = s == Statistic::slope || s == Statistic::rank_correlation;
    const bool gaps = s == Statistic::retention || s == Statistic::gap_accuracy;
    if (levels == common_.over.empty())
      throw toml_fault(std::string(to_string(s)) + (levels ? " needs over" : " has no over"), row_.place);
    if (gaps == common_.gaps.empty())
      throw toml_fault(std::string(to_string(s)) + (gaps ? " needs gaps" : " has no gaps"), row_.place);
    if (common_.against_chance && s != Statistic::gap_accuracy && s != Statistic::accuracy)
      throw toml_fault("chance is compared with accuracies only", row_.place);
    const bool beside = std::any_of(b_.begin(), b_.end(), [](const Arm& b) { return !b.empty(); });
    for (const auto* arms : {&a_, &b_})
      for (const auto& arm : *arms)
        if (beside && arm.size() > 1)
          throw toml_fault("a mean of several models has nothing beside it, expected no b", row_.place);
    for (const auto& a : a_)
      if (s == Statistic::rank_correlation && a.size() < 3)
        throw toml_fault("rank_correlation needs three models or more", row_.place);
  }

  Defaults defaults_;
  const TomlValue& row_;
  Comparison common_;
  std::vector<Arm> a_, b_;
  std::vector<int> tasks_ = {1};
};

Claim claim_of(const TomlValue& block) {
  Claim out;
  Defaults defaults;
  const TomlMember* rows = nullptr;
  for (const auto& member : toml_table(block)) {
    if (member.key == "id") {
      out.id = toml_string(member, 1, 40);
      check_id(member, out.id);
    } else if (member.key == "number") {
      out.number = static_cast<int>(toml_whole(member, 0, 1000));
    } else if (member.key == "sentence") {
      out.sentence = toml_string(member, 1, 1000);
    } else if (member.key == "fault") {
      out.fault = toml_string(member, 1, 4000);
    } else if (member.key == "untested") {
      out.untested = toml_string(member, 1, 4000);
    } else if (member.key == "comparisons") {
      rows = &member;
    } else if (!take_default(defaults, member)) {
      throw unknown_toml_key(
          member, {"id", "number", "sentence", "statistic", "direction", "margin", "fault", "untested", "comparisons"});
    }
  }
  if (out.id.empty() || out.sentence.empty() || !rows || !rows->value.list() || rows->value.list()->empty())
    throw toml_fault("a claim needs id, sentence and a list of comparisons", block.place);
  for (const auto& row : *rows->value.list()) ComparisonReader(defaults, row).read(out.comparisons);
  return out;
}

std::pair<double, double> ends_of(const TomlMember& member) {
  const auto* ends = member.value.list();
  if (!ends || ends->size() != 2)
    throw toml_fault(member.key + ": expected [least, most], got " + shown(member.value), member.value.place);
  const double least = toml_real({member.key, member.place, (*ends)[0]}, 0, 1e15);
  return {least, toml_real({member.key, member.place, (*ends)[1]}, least, 1e15)};
}

Scale scale_of(const TomlValue& block) {
  Scale out;
  for (const auto& member : toml_table(block)) {
    if (member.key == "name") {
      out.name = toml_string(member, 1, 40);
      check_id(member, out.name);
    } else if (member.key == "title") {
      out.title = toml_string(member, 1, 400);
    } else if (member.key == "keys") {
      out.keys = keys_of(member.value);
    } else if (member.key == "params") {
      std::tie(out.least_params, out.most_params) = ends_of(member);
    } else if (member.key == "sizes") {
      std::tie(out.least_size, out.most_size) = ends_of(member);
    } else if (member.key == "match") {
      out.match = toml_real(member, 1, 1e6);
    } else {
      throw unknown_toml_key(member, {"name", "title", "keys", "params", "sizes", "match"});
    }
  }
  if (out.name.empty()) throw toml_fault("a scale without a name", block.place);
  return out;
}

void add_task(Claims& out, const TomlValue& block) {
  int number = 0;
  ConfigMap keys;
  for (const auto& member : toml_table(block)) {
    if (member.key == "number") {
      number = static_cast<int>(toml_whole(member, 1, 4));
    } else if (member.key == "keys") {
      keys = keys_of(member.value);
    } else {
      throw unknown_toml_key(member, {"number", "keys"});
    }
  }
  if (number == 0 || !out.task_keys.emplace(number, keys).second)
    throw toml_fault("expected the number of a task, each once", block.place);
}

void add_withheld(Claims& out, const TomlValue& block) {
  std::string model, reason;
  for (const auto& member : toml_table(block)) {
    if (member.key == "model") {
      model = toml_string(member, 1, 64);
    } else if (member.key == "reason") {
      reason = toml_string(member, 1, 1000);
    } else {
      throw unknown_toml_key(member, {"model", "reason"});
    }
  }
  if (model.empty() || reason.empty() || !out.withheld.emplace(model, reason).second)
    throw toml_fault("expected a model and a reason, each model once", block.place);
}

}  // namespace

const char* to_string(Statistic statistic) {
  return statistic_names[static_cast<size_t>(statistic)].c_str();
}

std::string ArmModel::text() const {
  std::string out = printable(model);
  for (const auto& [key, value] : switches) out += ", " + printable(key) + " " + printable(value);
  for (const auto& quirk : quirks) out += ", quirk " + printable(quirk);
  return out;
}

std::string arm_text(const Arm& arm) {
  if (arm.size() == 1) return arm.front().text();
  std::vector<std::string> parts;
  for (const auto& model : arm) parts.push_back(model.text());
  return formatted("mean of {}", joined(parts, "; "));
}

std::string Comparison::name() const {
  std::string out = formatted("task {}", task);
  for (const auto& [key, value] : keys) out += formatted(", {} {}", key.substr(key.find('.') + 1), plain_value(value));
  if (!gaps.empty()) out += formatted(", gap {}", joined(gaps, ", "));
  if (!over.empty()) out += ", over " + over;
  const bool order = statistic == Statistic::rank_correlation;
  out += ": " + (order ? formatted("order of {} models", a.size()) : arm_text(a));
  if (against_chance) return out + " - chance";
  return b.empty() ? out : out + " - " + arm_text(b);
}

const Claim* Claims::find(const std::string& id) const {
  const auto it = std::find_if(claims.begin(), claims.end(), [&](const Claim& claim) { return claim.id == id; });
  return it == claims.end() ? nullptr : &*it;
}

const Scale* Claims::scale(const std::string& name) const {
  const auto it = std::find_if(scales.begin(), scales.end(), [&](const Scale& scale) { return scale.name == name; });
  return it == scales.end() ? nullptr : &*it;
}

Claims parse_claims(std::string_view text, const std::string& path) {
  if (text.size() > largest_claims) throw bad_input("claims", "longer than 1 MiB, " + printable(path, 200));
  const TomlValue document = parse_toml(text, path);
  Claims out;
  for (const auto& member : *document.table()) {
    if (member.key != "scale" && member.key != "task" && member.key != "withheld" && member.key != "claim")
      throw unknown_toml_key(member, {"scale", "task", "withheld", "claim"});
    const auto* blocks = member.value.list();
    if (!blocks) throw toml_fault("expected blocks [[" + member.key + "]]", member.value.place);
    for (const auto& block : *blocks) {
      if (member.key == "scale") {
        const Scale scale = scale_of(block);
        if (out.scale(scale.name)) throw toml_fault("a second scale " + scale.name, block.place);
        out.scales.push_back(scale);
      } else if (member.key == "task") {
        add_task(out, block);
      } else if (member.key == "withheld") {
        add_withheld(out, block);
      } else {
        Claim claim = claim_of(block);
        if (out.find(claim.id)) throw toml_fault("a second claim " + claim.id, block.place);
        out.claims.push_back(std::move(claim));
      }
    }
  }
  if (out.claims.empty() || out.scales.empty())
    throw bad_input("claims", "expected [[scale]] and [[claim]], " + printable(path, 200));
  return out;
}

Claims read_claims(const std::string& path) {
  return parse_claims(read_text(path, largest_claims, "claims", {path}), path);
}

ExperimentClaims parse_experiment_claims(std::string_view text, const std::string& path) {
  const TomlValue document = parse_toml(text, path);
  ExperimentClaims out;
  bool found = false;
  for (const auto& section : *document.table()) {
    if (section.key != "experiment") continue;
    found = true;
    for (const auto& member : toml_table(section.value)) {
      if (member.key == "name") out.name = toml_string(member, 1, 64);
      if (member.key == "title") out.title = toml_string(member, 1, 400);
      if (member.key == "sentence") out.sentence = toml_string(member, 1, 1000);
      if (member.key == "claims") out.claims = toml_strings(member);
    }
  }
  if (!found) throw bad_input("experiments", "expected a section [experiment], " + printable(path, 200));
  if (out.name.empty()) out.name = std::filesystem::path(path).stem().string();
  return out;
}

ExperimentClaims read_experiment_claims(const std::string& path) {
  return parse_experiment_claims(read_text(path, largest_claims, "experiments", {path}), path);
}

}  // namespace sb
