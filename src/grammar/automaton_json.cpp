#include "grammar/automaton_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "grammar/automaton_draft.h"
#include "grammar/check.h"

namespace sb {
namespace {

constexpr size_t kMaxName = 64;
constexpr double kRowTolerance = 1e-9;
constexpr int64_t kMaxCells =
    int64_t{1} << 28;  // states x vocab, the size of the tables that tasks make of an automaton

// Number of the letter a name begins with (letter_name's inverse), -1 if it begins with none.
int64_t leading_letter(const std::string& name) {
  int64_t number = 0;
  size_t at = 0;
  for (; at < name.size(); ++at) {
    const char c = name[at];
    const int digit = c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
    if (digit < 0) break;
    number = number * 52 + digit + 1;
    if (number > kMaxFileVocab) return number;
  }
  return at == 0 ? -1 : number - 1;
}

class Checker {
 public:
  explicit Checker(const AutomatonDraft& draft) : draft_(draft) {}

  Automaton run() {
    for (const char* name : {"states", "start_states", "transitions"}) {
      if (!draft_.keys.contains(name)) throw draft_.problem(std::string("'") + name + "' is missing");
    }
    names();
    symbols();
    ids();
    starts();
    edges();
    exits();
    return std::move(out_);
  }

 private:
  std::string shown(int32_t state) const { return "'" + printable(out_.names[state]) + "'"; }

  void names() {
    out_.names = draft_.states;
    for (size_t i = 0; i < out_.names.size(); ++i) {
      const std::string& name = out_.names[i];
      const auto place = "states[" + std::to_string(i) + "]";
      if (name.empty() || name.size() > kMaxName) {
        throw draft_.problem(place + ": expected a name of 1 to 64 bytes, got " + std::to_string(name.size()));
      }
      if (std::any_of(name.begin(), name.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) {
        throw draft_.problem(place + ": control characters in '" + printable(name) + "'");
      }
      if (!index_.emplace(name, static_cast<int32_t>(i)).second) {
        throw draft_.problem(place + ": '" + printable(name) + "' occurs twice");
      }
    }
    const auto end = index_.find("#");
    if (end == index_.end()) throw draft_.problem("states: the end state '#' is missing");
    out_.end = end->second;
  }

  void symbols() {
    if (draft_.symbols) {
      if (draft_.symbols->size() != out_.names.size()) {
        throw draft_.problem("symbols: expected one for each of " + std::to_string(out_.names.size()) +
                             " states, got " + std::to_string(draft_.symbols->size()));
      }
      out_.symbol = *draft_.symbols;
    } else {
      for (size_t i = 0; i < out_.names.size(); ++i) {
        const int64_t letter = leading_letter(out_.names[i]);
        const bool end = static_cast<int32_t>(i) == out_.end;
        if (!end && (letter < 0 || letter + 1 >= kMaxFileVocab)) {
          throw draft_.problem("states[" + std::to_string(i) + "]: no symbol in the name '" + printable(out_.names[i]) +
                               "', expected letters A, B, … z, AA, … first, or a \"symbols\" array");
        }
        out_.symbol.push_back(end ? 0 : static_cast<int32_t>(letter + 1));
      }
    }
    for (size_t i = 0; i < out_.symbol.size(); ++i) {
      if ((out_.symbol[i] == 0) != (static_cast<int32_t>(i) == out_.end)) {
        throw draft_.problem("symbols[" + std::to_string(i) + "]: class 0 belongs to '#', and to no other state");
      }
    }
    const int32_t largest = *std::max_element(out_.symbol.begin(), out_.symbol.end());
    out_.vocab = draft_.vocab.value_or(std::max(largest + 1, 2));
    if (out_.vocab <= largest) {
      throw draft_.problem("vocab: expected more than the largest class " + std::to_string(largest) + ", got " +
                           std::to_string(out_.vocab));
    }
    if (static_cast<int64_t>(out_.vocab) * out_.states() > kMaxCells) {
      throw draft_.problem("expected states x vocab up to " + std::to_string(kMaxCells) + ", got " +
                           std::to_string(out_.states()) + " x " + std::to_string(out_.vocab));
    }
  }

  void ids() {
    const size_t n = out_.names.size();
    if (!draft_.state_ids) {
      std::vector<int32_t> order(n);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](int32_t a, int32_t b) { return out_.symbol[a] < out_.symbol[b]; });
      out_.id.resize(n);
      for (size_t k = 0; k < n; ++k) out_.id[order[k]] = static_cast<int32_t>(k);
      return;
    }
    out_.id.assign(n, -1);
    std::vector<bool> taken(n, false);
    for (const auto& [name, id] : *draft_.state_ids) {
      const auto at = index_.find(name);
      const auto place = "state_ids['" + printable(name) + "']";
      if (at == index_.end()) throw draft_.problem(place + ": no such state");
      if (id >= out_.states() || taken[id]) {
        throw draft_.problem(place + ": expected ids 0.." + std::to_string(n - 1) + ", each once, got " +
                             std::to_string(id));
      }
      taken[id] = true;
      out_.id[at->second] = id;
    }
    for (size_t i = 0; i < n; ++i) {
      if (out_.id[i] < 0) throw draft_.problem("state_ids: no id for " + shown(static_cast<int32_t>(i)));
    }
    if (out_.id[out_.end] != 0) throw draft_.problem("state_ids['#']: expected 0");
  }

