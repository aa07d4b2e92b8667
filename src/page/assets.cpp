#include "page/assets.h"

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
  for (const auto& file : embedded_files()) {
    if (file.name.starts_with("script ")) own.push_back({std::string(file.name.substr(7)), std::string(file.text)});
    if (!file.name.starts_with("bundle ")) continue;
    const std::string name(file.name.substr(7));
    out.scripts.push_back({name, std::string(file.text)});
    const auto package = nlohmann::json::parse(file_of("package " + name), nullptr, false);
    out.notices.push_back(
        {name, member(package, "version"), member(package, "license"), std::string(file_of("licence " + name))});
    out.charts = true;
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
