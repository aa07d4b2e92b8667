// Reads members of a TOML table as checked values; every error is bad_input "[claims] …, file:line:col".
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "config/toml_tree.h"

namespace sb {

Error toml_fault(const std::string& what, const Place& place);
Error unknown_toml_key(const TomlMember& member, const std::vector<std::string>& known);

// Hands each member of a table to the taker of its key. Throws if the value is no table, or for an unknown key.
using TomlTakers = std::vector<std::pair<std::string, std::function<void(const TomlMember&)>>>;
void read_members(const TomlValue& table, const TomlTakers& takers);

std::string toml_string(const TomlMember& member, size_t least, size_t most);  // bytes
std::vector<std::string> toml_strings(const TomlMember& member);               // a list
std::string toml_choice(const TomlMember& member, const std::vector<std::string>& names);
int64_t toml_whole(const TomlMember& member, int64_t least, int64_t most);
double toml_real(const TomlMember& member, double low, double high);
bool toml_truth(const TomlMember& member);

}  // namespace sb
