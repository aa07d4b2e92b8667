// A resolved suite saved in its own file. Later work reads no other file, so changed or deleted configs cannot affect
// it. ROOT/…/NAME.json holds the resolved runs; automaton-DIGEST.json next to it holds an automaton, if used.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "suites/suite.h"

namespace sb {

// Writes into the existing `folder`; returns the path of the suite file.
std::string freeze_suite(const std::string& folder, const Suite& suite);
bool is_frozen_suite(const std::string& path);  // by its name
// Reads the suite; with `ids`, only these runs. Throws bad_input that names the file if it was changed, or if its runs
// now have other ids.
Suite read_frozen_suite(const std::string& path, const std::vector<std::string>& ids, const ModelRules& rules);

// JSON of the networks that were matched to a size.
nlohmann::ordered_json networks_json(const std::vector<MatchedNetwork>& networks);
std::vector<MatchedNetwork> parse_networks(const nlohmann::json& list, const std::string& path);

}  // namespace sb
