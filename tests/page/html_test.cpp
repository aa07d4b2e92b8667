#include "page/html.h"

#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/sha256.h"
#include "made_up.h"

namespace sb::test {
namespace {

namespace fs = std::filesystem;

PageParts plain_parts() {
  PageParts parts;
  parts.html = "<head>{{CSP}}<title>{{TITLE}}</title>{{STYLE}}</head><body>{{DATA}}{{NOTICES}}{{SCRIPTS}}</body>";
  parts.css = "body { color: red }";
  parts.scripts = {{"a.js", "const a = '</script>' + '<!--';"}, {"b.js", "{{TITLE}} is not looked into"}};
  parts.notices = {{"vega 6.0", "BSD-3-Clause", "Copyright <someone> & others"}};
  return parts;
}

std::string between(const std::string& text, const std::string& begin, const std::string& end, size_t from = 0) {
  const size_t at = text.find(begin, from) + begin.size();
  return text.substr(at, text.find(end, at) - at);
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Html, CspHashesMatchKnownValues) {
  EXPECT_EQ(csp_hash(""), "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='");
  EXPECT_EQ(csp_hash("doSomething();"), "'sha256-" + base64(sha256_bytes("doSomething();")) + "'");
}

// Every script and style of the page stands in the policy by the digest of what is between its tags, and no other.
void expect_policy_fits(const std::string& page) {
  const std::string policy = between(page, "http-equiv=\"Content-Security-Policy\" content=\"", "\"");
  size_t scripts = 0;
  for (size_t at = page.find("<script>"); at != std::string::npos; at = page.find("<script>", at + 1), ++scripts)
    EXPECT_NE(policy.find(csp_hash(between(page, "<script>", "</script>", at))), std::string::npos);
  EXPECT_NE(policy.find("style-src " + csp_hash(between(page, "<style>", "</style>")) + ";"), std::string::npos);
  EXPECT_EQ(count(policy, "'sha256-"), scripts + 1);
  EXPECT_TRUE(policy.starts_with("default-src 'none'; "));
  const std::string script_rule = between(policy, "script-src", ";");
  EXPECT_EQ(script_rule.find("unsafe"), std::string::npos);
  EXPECT_NE(policy.find("connect-src 'none'"), std::string::npos);
}

TEST(Html, PolicyNamesEveryScriptAndStyle) {
  expect_policy_fits(html_page(plain_parts(), "t", {{"a", 1}}, false));
}

TEST(Html, EscapesDataAndDoesNotExpandMarkersInParts) {
  const std::string page = html_page(plain_parts(), "<b>&\"", {{"text", "{{SCRIPTS}} </script> \u2028 &"}}, false);
  EXPECT_NE(page.find("<title>&lt;b&gt;&amp;&quot;</title>"), std::string::npos);
  EXPECT_NE(page.find("{{TITLE}} is not looked into"), std::string::npos);
  EXPECT_NE(page.find(R"("{{SCRIPTS}} \u003c/script\u003e \u2028 \u0026")"), std::string::npos) << page;
  EXPECT_NE(page.find(R"('<\/script>' + '<\!--')"), std::string::npos);
  EXPECT_NE(page.find("Copyright &lt;someone&gt; &amp; others"), std::string::npos);
  EXPECT_EQ(count(page, "</script>"), 3U);
}

TEST(Html, RejectsTemplateWithMissingOrRepeatedMarker) {
  PageParts parts = plain_parts();
  parts.html += "{{DATA}}";
  EXPECT_EQ(error_line([&] { html_page(parts, "t", {}, false); }),
            "[page] expected the marker {{DATA}} once in the template");
  parts.html = "{{CSP}}";
  EXPECT_THROW(html_page(parts, "t", {}, false), Error);
}

TEST(Html, LivePagesMayConnectOnlyToTheirServer) {
  const std::string page = html_page(plain_parts(), "t", {}, true);
  EXPECT_NE(page.find("connect-src 'self'"), std::string::npos);
}

TEST(Html, BuiltInTemplateIsFilledAndMatchesItsPolicy) {
  const PageParts& parts = built_in_parts();
  const std::string page = html_page(parts, "t", {{"a", 1}}, false);
  expect_policy_fits(page);
  EXPECT_EQ(page.find("{{"), std::string::npos);
  const std::string outside = parts.html;
  for (const char* part : {" onclick=", " onload=", "javascript:", "http://", "https://", "<script", "<style"})
    EXPECT_EQ(outside.find(part), std::string::npos) << part;
  EXPECT_EQ(parts.charts, !parts.notices.empty());
  EXPECT_FALSE(parts.citation.empty());
}

TEST(Html, EscapesHostileText) {
  TemporaryFolder root;
  const std::string nasty = "<script>broken=1</script><!--\"'&{{DATA}}";
  const ResolvedConfig config = resolve_text("[run]\nlabel = \"\"\"" + std::string("<script>alert(1)<\\u002fscript>") +
                                             "\\u202e\\u0007'&\"\"\"\n");
  finish_run(root.file("<script>evil(1)\xE2\x80\xAE\x01 \"'&" + std::string(100, 'x')), config, rich_result(config));
  Result other = rich_result(small_config("gla", 2));
  other.made->device = nasty + std::string(3000, 'y');
  other.made->version = "\xff\xfe</script>";
  other.gates->gates[0].gate = nasty.substr(0, 40);
  finish_run(root.file("b"), small_config("gla", 2), other);
  PageData data = page_of(root.file(""), root.file(""));
  data.title = nasty;
  const std::string page = html_of(data);
  const std::string block = between(page, "<script type=\"application/json\" id=\"data\">", "</script>");
  EXPECT_EQ(block.find_first_of("<>&"), std::string::npos);
  for (const char c : block) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20);
  const Json read = Json::parse(block);
  EXPECT_EQ(read["meta"]["title"], nasty);
  EXPECT_EQ(page.find("<script>broken"), std::string::npos);
  EXPECT_EQ(page.find("evil(1)\xE2\x80\xAE"), std::string::npos) << "what turns text round is written out";
  EXPECT_EQ(count(page, "<script>"), built_in_parts().scripts.size());
  expect_policy_fits(page);
  for (const auto& figure : data.figures)
    EXPECT_EQ(figure.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos) << figure.id;
}

TEST(Html, SameFolderGivesSameBytes) {
  TemporaryFolder root;
  for (const int seed : {1, 2}) finish_small(root.file(""), "gla", seed);
  const std::string once = html_of(page_of(root.file("")));
  fs::last_write_time(root.file(small_config("gla", 1).run_id), fs::file_time_type::clock::now());
  EXPECT_EQ(once, html_of(page_of(root.file(""))));
}

}  // namespace
}  // namespace sb::test
