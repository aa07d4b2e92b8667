// The file of an automaton that a config names.
#pragma once
#include <memory>
#include <string>

#include "config/config.h"
#include "config/toml_tree.h"

namespace sb {

// Reads and parses an automaton file of bounded size. Throws bad_input "[grammar.automaton] …" that ends in `from`.
std::shared_ptr<const AutomatonFile> read_automaton_file(const std::string& path, const Place& from);
std::shared_ptr<const AutomatonFile> parse_automaton_file(std::string text, const std::string& path, const Place& from);
// Digest of an automaton's JSON in the layout of `grammar --json`, so that white space does not change the run id.
std::string automaton_identity(const AutomatonFile& file);

}  // namespace sb
