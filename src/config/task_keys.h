// Steps of resolving that concern keys of one kind of task: of `gaps`, or those that another kind owns.
#pragma once
#include "config/draft.h"

namespace sb {

// task.kind, with the defaults of its keys.
void take_kind(ConfigDraft& draft);
// task.number of `gaps`: the values of the paper's task.
void take_task_number(ConfigDraft& draft);
// Keys that the kind of task has for itself; those of other kinds are refused.
void take_own_keys(ConfigDraft& draft);
// The paper tests tasks 2 and 4 at the longest training gap, the others with the law of training. What the file says
// about training gaps moves the test gaps along, unless it speaks of those too.
void derive_test_gaps(ConfigDraft& draft);
void check_task(ConfigDraft& draft);

}  // namespace sb
