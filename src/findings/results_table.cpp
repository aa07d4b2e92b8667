#include "findings/results_table.h"

#include <algorithm>
#include <tuple>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "findings/arm_values.h"
#include "findings/arms.h"
#include "findings/choices.h"
#include "findings/lost_runs.h"
#include "findings/page_text.h"
#include "findings/protocol.h"
#include "findings/verdict.h"
#include "report/cells.h"
#include "report/palette.h"

namespace sb {
namespace {

const std::vector<int> far_gaps = {20, 50, 100};  // of task 4
constexpr double error = .05;

// A protocol's label for readers who do not know the names of quirks.
std::string in_words(std::string protocol) {
  static constexpr std::string_view quirk = "no delta_bf16";
  if (const size_t at = protocol.find(quirk); at != std::string::npos)
    protocol.replace(at, quirk.size(), "in mixed precision instead of bfloat16");
  return protocol;
}

// Width, parameters, state per layer, residual, output gate
std::vector<std::string> network_of(const Group& group, const Result& some) {
  const std::string gate = plain_value(group.value("model.switch output_gate"));
  return {std::to_string(some.width), grouped(static_cast<uint64_t>(some.params)),
          some.state_size ? grouped(static_cast<uint64_t>(*some.state_size)) : "grows",
          plain_value(group.value("model.residual")), gate.empty() ? "–" : gate};
}

class Filler {
 public:
  Filler(const Rows& rows, const Claims& claims, const Scale& scale, const ProtocolLabel& protocol)
      : rows_(rows), claims_(claims), scale_(scale), protocol_(protocol) {}

  ResultsTable make() {
    ResultsTable out;
    for (const auto& model : paper_models()) {
      ResultRow row{model_title(model), {}};
      for (int task = 1; task <= result_tasks; ++task)
        for (const ResultColumn column : result_columns)
          if (auto value = value_of(model, {task, column})) row.cells[{task, column}] = std::move(*value);
      for (int task = 1; task <= result_tasks; ++task) note_better(row, model, {task, ResultColumn::corrected});
      out.push_back(std::move(row));
    }
    const ResultRow n_grams = mean_row("n-gram", n_grams_);
    for (auto& row : out)
      for (auto& [place, value] : row.cells)
        if (is_below_n_gram(place, value)) value.footnotes.emplace_back("Below the n-gram.");
    out.push_back(n_grams);
    out.push_back(mean_row("ceiling", ceilings_));
    return out;
  }

 private:
  using ByGrammar = std::map<std::string, double>;

  // On the grammars of the value.
  bool is_below_n_gram(const ResultPlace& place, const ResultValue& value) const {
    const auto n_grams = n_grams_.find(place);
    if (n_grams == n_grams_.end() || !value.accuracy || value.grammars.empty()) return false;
    double sum = 0;
    for (const auto& grammar : value.grammars) {
      const auto at = n_grams->second.find(grammar);
      if (at == n_grams->second.end()) return false;
      sum += at->second;
    }
    return *value.accuracy < sum / static_cast<double>(value.grammars.size());
  }

  std::optional<ResultValue> value_of(const std::string& model, const ResultPlace& place) {
    if (place.second == ResultColumn::paper) {
      const auto paper = paper_table(model, place.first);
      if (!paper || scale_.name != "paper") return std::nullopt;
      return ResultValue{
          paper->accuracy, Interval{paper->accuracy - paper->spread, paper->accuracy + paper->spread}, {}, {}};
    }
    std::optional<ResultValue> best;
    std::tuple<size_t, int64_t, int64_t> most;
    std::optional<size_t> taken;
    for (size_t g = 0; g < rows_.groups.size(); ++g) {
      if (!belongs(g, model, place)) continue;
      ResultValue value = of_group(g, place);
      const Result& some = some_result(rows_, rows_.groups[g]);
      const std::tuple rank{value.grammars.size(), some.updates, some.params};
      if (best && rank <= most) continue;
      best = std::move(value);
      most = rank;
      taken = g;
    }
    if (taken) add_references(*taken, place);
    return best;
  }

