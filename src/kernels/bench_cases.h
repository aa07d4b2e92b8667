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
  BenchForm ours, plain, chunked;                                                             // chunked may be empty
  std::function<BenchWork(int64_t batch, int64_t time, int64_t width)> work;
  // elements that the plain form's graph holds for each element of time
  std::function<double(int64_t batch, int64_t width)> graph_elements_a_step;
};

std::vector<BenchCase> bench_cases();

}  // namespace sb
