// Resolves settings to values: derived defaults and checks across keys.

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/format.h"
#include "base/sha256.h"
#include "base/suggest.h"
#include "base/text.h"
#include "config/automaton_file.h"
#include "config/gaps_keys.h"
#include "config/protocol.h"
#include "config/task_keys.h"
#include "config/task_schedule.h"
#include "grammar/build.h"
#include "grammar/sampler.h"

namespace sb {
namespace {

int64_t built_states(const GrammarConfig& g) {
  return int64_t{g.vocab} - g.ambiguities + int64_t{g.ambiguities} * g.depth;
}

// The steps of resolving, in order; task_keys.h and gaps_keys.h have those for keys of one kind of task.
class Resolver : private ConfigDraft {
 public:
  Resolver(const Settings& asked, const ModelRules& rules, const std::string& file, ConfigFiles* files = nullptr)
      : ConfigDraft(asked, file), rules_(rules), files_(files) {}

  ResolvedConfig run() {
    faults = settings.faults;
    take();
    if (!values().grammar.automaton.empty()) take_key("grammar.automaton", [&] { read_automaton(); });
    read_files();
    if (settings.whole) {  // otherwise missing values would look like faults
      derive();
      check_across();
      check_reach();
      ask_switches();
      for (const auto& check : rules_.checks) ask(check);
      if (faults.empty() && rules_.samples) attempt([&] { rules_.samples(values()); }, false);
    }
    end();
    return std::move(out);
  }

  TaskSection run_task() {
    faults = settings.faults;
    take();
    derive();
    check_gaps(*this);
    end();
    return values().task;
  }

  RunConfig run_values() {
    take();
    derive();
    return values();
  }

 private:
  void take() {
    // First the keys from which defaults of other keys follow.
    take_key("task.kind", [&] { take_kind(*this); });
    for (const auto& p : config_keys())
      if (!foreign(p)) out.origins.emplace(p.name(), Origin{});
    take_key("run.seed", [&] { seeds(); });
    take_key("task.number", [&] { take_task_number(*this); });
    take_key("model.name", [&] { apply("model.name"); });
    take_key("run.protocol", [&] { protocol(); });
    static const std::set<std::string> taken = {"run.seed", "task.kind", "task.number", "model.name", "run.protocol"};
    for (const auto& p : config_keys())
      if (!taken.contains(p.name()) && !foreign(p)) take_key(p.name(), [&] { apply(p.name()); });
    take_own_keys(*this);
    switches();
  }

  // Reports the faults of all switches, even if the network has other faults.
  void ask_switches() {
    if (rules_.each_switch && !refused.contains("model.name"))
      take_key("model.", [&] { attempt([&] { rules_.each_switch(values()); }, false); });
  }

  // Runs a check, and drops faults in sections whose own values were already refused.
  void ask(const std::function<void(const RunConfig&)>& check) {
    const auto before = static_cast<ptrdiff_t>(faults.size());
    attempt([&] { check(values()); }, false);
    const auto unfounded = [&](const std::string& line) {
      return (line.starts_with("[model") && !good("model.")) || (line.starts_with("[train") && !good("train.device")) ||
             (line.starts_with("[task.") && !good("task."));
    };
    faults.erase(std::remove_if(faults.begin() + before, faults.end(), unfounded), faults.end());
  }

  void seeds() {
    apply("run.seed");
    if (!given("run.seed")) return;
    values().grammar.build.seed = values().train.seed = values().run.seed;
    derived("grammar.seed", "run.seed");
    derived("train.seed", "run.seed");
  }

  void protocol() {
    apply("run.protocol");
    for (const auto& [key, value] : protocol_settings(values().run.protocol, values().model.name)) {
      const ConfigKey& p = *find_config_key(key);
      if (p.get(values()) == value) continue;
      p.set(values(), value);
      derived(key, "run.protocol");
    }
  }

  void switches() {
    for (const auto& [each, setting] : settings) {
      if (!each.starts_with("model.") || find_config_key(each)) continue;
      const std::string key = each.substr(6);
      if (unknown_switch(key, setting)) continue;
      take_key(each, [&, &setting = setting] { values().model.switches[key] = switch_text(key, setting.value); });
      out.origins[each] = Origin{Origin::Kind::given, setting.origin, ""};
    }
  }

  bool unknown_switch(const std::string& key, const Setting& setting) {
    const auto& known = rules_.switches;
    if (known.empty() || std::find(known.begin(), known.end(), key) != known.end()) return false;
    std::vector<std::string> all = known;
    for (const auto& p : config_keys())
      if (p.section == "model") all.push_back(p.key);
    std::string hint = did_you_mean(key, all);
    if (hint.empty()) {
      std::vector<std::string> own;  // switches of this model, if it exists
      for (const auto& row : rules_.table)
        if (row.model == values().model.name) own.push_back(row.key);
      hint = formatted(", expected {}", joined(nearest_first(key, own.empty() ? known : own), ", "));
    }
    faults.push_back(formatted("[model] unknown key '{}'{}, {}", printable(key), hint, setting.key.text()));
    return true;
  }

