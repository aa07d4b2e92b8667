// A suite as it was resolved, in a file of its own: later work on it reads no other file, so none can change or be gone
// by then. ROOT/…/NAME.json with the resolved runs, and automaton-DIGEST.json beside it where one is used.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runs/suite.h"

namespace sb {

// Writes into `folder`, which is there; the path of the suite's file.
std::string freeze_suite(const std::string& folder, const Suite& suite);
bool is_frozen_suite(const std::string& path);  // by its name
// Only the runs of these ids where there are any. Throws bad_input that names the file for one that is changed, or
// whose runs have other ids here than they had.
Suite read_frozen_suite(const std::string& path, const std::vector<std::string>& ids, const ModelRules& rules);

// The networks of a suite that were brought to a size, as files keep them.
nlohmann::ordered_json networks_json(const std::vector<MatchedNetwork>& networks);
std::vector<MatchedNetwork> parse_networks(const nlohmann::json& list, const std::string& path);

}  // namespace sb
