// Figures as files of a folder, for papers.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "page/figure.h"

namespace sb {

// Sealed: the digest of every file that was written, by name. What it names with the bytes it names is ours.
constexpr const char* figure_list_name = "selectivbench-figures.json";
std::string figure_list(const std::map<std::string, std::string>& digests);
// Throws bad_input that names the file for anything else than such a list.
std::map<std::string, std::string> parse_figure_list(std::string_view text, const std::string& file);

// ID.vl.json and ID.csv of each, and the list. Files of an earlier list that are not written this time are removed,
// nothing else ever is: the lines say what was removed and what was left.
std::vector<std::string> write_figures(const std::string& folder, const std::vector<Figure>& figures,
                                       FileSystem& files = real_file_system());

}  // namespace sb