  // Adds a footnote if the model is better under other settings: the figure then reflects its settings, not the model.
  void note_better(ResultRow& row, const std::string& model, const ResultPlace& place) const {
    const auto own = row.cells.find(place);
    if (own == row.cells.end() || !own->second.accuracy) return;
    ResultValue& value = own->second;
    std::string better;
    double highest = *value.accuracy + clearly_better;
    for (size_t g = 0; g < rows_.groups.size(); ++g) {
      if (!compares(g, model, place)) continue;
      const ResultValue other = of_group(g, place);
      if (other.grammars != value.grammars || !other.accuracy) continue;
      if (*other.accuracy <= highest) continue;
      highest = *other.accuracy;
      value.better = highest;
      const std::string protocol = protocol_(some_result(rows_, rows_.groups[g]).config);
      const std::string residual = other.residual == value.residual ? "" : ", residual " + other.residual;
      better = protocol == published_protocol
                   ? formatted("The reproduced run is better: {} at", share(highest))
                   : formatted("This model reaches {} with other settings: {},", share(highest), in_words(protocol));
      better += formatted(" learning rate {}{}.", other.lr, residual);
    }
    if (!better.empty()) value.footnotes.push_back(better);
    if (scale_.name != claims_.choice_scale) return;
    if (const auto gain = choice_gain(model, place.first, value)) value.footnotes.push_back(*gain);
  }

  // "On valid of grammar seed 11, this model reaches .954 with residual post and learning rate 0.008, and .943 with the
  // settings of this table." if other settings are clearly better on this task of the choices' grammar.
  std::optional<std::string> choice_gain(const std::string& model, int task, const ResultValue& value) const {
    const Choice *best = nullptr, *same = nullptr;
    const auto others = choices_of(rows_, claims_, task);
    for (const auto& choice : others) {
      if (choice.model != model || !choice.valid) continue;
      if (choice.chosen) best = &choice;
      if (choice.variant.text() == value.residual && choice.lr == value.lr) same = &choice;
    }
    if (!best || !same || *best->valid - *same->valid < clearly_better) return std::nullopt;
    return formatted(
        "On valid of grammar seed {}, this model reaches {} with residual {} and learning rate {}, and {} with the "
        "settings of this table.",
        *claims_.choice_seed, share(*best->valid), best->variant.text(), best->lr, share(*same->valid));
  }

  // Whether the group has runs of this model, task and scale, under any protocol.
  bool compares(size_t number, const std::string& model, const ResultPlace& place) const {
    const Group& group = rows_.groups[number];
    const std::string task = group.value("task.number");
    if (task != std::to_string(place.first) && !(place.first == 4 && task == "2")) return false;
    if (const auto keys = claims_.task_keys.find(place.first);
        keys != claims_.task_keys.end() && !meets(group.config, keys->second, {}))
      return false;
    return of_scale(rows_, group, scale_, {}) && meets(group.config, scale_.results, {}) &&
           fits(group, {model, {}, {}});
  }

  bool belongs(size_t number, const std::string& model, const ResultPlace& place) const {
    return compares(number, model, place) && protocol_(some_result(rows_, rows_.groups[number]).config) ==
                                                 (place.second == ResultColumn::reproduced ? "published" : "corrected");
  }

  // Of one run, over the gaps of task 4: `figure` of each measurement.
  template <class Figure>
  static std::optional<double> measured(const TableRun& run, const ResultPlace& place, Figure figure) {
    const auto points = points_of(run);
    std::vector<Point> asked;
    if (place.first == 4)
      for (const int gap : far_gaps) asked.push_back(Point{gap, "", 0});
    else
      asked.emplace_back();
    double sum = 0;
    for (const auto& point : asked) {
      const auto at = points.find(point);
      const std::optional<double> one = at == points.end() ? std::nullopt : figure(*at->second);
      if (!one) return std::nullopt;
      sum += *one;
    }
    return sum / static_cast<double>(asked.size());
  }

