// Whatever bytes come in, the reader gives an automaton that holds or one line of bad_input; and what it gives survives
// being written and read again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "grammar/automaton_json.h"
#include "grammar/check.h"
#include "grammar/draw.h"

namespace {

void demand(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sb::Automaton automaton;
  try {
    automaton = sb::automaton_from_json({reinterpret_cast<const char*>(data), size}, "fuzz.json");
  } catch (const sb::Error& error) {
    const std::string_view line = error.what();
    demand(error.code() == sb::Exit::bad_input && line.starts_with("[automaton]") && line.size() < 600);
    demand(line.find('\n') == std::string_view::npos);
    return 0;
  }
  sb::check(automaton);
  const std::string text = sb::automaton_to_json(automaton, std::nullopt, sb::Figures{});
  const sb::Automaton again = sb::automaton_from_json(text, "again.json");
  demand(again.names == automaton.names && again.symbol == automaton.symbol && again.id == automaton.id);
  demand(again.start == automaton.start && again.row == automaton.row && again.dst == automaton.dst);
  demand(again.prob == automaton.prob && again.vocab == automaton.vocab && again.end == automaton.end);
  demand(!sb::to_svg(automaton).empty() && !sb::to_dot(automaton).empty());
  return 0;
}
