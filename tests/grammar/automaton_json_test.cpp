#include "grammar/automaton_json.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "../base/expect.h"
#include "base/error.h"
#include "base/file.h"
#include "grammar/build.h"
#include "grammar/check.h"
#include "grammar/figures.h"

namespace sb {
namespace {

using nlohmann::json;

const json kCoin = json::parse(R"({
  "states": ["A0", "A1", "B", "#"], "start_states": ["A1", "B"],
  "transitions": [[1, 3, 0.5], [1, 0, 0.5], [0, 2, 1.0], [2, 3, 1]]})");

std::string refusal(const std::string& text) {
  const std::string line = error_line([&] { static_cast<void>(automaton_from_json(text, "my.json")); });
  EXPECT_TRUE(lacks(line, "\n") && has(line, "my.json") && line.size() < 400) << line;
  return line;
}

// The coin with one key changed.
std::string refusal(const std::string& key, const json& value) {
  json changed = kCoin;
  changed[key] = value;
  return refusal(changed.dump());
}

void expect_says(const std::string& line, const std::string& says) {
  EXPECT_TRUE(has(line, says)) << "expected to read: " << says << "\ngot";
}

TEST(AutomatonJson, RequiresOnlyStatesStartsAndTransitions) {
  const Automaton a = automaton_from_json(kCoin.dump(), "my.json");
  check(a);
  EXPECT_EQ(a.vocab, 3);
  EXPECT_EQ(a.symbol, (std::vector<int32_t>{1, 1, 2, 0}));
  EXPECT_EQ(a.id, (std::vector<int32_t>{1, 2, 3, 0})) << "by class, then by order, '#' first";
  EXPECT_EQ(a.start, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(a.row, (std::vector<int32_t>{0, 1, 3, 4, 4}));
  EXPECT_EQ(a.dst, (std::vector<int32_t>{2, 0, 3, 3})) << "sorted by source and destination";
}

TEST(AutomatonJson, ReadsSymbolsIdsAndVocab) {
  json file = kCoin;
  file["symbols"] = {7, 2, 2, 0};
  file["vocab"] = 9;
  file["state_ids"] = {{"#", 0}, {"A0", 3}, {"A1", 1}, {"B", 2}};
  file["comment"] = "mine";
  file["seed"] = nullptr;
  const Automaton a = automaton_from_json(file.dump(), "my.json");
  EXPECT_EQ(a.vocab, 9);
  EXPECT_EQ(a.symbol, (std::vector<int32_t>{7, 2, 2, 0}));
  EXPECT_EQ(a.id, (std::vector<int32_t>{3, 1, 2, 0}));
}

TEST(AutomatonJson, RoundTrips) {
  for (const auto& [vocab, ambiguities, depth] : {std::array{6, 2, 3}, {41, 40, 10}, {70, 60, 2}}) {
    GrammarConfig config;
    config.vocab = vocab;
    config.ambiguities = ambiguities;
    config.depth = depth;
    const auto a = build_automaton(config);
    const std::string text = automaton_to_json(*a, config, figures(*a, 200));
    const Automaton b = automaton_from_json(text, "my.json");
    EXPECT_EQ(b.names, a->names);
    EXPECT_EQ(b.symbol, a->symbol);
    EXPECT_EQ(b.id, a->id);
    EXPECT_EQ(b.start, a->start);
    EXPECT_EQ(b.row, a->row);
    EXPECT_EQ(b.dst, a->dst);
    EXPECT_EQ(b.prob, a->prob);
    EXPECT_EQ(b.vocab, a->vocab);
    json bare = json::parse(text);
    bare.erase("symbols");
    bare.erase("state_ids");
    const Automaton c = automaton_from_json(bare.dump(), "my.json");
    EXPECT_EQ(c.symbol, a->symbol) << "names alone tell the symbols, beyond 52 letters too";
    EXPECT_EQ(c.id, a->id);
  }
}

TEST(AutomatonJson, DerivesAmbiguityAndDepthWithoutParameters) {
  const Automaton a = automaton_from_json(kCoin.dump(), "my.json");
  const json out = json::parse(automaton_to_json(a, std::nullopt, figures(a, 200)));
  EXPECT_EQ(out["ambiguities"], 1);
  EXPECT_EQ(out["depth"], 2);
  EXPECT_TRUE(out["seed"].is_null());
}

TEST(HostileJson, WithWrongTypesIsRejected) {
  expect_says(refusal(""), "not JSON");
  expect_says(refusal("{"), "my.json:1:");
  expect_says(refusal("[]"), "expected an object, got an array");
  expect_says(refusal("7"), "expected an object");
  expect_says(refusal("null"), "expected an object");
  expect_says(refusal(kCoin.dump() + "x"), "not JSON");
  expect_says(refusal(kCoin.dump() + kCoin.dump()), "not JSON");
  expect_says(refusal("{\"states\": [\"\xff\"]}"), "not JSON");
  expect_says(refusal("{\n\n  \"states\": nonsense"), "my.json:3:");
  expect_says(refusal(std::string(200'000, '[')), "got an array");
  expect_says(refusal("{\"states\": " + std::string(200'000, '[')), "states[]: expected a string, got an array");
  expect_says(refusal("{\"seed\": {\"a\": 1}}"), "seed: expected a number or a string, got an object");
  expect_says(refusal("{\"a\": 1}"), "'a' is not part of an automaton");
  expect_says(refusal("{\"start_stats\": []}"), "did you mean start_states?");
  expect_says(refusal("{\"seed\": 1, \"seed\": 2}"), "'seed' occurs twice");
  expect_says(refusal("{\"seed\": true}"), "got true or false");
  for (const char* key : {"states", "start_states", "transitions"}) {
    json file = kCoin;
    file.erase(key);
    expect_says(refusal(file.dump()), "'" + std::string(key) + "' is missing");
    expect_says(refusal(key, 5), std::string(key) + ": expected an array, got 5");
    expect_says(refusal(key, nullptr), std::string(key) + ": expected an array, got null");
    expect_says(refusal(key, "x"), std::string(key) + ": expected an array, got a string");
    expect_says(refusal(key, json::object()), std::string(key) + ": expected an array, got an object");
  }
}

TEST(HostileJson, WithInvalidStatesIsRejected) {
  expect_says(refusal("states", json::array()), "'#' is missing");
  expect_says(refusal("states", {"A0", "A1", "B", "C"}), "'#' is missing");
  expect_says(refusal("states", {"A0", "A1", "A0", "#"}), "'A0' occurs twice");
  expect_says(refusal("states", {"A0", "A1", "", "#"}), "1 to 64 bytes");
  expect_says(refusal("states", {"A0", "A1", std::string(65, 'x'), "#"}), "1 to 64 bytes");
  expect_says(refusal("states", {"A0", "A1", "B\x1b", "#"}), "control characters");
  expect_says(refusal("states", {"A0", "A1", "7", "#"}), "no symbol in the name '7'");
  expect_says(refusal("states", {"A0", "A1", "zzzzzzzzz", "#"}), "no symbol in the name");
  expect_says(refusal("states", {"A0", 5, "B", "#"}), "expected a string, got 5");
  std::string many = "{\"states\": [\"#\"";
  for (int i = 0; i < 65'536; ++i) many += ",\"A" + std::to_string(i) + "\"";
  expect_says(refusal(many + "]}"), "at most 65535");
}

TEST(HostileJson, WithInvalidSymbolsOrIdsIsRejected) {
  expect_says(refusal("symbols", {1, 1, 2}), "expected one for each of 4 states, got 3");
  expect_says(refusal("symbols", {1, 1, 0, 0}), "class 0 belongs to '#'");
  expect_says(refusal("symbols", {1, 1, 2, 3}), "class 0 belongs to '#'");
  expect_says(refusal("symbols", {1, 1, -2, 0}), "got -2");
  expect_says(refusal("symbols", {1, 1, 40'000, 0}), "got 40000");
  expect_says(refusal("symbols", {1, 1, 1.5, 0}), "expected a whole number, got 1.5");
  expect_says(refusal("vocab", 2), "more than the largest class 2, got 2");
  expect_says(refusal("vocab", 4'000'000'000LL), "got 4000000000");
  expect_says(refusal("vocab", 18446744073709551615ULL), "got 18446744073709551615");
  expect_says(refusal("vocab", "many"), "vocab: expected a whole number");
  expect_says(refusal("state_ids", {{"#", 0}, {"A0", 1}, {"A1", 1}, {"B", 2}}), "each once, got 1");
  expect_says(refusal("state_ids", {{"#", 0}, {"A0", 1}, {"A1", 9}, {"B", 2}}), "got 9");
  expect_says(refusal("state_ids", {{"#", 1}, {"A0", 0}, {"A1", 3}, {"B", 2}}), "state_ids['#']: expected 0");
  expect_says(refusal("state_ids", {{"#", 0}, {"A0", 1}, {"A1", 3}}), "no id for 'B'");
  expect_says(refusal("state_ids", {{"#", 0}, {"X", 1}}), "no such state");
  expect_says(refusal("state_ids", {{"#", "x"}}), "expected a whole number, got a string");
  expect_says(refusal("state_ids", json::array()), "expected an object of name: id");
  expect_says(refusal("{\"state_ids\": {\"A\": 1, \"A\": 2}}"), "'A' occurs twice");
}

TEST(HostileJson, WithTooLargeTablesIsRejected) {
  std::string many = "{\"vocab\": 32000, \"start_states\": [\"A0\"], \"transitions\": [], \"states\": [\"#\"";
  for (int i = 0; i < 20'000; ++i) many += ",\"A" + std::to_string(i) + "\"";
  expect_says(refusal(many + "]}"), "states x vocab");
}

TEST(HostileJson, WithInvalidStartStatesIsRejected) {
  expect_says(refusal("start_states", json::array()), "at least one");
  expect_says(refusal("start_states", {"#"}), "'#' cannot start");
  expect_says(refusal("start_states", {"X"}), "no state 'X'");
  expect_says(refusal("start_states", {"B", "B"}), "'B' occurs twice");
}

TEST(HostileJson, WithInvalidTransitionsIsRejected) {
  const auto with = [](const json& edge) {
    json edges = kCoin["transitions"];
    edges.push_back(edge);
    return refusal("transitions", edges);
  };
  expect_says(with({0, 9, 0.5}), "transitions[4]: expected indices below 4, got 0 -> 9");
  expect_says(with({-1, 0, 0.5}), "got -1");
  expect_says(with({99999999999LL, 0, 0.5}), "got 99999999999");
  expect_says(with({0, 0.5, 0.5}), "expected [source index, destination index, probability], got 0.5");
  expect_says(with({0, 0}), "got 2 numbers");
  expect_says(with({0, 0, 0.5, 1}), "more than 3 numbers");
  expect_says(with({0, 0, "x"}), "got a string");
  expect_says(with({0, 0, -0.5}), "expected a probability in (0, 1], got -0.5");
  expect_says(with({0, 0, 0}), "got 0.0");
  expect_says(with({0, 0, 2}), "got 2.0");
  expect_says(with({0, 0, nullptr}), "got null");
  expect_says(with(5), "transitions[4]: expected [source");
  expect_says(with({3, 0, 1}), "nothing may follow it");
  expect_says(with({2, 3, 1}), "'B' -> '#' occurs twice");
  expect_says(with({2, 2, 0.25}), "out of 'B' to sum to 1, got 1.25");
  expect_says(refusal("{\"transitions\": [[0, 1, NaN]]}"), "not JSON");
  expect_says(refusal("{\"transitions\": [[0, 1, 1e999]]}"), "not JSON");
  expect_says(refusal("transitions", {{1, 3, 1}, {0, 2, 1}}), "no exit from state 'B'");
  expect_says(refusal("transitions", {{1, 3, 1}, {0, 2, 1}, {2, 0, 1}}), "no path from state 'A0' to '#'");
}

TEST(ReadAutomaton, RejectsMissingFile) {
  EXPECT_THROW(static_cast<void>(read_automaton("no/such/file.json")), Error);
}

// Seeds of the fuzz target and inputs that once broke a reader: each must be either read or rejected.
TEST(FuzzCorpus, IsReadOrRejected) {
  for (const auto& entry : std::filesystem::directory_iterator(SB_SOURCE_DIR "/tests/fuzz/corpus/automaton_json")) {
    try {
      check(read_automaton(entry.path().string()));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::bad_input) << entry.path();
    }
  }
}

}  // namespace
}  // namespace sb
