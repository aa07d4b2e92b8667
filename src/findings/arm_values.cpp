#include "findings/arm_values.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

#include "base/clock.h"
#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "findings/arms.h"
#include "findings/choices.h"
#include "findings/protocol.h"
#include "report/cells.h"

namespace sb {
namespace {

// Start and end of the run in Unix seconds, from its result; nullopt if not recorded.
std::optional<std::pair<double, double>> working_time(const Result& result) {
  if (!result.made || !result.made->total_seconds) return std::nullopt;
  const auto end = parse_utc(result.made->finished);
  if (!end) return std::nullopt;
  return std::pair(static_cast<double>(*end) - *result.made->total_seconds, static_cast<double>(*end));
}

// Whether no other run worked on its device at the same time. `shared_by` counts only the runs of its own suite.
bool had_device_alone(const Rows& rows, size_t run) {
  const Result& own = rows.runs[run].result;
  const auto time = working_time(own);
  if (!time || own.made->shared_by != 1) return false;
  return std::none_of(rows.runs.begin(), rows.runs.end(), [&](const TableRun& other) {
    if (&other.result == &own || !other.result.made) return false;
    if (other.result.made->host != own.made->host || other.result.made->device != own.made->device) return false;
    const auto its = working_time(other.result);
    return its && its->first < time->second && time->first < its->second;
  });
}

// Accuracy on the first training samples minus that on unseen ones.
std::optional<double> seen_gain(const Result& result) {
  if (!result.test || !result.published_test) return std::nullopt;
  return result.published_test->accuracy - result.test->accuracy;
}

// The points of the test axis that the comparison measures; one empty point: the run's own test.
std::vector<Point> points_asked(const Comparison& c) {
  std::vector<Point> asked;
  const std::string axis = c.kind.empty() || c.gaps.empty() ? "" : find_task(c.kind).axis->name;
  for (const int gap : c.gaps) asked.push_back(Point{gap, "", 0, "", axis});
  if (asked.empty()) asked.emplace_back();
  return asked;
}

// Squared error at the points asked for, relative to the least that any causal model can expect there.
std::optional<double> excess_error(const TableRun& run, const Comparison& c) {
  const auto points = points_of(run);
  const std::vector<Point> asked = points_asked(c);
  double sum = 0;
  for (const Point& point : asked) {
    const auto at = points.find(point);
    if (at == points.end() || !at->second->mse || !at->second->ceiling) return std::nullopt;
    const double least = at->second->ceiling->mse.value_or(0);
    if (least <= 0) return std::nullopt;
    sum += *at->second->mse / least - 1;
  }
  return sum / static_cast<double>(asked.size());
}

// Accuracy on the first elements of every sample; nullopt if there are fewer or positions were not recorded.
std::optional<double> first_elements(const Measurement& m, size_t count) {
  if (m.by_position.size() < count) return std::nullopt;
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!m.by_position[i]) return std::nullopt;
    sum += *m.by_position[i];
  }
  return sum / static_cast<double>(count);
}

std::optional<double> value_of(const TableRun& run, const Group& group, const Comparison& c) {
  if (c.statistic == Statistic::throughput) return run.result.made->tokens_per_second;
  if (is_excess(c.statistic)) return excess_error(run, c);
  const auto points = points_of(run);
  if (c.statistic == Statistic::seen_gain) return seen_gain(run.result);
  const auto own = points.find(Point{});
  if (own == points.end()) return std::nullopt;
  const double chance = c.against_chance ? run.result.chance : 0;
  if (c.first > 0) return first_elements(*own->second, static_cast<size_t>(c.first));
  if (c.gaps.empty()) return own->second->accuracy - chance;
  double sum = 0;
  for (const Point& point : points_asked(c)) {
    const auto at = points.find(point);
    if (at == points.end()) return std::nullopt;
    sum += at->second->accuracy;
  }
  const double mean = sum / static_cast<double>(c.gaps.size());
  if (c.from_point) {
    Point from = points_asked(c).front();
    from.at = c.from_point;
    const auto at = points.find(from);
    return at == points.end() ? std::nullopt : std::optional(at->second->accuracy - mean);
  }
  if (c.statistic != Statistic::retention) return mean - chance;
  const auto trained = parse_integer(group.value("task.gap_max"));
  const auto base = trained ? points.find(Point{static_cast<int>(*trained), "", 0}) : points.end();
  const double whole = (base == points.end() ? own->second : base->second)->accuracy;
  return whole > 0 ? std::optional(mean / whole) : std::nullopt;
}

