// Settings to values: defaults that depend on other values, checks across parameters.

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/format.h"
#include "base/sha256.h"
#include "base/suggest.h"
#include "base/text.h"
#include "config/automaton_file.h"
#include "config/config_faults.h"
#include "config/config_file.h"
#include "config/protocol.h"
#include "grammar/build.h"
#include "grammar/sampler.h"

namespace sb {
namespace {

int64_t built_states(const GrammarConfig& g) {
  return int64_t{g.vocab} - g.ambiguities + int64_t{g.ambiguities} * g.depth;
}

class Resolver {
 public:
  Resolver(const Settings& settings, const ModelRules& rules, const std::string& name, AutomatonFiles* files = nullptr)
      : settings_(settings), rules_(rules), name_(name), files_(files) {}

  ResolvedConfig run() {
    faults_ = settings_.faults;
    take();
    if (!values().grammar.automaton.empty()) take_key("grammar.automaton", [&] { read_automaton(); });
    if (settings_.whole) {  // else what is missing would look wrong
      derive();
      check_across();
      check_reach();
      ask_switches();
      for (const auto& check : rules_.checks) ask(check);
      if (faults_.empty() && rules_.samples) attempt([&] { rules_.samples(values()); }, false);
    }
    end();
    return std::move(out_);
  }

  TaskSection run_task() {
    faults_ = settings_.faults;
    take();
    derive();
    check_task();
    end();
    return values().task;
  }

  RunConfig run_values() {
    take();
    derive();
    return values();
  }

 private:
  RunConfig& values() { return out_.values; }
  const RunConfig& values() const { return out_.values; }
  bool given(const std::string& name) const { return settings_.contains(name); }

  void take() {
    // These first: they are what defaults of others come from.
    take_key("task.kind", [&] { kind(); });
    for (const auto& p : config_keys())
      if (!foreign(p)) out_.origins.emplace(p.name(), Origin{});
    take_key("run.seed", [&] { seeds(); });
    take_key("task.number", [&] { task(); });
    take_key("model.name", [&] { apply("model.name"); });
    take_key("run.protocol", [&] { protocol(); });
    static const std::set<std::string> taken = {"run.seed", "task.kind", "task.number", "model.name", "run.protocol"};
    for (const auto& p : config_keys())
      if (!taken.contains(p.name()) && !foreign(p)) take_key(p.name(), [&] { apply(p.name()); });
    own_task_keys();
    switches();
  }

  template <class Act>
  void take_key(const std::string& name, const Act& act) {
    const size_t before = faults_.size();
    attempt(act);
    if (faults_.size() > before) bad_.insert(name);
  }

  // All of them at once, whatever else is wrong with the network.
  void ask_switches() {
    if (rules_.each_switch && !bad_.contains("model.name"))
      take_key("model.", [&] { attempt([&] { rules_.each_switch(values()); }, false); });
  }

  // What it says of a section whose values it did not get is left out.
  void ask(const std::function<void(const RunConfig&)>& check) {
    const auto before = static_cast<ptrdiff_t>(faults_.size());
    attempt([&] { check(values()); }, false);
    const auto unfounded = [&](const std::string& line) {
      return (line.starts_with("[model") && !good("model.")) || (line.starts_with("[train") && !good("train.device"));
    };
    faults_.erase(std::remove_if(faults_.begin() + before, faults_.end(), unfounded), faults_.end());
  }

  // No key that begins so was refused.
  bool good(const std::string& prefix) const {
    const auto found = bad_.lower_bound(prefix);
    return found == bad_.end() || !found->starts_with(prefix);
  }

  template <class Act>
  void attempt(const Act& act, bool placed = true) {
    try {
      act();
    } catch (const Error& error) {
      if (error.code() != Exit::bad_input) throw;
      const std::string lines = error.what();
      for (size_t from = 0; from <= lines.size();) {
        const size_t end = std::min(lines.find('\n', from), lines.size());
        const std::string line = lines.substr(from, end - from);
        faults_.push_back(placed ? line : line + ", " + place_of(line));
        from = end + 1;
      }
    }
  }

