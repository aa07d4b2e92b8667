#include <gtest/gtest.h>

#include "../base/temporary_folder.h"
#include "base/file.h"
#include "base/sha256.h"
#include "model_rules.h"

namespace sb::test {
namespace {

std::string id(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return resolve_text(text, overrides).run_id;
}

TEST(RunId, IsDigestOfCanonicalConfig) {
  const auto config = resolve_text("");
  EXPECT_EQ(config.run_id, sha256_hex(config.canonical).substr(0, 16));
}

TEST(RunId, DoesNotDependOnSpelling) {
  const std::string plain = id("[train]\nlr = 0.001\nbatch = 64\n[task]\nnumber = 1\n");
  EXPECT_EQ(plain, id("[task]\nnumber = 1\n"));
  EXPECT_EQ(plain, id("task = {number = 1}\ntrain.lr = 1e-3\n"));
  EXPECT_EQ(plain, id("", {"task.number=1", "train.lr=10e-4"}));
  EXPECT_EQ(plain, id("[task]\nnumber = 1\ngap_law = 'constant'\ngap_min = 1\n"));
  EXPECT_EQ(plain, id("[task]\nnumber = 1\n[train]\nwarmup = 476\n[grammar]\ndensity = 0.01\n"));
  EXPECT_EQ(plain, id("[task]\nnumber = 1\n[run]\nseed = 1\n"));
  EXPECT_EQ(id("[run]\nseed = 5\n"), id("[grammar]\nseed = 5\n[train]\nseed = 5\n"));
  EXPECT_EQ(id("[model]\nname = 'gla'\nexpand_v = 2\n"), id("[model]\nname = 'gla'\nexpand_v = 2.0\n"));
  EXPECT_EQ(id("[train]\nclip = 0\n"), id("[train]\nclip = -0.0\n"));
  EXPECT_EQ(id("[eval]\ngaps = [20, 5, 10]\n"), id("[eval]\ngaps = [5, 10, 20]\n"));
  EXPECT_NE(id("[eval]\ngaps = [5, 10]\n"), id("[eval]\ngaps = [5, 10, 20]\n"));
  EXPECT_EQ(resolve_text("[eval]\ngaps = [20, 5]\n").values.eval.points, (std::vector<int>{5, 20}));
}

TEST(RunId, IgnoresKeysThatChangeNoNumber) {
  EXPECT_EQ(id(""), id("[run]\nlabel = 'x'\ncheckpoint_every = 5\n"));
  EXPECT_EQ(id("[task]\nnumber = 1\n"), id("[task]\nnumber = 1\ngap_max = 9\ngap_sigma = 3\n"));
  EXPECT_EQ(id(""), id("[task]\ngap_min = 3\n"));
}

// Keys without effect are stored with their defaults, so that existing runs keep their ids.
TEST(RunId, IgnoresKeysWithoutEffect) {
  const auto same = [](const std::string& base, const std::string& key) {
    const auto plain = resolve_text(base), changed = resolve_text(base, {key});
    const std::string name = key.substr(0, key.find('='));
    EXPECT_EQ(plain.run_id == changed.run_id, plain.keys_without_effect.contains(name)) << base << key;
    const std::string shown = config_toml(changed, true), line = "\n" + name.substr(name.find('.') + 1) + " = ";
    const size_t at = shown.find(line);
    EXPECT_EQ(shown.substr(at, shown.find('\n', at + 1) - at).find("has no effect here") != std::string::npos,
              plain.keys_without_effect.contains(name))
        << base << key;
    return plain.run_id == changed.run_id;
  };
  EXPECT_TRUE(same("", "eval.grid_samples=7"));
  EXPECT_FALSE(same("[eval]\ngaps = [3]\n", "eval.grid_samples=7"));
  EXPECT_TRUE(same("", "quirks.sum_accumulated=true"));
  EXPECT_FALSE(same("[train]\naccumulate = 2\n", "quirks.sum_accumulated=true"));
  EXPECT_TRUE(same("[train]\nwarmup = 0\n", "quirks.first_lr_zero=true"));
  EXPECT_FALSE(same("", "quirks.first_lr_zero=true"));
  EXPECT_TRUE(same("[model]\ndropout = 0\n", "train.dropout_until=78"));
  EXPECT_FALSE(same("[model]\ndropout = 0.2\n", "train.dropout_until=78"));
  EXPECT_EQ(id("[model]\ndropout = 0.2\n"), id("[model]\ndropout = 0.2\n[train]\ndropout_until = 5000\n"))
      << "dropout that outlasts the run is dropout in all of it";
  EXPECT_NE(resolve_text("").canonical.find("\"grid_samples\":1000"), std::string::npos);
}

TEST(RunId, EqualRunsHaveSameId) {
  const auto every = [](int updates, const std::string& value) {
    return id("[train]\nwarmup = 1\nupdates = " + std::to_string(updates) + "\n" +
              (value.empty() ? "" : "[eval]\nevery = " + value + "\n"));
  };
  for (const char* value : {"100", "101", "100000"}) EXPECT_EQ(every(100, value), every(100, "0")) << value;
  EXPECT_NE(every(100, "99"), every(100, "0"));
  EXPECT_NE(every(100, ""), every(100, "0")) << "the default acts";
  for (const char* value : {"0", "50", "78", "79"}) EXPECT_EQ(every(50, value), every(50, "")) << value;
  EXPECT_NE(resolve_text("[train]\nupdates = 50\nwarmup = 1\n[eval]\nevery = 0\n").canonical.find("\"every\":78"),
            std::string::npos)
      << "as runs whose config leaves it open always had it";
  EXPECT_NE(every(50, "49"), every(50, ""));

  const std::string single = "[grammar]\nambiguities = 0\ndensity = 0.3\n";
  EXPECT_EQ(id(single + "depth = 5\n"), id(single + "depth = 9\n"));
  EXPECT_EQ(id(single + "depth = 5\n"), id(single)) << "the default's";
  EXPECT_NE(id("[grammar]\nambiguities = 0\ndepth = 5\n"), id("[grammar]\nambiguities = 0\ndepth = 9\n"))
      << "the density follows from it";
  EXPECT_NE(id("[grammar]\nambiguities = 1\ndensity = 0.3\ndepth = 5\n"),
            id("[grammar]\nambiguities = 1\ndensity = 0.3\ndepth = 9\n"));

  const std::string never = "[task]\ngap_law = 'constant'\ngap_min = 2\ngap_probability = 0\n";
  EXPECT_EQ(id(never + "gap_content = 'forbidden_symbol'\n"), id(never));
  const std::string rarely = "[task]\ngap_law = 'constant'\ngap_min = 2\ngap_probability = 0.01\n";
  EXPECT_NE(id(rarely + "gap_content = 'forbidden_symbol'\n"), id(rarely));
}

// Explicit micro-batches round differently and are a different run; the value of "auto" is not known yet.
TEST(RunId, TreatsAccumulateAutoAsOne) {
  EXPECT_EQ(id(""), id("[train]\naccumulate = 'auto'\n"));
  EXPECT_EQ(id(""), id("[train]\naccumulate = 1\n"));
  EXPECT_NE(id(""), id("[train]\naccumulate = 2\n"));
  EXPECT_EQ(resolve_text("", {"train.accumulate=auto"}).values.train.accumulate, kAutomatic);
  EXPECT_NE(config_toml(resolve_text(""), false).find("\naccumulate = \"auto\"\n"), std::string::npos);
  EXPECT_NE(resolve_text("").canonical.find("\"accumulate\":1,"), std::string::npos);
}

// A value of the parameter, other than `now`, that fits the others in the test below.
std::string another_value(const ConfigKey& p, const std::string& now) {
  switch (p.kind) {
    case ConfigKey::Kind::truth:
      return "true";
    case ConfigKey::Kind::wholes:
      return "[7]";
    case ConfigKey::Kind::whole:
      return p.key == "vocab"             ? "44"
             : p.key == "number"          ? "4"
             : p.key.ends_with("gap_min") ? "7"
             : p.key.ends_with("gap_max") ? "20"
                                          : "16";
    case ConfigKey::Kind::real:
      return "0.25";
    case ConfigKey::Kind::text:
      return p.key == "name" ? "gla" : "word";
    case ConfigKey::Kind::schedule:
      return "{task.noise = {from = 0.1, over = 1}}";
    case ConfigKey::Kind::choice:
      break;
  }
  return toml_quoted(p.choices.front()) == now ? p.choices.back() : p.choices.front();
}

TEST(RunId, ChangesWithEveryIdentifyingParameter) {
  const std::string base =
      "[task]\nnumber = 2\ngap_law = 'lognormal'\ntest_gap_law = 'lognormal'\n[grammar]\nvocab = 45\n"
      "[train]\naccumulate = 4\n[eval]\ngaps = [3]\n[model]\ndropout = 0.2\n";
  const auto before = resolve_text(base);
  for (const auto& p : config_keys()) {
    const std::string value = p.name() == "train.device" ? "cuda" : another_value(p, toml_text(p.get(before.values)));
    if (p.name() == "grammar.automaton" || p.name() == "task.kind") continue;  // tests of their own
    std::vector<std::string> sets = {p.name() + "=" + value};
    if (p.name() == "train.device") sets.push_back("train.precision=fp32");
    const auto after = resolve_text(base, sets);
    ASSERT_NE(toml_text(p.get(after.values)), toml_text(p.get(before.values))) << sets.front();
    const bool default_of_others = p.name() == "run.seed" || p.name() == "run.protocol";
    const bool acts = !before.keys_without_effect.contains(p.name());  // padding_correct never does
    EXPECT_EQ(acts, p.name() != "quirks.padding_correct") << p.name();
    EXPECT_EQ(after.run_id != before.run_id, (p.identifies && acts) || default_of_others) << p.name();
  }
}

TEST(RunId, DependsOnAutomatonContentNotPath) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder.file("sub"));
  const std::string text = R"({"states": ["A", "#"], "start_states": ["A"], "transitions": [[0, 1, 1]]})";
  write_file_atomically(folder.file("a.json"), text);
  write_file_atomically(folder.file("sub/b.json"), text);
  write_file_atomically(folder.file("c.json"), text + "\n");
  const auto with = [&](const std::string& path) { return id("[grammar]\nautomaton = '" + path + "'\n"); };
  EXPECT_EQ(with(folder.file("a.json")), with(folder.file("sub/b.json")));
  EXPECT_EQ(with(folder.file("a.json")), with(folder.file("c.json"))) << "white space";
  write_file_atomically(folder.file("c.json"), R"({"states":["A","#"],
    "start_states":[ "A"],"transitions" : [[0,1,1]]})");
  EXPECT_EQ(with(folder.file("a.json")), with(folder.file("c.json"))) << "white space";
  write_file_atomically(folder.file("c.json"),
                        R"({"states": ["A ", "#"], "start_states": ["A "], "transitions": [[0, 1, 1]]})");
  EXPECT_NE(with(folder.file("a.json")), with(folder.file("c.json"))) << "a name";
  EXPECT_NE(with(folder.file("a.json")), id(""));
  EXPECT_NE(fault_of("[grammar]\nautomaton = 'missing.json'\n").find("[grammar.automaton]"), std::string::npos);
  EXPECT_NE(fault_of("[grammar]\nautomaton = 'missing.json'\n").find("run.toml:2:13"), std::string::npos);
  write_file_atomically(folder.file("sub/run.toml"), "[grammar]\nautomaton = 'b.json'\n");
  EXPECT_EQ(resolve_config(folder.file("sub/run.toml"), {}, rules()).run_id, with(folder.file("a.json")));
}

