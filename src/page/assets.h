// Files of web/ and their dependencies, compiled into the program.
#pragma once
#include <string_view>
#include <vector>

namespace sb {

struct EmbeddedFile {
  std::string_view name;  // "page.html", "script data.js", "bundle vega", "package vega", "licence vega"
  std::string_view text;
};
const std::vector<EmbeddedFile>& embedded_files();

}  // namespace sb
