// The paper's claims by verdict, at each scale and protocol.
#pragma once
#include <string>
#include <vector>

#include "findings/verdict.h"

namespace sb {

struct Conclusions {
  const ScaleVerdict* place = nullptr;  // of the first claim: names scale and protocol
  // Titles, with what restricts the verdict in brackets.
  std::vector<std::string> supported, contradicted, equivalent;
  std::vector<int> undecided;     // numbers of claims
  std::vector<int> blocked;       // those of `undecided` that need more than grammars
  bool several_grammars = false;  // a claim has more than one

  bool has_runs() const;
};
std::vector<Conclusions> conclusions_of(const std::vector<ClaimVerdict>& verdicts);

// Numbers of the paper's claims about parameters, which need no training.
std::vector<int> counted_claims(const std::vector<ClaimVerdict>& verdicts);
std::string numbers_text(const std::vector<int>& numbers);  // "claims 1, 2 and 8"
// "claims 1 “Gates help recall”; 3 “…”"
std::string claims_text(const std::vector<std::string>& titles);

}  // namespace sb
