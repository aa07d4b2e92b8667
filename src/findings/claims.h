// Claims as data: reads a claims file (docs/claims.md describes every field).
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "report/palette.h"
#include "report/rows.h"

namespace sb {

enum class Statistic {
  accuracy,          // on test, or the mean over the points `at`
  gap_accuracy,      // mean accuracy over the gap lengths `gaps`
  retention,         // gap_accuracy divided by the accuracy at the trained gap length; of a kind, accuracy at the
                     // points `at` divided by that on test
  drop,              // accuracy on task `from` minus accuracy on `task`; of a kind, accuracy at the point `from` of the
                     // test axis minus that at the points `at`
  seen_gain,         // accuracy on the first training samples (the published test set) minus accuracy on test
  slope,             // of accuracy over `over`: topological_entropy, or log10 of params or of a key
  rank_correlation,  // of the models' orders: mean over pairs of levels of `over` (Kendall's tau)
  published_order,   // rank correlation with the figures of `published` (Kendall's tau)
  task_order,        // rank correlation with the models' order in the comparison `with` (Kendall's tau)
  excess_error,      // squared error divided by the least that a causal model can expect, minus 1
  excess_ratio,      // of two excess errors; the effect is log(a / b), shown as a / b - 1
  throughput,        // training frames per second on one device; the effect is a / b - 1
  gate_parameters,   // per layer, with the key projection of the delta rule; exact
  gates_without_keys,  // per layer, without the key projection; exact
};
const char* to_string(Statistic statistic);
bool is_order(Statistic statistic);   // whether the statistic is a rank correlation
bool is_excess(Statistic statistic);  // whether the statistic is of squared errors
bool counted(Statistic statistic);    // whether the statistic is exact, without interval and spread

// What a claim asserts about the effect a - b; delta is the smallest difference that matters.
enum class Asks { above, below, at_least, at_most };
const char* to_string(Asks asks);

struct ArmModel {
  std::string model;
  std::map<std::string, std::string> switches;  // plain text; those not named are as in the paper
  ConfigMap keys;                               // config keys with JSON text; other keys follow from the protocol
  auto operator<=>(const ArmModel&) const = default;

  std::string text() const;  // "Mamba2, mlp 2", "DeltaNet, delta_bf16 on"
};
using Arm = std::vector<ArmModel>;  // several: their mean
std::string arm_text(const Arm& arm);

struct Comparison {
  Statistic statistic = Statistic::accuracy;
  Arm a, b;  // b may be empty
  bool against_chance = false;
  Asks asks = Asks::above;
  double delta = .01;
  double reference = 0;
  bool reported = false;          // shown, but not part of the claim
  int best = 0;                   // counts the best of this many runs of a grammar; 0: the mean over all of them
  int first = 0;                  // of accuracy: on the first elements of every test sample; 0: on all of them
  std::string kind;               // of the task; empty: gaps
  int task = 1;                   // of gaps; 4: runs of task 2 or 4 with these gaps
  int from = 0;                   // for drop: task to subtract from
  std::vector<int> gaps;          // or other values of the kind's test axis
  std::optional<int> from_point;  // for drop of a kind: value of its test axis
  std::string over, published;
  std::vector<Comparison> with;                    // for task_order: the other comparison, without arms
  ConfigMap keys;                                  // JSON text as in Result::config
  ConfigMap claim_keys;                            // of the claim, not part of the name; `keys` override them
  std::map<std::string, ConfigMap> claim_keys_at;  // the same at one scale, by its name
  std::vector<std::string> free;                   // keys that may differ between the levels
  std::optional<double> match;                     // overrides that of the scale
  std::string only_scale;                          // judged only at this scale; empty: at every scale
  std::optional<double> in_distribution;           // of a kind: what trained models may lack on their own test
  bool beyond_paper = false;                       // of a claim that is not the paper's
  bool a_may_fail = false, b_may_fail = false;     // the claim asks a low accuracy of this arm

  // Values that runs must have at this scale: the claim's keys and those of the comparison.
  ConfigMap keys_at(const std::string& scale) const;
  std::string task_text() const;   // "task 3", "word_problem"
  std::string unit() const;        // "grammar", or "seed" on a kind without grammars, where it only draws samples
  std::string place_text() const;  // "word problem, machine a5, length 64"
  std::string name() const;        // "task 3: Mamba2 − GLA"
};

struct Claim {
  std::string id, title, sentence, section;
  int number = 0;
  std::string paper, untested, caveat;  // the last beside a decided claim in the summary
  std::vector<std::string> exploratory;
  bool in_code = true;  // of a deviation: false if only the paper's text has it
  std::vector<Comparison> comparisons;
};

struct Scale {
  std::string name, title;
  ConfigMap keys, results;
  double least_params = 0, most_params = 1e18;
  double least_size = 0, most_size = 1e18;
  double match = 1e18;
  bool untuned = false;  // its learning rates were not chosen by accuracy on valid
};

struct PublishedFigures {
  struct Row {
    std::string model;
    double perplexity = 0, accuracy = 0;  // the latter in percent
  };
  std::string id, source;
  std::vector<Row> rows;
};

struct Question {
  struct Answer {
    std::string claim, comparison;  // the id of one, the name of the other
    std::string place;              // in the file
  };
  std::string title, note, caveat;  // the last beside the answers in the summary
  std::vector<Answer> answers;
};

struct Claims {
  std::string file = "configs/experiments/claims.toml";  // as pages name it
  std::optional<uint64_t> choice_seed;                   // grammar of the choices
  std::string choice_scale;
  std::vector<Scale> scales;
  std::map<int, ConfigMap> task_keys;
  std::vector<PublishedFigures> published;
  std::vector<Claim> claims, deviations;
  std::vector<Question> questions;
  std::vector<std::string> missing;

  const Claim* find(const std::string& id) const;  // a claim or a deviation
  const Scale* scale(const std::string& name) const;
  const PublishedFigures* published_figures(const std::string& id) const;
};

constexpr size_t kMaxClaimsBytes = size_t{1} << 20;  // bytes
Claims read_claims(const std::string& path);
// Throws bad_input "[claims] …, file:line:col".
Claims parse_claims(std::string_view text, const std::string& path);

std::string last_part(const std::string& key);  // "lr" of "train.lr"

}  // namespace sb
