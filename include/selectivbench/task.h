// Tasks: paper_task, GapTask, batches of symbols and their dense frames; the interfaces Language, Task and Oracle.
#pragma once
#include "tasks/gap_task.h"
