// Rendezvous: the ranks find each other before anything is computed.
#pragma once
#include <string>

#include "train/ranks/rank_store.h"

namespace sb {

struct RankMeeting {
  RankStore store;
  // This machine's address on the route to rank 0. If this is a loopback address and other machines take part: the
  // address under which they reach rank 0's machine.
  std::string own_address;
};

// Returns once all ranks have arrived with the same number of ranks and the same identity (lines KEY=VALUE). Otherwise
// throws bad_input: as GroupEnded if rank 0 reports the fault to this rank, else as Error. Every wait is bounded by
// about place.timeout_seconds seconds.
RankMeeting meet(const RankPlace& place, const std::string& identity);

}  // namespace sb
