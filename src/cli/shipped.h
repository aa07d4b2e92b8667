// Shipped configs, found by name: "quick", "paper/task2".
#pragma once
#include <string>
#include <vector>

namespace sb::cli {

// Folder of the shipped configs: ../share/selectivbench/configs next to an installed program, or configs/ of the source
// tree for a program in its build/NAME. Empty if neither exists.
std::string shipped_folder(const std::string& executable);
// Names without ".toml", sorted.
std::vector<std::string> shipped_names(const std::string& folder);
// Returns `asked` if this path exists, else the path of the shipped config of this name, with or without ".toml".
// Throws bad_input that lists the existing names.
std::string shipped_config(const std::string& where, const std::string& asked, const std::string& folder);
std::string shipped_config(const std::string& where, const std::string& asked);  // of the running program

std::string shipped_folder();  // of the running program

// The path that started this program: the launcher's for an engine with its launcher in place. Empty if unknown.
std::string program_path();

}  // namespace sb::cli
