#include "report/select.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"

namespace sb {
namespace {

using Seeds = std::vector<std::string>;

class Choice {
 public:
  Choice(Rows& rows, Group& group, std::string name) : rows_(rows), group_(group), name_(std::move(name)) {}

  void make() {
    decide();
    if (group_.chosen && group_.averaged.empty()) group_.averaged = group_.candidates[*group_.chosen].runs;
    size_t runs = 0, diverged = 0;
    for (const auto& candidate : group_.candidates) {
      runs += candidate.runs.size() + candidate.diverged.size();
      diverged += candidate.diverged.size();
    }
    if (diverged == runs) {
      say(runs == 1 ? "its only run diverged" : formatted("all {} runs diverged", runs));
    } else if (group_.chosen && !group_.candidates[*group_.chosen].diverged.empty()) {
      say("not in the mean: " + lacks(group_.candidates[*group_.chosen]));
    }
  }

 private:
  void decide() {
    for (const auto& candidate : group_.candidates) {
      for (const size_t run : candidate.runs) known_.emplace(rows_.seeds[run], run);
      for (const auto* runs : {&candidate.runs, &candidate.diverged})
        for (const size_t run : *runs) tried_.emplace(rows_.seeds[run], run);
    }
    if (group_.candidates.size() == 1 && !known_.empty()) {
      group_.candidates[0].eligible = true;
      group_.candidates[0].valid = mean_valid(group_.candidates[0], all_seeds());
      group_.chosen = 0;
      return;
    }
    for (auto& candidate : group_.candidates) judge(candidate);
    if (known_.empty()) {  // all diverged
      for (const auto& candidate : group_.candidates) say_untried(candidate);
    } else if (pick(all_seeds())) {
      for (const auto& candidate : group_.candidates) {
        if (candidate.eligible) {
          say_untried(candidate);
        } else {
          say(settings_text(candidate) + " not eligible: " + lacks(candidate) + own_mean(candidate));
        }
      }
    } else {
      choose_over_common();
    }
  }

  std::set<Seeds> all_seeds() const {
    std::set<Seeds> out;
    for (const auto& [seeds, run] : known_) out.insert(seeds);
    return out;
  }

  // nullopt if a run has no valid accuracy.
  std::optional<double> mean_valid(const Candidate& candidate, const std::set<Seeds>& over) const {
    double sum = 0;
    size_t n = 0;
    for (const size_t run : candidate.runs) {
      if (!over.contains(rows_.seeds[run])) continue;
      const auto& valid = rows_.runs[run].result.valid;
      if (!valid) return std::nullopt;
      sum += valid->score();
      ++n;
    }
    return n == 0 ? std::nullopt : std::optional(sum / static_cast<double>(n));
  }

  void judge(Candidate& candidate) const {
    std::set<Seeds> own, diverged;
    for (const size_t run : candidate.runs) own.insert(rows_.seeds[run]);
    for (const size_t run : candidate.diverged) diverged.insert(rows_.seeds[run]);
    bool whole = true;
    for (const auto& [seeds, run] : tried_) {
      if (own.contains(seeds)) continue;
      whole &= !known_.contains(seeds);
      if (!diverged.contains(seeds)) candidate.missing.push_back(seeds_text(rows_, run));
    }
    if (whole) candidate.valid = mean_valid(candidate, own);
    candidate.eligible = candidate.valid.has_value();
  }

  // Accuracies are better if larger, squared errors if smaller.
  bool better(double a, double b) const {
    for (const auto& candidate : group_.candidates)
      for (const size_t run : candidate.runs)
        if (const auto& valid = rows_.runs[run].result.valid; valid && valid->mse) return a < b;
    return a > b;
  }

  bool pick(const std::set<Seeds>& over) {
    for (size_t c = 0; c < group_.candidates.size(); ++c) {
      Candidate& candidate = group_.candidates[c];
      if (!candidate.eligible) continue;
      candidate.valid = mean_valid(candidate, over);
      if (!group_.chosen || better(*candidate.valid, *group_.candidates[*group_.chosen].valid)) group_.chosen = c;
    }
    return group_.chosen.has_value();
  }

