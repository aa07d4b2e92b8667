#include "store/result.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "../base/expect.h"
#include "base/error.h"
#include "random_result.h"

namespace sb::test {
namespace {

using Json = nlohmann::ordered_json;

Result smallest() {
  Result r;
  r.run_id = "0123456789abcdef";
  r.status = "done";
  r.model = "mamba";
  r.width = r.layers = r.states = 1;
  return r;
}

std::string refusal(const std::string& text) {
  const std::string line = error_line([&] { parse_result(text, "runs/x/result.json"); });
  EXPECT_TRUE(line.starts_with("[result] ") && line.ends_with("runs/x/result.json") && lacks(line, "\n"))
      << line << ": " << text.substr(0, 200);
  return line;
}

TEST(Result, RoundTripsEveryField) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Result result = RandomResult(seed).make();
    const std::string text = result_text(result);
    const Result again = parse_result(text, "r");
    ASSERT_EQ(to_json(again).dump(), to_json(result).dump()) << seed;
    ASSERT_EQ(result_text(again), text);
    ASSERT_EQ(again.run_seed, result.run_seed);
  }
}

TEST(Result, OmitsUnmeasuredValues) {
  const Result again = parse_result(result_text(smallest()), "r");
  EXPECT_FALSE(again.test);
  EXPECT_FALSE(again.valid);
  EXPECT_FALSE(again.state_size);
  EXPECT_FALSE(again.topological_entropy);
  EXPECT_FALSE(again.baselines);
  EXPECT_FALSE(again.made);
  const Json json = to_json(smallest());
  for (const char* key : {"test", "valid", "grid", "gates", "baselines", "state_size", "topological_entropy", "made"})
    EXPECT_FALSE(json.contains(key)) << key;
  Result measured = smallest();
  measured.test.emplace().split = "test";
  measured.test->samples = 1;
  EXPECT_FALSE(parse_result(result_text(measured), "r").test->ceiling);
  EXPECT_FALSE(parse_result(result_text(measured), "r").test->kl);
}

TEST(Result, ComparableTextExcludesOnlyProvenance) {
  Result a = RandomResult(7).make(), b = a;
  a.made = RandomResult(1).made();
  b.made = RandomResult(2).made();
  EXPECT_EQ(comparable_text(a), comparable_text(b));
  EXPECT_NE(result_text(a), result_text(b));
  const auto digest = [](const Result& r) {
    return Json::parse(result_text(r)).at("numbers_sha256").get<std::string>();
  };
  EXPECT_EQ(digest(a), digest(b));
  b.chance = a.chance / 2;
  EXPECT_NE(digest(a), digest(b));
}

TEST(Result, RejectsOtherSchemasByNumber) {
  EXPECT_TRUE(has(refusal(R"({"run_id":"x","status":"done","ceiling":0.9})"), "schema 1, this program reads 3"));
  EXPECT_TRUE(has(refusal(R"({"schema":4})"), "schema 4, this program reads 3"));
  try {
    parse_result(R"({"run_id":"x","status":"done"})", "r");
    FAIL();
  } catch (const OtherSchema& other) {
    EXPECT_EQ(other.schema(), 1);
  }
}

TEST(Result, NamesValuesOfWrongTypeOrSize) {
  const auto changed = [](const char* path, Json value) {
    Json json = to_json(RandomResult(3).make());
    Measurement m = RandomResult(5).measurement();
    Result with = smallest();
    with.test = m;
    with.test->ceiling = CeilingFigure{0.5, 0.1, 0.6, {}, true, 10};
    with.baselines = BaselineFigures{0.1, {}, {0.2, 0.3}, 2, 0.01, 10, 10};
    with.gates = GateFigures{{{0, "decay", 0, 1, false, {{1, 2}, 0.5, 3}, {}}}, {}, {}};
    json = to_json(with);
    json[Json::json_pointer(path)] = std::move(value);
    return refusal(json.dump());
  };
  EXPECT_TRUE(has(changed("/test/accuracy", 1.0000000000000004), "test.accuracy: expected 0.0..1.0"));
  EXPECT_TRUE(has(changed("/test/accuracy", "0.5"), "test.accuracy"));
  EXPECT_TRUE(has(changed("/test/accuracy", nullptr), "test.accuracy"));
  EXPECT_TRUE(has(changed("/test/ceiling", 0.9), "test.ceiling: expected an object"));
  EXPECT_TRUE(has(changed("/test/ceiling/exact", 1), "test.ceiling.exact: expected true or false"));
  EXPECT_TRUE(has(changed("/test", Json::array()), "test: expected an object"));
  EXPECT_TRUE(has(changed("/model", 3), "model: expected text"));
  EXPECT_TRUE(has(changed("/model", std::string(5000, 'x')), "model: expected text"));
  EXPECT_TRUE(has(changed("/width", -1), "width: expected an integer"));
  EXPECT_TRUE(has(changed("/width", 1.5), "width"));
  EXPECT_TRUE(has(changed("/params", uint64_t{1} << 63), "params"));
  EXPECT_TRUE(has(changed("/run_seed", -1), "run_seed"));
  EXPECT_TRUE(has(changed("/status", "odd"), "status: expected done or diverged"));
  EXPECT_TRUE(has(changed("/grid", 5), "grid: expected a list"));
  Result measured = smallest();
  measured.test = RandomResult(5).measurement();
  measured.test->at = 20;
  const Json point = to_json(measured)["test"];
  EXPECT_TRUE(has(changed("/grid", {point, point}), "grid: expected every gap once"));
  EXPECT_TRUE(has(changed("/files", Json::array()), "files"));
  EXPECT_TRUE(has(changed("/files/x", 1), "files"));
  EXPECT_TRUE(has(changed("/gates/gates/0/data/counts", {1, 1}), "gates: expected counts that add up"));
  EXPECT_TRUE(has(changed("/baselines/n", 3), "baselines: expected n among n_gram"));
  EXPECT_TRUE(has(changed("/baselines/n", 0), "baselines.n: expected an integer"));
  EXPECT_TRUE(has(changed("/schema", "2"), "schema"));
}

