// The table of keys: each with its kind, range, meaning and the field of RunConfig that holds it.
#include <limits>
#include <set>

#include "config/gaps_keys.h"
#include "config/schema_section.h"
#include "config/task_schedule.h"

namespace sb {
namespace {

constexpr int64_t long_most = std::numeric_limits<int64_t>::max();
constexpr double infinite = std::numeric_limits<double>::infinity();

void add_grammar(SchemaSection s) {
  s.whole("vocab", 2, 4096, "number of symbols, including the end symbol",
          [](auto& c) { return &c.grammar.build.vocab; });
  s.whole("ambiguities", 0, 4095, "number of ambiguous symbols, each emitted by several states",
          [](auto& c) { return &c.grammar.build.ambiguities; });
  s.whole("depth", 1, 65535, "states of an ambiguous symbol", [](auto& c) { return &c.grammar.build.depth; });
  s.real("density", 0, 1, Ends::above_low, "transition density; unset: 0.4 / depth",
         [](auto& c) { return &c.grammar.build.density; });
  s.whole("start_states", 1, 65535, "number of states in which a string can start",
          [](auto& c) { return &c.grammar.build.start_states; });
  s.whole("seed", 1, 0xFFFFFFFF, "seed of automaton, samples, gaps and noise; unset: run.seed",
          [](auto& c) { return &c.grammar.build.seed; });
  s.text("automaton", "JSON automaton to use instead, relative to the file that names it",
         [](auto& c) { return &c.grammar.automaton; });
}

void add_task(SchemaSection s) {
  s.text("kind", "kind of task: gaps (the paper's tasks) or another one; each kind has its own keys",
         [](auto& c) { return &c.task.kind; });
  s.whole("number", 0, 4,
          "number of the paper's task, which sets the defaults below; 0: sequences without gaps and noise",
          [](auto& c) { return &c.task.task.number; });
  s.whole("length", 1, 1000000, "elements per sample", [](auto& c) { return &c.task.length; });
  s.choice<2>("stream", "method that draws the samples", [](auto& c) { return &c.task.stream; });
  s.choice<2>("objective", "target of each frame: the current state, or the next symbol (predict)",
              [](auto& c) { return &c.task.task.objective; });
  s.real("noise", 0, 100, Ends::closed,
         "noise amplitude: uniform noise in [0, noise) is added to every channel of every frame",
         [](auto& c) { return &c.task.task.noise; });
}

void add_model(SchemaSection s) {
  s.text("name", "mixer; `selectivbench models` lists them", [](auto& c) { return &c.model.name; });
  s.whole("width", 1, 65536, "channels", [](auto& c) { return &c.model.width; });
  s.whole("layers", 1, 1024, "number of layers, each with one mixer", [](auto& c) { return &c.model.layers; });
  s.real("dropout", 0, 1, Ends::below_high, "dropout after each mixer", [](auto& c) { return &c.model.dropout; });
  s.choice<kResidualKinds>("residual",
                           "residual connection: post, h <- LN(h + f(h)); double, LN(2h + f(h)); pre, h + f(LN(h))",
                           [](auto& c) { return &c.model.residual; });
}

void add_train(SchemaSection s) {
  s.whole("updates", 1, 1000000000, "optimiser steps", [](auto& c) { return &c.train.updates; });
  s.whole("batch", 1, 65536, "samples per update", [](auto& c) { return &c.train.batch; });
  s.whole_or_auto("accumulate", 1, 65536,
                  "micro-batches per update, a divisor of batch; auto: as few as fit into the GPU's memory",
                  [](auto& c) { return &c.train.accumulate; });
  s.real("lr", 0, 10, Ends::above_low, "peak learning rate", [](auto& c) { return &c.train.lr; });
  s.whole("warmup", 0, 1000000000, "updates of linear warm-up; unset: 476/3125 of train.updates",
          [](auto& c) { return &c.train.warmup; });
  s.real("clip", 0, infinite, Ends::below_high, "maximum global gradient norm; 0: no clipping",
         [](auto& c) { return &c.train.clip; });
  s.real("beta1", 0, 1, Ends::below_high, "Adam, first moment", [](auto& c) { return &c.train.beta1; });
  s.real("beta2", 0, 1, Ends::below_high, "Adam, second moment", [](auto& c) { return &c.train.beta2; });
  s.real("eps", 0, 1, Ends::above_low, "Adam's epsilon, added to the square root of the second moment",
         [](auto& c) { return &c.train.eps; });
  s.real("weight_decay", 0, 100, Ends::closed, "decoupled weight decay", [](auto& c) { return &c.train.weight_decay; });
  s.whole("dropout_until", 0, 1000000000, "first update without dropout; unset: train.updates",
          [](auto& c) { return &c.train.dropout_until; });
  s.whole("seed", 0, long_most, "seed of initialisation and dropout; unset: run.seed",
          [](auto& c) { return &c.train.seed; });
  s.whole("order_seed", 0, long_most, "seed of the order of the training samples; 0: by index, as published",
          [](auto& c) { return &c.train.order_seed; });
  s.choice<4>("precision", "arithmetic; unset: fp32 on the CPU, amp on a GPU",
              [](auto& c) { return &c.train.precision; });
  s.choice<3>("device", "device; auto: the GPU if this build and machine have one, else the CPU",
              [](auto& c) { return &c.train.device; });
  ConfigKey& schedule = s.add("schedule", ConfigKey::Kind::schedule,
                              "keys of [task] that change during training: from a first value to the configured one, "
                              "reached after this share of the updates");
  schedule.get = [](const RunConfig& c) { return ConfigValue(schedule_text(c.train.schedule)); };
  schedule.set = [](RunConfig& c, const ConfigValue& value) {
    c.train.schedule = parse_schedule({std::get<std::string>(value), {}});
  };
  s.whole("position_stretch", 1, 1000,
          "transformer: training samples of T frames have random positions among up to this many times T; 1: 0..T-1",
          [](auto& c) { return &c.train.position_stretch; });
}

void add_eval(SchemaSection s) {
  s.whole("every", 0, 1000000000, "updates between evaluations; 0: only at the end",
          [](auto& c) { return &c.eval.every; });
  s.whole("valid_samples", 1, 10000000, "samples of the valid split", [](auto& c) { return &c.eval.valid_samples; });
  s.whole("test_samples", 1, 10000000, "samples of the test split", [](auto& c) { return &c.eval.test_samples; });
  s.whole("batch", 1, 65536, "samples per forward pass", [](auto& c) { return &c.eval.batch; });
  ConfigKey& gaps = s.add("gaps", ConfigKey::Kind::wholes,
                          "gap lengths tested without retraining; unset: 10, 20, 50, 100 for task 4, else none");
  gaps.most = kMaxGap;
  gaps.get = [](const RunConfig& c) {
    return ConfigValue(std::vector<int64_t>(c.eval.points.begin(), c.eval.points.end()));
  };
  gaps.set = [](RunConfig& c, const ConfigValue& value) {
    c.eval.points.clear();
    for (const int64_t gap : std::get<std::vector<int64_t>>(value)) c.eval.points.push_back(static_cast<int>(gap));
  };
  s.whole("grid_samples", 1, 10000000, "samples per gap length", [](auto& c) { return &c.eval.grid_samples; });
  s.whole("chunk", 1, 10000000, "frames per forward pass of streamed evaluation",
          [](auto& c) { return &c.eval.chunk; });
  s.whole("ceiling_samples", 0, 10000000, "samples for the exact ceiling; 0: no ceiling",
          [](auto& c) { return &c.eval.ceiling_samples; });
}

void add_quirks(SchemaSection s) {
  s.truth("delta_bf16", "DeltaNet family wholly in bfloat16, Adam state included",
          [](auto& c) { return &c.quirks.delta_bf16; });
  s.truth("padding_correct", "count padding elements as correct, as the published code does",
          [](auto& c) { return &c.quirks.padding_correct; });
  s.truth("sum_accumulated", "micro-batch losses summed instead of averaged",
          [](auto& c) { return &c.quirks.sum_accumulated; });
  s.truth("first_lr_zero", "update 0 has learning rate 0", [](auto& c) { return &c.quirks.first_lr_zero; });
  s.truth("select_on_test", "evaluation during training uses the test set",
          [](auto& c) { return &c.quirks.select_on_test; });
}

void add_run(SchemaSection s) {
  s.whole("seed", 1, 0xFFFFFFFF, "default of grammar.seed and train.seed", [](auto& c) { return &c.run.seed; });
  s.choice<2>("protocol", "defaults of some keys: corrected, or published (as the published code trains)",
              [](auto& c) { return &c.run.protocol; });
  s.whole("checkpoint_every", 0, 1000000000, "updates between checkpoints; 0: at evaluations only",
          [](auto& c) { return &c.run.checkpoint_every; });
  s.text("label", "label in tables", [](auto& c) { return &c.run.label; });
}

std::vector<ConfigKey> make_config_keys() {
  std::vector<ConfigKey> all;
  add_grammar({all, "grammar"});
  add_task({all, "task"});
  add_gap_keys(all);
  add_model({all, "model"});
  add_train({all, "train"});
  add_eval({all, "eval"});
  add_quirks({all, "quirks"});
  add_run({all, "run"});
  static const std::set<std::string> of_all_kinds = {"task.kind", "task.length", "grammar.seed"};
  for (auto& p : all) {
    if (p.section == "run") p.identifies = false;  // run.seed acts only through the two seeds it is the default of
    if ((p.section == "task" || p.section == "grammar" || p.name() == "eval.gaps") && !of_all_kinds.contains(p.name()))
      p.task_kind = kGapsKind;
  }
  return all;
}

}  // namespace

const std::vector<ConfigKey>& config_keys() {
  static const std::vector<ConfigKey> all = make_config_keys();
  return all;
}

}  // namespace sb
