// clang-format off
// The paper's claims as rows of data:
//
//   [[scale]]                                       # which runs belong together
//   name = "small"
//   title = "8 layers, 4.7 M parameters"
//   keys = {model.layers = 8, grammar.vocab = 41}   # a run has these values
//   params = [4.4e6, 5e6]                           # and this many parameters
//   sizes = [1e6, 1.2e7]                            # where a comparison goes over params, this many instead
//   match = 1.2                                     # two arms are compared up to this ratio of their parameters
//
//   [[task]]                                        # what a comparison on the task asks of its runs unless it says else
//   number = 2
//   keys = {task.gap_max = 10}
//
//   [[withheld]]                                    # the model's runs are in no figure and in no verdict
//   model = "transformer"
//   reason = "..."                                  # shown below every table that has the model
//
//   [[claim]]
//   id = "gated_delta_rule"
//   number = 1                                      # of the paper's claims; 0: not one of them
//   sentence = "..."
//   statistic = "accuracy"
//   direction = "above"                             # or "below"
//   margin = 0.01                                   # the effect a - b has to be beyond it
//   comparisons = [{a = "gated_delta_net", b = "delta_net", task = [1, 2, 3]}]
//
// A comparison may have statistic, direction, margin and match of its own. `a`, `b` and `task` may be lists: every combination is
// one comparison. An arm is a model with every switch as the paper has it, or {model = "mamba2", mlp = 2, quirks =
// ["delta_bf16"]}, or {mean = ["gla", "mamba"]}: their mean, for rank_correlation what is put in order. Without `b` the
// effect is a itself; b = "chance" is the run's chance.
// clang-format on
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "report/rows.h"

namespace sb {

enum class Statistic {
  accuracy,          // on test
  gap_accuracy,      // mean over `gaps` of the accuracy at that gap length
  retention,         // the same, over the accuracy at the trained gap length
  slope,             // of accuracy over `over`: topological_entropy, or log10 of params or of a key
  rank_correlation,  // of the models' orders, mean over pairs of levels of `over` (Kendall's tau)
  gate_parameters,   // a layer; exact
};
const char* to_string(Statistic statistic);

struct ArmModel {
  std::string model;
  std::map<std::string, std::string> switches;  // plain text; those not named are as in the paper
  std::set<std::string> quirks;
  auto operator<=>(const ArmModel&) const = default;

  std::string text() const;  // "mamba2, mlp 2", "delta_net, quirk delta_bf16"
};
using Arm = std::vector<ArmModel>;  // several: their mean
std::string arm_text(const Arm& arm);

struct Comparison {
  Statistic statistic = Statistic::accuracy;
  Arm a, b;  // b may be empty
  bool against_chance = false;
  bool above = true;
  double margin = 0;
  int task = 1;  // 4: runs of task 2 or 4 with these gaps
  std::vector<int> gaps;
  std::string over;
  ConfigMap keys;                 // JSON text as in Result::config
  std::vector<std::string> free;  // keys that may differ between the levels
  std::optional<double> match;    // instead of the scale's

  std::string name() const;  // "task 3: mamba2 - gla"
};

struct Claim {
  std::string id, sentence;
  int number = 0;
  std::string fault;     // of the published code, that explains a difference to the paper
  std::string untested;  // what the comparisons do not show
  std::vector<Comparison> comparisons;
};

struct Scale {
  std::string name, title;
  ConfigMap keys;
  double least_params = 0, most_params = 1e18;
  double least_size = 0, most_size = 1e18;
  double match = 1e18;
};

struct Claims {
  std::vector<Scale> scales;
  std::map<int, ConfigMap> task_keys;
  std::map<std::string, std::string> withheld;  // model to reason
  std::vector<Claim> claims;

  const Claim* find(const std::string& id) const;
  const Scale* scale(const std::string& name) const;
};

constexpr size_t largest_claims = size_t{1} << 20;  // bytes
Claims read_claims(const std::string& path);
// Throws bad_input "[claims] …, file:line:col".
Claims parse_claims(std::string_view text, const std::string& path);

// What `verdict` reads of an experiment's file; the name is the file's where it gives none.
struct ExperimentClaims {
  std::string name, title, sentence;
  std::vector<std::string> claims;
};
ExperimentClaims read_experiment_claims(const std::string& path);
ExperimentClaims parse_experiment_claims(std::string_view text, const std::string& path);

}  // namespace sb
