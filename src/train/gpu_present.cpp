#include "train/gpu.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <cstdlib>

#include "base/error.h"
#include "base/stopwatch.h"
#include "base/text.h"
#include "kernels/backend.h"

namespace sb {
namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

GpuFacts look() {
  GpuFacts out;
  out.built = true;
  out.kernels = SB_CUDA_ARCHITECTURES;
  int driver = 0, runtime = 0, count = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  out.runtime = version_text(runtime);
  if (driver > 0) out.driver = version_text(driver);
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaGetLastError();  // clears the error
  if (driver == 0) {
    out.missing = "this machine has no CUDA driver; install NVIDIA's, or set train.device=cpu";
  } else if (status == cudaErrorInsufficientDriver) {
    out.missing = "the driver is too old: it serves CUDA " + out.driver + ", this build runs with " + out.runtime +
                  "; install a newer driver, or set train.device=cpu";
  } else if (status != cudaSuccess || count == 0) {
    out.missing = "no GPU found" +
                  (status == cudaErrorNoDevice || status == cudaSuccess
                       ? std::string()
                       : " (" + printable(cudaGetErrorString(status), 200) + ")") +
                  "; `nvidia-smi` lists those the driver sees";
  }
  out.count = count;
  if (!out.missing.empty()) return out;
  cudaDeviceProp properties{};
  if (const cudaError_t failure = cudaGetDeviceProperties(&properties, 0); failure != cudaSuccess) {
    cudaGetLastError();
    out.missing = "cannot query the GPU (" + printable(cudaGetErrorString(failure), 200) +
                  "); see `nvidia-smi`, or set train.device=cpu";
  } else {
    out.name = printable(properties.name, 200);
    out.compute = std::to_string(properties.major) + "." + std::to_string(properties.minor);
    out.bytes = static_cast<int64_t>(properties.totalGlobalMem);
    if (!gpu_code_runs(out.kernels, properties.major, properties.minor)) {
      out.missing = "the kernels are built for the architectures " + out.kernels + ", got " + out.name +
                    " of compute capability " + out.compute + "; build with `make gpu`, or set train.device=cpu";
    }
  }
  return out;
}

// Suppresses ATen's warnings about operations that may be nondeterministic; tests compare the bytes of those used here.
struct Silent final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

}  // namespace

const GpuFacts& gpu_facts() {
  static const GpuFacts facts = look();
  return facts;
}

void prepare_gpu(bool tf32) {
  if (!has_gpu()) throw bad_input("train.device", "expected cpu, got cuda: " + gpu_facts().missing);
  static const bool once = [] {
    ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
    static Silent silent;
    c10::WarningUtils::set_warning_handler(&silent);
    at::globalContext().setDeterministicAlgorithms(true, true);
    at::globalContext().setDeterministicFillUninitializedMemory(false);
    at::globalContext().setDeterministicCuDNN(true);
    at::globalContext().setBenchmarkCuDNN(false);
    at::globalContext().setAllowBF16ReductionCuBLAS(false);  // sums of bf16 products stay in fp32
    c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool(true, 0));
    return true;
  }();
  static_cast<void>(once);
  kernels::allow_tf32(tf32);
}

void wait_for_gpu() {
  const cudaError_t status = cudaDeviceSynchronize();
  if (status != cudaSuccess) throw check_failed("gpu", std::string("CUDA: ") + cudaGetErrorString(status));
}

std::function<void()> gpu_marker() {
  auto reached = std::make_shared<at::cuda::CUDAEvent>();
  reached->record();
  return [reached] { reached->synchronize(); };
}

std::function<void()> gpu_recorded(const std::function<void()>& call) {
  call();  // warm-up: lazy initialisation happens here
  wait_for_gpu();
  auto graph = std::make_shared<at::cuda::CUDAGraph>();
  graph->capture_begin(at::cuda::graph_pool_handle(), cudaStreamCaptureModeThreadLocal);
  try {
    call();
  } catch (...) {
    try {
      graph->capture_end();  // makes the stream usable again
    } catch (const c10::Error&) {
    }
    throw;
  }
  graph->capture_end();
  return [graph] { graph->replay(); };
}

double gpu_seconds(const std::function<void()>& call) {
  constexpr int calls = 10, replays = 3;
  const auto many = gpu_recorded([&] {
    for (int i = 0; i < calls; ++i) call();
  });
  many();
  wait_for_gpu();
  const double seconds = seconds_of([&] {
    for (int i = 0; i < replays; ++i) many();
    wait_for_gpu();
  });
  return seconds / (calls * replays);
}

void reset_gpu_peak() {
  c10::cuda::CUDACachingAllocator::emptyCache();
  c10::cuda::CUDACachingAllocator::resetPeakStats(0);
}

int64_t gpu_peak_bytes() {
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(0);
  return stats.allocated_bytes[0].peak;
}

}  // namespace sb
