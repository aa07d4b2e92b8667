// Implementations of ProcessGroup: gloo for CPUs, NCCL for GPUs. A build compiles gloo_present.cpp or gloo_absent.cpp,
// and nccl_present.cpp or nccl_absent.cpp, depending on the available libraries.
#pragma once
#include <memory>
#include <string>

#include "train/ranks/process_group.h"

namespace sb {

// Why this build does not support gloo or NCCL; empty if it does.
std::string gloo_fault();
std::string nccl_fault();

// See join_group. Call these only if the corresponding fault is empty.
std::unique_ptr<ProcessGroup> gloo_group(const RankPlace& place, const std::string& identity);
// Uses the first GPU visible to this process.
std::unique_ptr<ProcessGroup> nccl_group(const RankPlace& place, const std::string& identity);

}  // namespace sb
