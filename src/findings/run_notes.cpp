#include <algorithm>
#include <map>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "findings/protocol.h"
#include "findings/verdict.h"

namespace sb {

std::vector<std::string> protocol_counts(const Rows& rows) {
  std::map<std::string, size_t> protocols;
  for (const auto& run : rows.runs) ++protocols[protocol_of(run.result.config)];
  std::vector<std::string> out;
  for (const auto& [protocol, count] : protocols)
    out.push_back(formatted("{} run{} of the protocol “{}”", grouped(count), count == 1 ? "" : "s", protocol));
  return out;
}

std::vector<std::string> counts_of(const Rows& rows, size_t most_named) {
  std::vector<std::string> diverged, collapsed, out;
  for (size_t i = 0; i < rows.runs.size(); ++i) {
    if (rows.standing[i] == Standing::diverged) {
      const LostRun run = diverged_run(rows, i);
      diverged.push_back(formatted("{} ({})", run.words, run.id));
    } else if (auto words = collapsed_run(rows, i)) {
      collapsed.push_back(std::move(*words));
    }
  }
  if (!rows.runs.empty())
    out.push_back(formatted("{} run{}; {} diverged, {} collapsed", grouped(rows.runs.size()),
                            rows.runs.size() == 1 ? "" : "s", diverged.size(), collapsed.size()));
  const auto name = [&](const std::string& what, const std::vector<std::string>& names) {
    for (size_t i = 0; i < std::min(names.size(), most_named); ++i) out.push_back(formatted("{}: {}", what, names[i]));
    if (names.size() > most_named)
      out.push_back(formatted("{}: {} more, {} in all", what, names.size() - most_named, names.size()));
  };
  name("diverged, excluded from means", diverged);
  name("collapsed, excluded from means", collapsed);
  using Why = LostRun::Why;
  for (const Why why : {Why::unfinished, Why::damaged, Why::untested, Why::other_schema}) {
    std::vector<std::string> names;
    for (const auto& absent : rows.absent)
      if (const LostRun run = lost_run(absent); run.why == why)
        names.push_back(run.words.empty() ? run.id : formatted("{} ({})", run.words, run.id));
    name(to_string(why), names);
  }
  return out;
}

}  // namespace sb
