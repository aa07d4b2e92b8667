#include "base/json.h"
#include "base/json_layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

namespace sb {
namespace {

TEST(Json, RoundTripsThroughParser) {
  const Json json = {{"a", 1},
                     {"b", -0.5},
                     {"c", "x\"\\\n\x01\u00e9"},
                     {"d", true},
                     {"f", {1, 2, 3}},
                     {"g", std::nan("")},
                     {"e", Json::array({Json::array(), Json::object(), nullptr})}};
  for (const std::string& text : {json_line(json), json_document(json), json_document(json, 3)}) {
    const auto back = nlohmann::json::parse(text);
    EXPECT_EQ(back["a"], 1);
    EXPECT_EQ(back["b"], -0.5);
    EXPECT_EQ(back["c"], "x\"\\\n\x01\u00e9");
    EXPECT_EQ(back["d"], true);
    EXPECT_EQ(back["e"].dump(), "[[],{},null]");
    EXPECT_EQ(back["f"].dump(), "[1,2,3]");
    EXPECT_TRUE(back["g"].is_null());
  }
}

TEST(Json, WritesOuterMembersOnePerLineInInsertionOrder) {
  const Json json = {{"b", 1}, {"a", {0.1, 2.0}}, {"c", {{"d", Json::array()}}}};
  EXPECT_EQ(json_document(json), "{\n  \"b\": 1,\n  \"a\": [0.1, 2.0],\n  \"c\": {\"d\": []}\n}\n");
  EXPECT_EQ(json_document(json, 2),
            "{\n  \"b\": 1,\n  \"a\": [\n    0.1,\n    2.0\n  ],\n  \"c\": {\n    \"d\": []\n  }\n}\n");
  EXPECT_EQ(json_line(json), "{\"b\": 1, \"a\": [0.1, 2.0], \"c\": {\"d\": []}}");
}

TEST(JsonLaidOut, NormalizesWhiteSpaceToDocumentLayout) {
  const Json value = {{"a, b: [", 1.5},
                      {"list", {1, 2, Json::array({3, "}\\\""})}},
                      {"none", Json::array()},
                      {"empty", Json::object()},
                      {"inner", {{"x", nullptr}}},
                      {"last", true}};
  const std::string document = json_document(value);
  EXPECT_EQ(json_laid_out(document), document);
  EXPECT_EQ(json_laid_out(value.dump()), document);
  EXPECT_EQ(json_laid_out("\t" + value.dump(7) + "\r\n\n"), document);
  EXPECT_EQ(json_laid_out(" [ ] "), "[]\n");
  EXPECT_EQ(json_laid_out(" 1 "), "1\n");
}

TEST(JsonQuoted, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(json_quoted("a\xFFz"), "\"a\xEF\xBF\xBDz\"");
  for (const char* bad : {"\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC3", "\xF5\x80\x80\x80"}) {
    EXPECT_TRUE(nlohmann::json::accept(json_quoted(bad))) << bad;
  }
  EXPECT_EQ(json_quoted("\xF0\x9F\x98\x80"), "\"\xF0\x9F\x98\x80\"");
}

}  // namespace
}  // namespace sb
