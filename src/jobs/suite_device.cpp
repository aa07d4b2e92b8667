#include "jobs/suite_device.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "jobs/slurm_queue.h"

namespace sb {
namespace {

using Ids = std::set<std::string>;

Ids ids_of(const Suite& suite) {
  Ids out;
  for (const auto& run : suite.runs) out.insert(run.run_id);
  return out;
}

Ids begun(const std::string& root, const Ids& ids) {
  Ids out;
  for (const auto& id : ids)
    if (is_there(root + "/" + id + "/config.json")) out.insert(id);
  return out;
}

size_t shared(const Ids& a, const Ids& b) {
  return static_cast<size_t>(std::count_if(a.begin(), a.end(), [&](const auto& id) { return b.contains(id); }));
}

// Whether the runs belong to the other device rather than to this machine's.
bool is_other(const std::string& root, const Ids& own, const Ids& other) {
  const auto submissions = read_submissions(root);
  for (auto last = submissions.rbegin(); last != submissions.rend(); ++last) {
    Ids submitted;
    for (const auto& task : last->tasks) submitted.insert(task.begin(), task.end());
    const size_t of_own = shared(submitted, own), of_other = shared(submitted, other);
    if (of_own != of_other) return of_other > of_own;
  }
  return begun(root, other).size() > begun(root, own).size();
}

}  // namespace

Suite suite_for_elsewhere(const SuiteOptions& options, ModelRules& rules,
                          const std::function<Suite(const ModelRules&)>& read) {
  const bool here = rules.has_gpu && rules.has_gpu();
  const auto read_for = [&](bool gpu) {
    rules.has_gpu = [gpu] { return gpu; };
    return read(rules);
  };
  if (options.slurm.submit || options.gpus > 0) return read_for(options.gpus > 0);
  std::optional<Suite> other;
  try {
    other = read_for(!here);
  } catch (const Error&) {  // e.g. a precision that only this machine's device supports
  }
  std::optional<Suite> own;
  try {
    own = read_for(here);
  } catch (const Error&) {
    if (!other) throw;
  }
  if (own && (!other || !is_other(options.root, ids_of(*own), ids_of(*other)))) return std::move(*own);
  rules.has_gpu = [here] { return !here; };
  return std::move(*other);
}

}  // namespace sb