  void choose_over_common() {
    std::set<Seeds> common = all_seeds();
    size_t competing = 0;
    for (const auto& candidate : group_.candidates) {
      if (candidate.runs.empty()) continue;
      ++competing;
      std::set<Seeds> own;
      for (const size_t run : candidate.runs)
        if (rows_.runs[run].result.valid) own.insert(rows_.seeds[run]);
      std::erase_if(common, [&](const Seeds& seeds) { return !own.contains(seeds); });
    }
    for (const auto& candidate : group_.candidates)
      if (!candidate.missing.empty() || !candidate.valid) say(settings_text(candidate) + ": " + lacks(candidate));
    if (common.empty()) {
      say("no setting chosen: none has every seed, and they share no seed");
      return;
    }
    for (auto& candidate : group_.candidates) candidate.eligible = !candidate.runs.empty();
    pick(common);
    for (const size_t run : group_.candidates[*group_.chosen].runs)
      if (common.contains(rows_.seeds[run])) group_.averaged.push_back(run);
    std::vector<std::string> names;
    for (const auto& seeds : common) names.push_back(seeds_text(rows_, known_.at(seeds)));
    say(formatted(
        "no setting has every seed: {} chosen from {} settings and averaged over their common seeds only ({})",
        settings_text(group_.candidates[*group_.chosen]), competing, joined(names, ", ")));
  }

  std::string lacks(const Candidate& candidate) const {
    std::string out;
    if (!candidate.missing.empty()) out = formatted("lacks {}", joined(candidate.missing, ", "));
    if (!candidate.diverged.empty()) {
      std::vector<std::string> seeds;
      for (const size_t run : candidate.diverged) seeds.push_back(seeds_text(rows_, run));
      out += formatted("{}diverged at {}", out.empty() ? "" : "; ", joined(seeds, ", "));
    }
    return out.empty() ? "a run has no valid accuracy" : out;
  }

  // For an eligible candidate: names seeds that it has not run, since all others diverged there.
  void say_untried(const Candidate& candidate) {
    if (!candidate.missing.empty())
      say(formatted("{}: has no run of {}; the settings that have one diverged there", settings_text(candidate),
                    joined(candidate.missing, ", ")));
  }

  std::string own_mean(const Candidate& candidate) const {
    const auto mean = mean_valid(candidate, all_seeds());
    if (!mean) return "";
    return formatted("; its mean accuracy, {}, is over {} of {} seeds", fixed(*mean, 3), candidate.runs.size(),
                     known_.size());
  }

  std::string settings_text(const Candidate& candidate) const {
    std::vector<std::string> parts;
    for (size_t i = 0; i < candidate.settings.size(); ++i)
      parts.push_back(short_name(config_key(rows_.axes.select[i])) + " " + shown_value(candidate.settings[i]));
    return joined(parts, " ");
  }

  void say(const std::string& what) { rows_.notes.push_back(name_ + ": " + what); }

  Rows& rows_;
  Group& group_;
  std::string name_;
  std::map<Seeds, size_t> known_;  // every seed that some candidate has finished, with one run of it
  std::map<Seeds, size_t> tried_;  // these, and those on which some candidate diverged
};

void note_split_of_selection(Rows& rows) {
  const size_t runs = chosen_from_by_test(rows).first;
  if (runs > 0)
    rows.notes.push_back(
        formatted("settings of {} run{} compared by accuracy on the test set, not on valid (select_on_test)", runs,
                  runs == 1 ? "" : "s"));
}

}  // namespace

bool valid_is_test(const Result& r) {
  return r.valid &&
         (r.valid->split == "test" || r.valid->split == "reference" || (r.test && r.valid->split == r.test->split));
}

std::pair<size_t, size_t> chosen_from_by_test(const Rows& rows) {
  size_t runs = 0, all = 0;
  for (const auto& group : rows.groups) {
    if (group.candidates.size() < 2) continue;
    for (const auto& candidate : group.candidates)
      for (const size_t run : candidate.runs) {
        const auto& r = rows.runs[run].result;
        all += r.valid.has_value();
        runs += valid_is_test(r);
      }
  }
  return {runs, all};
}

void choose(Rows& rows, const Labels& labels) {
  for (auto& group : rows.groups) Choice(rows, group, labels.name(group)).make();
  note_split_of_selection(rows);
}

}  // namespace sb
