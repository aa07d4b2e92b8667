#include "tasks/task_registry.h"

#include <set>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/suggest.h"
#include "base/text.h"

namespace sb {

#define SB_TASK(name) TaskRow name##_row();
#include "tasks/kinds.def"
#undef SB_TASK

namespace {

Error name_taken(const std::string& name) {
  return bad_input("task.kind", "the name '" + name + "' is taken");
}

std::vector<TaskRow>& rows() {
  static std::vector<TaskRow> all = [] {
    std::vector<TaskRow> listed = {
#define SB_TASK(name) name##_row(),
#include "tasks/kinds.def"
#undef SB_TASK
    };
    std::set<std::string> names;
    for (const TaskRow& row : listed) {
      check_row(row);
      if (!names.insert(row.name).second) throw name_taken(row.name);
    }
    return listed;
  }();
  return all;
}

}  // namespace

TaskKey as_task_key() {
  return {"as_task", int64_t{0}, 0, 3, "gaps, noise and wrong symbols as in this task of gaps; 0: none"};
}

const TaskRow* find_kind(const std::string& kind) {
  for (const TaskRow& row : rows())
    if (row.name == kind) return &row;
  return nullptr;
}

std::shared_ptr<const TaskFile> TaskSetup::file(const std::string& key) const {
  const auto found = files.find(key);
  if (found == files.end() || !found->second) throw bad_input("task." + key, "the file has not been read");
  return found->second;
}

const TaskKey* TaskRow::find(std::string_view key) const {
  for (const TaskKey& each : keys)
    if (each.name == key) return &each;
  return nullptr;
}

const std::vector<TaskRow>& task_registry() {
  return rows();
}

std::vector<std::string> task_kinds() {
  std::vector<std::string> names;
  for (const TaskRow& row : rows()) names.push_back(row.name);
  return names;
}

const TaskRow& find_task(const std::string& kind) {
  if (const TaskRow* row = find_kind(kind)) return *row;
  const std::string hint = did_you_mean(kind, task_kinds());
  throw bad_input("task.kind", "unknown kind '" + printable(kind) + "'" +
                                   (hint.empty() ? ", expected " + join_or(task_kinds()) : hint));
}

void register_task(TaskRow row) {
  check_row(row);
  if (find_kind(row.name)) throw name_taken(row.name);
  rows().push_back(std::move(row));
}

void TaskSetup::expect_at_most(const std::string& bound, const std::string& key) const {
  if (whole(key) > whole(bound))
    throw bad_input("task." + key, formatted("expected at most {} ({}), got {}", bound, whole(bound), whole(key)));
}

std::shared_ptr<const Task> make_task(const TaskSetup& setup, const Poll& poll) {
  return find_task(setup.kind).make(setup, poll);
}

std::shared_ptr<const Task> make_stage(const Task& configured, const TaskSetup& setup, const Poll& poll) {
  const TaskRow& row = find_task(setup.kind);
  return row.make_stage != nullptr ? row.make_stage(configured, setup, poll) : row.make(setup, poll);
}

std::optional<Loss> usual_loss(const std::string& kind) {
  const TaskRow* row = find_kind(kind);
  return row ? std::optional(row->loss) : std::nullopt;
}

TaskSize task_size(const TaskSetup& setup, std::span<const int> points) {
  const TaskRow& row = find_task(setup.kind);
  if (row.size != nullptr) {
    TaskSize out = row.size(setup, {});
    for (const int point : points) out.point_frames.push_back(row.size(setup, point).test_frames);
    return out;
  }
  const std::shared_ptr<const Task> task = row.make(setup, {});
  const TaskShape shape = task->shape();
  TaskSize out{shape.channels, shape.answers, task->max_frames(Split::train), task->mean_frames(Split::train),
               task->mean_frames(Split::test)};
  for (const int point : points) out.point_frames.push_back(task->at(Split::test, point)->mean_frames(Split::test));
  return out;
}

TaskText task_text(const std::string& task) {
  const auto number = parse_integer(task);
  if (!number) {
    const TaskRow* row = find_kind(task);
    return row ? row->about : TaskText{task, ""};
  }
  const std::vector<TaskText>& texts = find_task(kGapsKind).numbered;
  const auto at = static_cast<size_t>(*number);
  TaskText out = texts[*number >= 0 && at < texts.size() ? at : 0];
  out.title = "Task " + task + ": " + out.title;
  return out;
}

}  // namespace sb