  // What a line "[section.key] …" speaks of.
  static std::string key_of(const std::string& line) {
    return line.starts_with("[") ? line.substr(1, line.find(']') - 1) : "";
  }

  // Where that was given.
  std::string place_of(const std::string& line) const {
    const std::string key = key_of(line);
    if (key.starts_with("model.")) return place({key, "model.width", "model.name"});
    if (key.starts_with("train.")) return place({key, "train.device"});
    if (key.starts_with("task.")) return place({key, "task.number"});
    if (key.starts_with("sample."))
      return place({"task." + key.substr(7), "grammar." + key.substr(7), "grammar.automaton"});
    return place({key, "grammar.automaton", "grammar.density", "grammar.depth", "task.length"});
  }

  void end() const {
    if (!faults_.empty()) throw ConfigFaults(joined(faults_, "\n"), key_of(faults_.front()));
  }

  void apply(const std::string& name) {
    const auto found = settings_.find(name);
    const ConfigKey* p = find_config_key(name);
    if (found == settings_.end() || !p) return;
    p->set(values(), parse_value(*p, found->second.value));
    out_.origins[name] = Origin{Origin::Kind::given, found->second.origin, ""};
  }

  void derived(const std::string& name, const std::string& cause) {
    Origin& origin = out_.origins[name];
    origin.kind = Origin::Kind::derived;
    origin.cause = cause;
  }

  // Whether only another kind of task reads the key.
  bool foreign(const ConfigKey& p) const { return !p.task_kind.empty() && p.task_kind != values().task.kind; }

  void kind() {
    apply("task.kind");
    RunConfig& c = values();
    attempt([&] { find_task(c.task.kind); }, false);
    if (!faults_.empty() && key_of(faults_.back()) == "task.kind") c.task.kind = kGapsKind;
    if (c.task.kind == kGapsKind) return;
    const TaskRow& row = find_task(c.task.kind);
    c.task.length = row.length;
    derived("task.length", "task.kind");
    for (const TaskKey& key : row.keys) {
      c.task.keys[key.name] = key.initial;
      out_.origins["task." + key.name] = Origin{};
    }
    if (row.axis) out_.origins["eval." + row.axis->key] = Origin{};
  }

  // Keys that the kind of task has for itself; those of other kinds are refused.
  void own_task_keys() {
    const TaskRow& row = find_task(values().task.kind);
    for (const auto& [name, setting] : settings_) {
      const ConfigKey* common = find_config_key(name);
      if (name.starts_with("model.") || (common && !foreign(*common))) continue;
      const auto own = find_own_key(row, name);
      if (!own) {
        refuse_foreign(row, name, setting);
        continue;
      }
      take_key(name, [&, &setting = setting] { take_own(*own, parse_value(*own, setting.value)); });
      out_.origins[name] = Origin{Origin::Kind::given, setting.origin, ""};
    }
  }

  void take_own(const ConfigKey& key, const ConfigValue& value) {
    if (const auto* points = std::get_if<std::vector<int64_t>>(&value)) {
      values().eval.points.assign(points->begin(), points->end());
    } else if (const auto* whole = std::get_if<int64_t>(&value)) {
      values().task.keys[key.key] = *whole;
    } else if (const auto* real = std::get_if<double>(&value)) {
      values().task.keys[key.key] = *real;
    } else {
      values().task.keys[key.key] = std::get<std::string>(value);
    }
  }

  void refuse_foreign(const TaskRow& row, const std::string& name, const Setting& setting) {
    if (bad_.contains("task.kind")) return;  // which kind has it is not known
    std::vector<std::string> known = {"task.length"};
    for (const TaskKey& key : row.keys) known.push_back("task." + key.name);
    if (row.axis) known.push_back("eval." + row.axis->key);
    const std::string hint =
        row.name == kGapsKind ? "is a key of another kind of task" : "keys of this kind: " + joined(known, ", ");
    faults_.push_back(
        formatted("[{}] has no effect with task.kind = {}; {}, {}", name, row.name, hint, setting.key.text()));
  }

