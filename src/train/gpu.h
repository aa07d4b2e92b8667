// Access to the GPU without CUDA's headers. Builds with CUDA compile gpu_present.cpp and gpu_executor.cpp,
// others gpu_absent.cpp.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "train/executor.h"

namespace sb {

struct GpuFacts {
  bool built = false;           // this build supports GPUs
  std::string missing;          // why no GPU can be used, and the remedy; empty: a GPU can be used
  std::string name;             // "NVIDIA H200"
  std::string compute;          // "9.0"
  std::string kernels;          // architectures of the kernels' code: "80,90a"
  std::string driver, runtime;  // newest CUDA version of the driver, and version of the CUDA runtime: "13.0"
  int64_t bytes = 0;            // size of its memory
  int count = 0;                // GPUs visible to this process
};
const GpuFacts& gpu_facts();  // queried once, then cached
inline bool has_gpu() {
  return gpu_facts().missing.empty();
}

// Whether code for these architectures ("80,90a") runs on a GPU of this compute capability: code for 80 runs on 8.0 and
// all later 8.x, code for 90a only on 9.0.
bool gpu_code_runs(std::string_view architectures, int major, int minor);

// Call before the first tensor is made on the GPU. Selects deterministic algorithms, allows or forbids TF32, and makes
// a stream current that supports graph capture. Throws bad_input "[train.device] …" if there is no usable GPU.
void prepare_gpu(bool tf32);
void wait_for_gpu();  // until all submitted work is done; throws check_failed on a CUDA error
// Returns a function that waits until the GPU has finished all work submitted before this call.
std::function<void()> gpu_marker();
// Captures the operations of `call` as a CUDA graph. The returned function replays the graph on the current contents of
// the same tensors. Calls `call` twice: once to warm up, once to capture.
std::function<void()> gpu_recorded(const std::function<void()>& call);
// Mean seconds per call, measured by replaying a graph of many calls, so without the host's overhead.
double gpu_seconds(const std::function<void()>& call);
void reset_gpu_peak();
int64_t gpu_peak_bytes();  // peak bytes of tensors since reset_gpu_peak()

// Runs each update as a CUDA graph. A graph is captured for every batch shape when it first occurs, then replayed.
std::unique_ptr<Executor> gpu_executor(Trainer& trainer);

}  // namespace sb
