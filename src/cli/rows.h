// Writes a sample as a line of text.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "grammar/automaton.h"
#include "tasks/gap_process.h"

namespace sb::cli {

// Holds the texts of every state's class and id.
class RowWriter {
 public:
  explicit RowWriter(const Automaton& automaton);

  // Class ids joined by ',', then ';', state ids joined by ',', newline. sha256_canon is the digest of this text.
  void canonical(std::string& out, const uint16_t* states, int length) const;
  // {"index":…,"classes":[…],"states":[…]}, with "gaps" and "wrong" if given.
  void json(std::string& out, uint64_t index, const uint16_t* states, int length, const Gaps* gaps, bool wrong) const;

 private:
  std::vector<std::string> class_, id_;  // each ends in ','
};

}  // namespace sb::cli