// Ceiling of what value_of() measures; runs of one grammar differ only in the samples it is estimated from.
std::optional<double> ceiling_of(const TableRun& run, const Comparison& c) {
  if (is_excess(c.statistic) || c.first > 0) return std::nullopt;
  const auto points = points_of(run);
  const std::vector<Point> asked = points_asked(c);
  double sum = 0;
  for (const auto& point : asked) {
    const auto at = points.find(point);
    if (at == points.end() || !at->second->ceiling) return std::nullopt;
    sum += at->second->ceiling->accuracy;
  }
  return sum / static_cast<double>(asked.size());
}

std::string rate_of(const Rows& rows, size_t run) {
  return plain_value(key_of(rows.runs[run].result.config, "train.lr"));
}

// The group's runs that count: those of the chosen setting, or of this candidate, and repeats in place of failed ones.
// The failed ones are named.
std::vector<size_t> counting_runs(const Rows& rows, const Claims& claims, const Group& group, ArmFigures& arm,
                                  std::optional<size_t> candidate) {
  std::vector<size_t> out;
  const auto lr_of = [&](size_t run) { return rate_of(rows, run); };
  const std::optional<size_t> only = candidate ? candidate : group.chosen;
  const auto replace = [&](size_t run, const std::string& words) {
    const auto repeat = repeat_of(rows, group, run);
    if (!repeat) return arm.failed.push_back(words);
    arm.repeated.push_back(formatted("{}, {}: learning rate {}, because training failed at {}",
                                     model_title(group.model()), seeds_text(rows, run), lr_of(*repeat), lr_of(run)));
    out.push_back(*repeat);
  };
  for (const size_t run : candidate ? group.candidates[*candidate].runs : group.averaged) {
    if (is_choice(rows, claims, run)) continue;
    if (const auto words = collapsed_run(rows, run))
      replace(run, "collapsed: " + *words);
    else
      out.push_back(run);
  }
  for (size_t i = 0; i < group.candidates.size(); ++i) {
    if (only && only != i) continue;
    for (const size_t run : group.candidates[i].diverged) {
      if (is_choice(rows, claims, run)) continue;
      const LostRun lost = diverged_run(rows, run);
      replace(run, formatted("{} ({}): diverged", lost.words, lost.id));
    }
  }
  return out;
}

// Accuracies on valid, without the grammar of the choices.
std::vector<double> valid_of(const Rows& rows, const Claims& claims, const Candidate& candidate) {
  std::vector<double> out;
  for (const size_t run : candidate.runs)
    if (!is_choice(rows, claims, run) && rows.runs[run].result.valid)
      out.push_back(rows.runs[run].result.valid->accuracy);
  return out;
}

// The same by learning rate.
std::map<std::string, std::vector<double>> valid_by_rate(const Rows& rows, const Claims& claims, const Group& group) {
  std::map<std::string, std::vector<double>> out;
  for (const auto& candidate : group.candidates)
    if (const auto valid = valid_of(rows, claims, candidate); !valid.empty()) {
      auto& all = out[rate_of(rows, candidate.runs.front())];
      all.insert(all.end(), valid.begin(), valid.end());
    }
  return out;
}

// The grammars on which a candidate was run, diverged runs included, without that of the choices.
std::set<Unit> grammars_of(const Rows& rows, const Claims& claims, const Candidate& candidate) {
  std::set<Unit> out;
  for (const auto* runs : {&candidate.runs, &candidate.diverged})
    for (const size_t run : *runs)
      if (!is_choice(rows, claims, run)) out.insert(grammar_of(rows, run));
  return out;
}

