#include <algorithm>
#include <map>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "findings/protocol.h"
#include "findings/verdict.h"

namespace sb {
namespace {

// "damaged: NAME" for the first names, then how many there are more.
void name(std::vector<std::string>& out, const std::string& what, const std::vector<std::string>& names, size_t most) {
  for (size_t i = 0; i < std::min(names.size(), most); ++i) out.push_back(formatted("{}: {}", what, names[i]));
  if (names.size() > most) out.push_back(formatted("{}: {} more, {} in all", what, names.size() - most, names.size()));
}

struct Failed {
  std::vector<std::string> diverged, collapsed;
  explicit Failed(const Rows& rows) {
    for (size_t i = 0; i < rows.runs.size(); ++i) {
      if (rows.standing[i] == Standing::diverged) {
        const LostRun run = diverged_run(rows, i);
        diverged.push_back(formatted("{} ({})", run.words, run.id));
      } else if (auto words = collapsed_run(rows, i)) {
        collapsed.push_back(std::move(*words));
      }
    }
  }
};

}  // namespace

std::vector<std::string> protocol_counts(const Rows& rows) {
  std::map<std::string, size_t> protocols;
  for (const auto& run : rows.runs) ++protocols[protocol_of(run.result.config)];
  std::vector<std::string> out;
  for (const auto& [protocol, count] : protocols)
    out.push_back(formatted("{} run{} of the protocol “{}”", grouped(count), count == 1 ? "" : "s", protocol));
  return out;
}

std::string counts_of(const Rows& rows) {
  if (rows.runs.empty()) return "no runs";
  const Failed failed(rows);
  return formatted("{} run{}; {} diverged, {} collapsed", grouped(rows.runs.size()), rows.runs.size() == 1 ? "" : "s",
                   failed.diverged.size(), failed.collapsed.size());
}

std::vector<std::string> failed_runs(const Rows& rows, size_t most_named) {
  const Failed failed(rows);
  std::vector<std::string> out;
  name(out, "diverged, excluded from means", failed.diverged, most_named);
  name(out, "collapsed, excluded from means", failed.collapsed, most_named);
  return out;
}

std::vector<std::string> absent_runs(const Rows& rows, size_t most_named) {
  using Why = LostRun::Why;
  std::vector<std::string> out;
  for (const Why why : {Why::unfinished, Why::damaged, Why::untested, Why::other_schema}) {
    std::vector<std::string> names;
    for (const auto& absent : rows.absent)
      if (const LostRun run = lost_run(absent); run.why == why)
        names.push_back(run.words.empty() ? run.id : formatted("{} ({})", run.words, run.id));
    name(out, to_string(why), names, most_named);
  }
  return out;
}

}  // namespace sb
