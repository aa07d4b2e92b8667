#include "train/world.h"

#include <ATen/ATen.h>

namespace sb {

Order World::share(Order mine) {
  const at::Tensor order = at::full({1}, static_cast<int64_t>(mine), at::kLong);
  share(order);
  return static_cast<Order>(order.item<int64_t>());
}

}  // namespace sb
