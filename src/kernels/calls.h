// Records a network's calls of operations, so that `bench gpu --kernels` can repeat and measure each of them alone.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "kernels/operation.h"

namespace sb::kernels {

struct Call {
  std::string name;          // of the operation: "gated_delta"
  Tensors in;                // detached from the autograd graph
  std::vector<bool> wanted;  // for every input, whether it needs a gradient
  CallForward forward;
  CallBackward backward;  // empty: ATen's operations compute the gradient
  Work work = {};

  std::string shape() const;  // "bf16 [64,400,256], fp32 [256]"; calls of equal name and shape do equal work
};

// RAII guard: calls `seen` with every call before it is made. Only one guard may exist at a time; a second one throws.
class WatchCalls {
 public:
  explicit WatchCalls(std::function<void(Call)> seen);
  ~WatchCalls();
  WatchCalls(const WatchCalls&) = delete;
  WatchCalls& operator=(const WatchCalls&) = delete;

 private:
  std::function<void(Call)> seen_;
};

// Minimum work of a pass: operations of matrix products (a multiply-add is two), and bytes, each read or written once.
struct CallWork {
  double operations = 0, bytes = 0;
};
CallWork forward_work(const Call& call, const Tensors& out);
CallWork backward_work(const Call& call, const Tensors& d_out, const Tensors& gradients);

}  // namespace sb::kernels
