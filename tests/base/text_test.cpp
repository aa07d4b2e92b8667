#include "base/text.h"

#include <gtest/gtest.h>

#include "base/suggest.h"

namespace sb {
namespace {

TEST(Printable, EscapesControlBytes) {
  EXPECT_EQ(printable("plain"), "plain");
  EXPECT_EQ(printable("a\x1b[31m\n\xff"), "a\\x1b[31m\\x0a\\xff");
  EXPECT_EQ(printable(std::string(100, 'x'), 10), "xxxxxxxxxx...");
}

TEST(OneLine, KeepsLettersAndEscapesControlCharacters) {
  EXPECT_EQ(one_line("runs/\u00e4\u00f6 \u6f22\U0001F600"), "runs/\u00e4\u00f6 \u6f22\U0001F600");
  EXPECT_EQ(one_line("a\x1b[2J\nb\r\x7f"), "a\\x1b[2J\\x0ab\\x0d\\x7f");
  EXPECT_EQ(one_line("\u0085\u202e\u2028"), "\\xc2\\x85\\xe2\\x80\\xae\\xe2\\x80\\xa8");
  for (const char* broken : {"\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"})
    EXPECT_EQ(one_line(broken).find_first_not_of("\\x0123456789abcdef"), std::string::npos) << one_line(broken);
  EXPECT_EQ(one_line(std::string(5000, 'x')).size(), 5000U);
}

TEST(SpreadsheetSafe, PrefixesFormulasWithApostrophe) {
  for (const char* text : {"=HYPERLINK(1)", "+cmd", "-1+1", "@SUM(1)", "\t=1", "\r=1", "-", "--1"})
    EXPECT_EQ(spreadsheet_safe(text), std::string("'") + text);
  for (const char* text : {"", "gla", "a=1", "-1", "-0.5", "-1e-05", " =1", "'=1"})
    EXPECT_EQ(spreadsheet_safe(text), text);
}

TEST(TextTable, KeepsARowOnItsLine) {
  TextTable table({"name"});
  table.row({"a\nb\x1b"});
  EXPECT_EQ(table.text(), "name\n----------\na\\x0ab\\x1b\n");
}

TEST(TextTable, AlignsColumnsByDisplayWidth) {
  TextTable table({"name", "value"});
  table.row({"a", "1.5"});
  table.row({"\u00e4\u00f6", "12.25"});
  EXPECT_EQ(table.text(), "name  value\n----  -----\na       1.5\n\u00e4\u00f6    12.25\n");
  TextTable bare({}, "ll");
  bare.row({"states", "5"});
  bare.row({"x", "10"});
  EXPECT_EQ(bare.text(), "states  5\nx       10\n");
}

TEST(Nearest, CorrectsTyposWithoutGuessing) {
  const std::vector<std::string> names = {"grammar", "generate", "show", "ceiling", "bench"};
  EXPECT_EQ(nearest("gramar", names), "grammar");
  EXPECT_EQ(nearest("genrate", names), "generate");
  EXPECT_EQ(nearest("zzzzzz", names), "");
  EXPECT_EQ(nearest(std::string(5000, 'a'), names), "");
  EXPECT_EQ(did_you_mean("shwo", names), ", did you mean show?");
  EXPECT_EQ(did_you_mean("qqqq", names), "");
}

TEST(EditDistance, CountsInsertionsDeletionsAndReplacements) {
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("same", "same"), 0U);
}

TEST(JoinOr, ReadsAsASentence) {
  EXPECT_EQ(join_or({"a"}), "a");
  EXPECT_EQ(join_or({"a", "b"}), "a or b");
  EXPECT_EQ(join_or({"a", "b", "c"}), "a, b or c");
}

TEST(JoinSome, CountsTheRest) {
  EXPECT_EQ(join_some({"a", "b", "c"}, 3), "a, b or c");
  EXPECT_EQ(join_some({"a", "b", "c", "d"}, 2), "a, b or one of 2 others");
}

TEST(Split, GivesOneMorePartThanSeparators) {
  EXPECT_EQ(split("", ','), std::vector<std::string>{""});
  EXPECT_EQ(split("a", ','), std::vector<std::string>{"a"});
  EXPECT_EQ(split(",a,,b,", ','), (std::vector<std::string>{"", "a", "", "b", ""}));
}

TEST(LastLine, IsTheLastNonBlankLine) {
  EXPECT_EQ(last_line(""), "");
  EXPECT_EQ(last_line(" \n\n"), "");
  EXPECT_EQ(last_line("one"), "one");
  EXPECT_EQ(last_line("one\n two \r\n \n"), " two");
}

TEST(Counted, UsesSingularForOne) {
  EXPECT_EQ(counted(1, "run"), "1 run");
  EXPECT_EQ(counted(0, "run"), "0 runs");
}

}  // namespace
}  // namespace sb
