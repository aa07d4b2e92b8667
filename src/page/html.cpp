#include "page/html.h"

#include "base/base64.h"
#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"

namespace sb {
namespace {

struct Insert {
  std::string_view marker;
  std::string text;
};

// Replaces the markers in one pass, so that markers inside inserted text are not replaced.
std::string filled(std::string_view html, const std::vector<Insert>& inserts) {
  for (const auto& insert : inserts) {
    const size_t at = html.find(insert.marker);
    if (at == std::string_view::npos || html.find(insert.marker, at + 1) != std::string_view::npos)
      throw bad_input("page", "expected the marker " + std::string(insert.marker) + " once in the template");
  }
  std::string out;
  while (!html.empty()) {
    size_t next = html.size();
    const Insert* found = nullptr;
    for (const auto& insert : inserts)
      if (const size_t at = html.find(insert.marker); at < next) {
        next = at;
        found = &insert;
      }
    out += html.substr(0, next);
    html.remove_prefix(next);
    if (!found) break;
    out += found->text;
    html.remove_prefix(found->marker.size());
  }
  return out;
}

}  // namespace

std::string html_escaped(std::string_view text) {
  return replace_all(xml_escaped(text), "'", "&#39;");
}

std::string json_in_html(const Json& data) {
  std::string out = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (const auto& [from, to] :
       {std::pair{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}, {"\u2028", "\\u2028"}, {"\u2029", "\\u2029"}})
    out = replace_all(out, from, to);
  return out;
}

std::string script_in_html(std::string_view script) {
  // These can occur only inside strings and regular expressions, where the backslash changes nothing.
  return replace_all(replace_all(script, "</script", "<\\/script"), "<!--", "<\\!--");
}

std::string csp_hash(std::string_view text) {
  return "'sha256-" + base64(sha256_bytes(text)) + "'";
}

std::string html_page(const PageParts& parts, std::string_view title, const Json& data, bool live) {
  std::string scripts, hashes;
  for (const auto& script : parts.scripts) {
    const std::string text = "\n" + script_in_html(script.text) + "\n";
    hashes += " " + csp_hash(text);
    scripts += "<script>" + text + "</script>\n";
  }
  const std::string style = "\n" + parts.css + "\n";
  std::string policy = "default-src 'none'; script-src" + (hashes.empty() ? " 'none'" : hashes) + "; style-src " +
                       csp_hash(style) + "; style-src-attr 'unsafe-inline'; img-src data: blob:; font-src 'none'; ";
  policy += std::string("connect-src ") + (live ? "'self'" : "'none'") + "; base-uri 'none'; form-action 'none'";
  std::string notices;
  for (const auto& notice : parts.notices)
    notices += "<details class=\"notice\"><summary>" + html_escaped(notice.name) + " (" + html_escaped(notice.licence) +
               ")</summary><pre>" + html_escaped(notice.text) + "</pre></details>\n";
  return filled(parts.html,
                {{"{{CSP}}", "<meta http-equiv=\"Content-Security-Policy\" content=\"" + policy + "\">"},
                 {"{{TITLE}}", html_escaped(title)},
                 {"{{STYLE}}", "<style>" + style + "</style>"},
                 {"{{DATA}}", "<script type=\"application/json\" id=\"data\">" + json_in_html(data) + "</script>"},
                 {"{{SCRIPTS}}", std::move(scripts)},
                 {"{{NOTICES}}", std::move(notices)}});
}

}  // namespace sb
