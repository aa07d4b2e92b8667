#include "grammar/automaton_draft.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/number.h"
#include "base/suggest.h"
#include "base/text.h"
#include "grammar/automaton_json.h"

namespace sb {
namespace {

using nlohmann::json;

const std::vector<std::string> kStructure = {"states", "start_states", "transitions", "symbols", "state_ids"};
const std::vector<std::string> kScalars = {"vocab",
                                           "ambiguities",
                                           "depth",
                                           "density",
                                           "seed",
                                           "start_state_count",
                                           "state_count",
                                           "transition_count",
                                           "mean_out_degree",
                                           "ending_states",
                                           "start_symbols",
                                           "topological_entropy",
                                           "mixing_rate",
                                           "relaxation",
                                           "mean_string_length",
                                           "fit_length",
                                           "fit_probability",
                                           "comment",
                                           "name"};

// Takes the parser's events straight into a draft: no document is built, so size and depth of the text cost nothing.
class DraftReader : public json::json_sax_t {
 public:
  DraftReader(std::string_view text, const std::string& file) : text_(text) { draft.file = file; }
  AutomatonDraft draft;

  bool null() override {
    if (depth_ != 1 || key_ == "vocab" || is_structure()) throw expected("null");
    return true;
  }
  bool boolean(bool) override { throw expected("true or false"); }
  bool binary(json::binary_t&) override { throw expected("binary data"); }
  bool number_integer(json::number_integer_t value) override { return integer(value); }
  bool number_unsigned(json::number_unsigned_t value) override {
    if (value > INT64_MAX) return key_ == "seed" && depth_ == 1 ? true : throw expected(std::to_string(value));
    return integer(static_cast<int64_t>(value));
  }
  bool number_float(json::number_float_t value, const std::string&) override {
    if (key_ == "transitions" && depth_ == 3 && item_ == 2) {
      probability(value);
    } else if (depth_ != 1 || key_ == "vocab" || is_structure()) {
      throw expected(shortest(value));
    }
    return true;
  }
  bool string(std::string& value) override {
    if (depth_ == 1 && !is_structure() && key_ != "vocab") return true;
    if (depth_ != 2 || (key_ != "states" && key_ != "start_states")) throw expected("a string");
    auto& names = key_ == "states" ? draft.states : draft.start_states;
    if (names.size() >= kMaxFileStates) throw draft.problem(key_ + ": expected at most 65535 names, got more");
    names.push_back(value);
    return true;
  }

