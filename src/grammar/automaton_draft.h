// Contents of an automaton's JSON text before validation.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sb {

struct DraftEdge {
  int32_t src, dst;
  double prob;
};

struct AutomatonDraft {
  std::string file;
  std::unordered_set<std::string> keys;  // of the JSON object
  std::vector<std::string> states, start_states;
  std::vector<DraftEdge> edges;
  std::optional<std::vector<int32_t>> symbols;
  std::optional<std::vector<std::pair<std::string, int32_t>>> state_ids;
  std::optional<int32_t> vocab;

  Error problem(const std::string& what) const { return bad_input("automaton", file + ": " + what); }
};

// Throws bad_input if the text is not JSON or lacks the structure of an automaton.
AutomatonDraft parse_automaton_draft(std::string_view text, const std::string& file);

}  // namespace sb