  void seeds() {
    apply("run.seed");
    if (!given("run.seed")) return;
    values().grammar.build.seed = values().train.seed = values().run.seed;
    derived("grammar.seed", "run.seed");
    derived("train.seed", "run.seed");
  }

  void task() {
    if (values().task.kind != kGapsKind) return;
    apply("task.number");
    if (!given("task.number")) return;
    values().task.task = paper_task(values().task.task.number);
    for (const auto& p : config_keys())
      if (p.section == "task" && (p.key == "noise" || p.key.find("gap_") != std::string::npos))
        derived(p.name(), "task.number");
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
    for (const auto& [name, setting] : settings_) {
      if (!name.starts_with("model.") || find_config_key(name)) continue;
      const std::string key = name.substr(6);
      if (unknown_switch(key, setting)) continue;
      take_key(name, [&, &setting = setting] { values().model.switches[key] = switch_text(key, setting.value); });
      out_.origins[name] = Origin{Origin::Kind::given, setting.origin, ""};
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
      std::vector<std::string> own;  // of the model, where it is one
      for (const auto& row : rules_.table)
        if (row.model == values().model.name) own.push_back(row.key);
      hint = formatted(", expected {}", joined(nearest_first(key, own.empty() ? known : own), ", "));
    }
    faults_.push_back(formatted("[model] unknown key '{}'{}, {}", printable(key), hint, setting.key.text()));
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
    // Dropout that outlasts the run is dropout in all of it.
    const bool until_given = given("train.dropout_until") || c.run.protocol == Protocol::published;
    if (!until_given || c.train.dropout_until > c.train.updates) {
      c.train.dropout_until = c.train.updates;
      if (!given("train.dropout_until")) derived("train.dropout_until", "train.updates");
    }
    if (c.train.device == DeviceKind::automatic) {
      c.train.device = rules_.has_gpu && rules_.has_gpu() ? DeviceKind::cuda : DeviceKind::cpu;
      derived("train.device", "what this machine has");
    }
    if (!given("train.precision") && c.train.device == DeviceKind::cuda) {
      c.train.precision = Precision::amp;
      derived("train.precision", "train.device");
    }
    if (!given("eval.gaps") && c.task.task.number == 4) {
      c.eval.points.assign(kTask4TestGaps.begin(), kTask4TestGaps.end());
      derived("eval.gaps", "task.number");
    }
    derive_test_gaps();
  }

  // The paper tests tasks 2 and 4 at the longest training gap, the others with the law of training. What the file says
  // about training gaps moves the test gaps along, unless it speaks of those too.
  void derive_test_gaps() {
    const int number = values().task.task.number;
    const bool at_longest = number == 2 || number == 4;
    for (const char* key : {"law", "min", "max", "probability", "start", "content", "mu", "sigma"}) {
      const std::string part = key, test = "task.test_gap_" + part, train = "task.gap_" + part;
      if (given(test)) continue;
      const GapLaw law = values().task.task.test.law;
      const GapConfig& train_law = values().task.task.train;
      if (at_longest && part == "min" && (law == GapLaw::uniform || law == GapLaw::lognormal)) {
        find_config_key(test)->set(values(), int64_t{std::min(train_law.min, longest_gap(train_law))});
        derived(test, train);
      } else if (at_longest && (part == "min" || part == "max")) {
        at_longest_gap(test);
      } else if (given(train) && !(at_longest && part == "law")) {
        find_config_key(test)->set(values(), find_config_key(train)->get(values()));
        derived(test, train);
      }
    }
  }

  void at_longest_gap(const std::string& test) {
    for (const char* cause : {"task.gap_max", "task.gap_min", "task.gap_law"}) {
      if (!given(cause)) continue;
      find_config_key(test)->set(values(), int64_t{longest_gap(values().task.task.train)});
      derived(test, cause);
      return;
    }
  }

  // Where the first of these was given; the config's name if none was.
  std::string place(std::initializer_list<std::string> names) const {
    for (const auto& name : names)
      if (const auto found = settings_.find(name); found != settings_.end()) return found->second.value.place.text();
    return Place{name_, 1, 1}.text();
  }

