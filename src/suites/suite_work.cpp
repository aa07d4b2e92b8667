// Which runs of a suite are worked on, and in which order.
#include <algorithm>
#include <map>
#include <set>

#include "store/result.h"
#include "suites/conditions.h"
#include "suites/suite.h"

namespace sb {
namespace {

std::vector<std::string> keys_of(const Suite& suite) {
  std::set<std::string> keys;
  for (const auto& run : suite.runs)
    for (const auto& [key, origin] : run.origins) keys.insert(key);
  keys.insert("run.id");  // in no file: derived from all other keys
  return {keys.begin(), keys.end()};
}

}  // namespace

void keep_where(Suite& suite, const std::vector<std::string>& conditions, const std::string& where) {
  const auto value = [&](size_t run, const std::string& key) {
    return key == "run.id" ? suite.runs[run].run_id : value_text(suite.runs[run], key);
  };
  keep_runs(suite, runs_where({suite.runs.size(), keys_of(suite), value}, conditions, where));
}

void keep_runs(Suite& suite, const std::vector<bool>& kept) {
  Suite out;
  std::set<std::pair<std::string, int64_t>> networks;
  for (size_t i = 0; i < suite.runs.size(); ++i) {
    if (!kept[i]) continue;
    if (const auto names = suite.names.find(i); names != suite.names.end())
      out.names[out.runs.size()] = std::move(names->second);
    networks.emplace(suite.runs[i].values.model.name, suite.runs[i].values.model.width);
    out.runs.push_back(std::move(suite.runs[i]));
  }
  suite.runs = std::move(out.runs);
  suite.names = std::move(out.names);
  std::erase_if(suite.matched, [&](const auto& each) { return !networks.contains({each.model, each.width}); });
}

std::vector<size_t> order_of_work(const Suite& suite) {
  static const std::set<std::string> seeds = {"grammar.seed", "train.seed", "train.order_seed"};
  std::map<std::map<std::string, std::string>, size_t> count;  // number of earlier runs that differ only in seeds
  std::vector<std::pair<size_t, size_t>> rounds;
  for (size_t i = 0; i < suite.runs.size(); ++i) {
    auto config = config_map(suite.runs[i].canonical);
    for (const auto& seed : seeds) config.erase(seed);
    rounds.emplace_back(count[std::move(config)]++, i);
  }
  std::sort(rounds.begin(), rounds.end());
  std::vector<size_t> order;
  for (const auto& [round, place] : rounds) order.push_back(place);
  return order;
}

}  // namespace sb
