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
  std::vector<std::string> undecided;  // more grammars may decide
  std::vector<std::string> blocked;    // undecided, and not only for want of grammars
  bool several_grammars = false;       // a claim has more than one

  bool has_runs() const;
};
std::vector<Conclusions> conclusions_of(const std::vector<ClaimVerdict>& verdicts);

// Claims of the paper about parameters, which need no training.
std::vector<std::string> counted_claims(const std::vector<ClaimVerdict>& verdicts);
// "claims 1, 2 and 8", of titles that begin with a number
std::string numbers_text(const std::vector<std::string>& titles);
// "claims 1 “Gates help recall”; 3 “…”"
std::string claims_text(const std::vector<std::string>& titles);

}  // namespace sb
