// Text of a claims file or of a run for Markdown, and the number formats of the findings.
#pragma once
#include <string>

namespace sb {

std::string cell(const std::string& text);  // one line, markup escaped
std::string code(const std::string& text);  // between backticks
std::string share(double value);            // ".526"
std::string signed_points(double value);    // "+1.2" for .012
std::string capitalised(std::string text);  // first letter
// A list in Markdown, one item per line.
std::string bullets(const std::vector<std::string>& lines);
// "a, b and c"
std::string and_list(const std::vector<std::string>& parts);

std::string heading_anchor(const std::string& heading);  // as GitHub names headings: "a-decay-held-at-099"

}  // namespace sb
