// Steps of resolving for keys that only one kind of task has. gaps_keys.h has those of `gaps`.
#pragma once
#include "config/draft.h"

namespace sb {

// task.kind, with the defaults of its keys.
void take_kind(ConfigDraft& draft);
// Sets the kind's own keys; keys of other kinds are faults.
void take_own_keys(ConfigDraft& draft);
// Reads the file that a key of the task names, unless it is among the `known` ones. Throws bad_input "[task.KEY] …"
// with the location of the setting; `name` replaces a file name if the key is not set.
constexpr size_t kMaxTaskFile = size_t{1} << 32;  // bytes
void read_task_file(TaskSection& task, const std::string& key, const Settings& settings, const std::string& name,
                    ConfigFiles& known);

}  // namespace sb
