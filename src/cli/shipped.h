// Configs that come with the program, found by name: "quick", "paper/task2".
#pragma once
#include <string>
#include <vector>

namespace sb::cli {

// Where they are: ../share/selectivbench/configs beside an installed program, configs/ of the source tree for one that
// lies in build/NAME of it. Empty where there is neither.
std::string shipped_folder(const std::string& executable);
// Names without ".toml", sorted.
std::vector<std::string> shipped_names(const std::string& folder);
// `asked` where there is such a path, else the shipped config of that name, with or without ".toml". Throws bad_input
// with the names there are.
std::string shipped_config(const std::string& where, const std::string& asked, const std::string& folder);
std::string shipped_config(const std::string& where, const std::string& asked);  // of the running program

std::string shipped_folder();  // of the running program

}  // namespace sb::cli
