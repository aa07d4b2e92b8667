// Steps of resolving for keys that only one kind of task has: `gaps`, or any other kind.
#pragma once
#include "config/draft.h"

namespace sb {

// task.kind, with the defaults of its keys.
void take_kind(ConfigDraft& draft);
// task.number of `gaps`: the values of the paper's task.
void take_task_number(ConfigDraft& draft);
// Sets the kind's own keys; keys of other kinds are faults.
void take_own_keys(ConfigDraft& draft);
// Reads the file that a key of the task names, unless it is among the `known` ones. Throws bad_input "[task.KEY] …"
// with the location of the setting; `name` replaces a file name if the key is not set.
constexpr size_t kMaxTaskFile = size_t{1} << 32;  // bytes
void read_task_file(TaskSection& task, const std::string& key, const Settings& settings, const std::string& name,
                    ConfigFiles& known);
// Test gaps: the longest training gap in tasks 2 and 4 of the paper, the training distribution otherwise. Settings of
// training gaps also change the test gaps, unless the config sets those, too.
void derive_test_gaps(ConfigDraft& draft);
void check_task(ConfigDraft& draft);

}  // namespace sb
