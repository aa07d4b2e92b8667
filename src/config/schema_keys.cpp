// The table of keys: each with its kind, range, meaning and the field of RunConfig that holds it.
#include <limits>
#include <set>
#include <type_traits>

#include "config/schema.h"
#include "config/task_schedule.h"

namespace sb {
namespace {

using Kind = ConfigKey::Kind;
constexpr int64_t long_most = std::numeric_limits<int64_t>::max();
constexpr double infinite = std::numeric_limits<double>::infinity();

enum class Ends { closed, above_low, below_high };

// Adds keys of one section. `Access` gives the address of the field, [](auto& c) { return &c.train.batch; }. It is
// stateless, so that get and set are plain functions.
class Section {
 public:
  // `prefix` begins every key, `whose` ends every meaning.
  Section(std::vector<ConfigKey>& all, const char* name, const char* prefix = "", const char* whose = "")
      : all_(all), name_(name), prefix_(prefix), whose_(whose) {}

  template <class Access>
  ConfigKey& whole(const char* key, int64_t least, int64_t most, const char* meaning, Access access) {
    ConfigKey& p = plain<int64_t>(key, Kind::whole, meaning, access);
    p.least = least;
    p.most = most;
    return p;
  }

  // An integer key that also accepts "auto", stored as kAutomatic.
  template <class Access>
  void whole_or_auto(const char* key, int64_t least, int64_t most, const char* meaning, Access access) {
    ConfigKey& p = whole(key, least, most, meaning, access);
    p.or_auto = true;
    p.get = [](const RunConfig& c) {
      const auto value = static_cast<int64_t>(*Access{}(c));
      return value == kAutomatic ? ConfigValue(std::string(kAutomaticWord)) : ConfigValue(value);
    };
    p.set = [](RunConfig& c, const ConfigValue& value) {
      const auto* number = std::get_if<int64_t>(&value);
      auto& field = *Access{}(c);
      field = static_cast<std::remove_reference_t<decltype(field)>>(number ? *number : kAutomatic);
    };
  }

  template <class Access>
  void real(const char* key, double low, double high, Ends ends, const char* meaning, Access access) {
    ConfigKey& p = plain<double>(key, Kind::real, meaning, access);
    p.low = low;
    p.high = high;
    p.above_low = ends == Ends::above_low;
    p.below_high = ends == Ends::below_high;
  }

  template <class Access>
  void truth(const char* key, const char* meaning, Access access) {
    plain<bool>(key, Kind::truth, meaning, access);
  }

  template <class Access>
  void text(const char* key, const char* meaning, Access access) {
    plain<std::string>(key, Kind::text, meaning, access);
  }

  // A choice is stored as its index in the list of names, which is the value of the enum.
  template <int count, class Access>
  void choice(const char* key, const char* meaning, Access) {
    using Enum = std::remove_reference_t<decltype(*Access{}(std::declval<RunConfig&>()))>;
    ConfigKey& p = add(key, Kind::choice, meaning);
    for (int i = 0; i < count; ++i) p.choices.emplace_back(to_string(static_cast<Enum>(i)));
    p.get = [](const RunConfig& c) { return ConfigValue(std::string(to_string(*Access{}(c)))); };
    p.set = [](RunConfig& c, const ConfigValue& value) {
      const auto& name = std::get<std::string>(value);
      for (int i = 0; i < count; ++i)
        if (name == to_string(static_cast<Enum>(i))) *Access{}(c) = static_cast<Enum>(i);
    };
  }

  ConfigKey& add(const char* key, Kind kind, const char* meaning) {
    ConfigKey& p = all_.emplace_back();
    p.section = name_;
    p.key = prefix_ + std::string(key);
    p.kind = kind;
    p.meaning = meaning + std::string(whose_);
    return p;
  }

 private:
  template <class Stored, class Access>
  ConfigKey& plain(const char* key, Kind kind, const char* meaning, Access) {
    ConfigKey& p = add(key, kind, meaning);
    p.get = [](const RunConfig& c) { return ConfigValue(static_cast<Stored>(*Access{}(c))); };
    p.set = [](RunConfig& c, const ConfigValue& value) {
      auto& field = *Access{}(c);
      field = static_cast<std::remove_reference_t<decltype(field)>>(std::get<Stored>(value));
    };
    return p;
  }

