#include "findings/choices.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/number.h"
#include "findings/arms.h"
#include "findings/protocol.h"

namespace sb {
namespace {

double rate_of(const Choice& choice) {
  return parse_finite(choice.lr).value_or(0);
}

}  // namespace

std::string Variant::text() const {
  std::string out = residual;
  if (!conv.empty() && conv != "0") out += (out.empty() ? "conv " : ", conv ") + conv;
  return out;
}

Variant variant_of(const Group& group) {
  return {plain_value(group.value("model.residual")), plain_value(group.value("model.switch conv"))};
}

bool is_choice(const Rows& rows, const Claims& claims, size_t run) {
  return claims.choice_seed && rows.runs[run].result.grammar_seed == *claims.choice_seed;
}

std::vector<Choice> choices_of(const Rows& rows, const Claims& claims, int task) {
  static const std::set<std::string> chosen_keys = {"model.residual", "model.conv"};
  std::vector<Choice> out;
  const Scale* scale = claims.scale(claims.choice_scale);
  const auto keys = claims.task_keys.find(task);
  for (size_t run = 0; run < rows.runs.size(); ++run) {
    if (!is_choice(rows, claims, run)) continue;
    const Result& result = rows.runs[run].result;
    const Group& group = rows.groups[rows.group_of[run]];
    if (result.task != task || (keys != claims.task_keys.end() && !meets(group.config, keys->second, {})) ||
        !fits(group, {result.model, {}, {}}) || protocol_of(rows, group, chosen_keys) != corrected_protocol ||
        (scale && !of_scale(rows, group, *scale, {})))
      continue;
    Choice one{result.model, variant_of(group), plain_value(key_of(result.config, "train.lr")), std::nullopt};
    if (result.valid && result.status == "done" && !collapsed_run(rows, run)) {
      one.valid = result.valid->accuracy;
      one.error = result.valid->stderr_;
    }
    out.push_back(std::move(one));
  }
  const auto key = [](const Choice& c) { return std::tuple(model_rank(c.model), c.model, c.variant, c.lr); };
  std::sort(out.begin(), out.end(), [&](const Choice& a, const Choice& b) { return key(a) < key(b); });
  for (size_t from = 0; from < out.size();) {
    size_t end = from, best = from;
    for (; end < out.size() && out[end].model == out[from].model; ++end)
      if (out[end].valid.value_or(-1) > out[best].valid.value_or(-1)) best = end;
    Choice& choice = out[best];
    choice.chosen = choice.valid.has_value();
    std::map<Variant, bool> tried;  // at the chosen rate
    double largest = 0, smallest = HUGE_VAL;
    for (size_t i = from; i < end; ++i) {
      tried[out[i].variant] |= out[i].lr == choice.lr;
      largest = std::max(largest, parse_finite(out[i].lr).value_or(0));
      smallest = std::min(smallest, parse_finite(out[i].lr).value_or(HUGE_VAL));
    }
    choice.open = choice.chosen && std::any_of(tried.begin(), tried.end(), [](const auto& one) { return !one.second; });
    choice.at_edge = choice.chosen && (parse_finite(choice.lr) == largest || parse_finite(choice.lr) == smallest);
    from = end;
  }
  return out;
}

std::set<std::string> tuned_models(const Rows& rows, const Claims& claims) {
  std::map<std::string, std::set<std::string>> rates;
  std::set<std::string> chosen;
  for (const auto& choice : choices_of(rows, claims)) {
    rates[choice.model].insert(choice.lr);
    if (choice.chosen) chosen.insert(choice.model);
  }
  std::erase_if(chosen, [&](const std::string& model) { return rates[model].size() < 2; });
  return chosen;
}

double open_gain(const Rows& rows, const Claims& claims, const std::string& model, const std::string& used) {
  const auto of_model = [&](int task) {
    std::vector<Choice> out = choices_of(rows, claims, task);
    std::erase_if(out, [&](const Choice& choice) { return choice.model != model; });
    return out;
  };
  const auto best_of = [](const std::vector<Choice>& all) {
    return std::find_if(all.begin(), all.end(), [](const Choice& choice) { return choice.chosen; });
  };
  const auto variants_of = [](const std::vector<Choice>& all) {
    std::set<Variant> out;
    for (const auto& choice : all) out.insert(choice.variant);
    return out;
  };
  const auto rates_of = [](const std::vector<Choice>& all) {
    std::set<double> out;
    for (const auto& choice : all) out.insert(rate_of(choice));
    return out;
  };
  const std::vector<Choice> tried = of_model(1);
  const std::set<Variant> variants = variants_of(tried);
  const std::set<double> rates = rates_of(tried);
  const auto chosen = best_of(tried);
  if (chosen == tried.end() || rates.size() < 2) return 0;
  const double rate = rate_of(*chosen);
  double gain = 0;
  bool checked = false;
  // Runs at another rate than the chosen one could gain what the choice gained.
  for (const auto& choice : tried)
    if (choice.lr == used && choice.lr != chosen->lr && choice.variant == chosen->variant && choice.valid)
      gain = *chosen->valid - *choice.valid + 2 * std::hypot(chosen->error, choice.error);
  for (const int task : {2, 3}) {
    const std::vector<Choice> others = of_model(task);
    const auto best = best_of(others);
    const auto tried_at = [&](const Variant& variant, const std::string& lr) {
      return std::find_if(others.begin(), others.end(), [&](const Choice& choice) {
        return choice.variant == variant && choice.lr == lr && choice.valid;
      });
    };
    auto same = tried_at(chosen->variant, used);
    if (same == others.end()) same = tried_at(chosen->variant, chosen->lr);
    if (best == others.end() || same == others.end()) continue;
    const std::set<double> more = rates_of(others);
    const bool beyond = rate == *rates.rbegin() ? *more.rbegin() > rate : *more.begin() < rate;
    checked |= beyond && variants_of(others) == variants;
    // A rate beyond the largest may give as much again as this one did over the chosen one.
    const auto step = tried_at(best->variant, chosen->lr);
    const bool largest = rate_of(*best) == *more.rbegin() && step != others.end() && step != best;
    const double by_rate = largest ? *best->valid - *step->valid : 0;
    if (same == best && largest) gain = std::max(gain, by_rate + 2 * std::hypot(best->error, step->error));
    for (const auto& other : others)
      if (&other != &*same && other.valid)
        gain = std::max(gain, *other.valid - *same->valid + 2 * std::hypot(other.error, same->error) +
                                  (&other == &*best ? by_rate : 0));
  }
  return chosen->at_edge && !checked ? 1 : gain;
}

}  // namespace sb