TEST(Result, RejectsHostileTextInOneLine) {
  for (const char* text : {"", "{", "[]", "null", "{\"schema\":2}", "{\"schema\":2,\"schema\":2}", "{}", "\xff\xfe"})
    refusal(text);
  EXPECT_TRUE(has(refusal("{\"schema\":2,\"grid\":" + std::string(3'000'000, '[')), "nested deeper"));
  EXPECT_TRUE(has(refusal("{\"a\":" + std::string(200'000, '{')), "nested deeper"));
  EXPECT_TRUE(has(refusal(std::string(kMaxResultBytes + 1, ' ')), "at most"));
  std::string many = "{\"schema\":2,\"grid\":[0";
  for (int i = 0; i < 600'000; ++i) many += ",0";
  EXPECT_TRUE(has(refusal(many + "]}"), "more than"));
  Json points = to_json(smallest());
  for (int i = 0; i < 5000; ++i) points["grid"].push_back(Json::object());
  EXPECT_TRUE(has(refusal(points.dump()), "grid: expected a list of at most 4096"));
  EXPECT_NE(refusal(R"({"schema":2,"run_id":1e999})").size(), 0U);
  Json twice = to_json(smallest());
  std::string text = twice.dump();
  text.insert(1, "\"width\":7,");
  EXPECT_TRUE(has(refusal(text), "same key twice"));
}

TEST(Result, MutatedTextIsParsedOrRejectedInOneLine) {
  std::mt19937_64 engine(1);
  const std::vector<std::string> scraps = {
      "[",  "]",     "{",     "}",   ",",    ":",       "\"",   "null",
      "-1", "1e308", "1e999", "0.5", "true", "\\u0000", "\xff", "18446744073709551616"};
  int accepted = 0;
  for (int n = 0; n < 3000; ++n) {
    std::string text = result_text(RandomResult(static_cast<uint64_t>(n % 30)).make());
    for (auto changes = engine() % 3; changes < 3; ++changes) {
      const size_t at = engine() % text.size();
      const auto kind = engine() % 3;
      if (kind == 0) text[at] = static_cast<char>(engine());
      if (kind == 1) text.erase(at, 1 + engine() % 20);
      if (kind == 2) text.insert(at, scraps[engine() % scraps.size()]);
    }
    try {
      const Result result = parse_result(text, "runs/x/result.json");
      EXPECT_EQ(result_text(parse_result(result_text(result), "again")), result_text(result));
      ++accepted;
    } catch (const Error&) {
      refusal(text);
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 3000);
}

TEST(Result, ConfigIsFlattenedCanonicalConfig) {
  const auto map = config_map(R"({"format":1,"eval":{"gaps":[1,2]},"train":{"lr":1e-05,"clip":1.0,"seed":7,)"
                              R"("name":"a\"b","on":true}})");
  const std::map<std::string, std::string> expected = {
      {"format", "1"},     {"eval.gaps", "[1,2]"},       {"train.lr", "1e-05"}, {"train.clip", "1.0"},
      {"train.seed", "7"}, {"train.name", "\"a\\\"b\""}, {"train.on", "true"}};
  EXPECT_EQ(map, expected);
}

}  // namespace
}  // namespace sb::test
