#include "config/task_keys.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/format.h"
#include "base/sha256.h"
#include "base/text.h"

namespace sb {
namespace {

// Absolute, so that a copy of the config in another folder names the same file.
std::string absolute_path(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos) return path;
  std::error_code failed;
  const std::filesystem::path found = std::filesystem::absolute(path, failed);
  return failed ? path : found.lexically_normal().string();
}

void take_own(RunConfig& values, const ConfigKey& key, const ConfigValue& value) {
  if (const auto* points = std::get_if<std::vector<int64_t>>(&value)) {
    values.eval.points.assign(points->begin(), points->end());
  } else if (const auto* whole = std::get_if<int64_t>(&value)) {
    values.task.keys[key.key] = *whole;
  } else if (const auto* real = std::get_if<double>(&value)) {
    values.task.keys[key.key] = *real;
  } else {
    const std::string& text = std::get<std::string>(value);
    values.task.keys[key.key] = key.file ? absolute_path(text) : text;
  }
}

void refuse_foreign(ConfigDraft& draft, const TaskRow& row, const std::string& name, const Setting& setting) {
  if (draft.refused.contains("task.kind")) return;  // which kind has it is not known
  std::vector<std::string> known = {"task.length"};
  for (const TaskKey& key : row.keys) known.push_back("task." + key.name);
  if (row.axis) known.push_back("eval." + row.axis->key);
  const std::string hint =
      row.name == kGapsKind ? "is a key of another kind of task" : "keys of this kind: " + joined(known, ", ");
  draft.faults.push_back(
      formatted("[{}] has no effect with task.kind = {}; {}, {}", name, row.name, hint, setting.key.text()));
}

void at_longest_gap(ConfigDraft& draft, const std::string& test) {
  for (const char* cause : {"task.gap_max", "task.gap_min", "task.gap_law"}) {
    if (!draft.given(cause)) continue;
    find_config_key(test)->set(draft.values(), int64_t{longest_gap(draft.values().task.task.train)});
    draft.derived(test, cause);
    return;
  }
}

void check_gap(ConfigDraft& draft, const std::string& prefix, const GapConfig& gap) {
  const std::string name = "task." + prefix;
  const bool ranged = gap.law == GapLaw::uniform || gap.law == GapLaw::lognormal;
  draft.refuse_unless(
      !ranged || gap.min <= gap.max, name + "min",
      formatted("{}min ({}) > {}max ({})", prefix, gap.min, prefix, gap.max),
      {name + "min", name + "max", "task.gap_min", "task.gap_max", name + "law", "task.gap_law", "task.number"});
  draft.refuse_unless(gap.law == GapLaw::none || gap.start <= draft.values().task.length, name + "start",
                      formatted("expected at most length ({}), got {}", draft.values().task.length, gap.start),
                      {name + "start", "task.gap_start", "task.length", name + "law", "task.gap_law", "task.number"});
}

}  // namespace

void take_kind(ConfigDraft& draft) {
  draft.apply("task.kind");
  RunConfig& c = draft.values();
  draft.attempt([&] { find_task(c.task.kind); }, false);
  if (!draft.faults.empty() && ConfigDraft::key_of(draft.faults.back()) == "task.kind") c.task.kind = kGapsKind;
  if (c.task.kind == kGapsKind) return;
  const TaskRow& row = find_task(c.task.kind);
  c.task.length = row.length;
  draft.derived("task.length", "task.kind");
  for (const TaskKey& key : row.keys) {
    c.task.keys[key.name] = key.initial;
    draft.out.origins["task." + key.name] = Origin{};
  }
  if (row.axis) draft.out.origins["eval." + row.axis->key] = Origin{};
}

void take_task_number(ConfigDraft& draft) {
  if (draft.values().task.kind != kGapsKind) return;
  draft.apply("task.number");
  if (!draft.given("task.number")) return;
  draft.values().task.task = paper_task(draft.values().task.task.number);
  for (const auto& p : config_keys())
    if (p.section == "task" && (p.key == "noise" || p.key.find("gap_") != std::string::npos))
      draft.derived(p.name(), "task.number");
}

void take_own_keys(ConfigDraft& draft) {
  const TaskRow& row = find_task(draft.values().task.kind);
  for (const auto& [name, setting] : draft.settings) {
    const ConfigKey* common = find_config_key(name);
    if (name.starts_with("model.") || (common && !draft.foreign(*common))) continue;
    const auto own = find_own_key(row, name);
    if (!own) {
      refuse_foreign(draft, row, name, setting);
      continue;
    }
    draft.take_key(name, [&, &setting = setting] { take_own(draft.values(), *own, parse_value(*own, setting.value)); });
    draft.out.origins[name] = Origin{Origin::Kind::given, setting.origin, ""};
  }
}

void read_task_file(TaskSection& task, const std::string& key, const Settings& settings, const std::string& name,
                    ConfigFiles& known) {
  const std::string where = "task." + key, path = std::get<std::string>(task.keys.at(key));
  const auto given = settings.find(where);
  const Place place = given == settings.end() ? Place{name, 1, 1} : given->second.value.place;
  if (path.empty()) throw bad_input(where, "expected the path of a file, " + place.text());
  std::shared_ptr<const TaskFile>& file = known.tasks[path];
  if (!file) {
    auto read = std::make_shared<TaskFile>();
    read->path = path;
    read->bytes = read_text(path, kMaxTaskFile, where, place);
    read->sha256 = sha256_hex(read->bytes);
    file = std::move(read);
  }
  task.files[key] = file;
}

void derive_test_gaps(ConfigDraft& draft) {
  const int number = draft.values().task.task.number;
  const bool at_longest = number == 2 || number == 4;
  for (const char* key : {"law", "min", "max", "probability", "start", "content", "mu", "sigma"}) {
    const std::string part = key, test = "task.test_gap_" + part, train = "task.gap_" + part;
    if (draft.given(test)) continue;
    const GapLaw law = draft.values().task.task.test.law;
    const GapConfig& train_law = draft.values().task.task.train;
    if (at_longest && part == "min" && (law == GapLaw::uniform || law == GapLaw::lognormal)) {
      find_config_key(test)->set(draft.values(), int64_t{std::min(train_law.min, longest_gap(train_law))});
      draft.derived(test, train);
    } else if (at_longest && (part == "min" || part == "max")) {
      at_longest_gap(draft, test);
    } else if (draft.given(train) && !(at_longest && part == "law")) {
      find_config_key(test)->set(draft.values(), find_config_key(train)->get(draft.values()));
      draft.derived(test, train);
    }
  }
}

void check_task(ConfigDraft& draft) {
  const size_t before = draft.faults.size();
  check_gap(draft, "gap_", draft.values().task.task.train);
  const bool follows = std::none_of(draft.settings.begin(), draft.settings.end(),
                                    [](const auto& each) { return each.first.starts_with("task.test_gap_"); });
  if (draft.faults.size() == before || !follows) check_gap(draft, "test_gap_", draft.values().task.task.test);
  if (draft.faults.size() == before && draft.good("task."))
    draft.attempt([&] { check(draft.values().task.task); }, false);
}

}  // namespace sb
