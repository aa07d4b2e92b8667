// How ranks find each other before anything is computed.
#pragma once
#include <string>

#include "train/rank_store.h"

namespace sb {

struct RankMeeting {
  RankStore store;
  // Of this machine on its way to rank 0; where that stays on the machine and ranks are on others too, the one under
  // which those reach it.
  std::string own_address;
};

// Returns once all ranks have come with the same number of ranks and the same identity (lines KEY=VALUE). Throws
// bad_input after place.patience at the latest; what rank 0 found and told the others, as WorldEnded.
RankMeeting meet(const RankPlace& place, const std::string& identity);

}  // namespace sb
