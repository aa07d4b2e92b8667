#include "cli/rows.h"

#include "base/format.h"
#include "base/number.h"

namespace sb::cli {
namespace {

void joined(std::string& out, const std::vector<std::string>& texts, const uint16_t* states, int length) {
  for (int e = 0; e < length; ++e) out += texts[states[e]];
  if (length > 0) out.pop_back();
}

void joined(std::string& out, const std::vector<int32_t>& numbers) {
  for (const int32_t n : numbers) {
    append_integer(out, static_cast<uint64_t>(n));
    out += ',';
  }
  if (!numbers.empty()) out.pop_back();
}

}  // namespace

RowWriter::RowWriter(const Automaton& automaton) {
  for (int s = 0; s < automaton.states(); ++s) {
    class_.push_back(std::to_string(automaton.symbol[s]) + ",");
    id_.push_back(std::to_string(automaton.id[s]) + ",");
  }
}

void RowWriter::canonical(std::string& out, const uint16_t* states, int length) const {
  joined(out, class_, states, length);
  out += ';';
  joined(out, id_, states, length);
  out += '\n';
}

void RowWriter::json(std::string& out, uint64_t index, const uint16_t* states, int length, const Gaps* gaps,
                     bool wrong) const {
  out += "{\"index\":";
  append_integer(out, index);
  out += ",\"classes\":[";
  joined(out, class_, states, length);
  out += "],\"states\":[";
  joined(out, id_, states, length);
  if (gaps != nullptr) {
    out += "],\"gaps\":[";
    joined(out, gaps->length);
  }
  if (gaps != nullptr && wrong) {
    out += "],\"wrong\":[";
    joined(out, gaps->wrong);
  }
  out += "]}\n";
}

}  // namespace sb::cli
