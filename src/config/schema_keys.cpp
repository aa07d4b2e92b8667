// The table of keys: each with its kind, range, meaning and the field of RunConfig that holds it.
#include <limits>
#include <set>
#include <type_traits>

#include "config/schema.h"

namespace sb {
namespace {

using Kind = ConfigKey::Kind;
constexpr int64_t long_most = std::numeric_limits<int64_t>::max();
constexpr double infinite = std::numeric_limits<double>::infinity();

// `Access` names the field: [](RunConfig& c) -> auto& { return c.train.batch; }. It is stateless, so that get and set
// are plain functions.
template <class Stored, class Access>
ConfigKey parameter(const char* section, const char* key, Kind kind, const char* meaning, Access) {
  ConfigKey p;
  p.section = section;
  p.key = key;
  p.kind = kind;
  p.meaning = meaning;
  p.get = [](const RunConfig& c) { return ConfigValue(static_cast<Stored>(Access{}(const_cast<RunConfig&>(c)))); };
  p.set = [](RunConfig& c, const ConfigValue& value) {
    auto& field = Access{}(c);
    field = static_cast<std::remove_reference_t<decltype(field)>>(std::get<Stored>(value));
  };
  return p;
}

template <class Access>
ConfigKey whole(const char* section, const char* key, int64_t least, int64_t most, const char* meaning, Access access) {
  ConfigKey p = parameter<int64_t>(section, key, Kind::whole, meaning, access);
  p.least = least;
  p.most = most;
  return p;
}

// An integer key that also accepts "auto", stored as kAutomatic.
template <class Access>
ConfigKey whole_or_auto(const char* section, const char* key, int64_t least, int64_t most, const char* meaning,
                        Access access) {
  ConfigKey p = whole(section, key, least, most, meaning, access);
  p.or_auto = true;
  p.get = [](const RunConfig& c) {
    const auto value = static_cast<int64_t>(Access{}(const_cast<RunConfig&>(c)));
    return value == kAutomatic ? ConfigValue(std::string(kAutomaticWord)) : ConfigValue(value);
  };
  p.set = [](RunConfig& c, const ConfigValue& value) {
    const auto* number = std::get_if<int64_t>(&value);
    auto& field = Access{}(c);
    field = static_cast<std::remove_reference_t<decltype(field)>>(number ? *number : kAutomatic);
  };
  return p;
}

enum class Ends { closed, above_low, below_high };

template <class Access>
ConfigKey real(const char* section, const char* key, double low, double high, Ends ends, const char* meaning,
               Access access) {
  ConfigKey p = parameter<double>(section, key, Kind::real, meaning, access);
  p.low = low;
  p.high = high;
  p.above_low = ends == Ends::above_low;
  p.below_high = ends == Ends::below_high;
  return p;
}

template <class Access>
ConfigKey truth(const char* section, const char* key, const char* meaning, Access access) {
  return parameter<bool>(section, key, Kind::truth, meaning, access);
}

template <class Access>
ConfigKey text(const char* section, const char* key, const char* meaning, Access access) {
  return parameter<std::string>(section, key, Kind::text, meaning, access);
}

template <class Enum>
std::vector<std::string> names_of(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.emplace_back(to_string(static_cast<Enum>(i)));
  return names;
}

// A choice is stored as its index in the list of names, which is the value of the enum.
template <int count, class Access>
ConfigKey choice(const char* section, const char* key, const char* meaning, Access) {
  using Enum = std::remove_reference_t<decltype(Access{}(std::declval<RunConfig&>()))>;
  ConfigKey p;
  p.section = section;
  p.key = key;
  p.kind = Kind::choice;
  p.meaning = meaning;
  p.choices = names_of<Enum>(count);
  p.get = [](const RunConfig& c) { return ConfigValue(std::string(to_string(Access{}(const_cast<RunConfig&>(c))))); };
  p.set = [](RunConfig& c, const ConfigValue& value) {
    const auto& name = std::get<std::string>(value);
    for (int i = 0; i < count; ++i)
      if (name == to_string(static_cast<Enum>(i))) Access{}(c) = static_cast<Enum>(i);
  };
  return p;
}

template <class Gap>
void add_gap(std::vector<ConfigKey>& all, const std::string& prefix, const std::string& whose, Gap) {
  const auto add = [&](const char* key, ConfigKey p, const char* meaning) {
    p.key = prefix + key;
    p.meaning = meaning + whose;
    all.push_back(std::move(p));
  };
  const char* s = "task";
  add("law",
      choice<4>(
          s, "", "", [](RunConfig & c) -> auto& { return Gap{}(c).law; }),
      "distribution of gap lengths");
  add("min",
      whole(
          s, "", 0, kMaxGap, "", [](RunConfig & c) -> auto& { return Gap{}(c).min; }),
      "shortest gap, frames");
  add("max",
      whole(
          s, "", 0, kMaxGap, "", [](RunConfig & c) -> auto& { return Gap{}(c).max; }),
      "longest gap, frames");
  add("probability",
      real(
          s, "", 0, 1, Ends::closed, "", [](RunConfig & c) -> auto& { return Gap{}(c).probability; }),
      "probability that an element has a gap");
  add("start",
      whole(
          s, "", 0, 1000000000, "", [](RunConfig & c) -> auto& { return Gap{}(c).start; }),
      "first element that may have a gap");
  add("content",
      choice<2>(
          s, "", "", [](RunConfig & c) -> auto& { return Gap{}(c).content; }),
      "what fills a gap");
  add("mu",
      real(
          s, "", -20, 20, Ends::closed, "", [](RunConfig & c) -> auto& { return Gap{}(c).mu; }),
      "mean of the log gap length (lognormal)");
  add("sigma",
      real(
          s, "", 1e-3, 20, Ends::closed, "", [](RunConfig & c) -> auto& { return Gap{}(c).sigma; }),
      "deviation of the log gap length (lognormal)");
}

void add_grammar(std::vector<ConfigKey>& all) {
  const char* s = "grammar";
  all.push_back(whole(
      s, "vocab", 2, 4096, "number of symbols, including the end symbol",
      [](RunConfig & c) -> auto& { return c.grammar.build.vocab; }));
  all.push_back(whole(
      s, "ambiguities", 0, 4095, "number of ambiguous symbols, each emitted by several states",
      [](RunConfig & c) -> auto& { return c.grammar.build.ambiguities; }));
  all.push_back(whole(
      s, "depth", 1, 65535, "states of an ambiguous symbol",
      [](RunConfig & c) -> auto& { return c.grammar.build.depth; }));
  all.push_back(real(
      s, "density", 0, 1, Ends::above_low, "transition density; unset: 0.4 / depth",
      [](RunConfig & c) -> auto& { return c.grammar.build.density; }));
  all.push_back(whole(
      s, "start_states", 1, 65535, "states a string may begin in",
      [](RunConfig & c) -> auto& { return c.grammar.build.start_states; }));
  all.push_back(whole(
      s, "seed", 1, 0xFFFFFFFF, "seed of automaton, samples, gaps and noise; unset: run.seed",
      [](RunConfig & c) -> auto& { return c.grammar.build.seed; }));
  all.push_back(text(
      s, "automaton", "JSON automaton to use instead, relative to the file that names it",
      [](RunConfig & c) -> auto& { return c.grammar.automaton; }));
}

void add_task(std::vector<ConfigKey>& all) {
  const char* s = "task";
  all.push_back(text(
      s, "kind", "kind of task: gaps, the paper's tasks, or another one, with keys of its own",
      [](RunConfig & c) -> auto& { return c.task.kind; }));
  all.push_back(whole(
      s, "number", 0, 4, "task of the paper that sets the defaults below; 0: plain sequences",
      [](RunConfig & c) -> auto& { return c.task.task.number; }));
  all.push_back(whole(
      s, "length", 1, 1000000, "elements per sample", [](RunConfig & c) -> auto& { return c.task.length; }));
  all.push_back(choice<2>(
      s, "stream", "how samples are drawn", [](RunConfig & c) -> auto& { return c.task.stream; }));
  all.push_back(choice<2>(
      s, "objective", "what a frame asks for", [](RunConfig & c) -> auto& { return c.task.task.objective; }));
  all.push_back(real(
      s, "noise", 0, 100, Ends::closed, "each channel of every frame + noise * U(0,1)",
      [](RunConfig & c) -> auto& { return c.task.task.noise; }));
  add_gap(
      all, "gap_", ", training", [](RunConfig & c) -> auto& { return c.task.task.train; });
  add_gap(
      all, "test_gap_", ", valid and test", [](RunConfig & c) -> auto& { return c.task.task.test; });
}

void add_model(std::vector<ConfigKey>& all) {
  const char* s = "model";
  all.push_back(text(
      s, "name", "mixer; `selectivbench models` lists them", [](RunConfig & c) -> auto& { return c.model.name; }));
  all.push_back(whole(
      s, "width", 1, 65536, "channels", [](RunConfig & c) -> auto& { return c.model.width; }));
  all.push_back(whole(
      s, "layers", 1, 1024, "number of layers, each with one mixer",
      [](RunConfig & c) -> auto& { return c.model.layers; }));
  all.push_back(real(
      s, "dropout", 0, 1, Ends::below_high, "dropout after each mixer",
      [](RunConfig & c) -> auto& { return c.model.dropout; }));
  all.push_back(choice<kResidualKinds>(
      s, "residual", "how a layer joins its input: post, h <- LN(h + f(h)); double, LN(2h + f(h)); pre, h + f(LN(h))",
      [](RunConfig & c) -> auto& { return c.model.residual; }));
}

void add_train(std::vector<ConfigKey>& all) {
  const char* s = "train";
  all.push_back(whole(
      s, "updates", 1, 1000000000, "optimiser steps", [](RunConfig & c) -> auto& { return c.train.updates; }));
  all.push_back(whole(
      s, "batch", 1, 65536, "samples per update", [](RunConfig & c) -> auto& { return c.train.batch; }));
  all.push_back(whole_or_auto(
      s, "accumulate", 1, 65536,
      "micro-batches per update, a divisor of batch; auto: as few as fit into the GPU's memory",
      [](RunConfig & c) -> auto& { return c.train.accumulate; }));
  all.push_back(real(
      s, "lr", 0, 10, Ends::above_low, "largest learning rate", [](RunConfig & c) -> auto& { return c.train.lr; }));
  all.push_back(whole(
      s, "warmup", 0, 1000000000, "updates of linear warm-up; unset: 476 of 3125, in proportion",
      [](RunConfig & c) -> auto& { return c.train.warmup; }));
  all.push_back(real(
      s, "clip", 0, infinite, Ends::below_high, "largest global gradient norm; 0: no clipping",
      [](RunConfig & c) -> auto& { return c.train.clip; }));
  all.push_back(real(
      s, "beta1", 0, 1, Ends::below_high, "Adam, first moment", [](RunConfig & c) -> auto& { return c.train.beta1; }));
  all.push_back(real(
      s, "beta2", 0, 1, Ends::below_high, "Adam, second moment", [](RunConfig & c) -> auto& { return c.train.beta2; }));
  all.push_back(real(
      s, "eps", 0, 1, Ends::above_low, "Adam, added to the root", [](RunConfig & c) -> auto& { return c.train.eps; }));
  all.push_back(real(
      s, "weight_decay", 0, 100, Ends::closed, "decoupled weight decay",
      [](RunConfig & c) -> auto& { return c.train.weight_decay; }));
  all.push_back(whole(
      s, "dropout_until", 0, 1000000000, "first update without dropout; unset: train.updates",
      [](RunConfig & c) -> auto& { return c.train.dropout_until; }));
  all.push_back(whole(
      s, "seed", 0, long_most, "seed of initialisation and dropout; unset: run.seed",
      [](RunConfig & c) -> auto& { return c.train.seed; }));
  all.push_back(whole(
      s, "order_seed", 0, long_most, "seed of the order of the training samples; 0: by index, as published",
      [](RunConfig & c) -> auto& { return c.train.order_seed; }));
  all.push_back(choice<4>(
      s, "precision", "arithmetic; unset: fp32 on the CPU, amp on a GPU",
      [](RunConfig & c) -> auto& { return c.train.precision; }));
  all.push_back(choice<3>(
      s, "device", "device; auto: the GPU if this build and machine have one, else the CPU",
      [](RunConfig & c) -> auto& { return c.train.device; }));
}

void add_eval(std::vector<ConfigKey>& all) {
  const char* s = "eval";
  all.push_back(whole(
      s, "every", 0, 1000000000, "updates between evaluations; 0: only at the end",
      [](RunConfig & c) -> auto& { return c.eval.every; }));
  all.push_back(whole(
      s, "valid_samples", 1, 10000000, "samples of the valid split",
      [](RunConfig & c) -> auto& { return c.eval.valid_samples; }));
  all.push_back(whole(
      s, "test_samples", 1, 10000000, "samples of the test split",
      [](RunConfig & c) -> auto& { return c.eval.test_samples; }));
  all.push_back(whole(
      s, "batch", 1, 65536, "samples per forward pass", [](RunConfig & c) -> auto& { return c.eval.batch; }));
  ConfigKey gaps;
  gaps.section = s;
  gaps.key = "gaps";
  gaps.kind = Kind::wholes;
  gaps.most = kMaxGap;
  gaps.meaning = "gap lengths tested without retraining; unset: 10, 20, 50, 100 for task 4, else none";
  gaps.get = [](const RunConfig& c) {
    return ConfigValue(std::vector<int64_t>(c.eval.points.begin(), c.eval.points.end()));
  };
  gaps.set = [](RunConfig& c, const ConfigValue& value) {
    c.eval.points.clear();
    for (const int64_t gap : std::get<std::vector<int64_t>>(value)) c.eval.points.push_back(static_cast<int>(gap));
  };
  all.push_back(std::move(gaps));
  all.push_back(whole(
      s, "grid_samples", 1, 10000000, "samples per gap length",
      [](RunConfig & c) -> auto& { return c.eval.grid_samples; }));
  all.push_back(whole(
      s, "chunk", 1, 10000000, "frames per forward pass of streamed evaluation",
      [](RunConfig & c) -> auto& { return c.eval.chunk; }));
  all.push_back(whole(
      s, "ceiling_samples", 0, 10000000, "samples behind the exact ceiling; 0: no ceiling",
      [](RunConfig & c) -> auto& { return c.eval.ceiling_samples; }));
}

void add_quirks(std::vector<ConfigKey>& all) {
  const char* s = "quirks";
  all.push_back(truth(
      s, "delta_bf16", "DeltaNet family wholly in bfloat16, Adam state included",
      [](RunConfig & c) -> auto& { return c.quirks.delta_bf16; }));
  all.push_back(truth(
      s, "padding_correct", "elements that are only padding count as right",
      [](RunConfig & c) -> auto& { return c.quirks.padding_correct; }));
  all.push_back(truth(
      s, "sum_accumulated", "micro-batch losses summed instead of averaged",
      [](RunConfig & c) -> auto& { return c.quirks.sum_accumulated; }));
  all.push_back(truth(
      s, "first_lr_zero", "update 0 has learning rate 0",
      [](RunConfig & c) -> auto& { return c.quirks.first_lr_zero; }));
  all.push_back(truth(
      s, "select_on_test", "evaluation during training uses the test set",
      [](RunConfig & c) -> auto& { return c.quirks.select_on_test; }));
}

void add_run(std::vector<ConfigKey>& all) {
  const char* s = "run";
  all.push_back(whole(
      s, "seed", 1, 0xFFFFFFFF, "default of grammar.seed and train.seed",
      [](RunConfig & c) -> auto& { return c.run.seed; }));
  all.push_back(choice<2>(
      s, "protocol", "defaults of some keys: corrected, or published (as the published code trains)",
      [](RunConfig & c) -> auto& { return c.run.protocol; }));
  all.push_back(whole(
      s, "checkpoint_every", 0, 1000000000, "updates between checkpoints; 0: at evaluations only",
      [](RunConfig & c) -> auto& { return c.run.checkpoint_every; }));
  all.push_back(text(
      s, "label", "label in tables", [](RunConfig & c) -> auto& { return c.run.label; }));
  // run.seed acts only through the two seeds it is the default of.
  for (auto& p : all)
    if (p.section == s) p.identifies = false;
}

std::vector<ConfigKey> make_config_keys() {
  std::vector<ConfigKey> all;
  add_grammar(all);
  add_task(all);
  add_model(all);
  add_train(all);
  add_eval(all);
  add_quirks(all);
  add_run(all);
  static const std::set<std::string> of_all_kinds = {"task.kind", "task.length", "grammar.seed"};
  for (auto& p : all)
    if ((p.section == "task" || p.section == "grammar" || p.name() == "eval.gaps") && !of_all_kinds.contains(p.name()))
      p.task_kind = kGapsKind;
  return all;
}

}  // namespace

const std::vector<ConfigKey>& config_keys() {
  static const std::vector<ConfigKey> all = make_config_keys();
  return all;
}

}  // namespace sb