TEST(RunId, ReadsTheAutomatonOnce) {
  TemporaryFolder folder;
  const std::string text = R"({"states": ["A", "#"], "start_states": ["A"], "transitions": [[0, 1, 1]]})";
  write_file_atomically(folder.file("a.json"), text);
  const auto config = resolve_text("[grammar]\nautomaton = '" + folder.file("a.json") + "'\n");
  write_file_atomically(folder.file("a.json"), "something else");
  ASSERT_TRUE(config.values.grammar.file);
  EXPECT_EQ(config.values.grammar.file->text, text);
  EXPECT_EQ(config.values.grammar.file->sha256, sha256_hex(text));
  EXPECT_EQ(config.values.grammar.file->automaton.states(), 2);
  const std::string laid_out =
      "{\n  \"states\": [\"A\", \"#\"],\n  \"start_states\": [\"A\"],\n  \"transitions\": [[0, 1, 1]]\n}\n";
  EXPECT_NE(config.canonical.find(sha256_hex(laid_out)), std::string::npos);
  EXPECT_NE(fault_of("[grammar]\nautomaton = '" + folder.file("a.json") + "'\n").find("run.toml:2:13"),
            std::string::npos);
}

TEST(RunId, UsesResolvedNetworkIfKnown) {
  ModelRules telling = rules();
  telling.network = [](const RunConfig& config) {
    NetworkKeys keys{config.model.width == 648 ? 768 : config.model.width, {{"heads", "4"}, {"output_gate", "on"}}};
    for (const auto& [key, text] : config.model.switches) keys.switches[key] = text == "false" ? "off" : text;
    if (keys.switches["output_gate"] == "true") keys.switches["output_gate"] = "on";
    return keys;
  };
  const auto of = [&](const std::string& text) {
    return resolve(parse_settings("[model]\nname = 'gla'\n" + text, "run.toml"), telling, "run.toml").run_id;
  };
  EXPECT_EQ(of(""), of("output_gate = true\n"));
  EXPECT_NE(of(""), of("output_gate = false\n"));
  EXPECT_EQ(of("width = 648\n"), of("width = 768\n"));
  EXPECT_NE(of("width = 512\n"), of("width = 768\n"));
}

}  // namespace
}  // namespace sb::test
