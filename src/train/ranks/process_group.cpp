#include "train/ranks/process_group.h"

#include <ATen/ATen.h>

#include "train/ranks/rank_groups.h"

namespace sb {

Order ProcessGroup::broadcast(Order mine) {
  const at::Tensor order = at::full({1}, static_cast<int64_t>(mine), at::kLong);
  broadcast(order);
  return static_cast<Order>(order.item<int64_t>());
}

std::string group_backend(bool gpu) {
  if (gpu) return nccl_fault().empty() ? "nccl" : "";
  return gloo_fault().empty() ? "gloo" : "";
}

std::string world_fault(bool gpu) {
  return gpu ? nccl_fault() : gloo_fault();
}

std::unique_ptr<ProcessGroup> join_group(const RankPlace& place, const std::string& identity, bool gpu) {
  if (const std::string fault = world_fault(gpu); !fault.empty())
    throw bad_input(place.origin, "expected 1, got " + std::to_string(place.size) + ": " + fault);
  return gpu ? nccl_group(place, identity) : gloo_group(place, identity);
}

}  // namespace sb
