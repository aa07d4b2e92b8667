#include "config/task_keys.h"

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
  if (draft.refused.contains("task.kind")) return;  // the kind is not known
  std::vector<std::string> known = {"task.length"};
  for (const TaskKey& key : row.keys) known.push_back("task." + key.name);
  if (row.axis) known.push_back("eval." + row.axis->key);
  const std::string hint =
      row.name == kGapsKind ? "it is a key of another kind of task" : "keys of this kind: " + joined(known, ", ");
  draft.faults.push_back(
      formatted("[{}] has no effect with task.kind = {}; {}, {}", name, row.name, hint, setting.key.text()));
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
  if (path.empty()) throw bad_input(where, "expected the path of a file, --set " + where + "=PATH, " + place.text());
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

}  // namespace sb
