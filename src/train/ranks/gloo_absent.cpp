#include "train/ranks/rank_groups.h"

namespace sb {

std::string gloo_fault() {
  return "this build has no process groups (libtorch's gloo and libgloo-dev)";
}

std::unique_ptr<ProcessGroup> gloo_group(const RankPlace& place, const std::string&) {
  throw bad_input(place.origin, gloo_fault());
}

}  // namespace sb
