// Settings to values: defaults that depend on other values, checks across parameters, the canonical form.
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/json_writer.h"
#include "base/number.h"
#include "base/sha256.h"
#include "base/suggest.h"
#include "base/text.h"
#include "grammar/build.h"
#include "runs/config_file.h"

namespace sb {
namespace {

constexpr size_t largest_automaton = size_t{1} << 30;

// One spelling a value: 2, 2.0 and "2" are the same switch.
std::string switch_text(const std::string& text) {
  if (const auto whole = parse_integer(text)) return std::to_string(*whole);
  const auto real = parse_finite(text);
  if (!real) return text;
  if (*real == static_cast<double>(static_cast<int64_t>(std::clamp(*real, -1e15, 1e15))))
    return std::to_string(static_cast<int64_t>(*real));
  return shortest(*real);
}

std::string switch_text(const std::string& key, const TomlValue& value) {
  if (const auto* truth = std::get_if<bool>(&value.content)) return *truth ? "true" : "false";
  if (const auto* whole = std::get_if<int64_t>(&value.content)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value.content)) return switch_text(shortest(*real));
  if (const auto* text = value.text(); text && text->size() <= 4096 && text->find('\0') == std::string::npos)
    return switch_text(*text);
  throw bad_input("model." + printable(key), fmt::format("wrong kind of value, expected a number, a truth value or "
                                                         "text, got {}, {}",
                                                         kind_name(value), value.place.text()));
}

class Resolver {
 public:
  Resolver(const Settings& settings, const ModelRules& rules, const std::string& name)
      : settings_(settings), rules_(rules), name_(name) {}

  ResolvedConfig run() {
    for (const auto& p : parameters()) out_.origins[p.name()] = Origin{};
    seeds();
    task();
    for (const auto& p : parameters()) apply(p.name());
    switches();
    derive();
    check_across();
    check_model();
    if (!values().grammar.automaton.empty()) digest_automaton();
    return std::move(out_);
  }

 private:
  RunConfig& values() { return out_.values; }
  bool given(const std::string& name) const { return settings_.contains(name); }

  void apply(const std::string& name) {
    const auto found = settings_.find(name);
    const ConfigKey* p = find_parameter(name);
    if (found == settings_.end() || !p) return;
    p->set(values(), parse_value(*p, found->second.value));
    out_.origins[name] = Origin{Origin::Kind::given, found->second.origin, ""};
  }

  void derived(const std::string& name, const std::string& cause) {
    Origin& origin = out_.origins[name];
    origin.kind = Origin::Kind::derived;
    origin.cause = cause;
  }

  void seeds() {
    apply("run.seed");
    if (!given("run.seed")) return;
    values().grammar.build.seed = values().train.seed = values().run.seed;
    derived("grammar.seed", "run.seed");
    derived("train.seed", "run.seed");
  }

  void task() {
    apply("task.number");
    if (!given("task.number")) return;
    values().task.task = paper_task(values().task.task.number);
    for (const auto& p : parameters())
      if (p.section == "task" && (p.key == "noise" || p.key.find("gap_") != std::string::npos))
        derived(p.name(), "task.number");
  }

  void switches() {
    for (const auto& [name, setting] : settings_) {
      if (!name.starts_with("model.") || find_parameter(name)) continue;
      const std::string key = name.substr(6);
      const auto& known = rules_.switches;
      if (!known.empty() && std::find(known.begin(), known.end(), key) == known.end()) {
        std::vector<std::string> all = known;
        for (const auto& p : parameters())
          if (p.section == "model") all.push_back(p.key);
        throw bad_input(
            "model", fmt::format("unknown key '{}'{}, {}", printable(key), did_you_mean(key, all), setting.key.text()));
      }
      values().model.switches[key] = switch_text(key, setting.value);
      out_.origins[name] = Origin{Origin::Kind::given, setting.origin, ""};
    }
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
    if (!given("train.precision") && c.train.device == DeviceKind::cuda) {
      c.train.precision = Precision::amp;
      derived("train.precision", "train.device");
    }
    if (!given("eval.gaps") && c.task.task.number == 4) {
      c.eval.gaps.assign(kTask4TestGaps.begin(), kTask4TestGaps.end());
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
      const std::string part = key;
      const std::string test = "task.test_gap_" + part;
      const bool length = part == "min" || part == "max";
      const std::string train = "task.gap_" + (at_longest && length ? "max" : part);
      if (given(test) || !given(train) || (at_longest && part == "law")) continue;
      find_parameter(test)->set(values(), find_parameter(train)->get(values()));
      derived(test, train);
    }
  }

  // Where the first of these was given; the config's name if none was.
  std::string place(std::initializer_list<std::string> names) const {
    for (const auto& name : names)
      if (const auto found = settings_.find(name); found != settings_.end()) return found->second.value.place.text();
    return Place{name_, 1, 1}.text();
  }

  void refuse_unless(bool good, const std::string& where, const std::string& what,
                     std::initializer_list<std::string> names) const {
    if (!good) throw bad_input(where, what + ", " + place(names));
  }