  // `names`: all that the condition depends on; where one of them was refused, it says nothing.
  void refuse_unless(bool holds, const std::string& where, const std::string& what,
                     std::initializer_list<std::string> names) {
    if (std::any_of(names.begin(), names.end(), [&](const auto& name) { return bad_.contains(name); })) return;
    if (!holds) faults_.push_back("[" + where + "] " + what + ", " + place(names));
  }

  void check_across() {
    check_grammar();
    check_task();
    const TrainSection& t = values().train;
    refuse_unless(t.accumulate == kAutomatic || t.batch % t.accumulate == 0, "train.accumulate",
                  formatted("{} does not divide batch ({})", t.accumulate, t.batch),
                  {"train.accumulate", "train.batch"});
    refuse_unless(t.warmup < t.updates, "train.warmup",
                  formatted("expected less than updates ({}), got {}", t.updates, t.warmup),
                  {"train.warmup", "train.updates"});
    const bool gpu_only = t.precision == Precision::tf32 || t.precision == Precision::amp;
    refuse_unless(!gpu_only || t.device == DeviceKind::cuda, "train.precision",
                  formatted("{} needs device cuda, expected fp32 or fp64 on the cpu", to_string(t.precision)),
                  {"train.precision", "train.device"});
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

  void check_gap(const std::string& prefix, const GapConfig& gap) {
    const std::string name = "task." + prefix;
    const bool ranged = gap.law == GapLaw::uniform || gap.law == GapLaw::lognormal;
    refuse_unless(
        !ranged || gap.min <= gap.max, name + "min",
        formatted("{}min ({}) > {}max ({})", prefix, gap.min, prefix, gap.max),
        {name + "min", name + "max", "task.gap_min", "task.gap_max", name + "law", "task.gap_law", "task.number"});
    refuse_unless(gap.law == GapLaw::none || gap.start <= values().task.length, name + "start",
                  formatted("expected at most length ({}), got {}", values().task.length, gap.start),
                  {name + "start", "task.gap_start", "task.length", name + "law", "task.gap_law", "task.number"});
  }

  void check_task() {
    const size_t before = faults_.size();
    check_gap("gap_", values().task.task.train);
    const bool follows = std::none_of(settings_.begin(), settings_.end(),
                                      [](const auto& each) { return each.first.starts_with("task.test_gap_"); });
    if (faults_.size() == before || !follows) check_gap("test_gap_", values().task.task.test);
    if (faults_.size() == before && good("task.")) attempt([&] { check(values().task.task); }, false);
  }

  void read_automaton() {
    auto& grammar = values().grammar;
    auto known = files_ ? (*files_)[grammar.automaton] : nullptr;
    if (!known) known = read_automaton_file(grammar.automaton, settings_.at("grammar.automaton").value.place);
    if (files_) (*files_)[grammar.automaton] = known;
    grammar.file = known;
  }

  // The table behind the exact filter and the direct stream.
  void check_reach() {
    const GrammarSection& g = values().grammar;
    if (!good("grammar.") || values().task.kind != kGapsKind) return;
    const int64_t states = g.file ? g.file->automaton.states() : built_states(g.build);
    if (states > kMaxStates) return;
    const int64_t entries = (int64_t{values().task.length} + 1) * states;
    refuse_unless(entries <= kMaxReachEntries, "task.length",
                  formatted("a table of {} lengths times {} states, expected at most {} entries, got {}",
                            values().task.length + 1, states, kMaxReachEntries, entries),
                  {"task.length", "grammar.automaton", "grammar.depth", "grammar.vocab"});
  }

  const Settings& settings_;
  const ModelRules& rules_;
  std::string name_;
  AutomatonFiles* files_;
  ResolvedConfig out_;
  std::vector<std::string> faults_;
  std::set<std::string> bad_;  // keys whose values were refused; they keep their defaults
};

}  // namespace

ResolvedConfig resolve(const Settings& settings, const ModelRules& rules, const std::string& name,
                       AutomatonFiles* files) {
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