  // "At learning rate 0.004 training collapsed on grammars 2 and 3: accuracy .011 and .012, 1-gram .107 and .104. The
  // mean has the runs at 0.002." for runs at one rate; `repeat` is empty if no other run stands for them.
  std::string collapse_text(const std::vector<size_t>& runs, const std::string& repeat, bool only_grammar,
                            bool published) const {
    std::vector<std::string> grammars, accuracies, one_grams;
    for (const size_t run : runs) {
      const Result& r = rows_.runs[run].result;
      grammars.push_back(name_of(grammar_of(rows_, run)));
      accuracies.push_back(share(r.test->accuracy));
      one_grams.push_back(share(r.baselines->n_gram[0]));
    }
    const bool one = runs.size() == 1;
    const bool mixed = rows_.runs[runs.front()].result.precision == "amp";
    return formatted("At learning rate {} training collapsed{}: accuracy {}, 1-gram {}.{}{}", lr_of(runs.front()),
                     only_grammar ? "" : formatted(" on grammar{} {}", one ? "" : "s", and_list(grammars)),
                     and_list(accuracies), and_list(one_grams),
                     repeat.empty() ? "" : formatted(" The mean has the run{} at {}.", one ? "" : "s", repeat),
                     published && mixed ? " Precision was mixed; the published code uses float32." : "");
  }

  std::string lr_of(size_t run) const { return plain_value(key_of(rows_.runs[run].result.config, "train.lr")); }

  ResultValue of_group(size_t number, const ResultPlace& place) const {
    const Group& group = rows_.groups[number];
    ResultValue out;
    std::vector<size_t> runs;
    std::vector<double> values;
    std::map<std::pair<std::string, std::string>, std::vector<size_t>> collapsed;  // by rate, and that of the repeats
    for (const size_t run : group.averaged) {
      if (is_choice(rows_, claims_, run)) continue;
      const bool failed = collapsed_run(rows_, run).has_value();
      const std::optional<size_t> counts = failed ? repeat_of(rows_, group, run) : run;
      if (failed) {
        collapsed[{lr_of(run), counts ? lr_of(*counts) : ""}].push_back(run);
        out.mixed_rates |= counts.has_value();
      }
      if (!counts) continue;
      if (const auto value =
              measured(rows_.runs[*counts], place, [](const Measurement& m) { return std::optional(m.accuracy); })) {
        runs.push_back(*counts);
        values.push_back(*value);
      }
    }
    size_t own = 0;  // runs of the chosen setting, without the grammar of the choices
    for (const size_t run : group.averaged) own += !is_choice(rows_, claims_, run);
    for (size_t c = 0; c < group.candidates.size(); ++c) {
      const bool other = group.chosen && group.chosen != c;
      for (const size_t run : group.candidates[c].diverged)
        if (!is_choice(rows_, claims_, run))
          out.footnotes.push_back("Diverged in training and excluded from means: " + diverged_run(rows_, run).words +
                                  ".");
      for (const size_t run : group.candidates[c].runs) {
        if (is_choice(rows_, claims_, run)) continue;
        const bool failed = collapsed_run(rows_, run).has_value();
        if (!failed) out.trained_rates.insert(lr_of(run));
        if (failed && other) collapsed[{lr_of(run), ""}].push_back(run);
      }
    }
    for (const auto& [rates, failed] : collapsed) {
      out.footnotes.push_back(collapse_text(failed, rates.second, own == 1, place.second == ResultColumn::reproduced));
      out.failed_rates.insert(rates.first);
    }
    if (!runs.empty()) {
      out.lr = lr_of(runs.front());
      out.residual = plain_value(group.value("model.residual"));
      out.network = network_of(group, rows_.runs[runs.front()].result);
    }
    if (const auto rate = better_rate(group, place, runs, values)) out.footnotes.push_back(*rate);
    std::vector<double> means;
    for (const auto& [unit, mean] : means_by_grammar(rows_, runs, values)) {
      means.push_back(mean);
      out.grammars.insert(name_of(unit));
    }
    const Estimate estimated = estimate(means);
    if (estimated.n > 0) out.accuracy = estimated.mean;
    if (estimated.n >= least_grammars) out.interval = estimated.interval(error);
    if (!means.empty()) {
      const auto [lowest, highest] = std::minmax_element(means.begin(), means.end());
      out.range = {*lowest, *highest};
    }
    return out;
  }