bool covers(const std::set<Unit>& all, const std::set<Unit>& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

// Whether the setting of the group was selected: a second one was run on all grammars of the chosen one.
bool is_swept(const Rows& rows, const Claims& claims, const Group& group) {
  if (!group.chosen) return false;
  const auto own = grammars_of(rows, claims, group.candidates[*group.chosen]);
  for (size_t i = 0; i < group.candidates.size(); ++i)
    if (i != *group.chosen && covers(grammars_of(rows, claims, group.candidates[i]), own)) return true;
  return false;
}

void add_own_tests(const Rows& rows, const Claims& claims, const Comparison& c, const Group& group, ArmFigures& arm,
                   std::optional<size_t> candidate) {
  if (!needs_trained_models(c)) return;
  std::map<Unit, std::vector<OwnTest>> own;
  ArmFigures unused;  // `arm` has the failed runs
  for (const size_t run : counting_runs(rows, claims, group, unused, candidate))
    if (const auto test = own_test(rows.runs[run].result, c)) own[grammar_of(rows, run)].push_back(*test);
  const auto promised = static_cast<size_t>(c.best);
  for (auto& [unit, tests] : own) {
    if (promised > 0 && tests.size() > promised) tests.resize(promised);  // the first seeds
    arm.own_tests[{group.model(), unit}] = promised > 0 ? best_test(tests) : mean_test(tests);
  }
}

}  // namespace

std::optional<size_t> repeat_of(const Rows& rows, const Group& group, size_t failed) {
  const Result& lost = rows.runs[failed].result;
  std::optional<size_t> out;
  for (const auto& candidate : group.candidates)
    for (const size_t run : candidate.runs) {
      const Result& r = rows.runs[run].result;
      if (r.run_seed != lost.run_seed || r.grammar_seed != lost.grammar_seed || r.train_seed != lost.train_seed)
        continue;
      if (r.lr >= lost.lr || collapsed_run(rows, run)) continue;
      if (!out || r.lr > rows.runs[*out].result.lr) out = run;
    }
  return out;
}

std::string common_rate(const Rows& rows, const Claims& claims, const Group& x, const Group& y) {
  const auto left = valid_by_rate(rows, claims, x), right = valid_by_rate(rows, claims, y);
  std::string best;
  std::pair<size_t, double> most;  // runs, then accuracy
  for (const auto& [rate, a] : left)
    if (const auto at = right.find(rate); at != right.end()) {
      const std::pair<size_t, double> rank{std::min(a.size(), at->second.size()),
                                           estimate(a).mean + estimate(at->second).mean};
      if (best.empty() || rank > most) {
        best = rate;
        most = rank;
      }
    }
  return best;
}

std::optional<size_t> shared_candidate(const Rows& rows, const Claims& claims, const Group& group, const Group& other) {
  if (!group.chosen || !other.chosen) return std::nullopt;
  const Candidate &own = group.candidates[*group.chosen], &theirs = other.candidates[*other.chosen];
  const auto x = grammars_of(rows, claims, own), y = grammars_of(rows, claims, theirs);
  std::set<Unit> common;
  std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::inserter(common, common.end()));
  const auto is_shared = [&](const Candidate& candidate) {
    return covers(grammars_of(rows, claims, candidate), common) &&
           std::any_of(other.candidates.begin(), other.candidates.end(), [&](const Candidate& same) {
             return same.settings == candidate.settings && covers(grammars_of(rows, claims, same), common);
           });
  };
  if (common.empty() || is_shared(own)) return std::nullopt;
  std::optional<size_t> best;
  double most = 0;
  for (size_t i = 0; i < group.candidates.size(); ++i) {
    const auto valid = valid_of(rows, claims, group.candidates[i]);
    if (valid.empty() || !is_shared(group.candidates[i])) continue;
    if (const double mean = estimate(valid).mean; !best || mean > most) {
      best = i;
      most = mean;
    }
  }
  return best;
}

std::optional<size_t> candidate_at(const Rows& rows, const Group& group, const std::string& rate) {
  for (size_t i = 0; i < group.candidates.size(); ++i)
    if (const auto& runs = group.candidates[i].runs; !runs.empty() && rate_of(rows, runs.front()) == rate) return i;
  return std::nullopt;
}

