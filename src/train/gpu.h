// The GPU as this build and this machine have it. gpu_present.cpp or gpu_absent.cpp is compiled, as the build has CUDA
// or not: nothing else in this room sees CUDA's headers.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "train/executor.h"

namespace sb {

struct GpuFacts {
  bool built = false;           // this build can use one
  std::string missing;          // why none can be used, and what would help; empty: one can
  std::string name;             // "NVIDIA H200"
  std::string compute;          // "9.0"
  std::string driver, runtime;  // newest CUDA of the driver, and the one this build runs with: "13.0"
  int64_t bytes = 0;            // of its memory
  int count = 0;                // cards that this process sees
};
const GpuFacts& gpu_facts();  // asked once
inline bool has_gpu() {
  return gpu_facts().missing.empty();
}

// Before the first tensor is made there: sums in a fixed order, TF32 as asked for, a stream that can be recorded.
// Throws bad_input "[train.device] …" where there is no GPU to use.
void prepare_gpu(bool tf32);
void wait_for_gpu();
// A place behind all that was handed to the GPU so far; calling it waits until the GPU has got there.
std::function<void()> gpu_marker();
// The operations of a call as one graph, to be run again with what its tensors hold then. Makes the call twice.
std::function<void()> gpu_recorded(const std::function<void()>& call);
// Seconds of a call, of many recorded one behind the other and run at once: without what the host does between them.
double gpu_seconds(const std::function<void()>& call);
void reset_gpu_peak();
int64_t gpu_peak_bytes();  // most bytes of tensors at a time since then

// Each update is one graph of operations, recorded for every length of batch that occurs and run from then on.
std::unique_ptr<Executor> gpu_executor(Trainer& trainer);

}  // namespace sb
