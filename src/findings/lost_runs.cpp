#include "findings/lost_runs.h"

#include <algorithm>
#include <tuple>

#include "base/format.h"
#include "base/text.h"

namespace sb {
namespace {

constexpr size_t kMaxNamed = 10;

}  // namespace

const char* to_string(LostRun::Why why) {
  static constexpr const char* names[] = {"diverged", "not finished", "damaged", "without a test accuracy",
                                          "of another result schema"};
  return names[static_cast<size_t>(why)];
}

LostRun lost_run(const AbsentRun& run) {
  return {printable(run.id, 64), run.words, run.why};
}

LostRun diverged_run(const Rows& rows, size_t run) {
  const Result& r = rows.runs[run].result;
  std::string words = formatted("{}, task {}, {}", printable(r.model), task_name(r), seeds_text(rows, run));
  if (rows.groups[rows.group_of[run]].candidates.size() > 1)
    for (size_t i = 0; i < rows.axes.select.size(); ++i)
      words += formatted(", {} {}", rows.axes.select[i], plain_value(rows.settings[run][i]));
  return {printable(r.run_id, 64), std::move(words), LostRun::Why::diverged};
}

std::vector<std::string> lost_lines(std::vector<LostRun> runs) {
  std::sort(runs.begin(), runs.end(), [](const LostRun& a, const LostRun& b) {
    return std::tie(a.why, a.words, a.id) < std::tie(b.why, b.words, b.id);
  });
  runs.erase(std::unique(runs.begin(), runs.end()), runs.end());
  std::vector<std::string> out;
  for (size_t from = 0; from < runs.size();) {
    const LostRun::Why why = runs[from].why;
    size_t end = from;
    std::vector<std::string> names;
    for (; end < runs.size() && runs[end].why == why; ++end)
      if (names.size() < kMaxNamed)
        names.push_back(runs[end].words.empty() ? runs[end].id : formatted("{} ({})", runs[end].id, runs[end].words));
    const size_t count = end - from;
    out.push_back(formatted("{} run{} of this claim {}{} and excluded from means: {}{}", count, count == 1 ? "" : "s",
                            count == 1 ? "is " : "are ", to_string(why), joined(names, "; "),
                            count > names.size() ? formatted("; and {} more", count - names.size()) : ""));
    from = end;
  }
  return out;
}

}  // namespace sb