  void derive() {
    RunConfig& c = values();
    if (!given("grammar.density")) {
      c.grammar.build.density = 0.4 / c.grammar.build.depth;
      derived("grammar.density", "0.4 / grammar.depth");
    }
    if (!given("train.warmup") && given("train.updates")) {
      c.train.warmup = c.train.updates * 476 / 3125;
      derived("train.warmup", "476/3125 of train.updates");
    }
    // If dropout_until exceeds the number of updates, it means the whole run.
    const bool until_given = given("train.dropout_until") || c.run.protocol == Protocol::published;
    if (!until_given || c.train.dropout_until > c.train.updates) {
      c.train.dropout_until = c.train.updates;
      if (!given("train.dropout_until")) derived("train.dropout_until", "train.updates");
    }
    if (c.train.device == DeviceKind::automatic) {
      c.train.device = rules_.has_gpu && rules_.has_gpu() ? DeviceKind::cuda : DeviceKind::cpu;
      derived("train.device", "the devices of this machine");
    }
    if (!given("train.precision") && c.train.device == DeviceKind::cuda) {
      c.train.precision = Precision::amp;
      derived("train.precision", "train.device");
    }
    if (!given("eval.gaps") && c.task.task.number == 4) {
      c.eval.points.assign(kTask4TestGaps.begin(), kTask4TestGaps.end());
      derived("eval.gaps", "task.number");
    }
    derive_test_gaps(*this);
    derive_schedule(*this);
  }

  void check_across() {
    check_grammar();
    check_gaps(*this);
    const TrainSection& t = values().train;
    refuse_unless(t.accumulate == kAutomatic || t.batch % t.accumulate == 0, "train.accumulate",
                  formatted("{} does not divide batch ({})", t.accumulate, t.batch),
                  {"train.accumulate", "train.batch"});
    refuse_unless(t.warmup < t.updates, "train.warmup",
                  formatted("expected less than updates ({}), got {}", t.updates, t.warmup),
                  {"train.warmup", "train.updates"});
    const bool gpu_only = t.precision == Precision::tf32 || t.precision == Precision::amp;
    refuse_unless(!gpu_only || t.device == DeviceKind::cuda, "train.precision",
                  formatted("{} requires device cuda; use fp32 or fp64 on the CPU", to_string(t.precision)),
                  {"train.precision", "train.device"});
    check_schedule(*this);
    const auto& points = values().eval.points;
    const auto& axis = find_task(values().task.kind).axis;
    if (!axis) return;
    refuse_unless(std::set<int>(points.begin(), points.end()).size() == points.size(), "eval." + axis->key,
                  "expected different values, got one twice", {"eval." + axis->key});
  }

  void check_grammar() {
    const GrammarConfig& g = values().grammar.build;
    if (!values().grammar.automaton.empty() || !good("grammar.automaton")) return;
    refuse_unless(g.ambiguities < g.vocab, "grammar.ambiguities",
                  formatted("expected at most vocab - 1 ({}), got {}", g.vocab - 1, g.ambiguities),
                  {"grammar.ambiguities", "grammar.vocab"});
    const int64_t states = built_states(g);
    refuse_unless(states <= kMaxStates, "grammar.depth",
                  formatted("{} states, expected at most {}", states, kMaxStates),
                  {"grammar.depth", "grammar.ambiguities", "grammar.vocab"});
    refuse_unless(g.start_states < states, "grammar.start_states",
                  formatted("expected at most {} of {} states, got {}", states - 1, states, g.start_states),
                  {"grammar.start_states", "grammar.depth", "grammar.vocab", "grammar.ambiguities"});
  }

  void read_automaton() {
    auto& grammar = values().grammar;
    auto known = files_ ? files_->automata[grammar.automaton] : nullptr;
    if (!known) known = read_automaton_file(grammar.automaton, settings.at("grammar.automaton").value.place);
    if (files_) files_->automata[grammar.automaton] = known;
    grammar.file = known;
  }

  void read_files() {
    ConfigFiles own;
    for (const TaskKey& key : find_task(values().task.kind).keys) {
      const std::string key_name = "task." + key.name;
      if (!key.file || refused.contains(key_name)) continue;
      take_key(key_name, [&] { read_task_file(values().task, key.name, settings, name, files_ ? *files_ : own); });
    }
  }

  // Bounds the ReachTable (grammar/reach.h), which the exact filter and the direct stream use.
  void check_reach() {
    const GrammarSection& g = values().grammar;
    if (!good("grammar.") || values().task.kind != kGapsKind) return;
    const int64_t states = g.file ? g.file->automaton.states() : built_states(g.build);
    if (states > kMaxStates) return;
    int64_t length = values().task.length;
    for (const auto& each : values().train.schedule)
      if (each.key == "length") length = std::max(length, static_cast<int64_t>(std::clamp(each.from, 0.0, 1e6)));
    const int64_t entries = (length + 1) * states;
    refuse_unless(entries <= kMaxReachEntries, "task.length",
                  formatted("a table of {} lengths times {} states, expected at most {} entries, got {}", length + 1,
                            states, kMaxReachEntries, entries),
                  {"task.length", "train.schedule", "grammar.automaton", "grammar.depth", "grammar.vocab"});
  }

  const ModelRules& rules_;
  ConfigFiles* files_;
};

}  // namespace

ResolvedConfig resolve(const Settings& settings, const ModelRules& rules, const std::string& name, ConfigFiles* files) {
  ResolvedConfig config = Resolver(settings, rules, name, files).run();
  config.keys_without_effect = idle_keys(config.values);
  if (rules.unread)
    for (const auto& key : rules.unread(config.values)) config.keys_without_effect.insert(key);
  config.canonical = canonical_json(config, rules);
  config.run_id = sha256_hex(config.canonical).substr(0, 16);
  return config;
}

TaskSection resolve_task(const Settings& settings, const std::string& name) {
  return Resolver(settings, {}, name).run_task();
}

RunConfig tentative_values(const Settings& settings, const ModelRules& rules) {
  return Resolver(settings, rules, "").run_values();
}

}  // namespace sb
