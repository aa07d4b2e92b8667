// The kernels that `bench kernels` measures: their inputs for given sizes, how to call them, and their amount of work.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace sb {

using BenchForm = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// Minimum work of a pass: arithmetic operations (a multiply-add is two, as in the GEMM rate) and bytes read or written.
struct Pass {
  double operations = 0, bytes = 0;
};
struct BenchWork {
  Pass forward, backward;
};

struct BenchCase {
  std::string name;
  std::function<std::vector<at::Tensor>(int64_t batch, int64_t time, int64_t width)> inputs;  // in double
  BenchForm form;  // calls the operation; the selected backend runs it
  bool has_loop;   // a recurrence: Backend::naive is a loop over time, and ATen's chunked form is timed, too
  std::function<BenchWork(int64_t batch, int64_t time, int64_t width)> work;
  // Elements that the autograd graph of Backend::naive holds per time step.
  std::function<double(int64_t batch, int64_t width)> graph_elements_a_step;
};

std::vector<BenchCase> bench_cases();

}  // namespace sb
