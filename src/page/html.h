// Writes one self-contained HTML file: template, style, scripts and data, with a content security policy that allows
// nothing else.
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
  std::string name, licence, text;  // the name includes the version
};
struct PageParts {
  std::string html, css;            // the template, with {{CSP}} {{TITLE}} {{STYLE}} {{DATA}} {{SCRIPTS}} {{NOTICES}}
  std::vector<PageScript> scripts;  // in order
  std::vector<PageNotice> notices;  // licences of third-party code
  bool charts = false;              // the scripts include the code that draws charts
  std::string citation;             // CITATION.cff
};
const PageParts& built_in_parts();  // compiled in from web/

// Throws bad_input "[page] …" if a marker of the template is missing or duplicate.
std::string html_page(const PageParts& parts, std::string_view title, const Json& data, bool live);

std::string html_escaped(std::string_view text);
// JSON that an HTML parser cannot take for markup.
std::string json_in_html(const Json& data);
// Escapes a script so that it cannot close its element early; the program is the same.
std::string script_in_html(std::string_view script);
std::string csp_hash(std::string_view text);  // 'sha256-…'

}  // namespace sb
