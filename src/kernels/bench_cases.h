// The kernels as `bench kernels` sees them: how to make inputs of a size, how to run, how much work it is.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace sb {

using BenchForm = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// What a pass cannot do without: arithmetic (a multiply-add is two operations, as in the GEMM rate) and memory read or
// written.
struct Pass {
  double operations = 0, bytes = 0;
};
struct BenchWork {
  Pass forward, backward;
};

struct BenchCase {
  std::string name;
  std::function<std::vector<at::Tensor>(int64_t batch, int64_t time, int64_t width)> inputs;  // in double
  BenchForm form;  // one back end or another runs it
  bool has_loop;   // a recurrence: its truth is a loop over time, and ATen's chunks are timed as well
  std::function<BenchWork(int64_t batch, int64_t time, int64_t width)> work;
  // elements that the graph of the truth holds for each element of time
  std::function<double(int64_t batch, int64_t width)> graph_elements_a_step;
};

std::vector<BenchCase> bench_cases();

}  // namespace sb