  // "On grammars 1 and 2, accuracy is 2.0 points higher at learning rate 0.008." for the best of the rates that are
  // clearly better on the grammars where they were run too. `values` are those of `runs`.
  std::optional<std::string> better_rate(const Group& group, const ResultPlace& place, const std::vector<size_t>& runs,
                                         const std::vector<double>& values) const {
    std::map<Unit, double> own;
    for (const auto& [unit, mean] : means_by_grammar(rows_, runs, values)) own[unit] = mean;
    std::optional<std::string> out;
    double most = clearly_better;
    for (size_t c = 0; c < group.candidates.size(); ++c) {
      if (group.chosen && group.chosen == c) continue;
      std::vector<size_t> others;
      std::vector<double> accuracies;
      for (const size_t run : group.candidates[c].runs) {
        if (is_choice(rows_, claims_, run) || std::find(runs.begin(), runs.end(), run) != runs.end()) continue;
        const auto value =
            measured(rows_.runs[run], place, [](const Measurement& m) { return std::optional(m.accuracy); });
        if (!value || !own.contains(grammar_of(rows_, run))) continue;
        others.push_back(run);
        accuracies.push_back(*value);
      }
      double gain = 0;
      std::vector<std::string> grammars;
      for (const auto& [unit, mean] : means_by_grammar(rows_, others, accuracies)) {
        gain += mean - own.at(unit);
        grammars.push_back(name_of(unit));
      }
      if (grammars.empty() || gain / static_cast<double>(grammars.size()) <= most) continue;
      most = gain / static_cast<double>(grammars.size());
      out = formatted("On grammar{} {}, accuracy is {} points higher at learning rate {}.",
                      grammars.size() == 1 ? "" : "s", and_list(grammars), fixed(most * 100, 1), lr_of(others.front()));
    }
    return out;
  }

  static std::string name_of(const std::vector<std::string>& unit) {
    std::vector<std::string> parts;
    for (const auto& part : unit) parts.push_back(plain_value(part));
    return joined(parts, "/");
  }

  // Adds ceiling and n-gram on the group's grammars; models differ only in the samples these are estimated from.
  void add_references(size_t number, const ResultPlace& place) {
    for (const size_t run : rows_.groups[number].averaged) {
      if (is_choice(rows_, claims_, run)) continue;
      const TableRun& table_run = rows_.runs[run];
      const std::string grammar = name_of(grammar_of(rows_, run));
      if (const auto ceiling = measured(table_run, place, [](const Measurement& m) {
            return m.ceiling ? std::optional(m.ceiling->accuracy) : std::nullopt;
          }))
        ceilings_[place].emplace(grammar, *ceiling);
      if (const auto& baselines = table_run.result.baselines; baselines && baselines->best_n_gram())
        n_grams_[place].emplace(grammar, *baselines->best_n_gram());
    }
  }

  static ResultRow mean_row(const std::string& name, const std::map<ResultPlace, ByGrammar>& values) {
    ResultRow out{name, {}};
    for (const auto& [place, by_grammar] : values) {
      ResultValue value;
      double sum = 0;
      for (const auto& [grammar, one] : by_grammar) {
        sum += one;
        value.grammars.insert(grammar);
      }
      value.accuracy = sum / static_cast<double>(by_grammar.size());
      out.cells[place] = std::move(value);
    }
    return out;
  }

  const Rows& rows_;
  const Claims& claims_;
  const Scale& scale_;
  const ProtocolLabel& protocol_;
  std::map<ResultPlace, ByGrammar> n_grams_, ceilings_;
};

}  // namespace

ResultsTable results_table(const Rows& rows, const Claims& claims, const Scale& scale, const ProtocolLabel& protocol) {
  return Filler(rows, claims, scale, protocol).make();
}

ResultsTable other_networks(const Rows& rows, const Claims& claims, const Scale& scale) {
  const auto keys = claims.task_keys.find(1);
  std::map<std::pair<int, std::string>, std::pair<size_t, ResultRow>> most;
  for (const Group& group : rows.groups) {
    if (contains(paper_models(), group.model()) || group.value("task.number") != "1" ||
        !of_scale(rows, group, scale, {}) || !meets(group.config, scale.results, {}) ||
        (keys != claims.task_keys.end() && !meets(group.config, keys->second, {})))
      continue;
    const auto runs = static_cast<size_t>(std::count_if(group.averaged.begin(), group.averaged.end(),
                                                        [&](size_t run) { return !is_choice(rows, claims, run); }));
    auto& [best, row] = most[{model_rank(group.model()), group.model()}];
    if (runs <= best) continue;
    best = runs;
    row.name = model_title(group.model());
    row.cells[{1, ResultColumn::corrected}].network = network_of(group, rows.runs[group.averaged.front()].result);
  }
  ResultsTable out;
  for (auto& [model, one] : most)
    if (one.first > 0) out.push_back(std::move(one.second));
  return out;
}

}  // namespace sb
