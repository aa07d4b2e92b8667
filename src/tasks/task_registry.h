// Registry of all kinds of tasks, one row per kind. To add a kind, write a file in kinds/ and add a line to kinds.def.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/sampler.h"
#include "tasks/task.h"
#include "tasks/task_config.h"

namespace sb {

constexpr const char* kGapsKind = "gaps";  // the default of task.kind

using TaskValue = std::variant<int64_t, double, std::string>;

// A key of [task] that one kind reads. The type of `initial` is the type of the key.
struct TaskKey {
  std::string name;
  TaskValue initial;
  double least = 0, most = 0;  // of a number
  std::string meaning;
  std::vector<std::string> choices = {};  // of a text
  bool file = false;  // a text that names a file: its content is part of the run id, its path is not
};

// The key `as_task` of kinds with gaps: paper_task() of its value gives their gaps, noise and wrong symbols.
TaskKey as_task_key();

// A quantity that tests can vary without retraining.
struct TestAxis {
  std::string name;  // "gap"; "gap 20" labels a point in tables
  std::string key;   // "gaps": the key of [eval] that lists points
  int least = 0, most = 0;
  std::string meaning;  // of the key
  std::string title;    // of the axis of a chart
};

struct FileTokens;  // tasks/corpus.h

// Content of a file that a key names, read once, so that run id and samples use the same bytes.
struct TaskFile {
  std::string path, bytes, sha256;
  mutable std::map<std::string, std::shared_ptr<const FileTokens>> tokens = {};  // decoded by Corpus, by format
};
using TaskFiles = std::map<std::string, std::shared_ptr<const TaskFile>>;  // by key

// Everything from which a task is made.
struct TaskSetup {
  std::string kind = kGapsKind;
  uint64_t seed = 1;                      // of everything random in samples: grammar.seed
  int length = 200;                       // task.length
  std::map<std::string, TaskValue> keys;  // every key of the kind
  TaskFiles files = {};                   // of the keys that name files
  // Only of the kind `gaps`, whose keys have defaults that depend on one another.
  GrammarConfig grammar = {};
  std::shared_ptr<const Automaton> automaton = {};  // null: built from `grammar`
  Stream stream = Stream::reference;
  TaskConfig gaps = {};

  int64_t whole(const std::string& key) const { return std::get<int64_t>(keys.at(key)); }
  int integer(const std::string& key) const { return static_cast<int>(whole(key)); }
  double real(const std::string& key) const { return std::get<double>(keys.at(key)); }
  const std::string& text(const std::string& key) const { return std::get<std::string>(keys.at(key)); }
  void expect_at_most(const std::string& bound, const std::string& key) const;  // throws if `key` exceeds `bound`
  std::shared_ptr<const TaskFile> file(const std::string& key) const;           // throws bad_input if none was read
};

// Sizes that are known before samples can be drawn.
struct TaskSize {
  int64_t channels = 0, answers = 0;
  int64_t max_train_frames = 0;              // of a sample
  double train_frames = 0, test_frames = 0;  // of a sample, expected
  std::vector<double> point_frames = {};     // of a test sample at each of the given points, expected
};

// Heading and first paragraph of a task on the report page.
struct TaskText {
  std::string title, text;
};

using Poll = std::function<void()>;  // called now and then; may throw to end the work

struct TaskRow {
  std::string name;
  TaskText about;
  std::vector<TaskKey> keys = {};  // in display order
  int length = 200;                // default of task.length
  std::string length_meaning = "elements per sample";
  Loss loss = Loss::cross_entropy;
  std::optional<TestAxis> axis = {};
  std::shared_ptr<const Task> (*make)(const TaskSetup&, const Poll&) = nullptr;
  // The task of a stage of train.schedule, which may share parts of the configured task. Null: `make` makes it.
  std::shared_ptr<const Task> (*make_stage)(const Task& configured, const TaskSetup&, const Poll&) = nullptr;
  // The size with this point of the axis on test; leaves out point_frames. Null: it is computed by making the task.
  TaskSize (*size)(const TaskSetup&, std::optional<int> point) = nullptr;
  // Names of symbols and answers for displayed samples. Null: their numbers.
  std::string (*symbol_name)(int) = nullptr;
  std::string (*answer_name)(int) = nullptr;
  bool has_reference_split = false;     // Split::reference is the published code's test set
  bool has_grammars = false;            // grammar.seed draws rules or an automaton, not only the samples
  std::vector<TaskText> numbered = {};  // of task.number, which only `gaps` has

  const TaskKey* find(std::string_view key) const;  // null if absent
};

const std::vector<TaskRow>& task_registry();
const TaskRow& find_task(const std::string& kind);  // throws if unknown; the message suggests the nearest name
std::vector<std::string> task_kinds();
// Adds a kind defined by a program that uses the library. Throws if the name is taken or the row is wrong. Not
// thread-safe.
void register_task(TaskRow row);
// Throws bad_input unless names, ranges and defaults of the row are valid. Every row passes it before it is registered.
void check_row(const TaskRow& row);
// Names in [task] and [eval] that no other kind may use: keys of every kind, and keys of gaps.
const std::vector<std::string>& reserved_task_keys();
const std::vector<std::string>& reserved_eval_keys();

std::shared_ptr<const Task> make_task(const TaskSetup& setup, const Poll& poll = {});
// The task of a stage of train.schedule. `configured`: the task of the run.
std::shared_ptr<const Task> make_stage(const Task& configured, const TaskSetup& setup, const Poll& poll = {});
// Loss of the kind; nullopt if it is not registered here.
std::optional<Loss> usual_loss(const std::string& kind);
// Sizes of a task, also at these points of the test axis. Makes the task unless the kind has TaskRow::size.
TaskSize task_size(const TaskSetup& setup, std::span<const int> points = {});
// Heading and text of a task of results: a number of the kind `gaps`, or the name of another kind. A kind that is not
// registered here has its name as heading.
TaskText task_text(const std::string& task);
// Null if the kind is not registered here.
const TaskRow* find_kind(const std::string& kind);

}  // namespace sb
