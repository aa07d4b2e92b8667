// A test sample of a run whose frames are vectors, drawn again from the run's config.
#pragma once
#include <cstdint>
#include <optional>

#include "store/result.h"
#include "tasks/batch.h"
#include "tasks/task_registry.h"

namespace sb {

// Nullopt if frames show symbols, or if the task cannot be made from the config alone. `row`: of the run's kind.
std::optional<Batch> dense_sample(const Result& result, const TaskRow& row, uint64_t index);

}  // namespace sb
