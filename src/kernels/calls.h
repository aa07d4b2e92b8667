// Calls of operations as a network makes them, told while somebody watches, to be made again alone: what `bench gpu
// --kernels` measures.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "kernels/operation.h"

namespace sb::kernels {

struct Call {
  std::string name;  // of the operation: "gated_delta"
  Tensors in;        // without their graph
  std::vector<bool> wanted;
  CallForward forward;
  CallBackward backward;  // empty: the gradient is made of ATen's operations

  std::string shape() const;  // "bf16 [64,400,256], fp32 [256]": equal ones are equal work
};

// While one lives, `seen` is told of every call before it is made; one at a time.
class WatchCalls {
 public:
  explicit WatchCalls(std::function<void(Call)> seen);
  ~WatchCalls();
  WatchCalls(const WatchCalls&) = delete;
  WatchCalls& operator=(const WatchCalls&) = delete;

 private:
  std::function<void(Call)> seen_;
};

// What a pass cannot do without: operations of products (a multiply-add is two), and bytes read or written once.
struct CallWork {
  double operations = 0, bytes = 0;
};
CallWork forward_work(const Call& call, const Tensors& out);
CallWork backward_work(const Call& call, const Tensors& d_out, const Tensors& gradients);

}  // namespace sb::kernels
