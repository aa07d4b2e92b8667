// Writes figures to files in a folder, for papers.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "page/figure.h"

namespace sb {

// List of written files: sealed, with the digest of every file by name. Only files that match a digest of the list are
// ours.
constexpr const char* figure_list_name = "selectivbench-figures.json";
std::string figure_list(const std::map<std::string, std::string>& digests);
// Throws bad_input that names the file if the text is not such a list.
std::map<std::string, std::string> parse_figure_list(std::string_view text, const std::string& file);

// Writes the list, then ID.vl.json and ID.csv of each figure. A link of such a name is replaced, not followed. Removes files of an earlier list that are not written this
// time, and no other file. Returns lines that name removed and kept files.
std::vector<std::string> write_figures(const std::string& folder, const std::vector<Figure>& figures,
                                       FileSystem& files = real_file_system());

}  // namespace sb