  bool start_object(size_t) override {
    if (depth_ == 1 && key_ == "state_ids") {
      draft.state_ids.emplace();
    } else if (depth_ != 0) {
      throw expected("an object");
    }
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool key(std::string& name) override {
    if (depth_ == 2) {
      if (!id_names_.insert(name).second) throw draft.problem("state_ids: '" + printable(name) + "' occurs twice");
      id_name_ = name;
      return true;
    }
    if (!draft.keys.insert(name).second) throw draft.problem("'" + printable(name) + "' occurs twice");
    if (!known(name)) {
      std::vector<std::string> names = kStructure;
      names.insert(names.end(), kScalars.begin(), kScalars.end());
      throw draft.problem("'" + printable(name) + "' is not part of an automaton" + did_you_mean(name, names));
    }
    key_ = name;
    return true;
  }
  bool start_array(size_t) override {
    const bool list =
        depth_ == 1 && (key_ == "states" || key_ == "start_states" || key_ == "transitions" || key_ == "symbols");
    const bool triple = depth_ == 2 && key_ == "transitions";
    if (!list && !triple) throw expected("an array");
    if (list && key_ == "symbols") draft.symbols.emplace();
    if (triple) draft.edges.push_back({-1, -1, 0});
    item_ = 0;
    ++depth_;
    return true;
  }
  bool end_array() override {
    if (depth_ == 3 && item_ != 3) throw expected(std::to_string(item_) + " numbers");
    --depth_;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const json::exception& error) override {
    const size_t at = std::min(position == 0 ? 0 : position - 1, text_.size());
    const std::string_view before = text_.substr(0, at);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const size_t column = at - (before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1) + 1;
    std::string why = error.what();
    const size_t colon = why.find(": ");
    if (colon != std::string::npos) why.erase(0, colon + 2);
    throw bad_input("automaton", "not JSON, " + printable(why, 160) + ", " + draft.file + ":" + std::to_string(line) +
                                     ":" + std::to_string(column));
  }

 private:
  static bool known(const std::string& name) {
    return std::find(kStructure.begin(), kStructure.end(), name) != kStructure.end() ||
           std::find(kScalars.begin(), kScalars.end(), name) != kScalars.end();
  }
  bool is_structure() const { return std::find(kStructure.begin(), kStructure.end(), key_) != kStructure.end(); }

  std::string place() const {
    if (depth_ == 0) return "the file";
    if (depth_ == 1) return key_;
    if (key_ == "state_ids") return "state_ids['" + printable(id_name_) + "']";
    if (key_ != "transitions") return key_ + "[]";
    return "transitions[" + std::to_string(draft.edges.empty() ? 0 : draft.edges.size() - (depth_ == 3 ? 1 : 0)) + "]";
  }
  Error expected(const std::string& got) const {
    std::string wanted = "a number or a string";
    if (depth_ == 0)
      wanted = "an object";
    else if (depth_ == 1 && key_ == "state_ids")
      wanted = "an object of name: id";
    else if (depth_ == 1 && is_structure())
      wanted = "an array";
    else if (key_ == "vocab")
      wanted = "a whole number";
    else if (key_ == "transitions")
      wanted = "[source index, destination index, probability]";
    else if (key_ == "symbols" || key_ == "state_ids")
      wanted = "a whole number";
    else if (depth_ == 2)
      wanted = "a string";
    return draft.problem(place() + ": expected " + wanted + ", got " + got);
  }

  int32_t bounded(int64_t value, int32_t most, const char* what) const {
    if (value >= 0 && value <= most) return static_cast<int32_t>(value);
    throw draft.problem(place() + ": expected " + what + " 0.." + std::to_string(most) + ", got " +
                        std::to_string(value));
  }
  bool integer(int64_t value) {
    if (depth_ == 3) {
      DraftEdge& edge = draft.edges.back();
      if (item_ == 0)
        edge.src = bounded(value, kMaxFileStates - 1, "a source index");
      else if (item_ == 1)
        edge.dst = bounded(value, kMaxFileStates - 1, "a destination index");
      else if (item_ == 2)
        return probability(static_cast<double>(value)), true;
      else
        throw expected("more than 3 numbers");
      ++item_;
    } else if (depth_ == 2 && key_ == "symbols") {
      if (draft.symbols->size() >= kMaxFileStates)
        throw draft.problem("symbols: expected at most 65535 entries, got more");
      draft.symbols->push_back(bounded(value, kMaxFileVocab - 1, "a class"));
    } else if (depth_ == 2 && key_ == "state_ids") {
      draft.state_ids->emplace_back(id_name_, bounded(value, kMaxFileStates - 1, "an id"));
    } else if (depth_ == 1 && key_ == "vocab") {
      draft.vocab = bounded(value, kMaxFileVocab, "a number of symbols");
    } else if (depth_ != 1 || is_structure()) {
      throw expected(std::to_string(value));
    }
    return true;
  }
  void probability(double value) {
    if (!(value > 0) || value > 1) {
      throw draft.problem(place() + ": expected a probability in (0, 1], got " + shortest(value));
    }
    draft.edges.back().prob = value;
    ++item_;
  }

  std::string_view text_;
  int depth_ = 0;
  int item_ = 0;  // within a transition
  std::string key_, id_name_;
  std::unordered_set<std::string> id_names_;
};

}  // namespace

AutomatonDraft parse_automaton_draft(std::string_view text, const std::string& file) {
  DraftReader reader(text, file);
  json::sax_parse(text, &reader);
  return std::move(reader.draft);
}

}  // namespace sb