std::map<Unit, double> arm_values(const Rows& rows, const Claims& claims, const Comparison& comparison, size_t number,
                                  ArmFigures& arm, std::optional<size_t> candidate) {
  const Group& group = rows.groups[number];
  std::map<Unit, std::vector<double>> values, accuracies;
  for (const size_t run : counting_runs(rows, claims, group, arm, candidate)) {
    const bool speed = comparison.statistic == Statistic::throughput;
    const auto value =
        speed && !had_device_alone(rows, run) ? std::nullopt : value_of(rows.runs[run], group, comparison);
    if (!value) {
      arm.unmeasured.push_back(model_title(group.model()) + ", " + seeds_text(rows, run));
      continue;
    }
    Unit unit = grammar_of(rows, run);
    if (const auto ceiling = ceiling_of(rows.runs[run], comparison)) arm.ceilings[unit] = *ceiling;
    const Result& result = rows.runs[run].result;
    // Gaps are blanks, which the n-gram skips; other values of a test axis have an n-gram of their own.
    const bool same_task = comparison.first == 0 && (comparison.from == 0 || result.task == comparison.task);
    if (const auto n_gram = result.baselines ? result.baselines->best_n_gram() : std::nullopt;
        n_gram && same_task && (comparison.gaps.empty() || comparison.kind.empty())) {
      arm.n_grams[unit] = *n_gram;
      if (comparison.gaps.empty()) accuracies[unit].push_back(result.test->accuracy);
    }
    if (comparison.against_chance) arm.chance = result.chance;
    arm.rates.insert(rate_of(rows, run));
    // Speeds are compared on one device.
    if (speed) unit.push_back(result.made->device);
    values[unit].push_back(*value);
  }
  const auto mean = [](const std::vector<double>& all) {
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
  };
  for (const auto& [unit, all] : accuracies) {
    double& kept = arm.accuracies[unit];
    kept = comparison.statistic == Statistic::slope ? std::max(kept, mean(all)) : mean(all);
  }
  arm.swept = (arm.params.empty() || arm.swept) && !candidate && is_swept(rows, claims, group);
  arm.params.push_back(params_of(rows, number));
  std::map<Unit, double> out;
  for (auto& [unit, all] : values) {
    const auto promised = static_cast<size_t>(comparison.best);
    if (all.size() < promised) {
      arm.too_few.insert(unit);
      continue;
    }
    if (promised > 0) all.resize(promised);  // the first seeds
    arm.runs += all.size();
    arm.fewest = arm.fewest == 0 ? all.size() : std::min(arm.fewest, all.size());
    arm.most = std::max(arm.most, all.size());
    out[unit] = promised > 0 ? *std::max_element(all.begin(), all.end()) : mean(all);
  }
  add_own_tests(rows, claims, comparison, group, arm, candidate);
  return out;
}

std::string grammar_text(const Unit& grammar) {
  std::vector<std::string> parts;
  for (const auto& part : grammar) parts.push_back(plain_value(part));
  return joined(parts, "/");
}

std::optional<std::string> how_lacking(const Rows& rows, size_t number, const Unit& grammar, const Comparison& c,
                                       std::optional<size_t> candidate) {
  const Group& group = rows.groups[number];
  const std::optional<size_t> counts = candidate ? candidate : group.chosen;
  const std::vector<size_t>& counted = candidate ? group.candidates[*candidate].runs : group.averaged;
  const auto there = [&](size_t run) { return grammar_of(rows, run) == grammar; };
  const auto among = [&](const std::vector<size_t>& runs) { return std::any_of(runs.begin(), runs.end(), there); };
  for (const size_t run : counted)
    if (there(run) && collapsed_run(rows, run)) return std::nullopt;
  const auto measured = std::count_if(counted.begin(), counted.end(),
                                      [&](size_t run) { return there(run) && value_of(rows.runs[run], group, c); });
  if (measured > 0 && measured < c.best) return formatted(": {} of {} seeds", measured, c.best);
  if (among(counted))
    return c.kind.empty()
               ? formatted(": `eval RUN --save` with gaps of {} frames", joined(c.gaps, ", "))
               : formatted(": `eval RUN --save` with {} {}", points_asked(c).front().axis, joined(c.gaps, ", "));
  for (size_t i = 0; i < group.candidates.size(); ++i)
    if ((!counts || counts == i) && among(group.candidates[i].diverged)) return std::nullopt;
  for (const auto& each : group.candidates)
    if (among(each.runs)) return ", at every setting that was selected over";
  for (const auto& run : rows.absent)
    if (run.config == group.config && run.grammar == grammar)
      return formatted(", there and {} ({})", to_string(lost_run(run).why), printable(run.id, 64));
  return "";
}

}  // namespace sb