  std::vector<ConfigKey>& all_;
  const char *name_, *prefix_, *whose_;
};

template <class Gap>
void add_gap(Section s, Gap) {
  s.choice<4>("law", "distribution of gap lengths", [](auto& c) { return &Gap{}(c)->law; });
  s.whole("min", 0, kMaxGap, "shortest gap, frames", [](auto& c) { return &Gap{}(c)->min; });
  s.whole("max", 0, kMaxGap, "longest gap, frames", [](auto& c) { return &Gap{}(c)->max; });
  s.real("probability", 0, 1, Ends::closed, "probability that an element has a gap",
         [](auto& c) { return &Gap{}(c)->probability; });
  s.whole("start", 0, 1000000000, "first element that may have a gap", [](auto& c) { return &Gap{}(c)->start; });
  s.choice<2>("content", "what fills a gap", [](auto& c) { return &Gap{}(c)->content; });
  s.real("mu", -20, 20, Ends::closed, "mean of the log gap length (lognormal)", [](auto& c) { return &Gap{}(c)->mu; });
  s.real("sigma", 1e-3, 20, Ends::closed, "deviation of the log gap length (lognormal)",
         [](auto& c) { return &Gap{}(c)->sigma; });
}

void add_grammar(Section s) {
  s.whole("vocab", 2, 4096, "number of symbols, including the end symbol",
          [](auto& c) { return &c.grammar.build.vocab; });
  s.whole("ambiguities", 0, 4095, "number of ambiguous symbols, each emitted by several states",
          [](auto& c) { return &c.grammar.build.ambiguities; });
  s.whole("depth", 1, 65535, "states of an ambiguous symbol", [](auto& c) { return &c.grammar.build.depth; });
  s.real("density", 0, 1, Ends::above_low, "transition density; unset: 0.4 / depth",
         [](auto& c) { return &c.grammar.build.density; });
  s.whole("start_states", 1, 65535, "states a string may begin in",
          [](auto& c) { return &c.grammar.build.start_states; });
  s.whole("seed", 1, 0xFFFFFFFF, "seed of automaton, samples, gaps and noise; unset: run.seed",
          [](auto& c) { return &c.grammar.build.seed; });
  s.text("automaton", "JSON automaton to use instead, relative to the file that names it",
         [](auto& c) { return &c.grammar.automaton; });
}

void add_task(Section s) {
  s.text("kind", "kind of task: gaps (the paper's tasks) or another one; each kind has its own keys",
         [](auto& c) { return &c.task.kind; });
  s.whole("number", 0, 4,
          "number of the paper's task, which sets the defaults below; 0: sequences without gaps and noise",
          [](auto& c) { return &c.task.task.number; });
  s.whole("length", 1, 1000000, "elements per sample", [](auto& c) { return &c.task.length; });
  s.choice<2>("stream", "how samples are drawn", [](auto& c) { return &c.task.stream; });
  s.choice<2>("objective", "target of each frame: the current state, or the next symbol (predict)",
              [](auto& c) { return &c.task.task.objective; });
  s.real("noise", 0, 100, Ends::closed, "each channel of every frame + noise * U(0,1)",
         [](auto& c) { return &c.task.task.noise; });
}

void add_model(Section s) {
  s.text("name", "mixer; `selectivbench models` lists them", [](auto& c) { return &c.model.name; });
  s.whole("width", 1, 65536, "channels", [](auto& c) { return &c.model.width; });
  s.whole("layers", 1, 1024, "number of layers, each with one mixer", [](auto& c) { return &c.model.layers; });
  s.real("dropout", 0, 1, Ends::below_high, "dropout after each mixer", [](auto& c) { return &c.model.dropout; });
  s.choice<kResidualKinds>(
      "residual", "how a layer joins its input: post, h <- LN(h + f(h)); double, LN(2h + f(h)); pre, h + f(LN(h))",
      [](auto& c) { return &c.model.residual; });
}

void add_train(Section s) {
  s.whole("updates", 1, 1000000000, "optimiser steps", [](auto& c) { return &c.train.updates; });
  s.whole("batch", 1, 65536, "samples per update", [](auto& c) { return &c.train.batch; });
  s.whole_or_auto("accumulate", 1, 65536,
                  "micro-batches per update, a divisor of batch; auto: as few as fit into the GPU's memory",
                  [](auto& c) { return &c.train.accumulate; });
  s.real("lr", 0, 10, Ends::above_low, "largest learning rate", [](auto& c) { return &c.train.lr; });
  s.whole("warmup", 0, 1000000000, "updates of linear warm-up; unset: 476 of 3125, in proportion",
          [](auto& c) { return &c.train.warmup; });
  s.real("clip", 0, infinite, Ends::below_high, "largest global gradient norm; 0: no clipping",
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
  ConfigKey& schedule = s.add("schedule", Kind::schedule,
                              "keys of [task] that move over the updates: from a first value to the configured one, "
                              "reached after this share of the updates");
  schedule.get = [](const RunConfig& c) { return ConfigValue(schedule_text(c.train.schedule)); };
  schedule.set = [](RunConfig& c, const ConfigValue& value) {
    c.train.schedule = parse_schedule({std::get<std::string>(value), {}});
  };
}

void add_eval(Section s) {
  s.whole("every", 0, 1000000000, "updates between evaluations; 0: only at the end",
          [](auto& c) { return &c.eval.every; });
  s.whole("valid_samples", 1, 10000000, "samples of the valid split", [](auto& c) { return &c.eval.valid_samples; });
  s.whole("test_samples", 1, 10000000, "samples of the test split", [](auto& c) { return &c.eval.test_samples; });
  s.whole("batch", 1, 65536, "samples per forward pass", [](auto& c) { return &c.eval.batch; });
  ConfigKey& gaps = s.add("gaps", Kind::wholes,
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
  s.whole("ceiling_samples", 0, 10000000, "samples behind the exact ceiling; 0: no ceiling",
          [](auto& c) { return &c.eval.ceiling_samples; });
}

void add_quirks(Section s) {
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

void add_run(Section s) {
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
  add_gap({all, "task", "gap_", ", training"}, [](auto& c) { return &c.task.task.train; });
  add_gap({all, "task", "test_gap_", ", valid and test"}, [](auto& c) { return &c.task.task.test; });
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
