// One self-contained HTML file: template, style, scripts and data, and a policy that allows nothing else.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace sb {

struct PageScript {
  std::string name, text;
};
struct PageNotice {
  std::string name, licence, text;  // the name with its version
};
struct PageParts {
  std::string html, css;            // the template, with {{CSP}} {{TITLE}} {{STYLE}} {{DATA}} {{SCRIPTS}} {{NOTICES}}
  std::vector<PageScript> scripts;  // in their order
  std::vector<PageNotice> notices;  // of what others wrote
  bool charts = false;              // what draws charts is among the scripts
  std::string citation;             // CITATION.cff
};
const PageParts& built_in_parts();  // compiled in from web/

// Throws bad_input "[page] …" where the template lacks a marker or has one twice.
std::string html_page(const PageParts& parts, std::string_view title, const Json& data, bool live);

std::string html_escaped(std::string_view text);
// JSON that no HTML parser takes for markup.
std::string json_in_html(const Json& data);
// Text of a script that does not end its element early. The same program.
std::string script_in_html(std::string_view script);
std::string csp_hash(std::string_view text);  // 'sha256-…'

}  // namespace sb