  void starts() {
    if (draft_.start_states.empty()) throw draft_.problem("start_states: expected at least one, got none");
    std::unordered_set<int32_t> taken;
    for (const auto& name : draft_.start_states) {
      const auto at = index_.find(name);
      if (at == index_.end()) throw draft_.problem("start_states: no state '" + printable(name) + "'");
      if (at->second == out_.end) throw draft_.problem("start_states: '#' cannot start a string");
      if (!taken.insert(at->second).second) {
        throw draft_.problem("start_states: '" + printable(name) + "' occurs twice");
      }
      out_.start.push_back(at->second);
    }
  }

  void edges() {
    std::vector<uint32_t> order(draft_.edges.size());
    std::iota(order.begin(), order.end(), 0U);
    for (const uint32_t e : order) {
      const DraftEdge& edge = draft_.edges[e];
      const auto place = "transitions[" + std::to_string(e) + "]: ";
      if (edge.src >= out_.states() || edge.dst >= out_.states()) {
        throw draft_.problem(place + "expected indices below " + std::to_string(out_.states()) + ", got " +
                             std::to_string(edge.src) + " -> " + std::to_string(edge.dst));
      }
      if (edge.src == out_.end) throw draft_.problem(place + "'#' ends a string, nothing may follow it");
    }
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      const DraftEdge &x = draft_.edges[a], &y = draft_.edges[b];
      return std::pair(x.src, x.dst) < std::pair(y.src, y.dst);
    });
    out_.row.assign(out_.names.size() + 1, 0);
    for (size_t k = 0; k < order.size(); ++k) {
      const DraftEdge& edge = draft_.edges[order[k]];
      if (k > 0 && edge.src == draft_.edges[order[k - 1]].src && edge.dst == draft_.edges[order[k - 1]].dst) {
        throw draft_.problem("transitions: " + shown(edge.src) + " -> " + shown(edge.dst) + " occurs twice");
      }
      ++out_.row[edge.src + 1];
      out_.dst.push_back(edge.dst);
      out_.prob.push_back(edge.prob);
    }
    std::partial_sum(out_.row.begin(), out_.row.end(), out_.row.begin());
    for (int32_t s = 0; s < out_.states(); ++s) {
      if (s == out_.end) continue;
      const auto begin = out_.prob.begin() + out_.row[s];
      const auto end = out_.prob.begin() + out_.row[s + 1];
      if (begin == end) throw draft_.problem("transitions: no exit from state " + shown(s));
      const double sum = std::accumulate(begin, end, 0.0);
      if (std::abs(sum - 1) > kRowTolerance) {
        throw draft_.problem("transitions: expected the probabilities out of " + shown(s) + " to sum to 1, got " +
                             shortest(sum));
      }
    }
  }

  void exits() {
    const std::vector<bool> ends = reaches_end(out_);
    const auto stuck = std::find(ends.begin(), ends.end(), false);
    if (stuck != ends.end()) {
      throw draft_.problem("no path from state " + shown(static_cast<int32_t>(stuck - ends.begin())) + " to '#'");
    }
  }

  const AutomatonDraft& draft_;
  Automaton out_;
  std::unordered_map<std::string, int32_t> index_;
};

// Symbols that stand for several states, and the most states of one symbol.
struct Ambiguity {
  int symbols = 0, depth = 1;
};

Ambiguity count_ambiguity(const Automaton& a) {
  std::vector<int> states(a.vocab, 0);
  for (const int32_t symbol : a.symbol) ++states[symbol];
  Ambiguity out;
  for (const int count : states) {
    out.symbols += count > 1 ? 1 : 0;
    out.depth = std::max(out.depth, count);
  }
  return out;
}

}  // namespace

std::string automaton_to_json(const Automaton& a, const std::optional<GrammarConfig>& config, const Figures& figures) {
  const Ambiguity counted = count_ambiguity(a);
  Json start = Json::array(), ids = Json::object(), transitions = Json::array();
  for (const int32_t s : a.start) start.push_back(a.names[s]);
  auto& members = ids.get_ref<Json::object_t&>();  // names are distinct: no search for each
  for (int s = 0; s < a.states(); ++s) members.push_back({a.names[s], a.id[s]});
  for (int s = 0; s < a.states(); ++s) {
    for (int e = a.row[s]; e < a.row[s + 1]; ++e) transitions.push_back(Json::array({s, a.dst[e], a.prob[e]}));
  }
  Json json = {{"vocab", a.vocab},
               {"ambiguities", config ? config->ambiguities : counted.symbols},
               {"depth", config ? config->depth : counted.depth},
               {"density", nullptr},
               {"seed", nullptr},
               {"state_count", figures.states},
               {"transition_count", figures.transitions},
               {"start_state_count", a.start.size()},
               {"start_symbols", figures.start_symbols},
               {"ending_states", figures.ending_states},
               {"mean_out_degree", figures.mean_out_degree},
               {"topological_entropy", figures.topological_entropy},
               {"mixing_rate", figures.mixing_rate},
               {"relaxation", figures.relaxation},
               {"mean_string_length", figures.mean_string_length},
               {"fit_length", figures.fit_length},
               {"fit_probability", figures.fit_probability},
               {"start_states", std::move(start)},
               {"states", a.names},
               {"symbols", a.symbol},
               {"state_ids", std::move(ids)},
               {"transitions", std::move(transitions)}};
  if (config) {
    json["density"] = config->density < 0 ? 0.4 / config->depth : config->density;
    json["seed"] = config->seed;
  }
  return json_document(json);
}

Automaton automaton_from_json(std::string_view text, const std::string& file) {
  if (text.size() > kMaxAutomatonFile) throw bad_input("automaton", file + ": expected at most 64 MiB");
  return Checker(parse_automaton_draft(text, file)).run();
}

Automaton read_automaton(const std::string& file) {
  return automaton_from_json(read_file(file, kMaxAutomatonFile), file);
}

}  // namespace sb
