#include "train/ranks/rank_groups.h"

namespace sb {

std::string nccl_fault() {
  return "this build has no NCCL (for GPUs, if nccl.h and libtorch's ProcessGroupNCCL.hpp are found)";
}

std::unique_ptr<ProcessGroup> nccl_group(const RankPlace&, const std::string&) {
  throw bad_input("train.device", nccl_fault());
}

}  // namespace sb
