// Keys of [task] that only the kind `gaps` has: schema, defaults that depend on one another, and checks. They are here
// and not in tasks/kinds/gaps.cpp because they are older than the kinds, and ids of finished runs contain them.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "config/draft.h"
#include "config/schema.h"

namespace sb {

// Adds task.gap_* and task.test_gap_* to the schema.
void add_gap_keys(std::vector<ConfigKey>& all);
// task.number: the values of the paper's task.
void take_task_number(ConfigDraft& draft);
// Test gaps: the longest training gap in tasks 2 and 4 of the paper, the training distribution otherwise. Settings of
// training gaps also change the test gaps, unless the config sets those, too.
void derive_test_gaps(ConfigDraft& draft);
void check_gaps(ConfigDraft& draft);
// Whether other values make this key of a gap ineffective; false for other keys.
bool is_silenced_gap_key(const TaskConfig& task, const ConfigKey& key);
// Keys of gaps without effect on these values, besides the silenced ones.
std::set<std::string> idle_gap_keys(const TaskConfig& task);

}  // namespace sb
