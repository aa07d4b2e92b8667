#include "page/dense_sample.h"

#include "base/error.h"
#include "base/number.h"
#include "report/rows.h"

namespace sb {
namespace {

constexpr int64_t kMaxLength = 100'000;

// The value of a key as in the config; its default in a run that is older than the key, nullopt if out of range.
std::optional<TaskValue> value_of(const Result& result, const TaskKey& key) {
  const auto found = result.config.find("task." + key.name);
  if (found == result.config.end()) return key.initial;
  if (std::holds_alternative<std::string>(key.initial)) return plain_value(found->second);
  const auto number = parse_finite(found->second);
  if (!number || *number < key.least || *number > key.most) return std::nullopt;
  if (std::holds_alternative<double>(key.initial)) return *number;
  return static_cast<int64_t>(*number);
}

std::optional<TaskSetup> setup_of(const Result& result, const TaskRow& row) {
  const auto length = result.config.find("task.length");
  const auto frames = length == result.config.end() ? std::nullopt : parse_finite(length->second);
  if (!frames || *frames < 1 || *frames > kMaxLength) return std::nullopt;
  TaskSetup out;
  out.kind = row.name;
  out.seed = result.grammar_seed;
  out.length = static_cast<int>(*frames);
  for (const TaskKey& key : row.keys) {
    const auto value = value_of(result, key);
    if (!value || key.file) return std::nullopt;
    out.keys[key.name] = *value;
  }
  return out;
}

}  // namespace

std::optional<Batch> dense_sample(const Result& result, const TaskRow& row, uint64_t index) {
  const auto setup = setup_of(result, row);
  if (!setup) return std::nullopt;
  try {
    const std::shared_ptr<const Task> task = make_task(*setup);
    if (!task->shape().dense) return std::nullopt;
    Batch out;
    task->fill(Split::test, index, 1, out);
    return out;
  } catch (const Error&) {  // the config is not valid in this version
    return std::nullopt;
  }
}

}  // namespace sb