  void check_across() {
    check_grammar();
    check_gap("gap_", values().task.task.train);
    check_gap("test_gap_", values().task.task.test);
    try {
      check(values().task.task);
    } catch (const Error& error) {
      throw Error(error.code(), std::string(error.what()) + ", " + place({"task.number"}));
    }
    const TrainSection& t = values().train;
    refuse_unless(t.batch % t.accumulate == 0, "train.accumulate",
                  fmt::format("{} does not divide batch ({})", t.accumulate, t.batch),
                  {"train.accumulate", "train.batch"});
    refuse_unless(t.warmup < t.updates, "train.warmup",
                  fmt::format("expected less than updates ({}), got {}", t.updates, t.warmup),
                  {"train.warmup", "train.updates"});
    const bool gpu_only = t.precision == Precision::tf32 || t.precision == Precision::amp;
    refuse_unless(!gpu_only || t.device == DeviceKind::cuda, "train.precision",
                  fmt::format("{} needs device cuda, expected fp32 or fp64 on the cpu", to_string(t.precision)),
                  {"train.precision", "train.device"});
    const auto& gaps = values().eval.gaps;
    refuse_unless(std::set<int>(gaps.begin(), gaps.end()).size() == gaps.size(), "eval.gaps",
                  "expected different gap lengths, got one twice", {"eval.gaps"});
  }

  void check_grammar() {
    const GrammarConfig& g = values().grammar.build;
    if (!values().grammar.automaton.empty()) return;
    refuse_unless(g.ambiguities < g.vocab, "grammar.ambiguities",
                  fmt::format("expected at most vocab - 1 ({}), got {}", g.vocab - 1, g.ambiguities),
                  {"grammar.ambiguities", "grammar.vocab"});
    const int64_t states = int64_t{g.vocab} - g.ambiguities + int64_t{g.ambiguities} * g.depth;
    refuse_unless(states <= kMaxStates, "grammar.depth",
                  fmt::format("{} states, expected at most {}", states, kMaxStates),
                  {"grammar.depth", "grammar.ambiguities", "grammar.vocab"});
    refuse_unless(g.start_states < states, "grammar.start_states",
                  fmt::format("expected at most {} of {} states, got {}", states - 1, states, g.start_states),
                  {"grammar.start_states", "grammar.depth", "grammar.vocab"});
  }

  void check_gap(const std::string& prefix, const GapConfig& gap) {
    const std::string name = "task." + prefix;
    const bool ranged = gap.law == GapLaw::uniform || gap.law == GapLaw::lognormal;
    refuse_unless(!ranged || gap.min <= gap.max, name + "min",
                  fmt::format("{}min ({}) > {}max ({})", prefix, gap.min, prefix, gap.max),
                  {name + "min", name + "max", "task.gap_min", "task.gap_max", name + "law", "task.gap_law"});
    refuse_unless(gap.law == GapLaw::none || gap.start <= values().task.length, name + "start",
                  fmt::format("expected at most length ({}), got {}", values().task.length, gap.start),
                  {name + "start", "task.gap_start", "task.length"});
  }

  // The models room says "[model.KEY] what"; the place of KEY belongs behind it.
  void check_model() {
    if (!rules_.check) return;
    try {
      rules_.check(values().model);
    } catch (const Error& error) {
      const std::string line = error.what();
      const std::string key = line.starts_with("[") ? line.substr(1, line.find(']') - 1) : "";
      throw Error(error.code(), line + ", " + place({key, "model.name", "model.width"}));
    }
  }

  void digest_automaton() {
    const Place& from = settings_.at("grammar.automaton").value.place;
    out_.automaton_digest =
        sha256_hex(read_text(values().grammar.automaton, largest_automaton, "grammar.automaton", from));
  }

  const Settings& settings_;
  const ModelRules& rules_;
  std::string name_;
  ResolvedConfig out_;
};

// A parameter that the values of others silence has no part in the id.
bool acts(const ResolvedConfig& config, const ConfigKey& p) {
  if (!p.identifies) return false;
  if (p.section == "grammar" && p.key != "seed") {
    const bool built = config.values.grammar.automaton.empty();
    return p.key == "automaton" ? !built : built;
  }
  const bool test = p.key.starts_with("test_gap_");
  if (p.section != "task" || !(test || p.key.starts_with("gap_"))) return true;
  const GapConfig& gap = test ? config.values.task.task.test : config.values.task.task.train;
  const std::string part = p.key.substr(test ? 9 : 4);
  if (part == "law") return true;
  if (gap.law == GapLaw::none) return false;
  if (part == "max") return gap.law != GapLaw::constant;
  if (part == "mu" || part == "sigma") return gap.law == GapLaw::lognormal;
  return true;
}

std::string canonical_json(const ResolvedConfig& config, const ModelRules& rules) {
  std::map<std::string, std::map<std::string, std::string>> sections;
  for (const auto& p : parameters()) {
    if (!acts(config, p)) continue;
    const bool automaton = p.name() == "grammar.automaton";
    sections[p.section][p.key] = automaton ? json_quoted(config.automaton_digest) : json_text(p.get(config.values));
  }
  const ModelSection& model = config.values.model;
  const auto switches = rules.essential ? rules.essential(model) : model.switches;
  for (const auto& [key, text] : switches) sections["model"]["switch " + key] = json_quoted(text);
  std::string out = fmt::format("{{\"format\":{}", config_format);
  for (const auto& [section, keys] : sections) {
    std::vector<std::string> members;
    for (const auto& [key, text] : keys) members.push_back(fmt::format("{}:{}", json_quoted(key), text));
    out += fmt::format(",{}:{{{}}}", json_quoted(section), fmt::join(members, ","));
  }
  return out + "}";
}

}  // namespace

ResolvedConfig resolve(const Settings& settings, const ModelRules& rules, const std::string& name) {
  ResolvedConfig config = Resolver(settings, rules, name).run();
  config.canonical = canonical_json(config, rules);
  config.run_id = sha256_hex(config.canonical).substr(0, 16);
  return config;
}

}  // namespace sb
