#include "base/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

namespace sb {
namespace {

TEST(JsonWriter, WritesWhatAParserReadsBack) {
  for (const bool indent : {true, false}) {
    JsonWriter json(indent);
    json.begin_object().member("a", 1).member("b", -0.5).member("c", "x\"\\\n\x01\u00e9").member("d", true);
    json.key("e").begin_array().begin_array().end_array().begin_object().end_object().null().end_array();
    json.array("f", std::vector<int>{1, 2, 3}).member("g", std::nan("")).end_object();
    const auto back = nlohmann::json::parse(json.text());
    EXPECT_EQ(back["a"], 1);
    EXPECT_EQ(back["b"], -0.5);
    EXPECT_EQ(back["c"], "x\"\\\n\x01\u00e9");
    EXPECT_EQ(back["d"], true);
    EXPECT_EQ(back["e"].dump(), "[[],{},null]");
    EXPECT_EQ(back["f"].dump(), "[1,2,3]");
    EXPECT_TRUE(back["g"].is_null());
  }
}

TEST(JsonWriter, PutsMembersOnLinesOfTheirOwnAndKeepsArraysInLine) {
  JsonWriter json;
  json.begin_object().member("a", 1).array("b", std::vector<double>{0.1, 2}).end_object();
  EXPECT_EQ(json.text(), "{\n  \"a\": 1,\n  \"b\": [0.1, 2.0]\n}");
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
