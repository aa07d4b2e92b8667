#include "page/assets.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "page/html.h"

namespace sb {
namespace {

std::string_view file_of(const std::string& name) {
  for (const auto& file : embedded_files())
    if (file.name == name) return file.text;
  return {};
}

std::string member(const nlohmann::json& package, const char* key) {
  const auto found = package.find(key);
  return found != package.end() && found->is_string() ? found->get<std::string>() : std::string("?");
}

PageParts read_parts() {
  PageParts out;
  out.html = file_of("page.html");
  out.css = file_of("page.css");
  out.citation = file_of("CITATION.cff");
  std::vector<PageScript> own;
  std::map<std::string_view, size_t> by_text;  // packages of one project share their licence
  for (const auto& file : embedded_files()) {
    const std::string name(file.name.substr(std::min(file.name.find(' '), file.name.size() - 1) + 1));
    if (file.name.starts_with("script ")) own.push_back({name, std::string(file.text)});
    if (file.name.starts_with("bundle ")) {
      out.scripts.push_back({name, std::string(file.text)});
      out.charts = true;
    }
    if (!file.name.starts_with("licence ")) continue;
    const auto package = nlohmann::json::parse(file_of("package " + name), nullptr, false);
    const std::string versioned = name + " " + member(package, "version");
    const auto [at, fresh] = by_text.emplace(file.text, out.notices.size());
    if (fresh)
      out.notices.push_back({versioned, member(package, "license"), std::string(file.text)});
    else
      out.notices[at->second].name += ", " + versioned;
  }
  out.scripts.insert(out.scripts.end(), own.begin(), own.end());
  return out;
}

}  // namespace

const PageParts& built_in_parts() {
  static const PageParts parts = read_parts();
  return parts;
}

}  // namespace sb
