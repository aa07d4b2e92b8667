// What makes the sums of a world: gloo between CPUs, NCCL between GPUs. Of each, X_present.cpp or X_absent.cpp is
// compiled, as the build has it or not.
#pragma once
#include <memory>
#include <string>

#include "train/world.h"

namespace sb {

// Why this build has none; empty: it has.
std::string gloo_fault();
std::string nccl_fault();

// As join_world; to be called where there is no such fault.
std::unique_ptr<World> gloo_world(const RankPlace& place, const std::string& identity);
// The card of this process is the first that it sees.
std::unique_ptr<World> nccl_world(const RankPlace& place, const std::string& identity);

}  // namespace sb
