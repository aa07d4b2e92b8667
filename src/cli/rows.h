// A sample as a line of text.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "grammar/automaton.h"
#include "tasks/gap_process.h"

namespace sb::cli {

// Texts of every state's class and id, ready to append.
class RowWriter {
 public:
  explicit RowWriter(const Automaton& automaton);

  // class ids joined by ',', ';', state ids joined by ',', newline: the text that sha256_canon is taken over.
  void canonical(std::string& out, const uint16_t* states, int length) const;
  // {"index":…,"classes":[…],"states":[…]} with "gaps" and "wrong" where they are given.
  void json(std::string& out, uint64_t index, const uint16_t* states, int length, const Gaps* gaps, bool wrong) const;

 private:
  std::vector<std::string> class_, id_;  // each ends in ','
};

}  // namespace sb::cli
