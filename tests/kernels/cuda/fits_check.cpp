// Which recurrences have kernels on which GPUs, without one: the host code of the kernels runs against a pretended CUDA
// runtime, whose device has the limits of a compute capability. Checks that a problem which is said to fit launches
// only what the device can run, and that one which does not fit is refused. With --list, prints each combination.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "kernels/cuda/decayed_attention.h"
#include "kernels/cuda/forgetting_attention.h"
#include "kernels/cuda/gated_delta.h"
#include "kernels/cuda/general_delta.h"
#include "kernels/cuda/log_linear_attention.h"
#include "kernels/cuda/mesa.h"
#include "kernels/cuda/selective_scan.h"

namespace {

struct Device {
  int major, minor;
  size_t shared;  // bytes per block
};
constexpr Device kDevices[] = {{8, 0, 163 << 10}, {8, 6, 99 << 10},   {8, 9, 99 << 10},
                               {9, 0, 227 << 10}, {10, 0, 227 << 10}, {12, 0, 99 << 10}};
constexpr Device kHopper = kDevices[3];

struct Runtime {
  Device device = kHopper;
  std::map<const void*, std::string> names;    // of kernels
  std::map<const void*, size_t> most_dynamic;  // shared bytes that a kernel may use, set by cudaFuncSetAttribute
  struct {
    dim3 grid, block;
    size_t shared;
  } call;
  int launches = 0, wgmma_launches = 0;
  std::vector<std::string> faults;
};
Runtime& runtime() {
  static Runtime it;
  return it;
}

}  // namespace

extern "C" {
void** __cudaRegisterFatBinary(void*) {
  static void* handle;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) {
  return 0;
}
void __cudaRegisterFunction(void**, const char* kernel, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  runtime().names[kernel] = name;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t) {
  runtime().call = {grid, block, shared};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void*) {
  *grid = runtime().call.grid, *block = runtime().call.block, *shared = runtime().call.shared;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* out, const void* kernel) {
  *out = reinterpret_cast<cudaKernel_t>(const_cast<void*>(kernel));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void**, size_t shared, cudaStream_t) {
  Runtime& r = runtime();
  const std::string& name = r.names[kernel];
  const bool wgmma = name.find("wgmma") != std::string::npos;
  ++r.launches;
  r.wgmma_launches += wgmma;
  const size_t most = std::max<size_t>(48 << 10, r.most_dynamic[kernel]);
  if (shared > most || shared > r.device.shared) r.faults.push_back(name + ": " + std::to_string(shared) + " bytes");
  if (block.x * block.y * block.z > 1024 || grid.x == 0 || grid.y == 0) r.faults.push_back(name + ": grid");
  if (wgmma && (r.device.major != 9 || r.device.minor != 0)) r.faults.push_back(name + ": needs wgmma");
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int value) {
  if (static_cast<size_t>(value) > runtime().device.shared) return cudaErrorInvalidValue;
  runtime().most_dynamic[kernel] = static_cast<size_t>(value);
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, const void*) {
  *out = {};
  out->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* out) {
  *out = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* out, cudaDeviceAttr which, int) {
  const Device& d = runtime().device;
  *out = which == cudaDevAttrComputeCapabilityMajor         ? d.major
         : which == cudaDevAttrComputeCapabilityMinor       ? d.minor
         : which == cudaDevAttrMaxSharedMemoryPerBlockOptin ? static_cast<int>(d.shared)
                                                            : 100;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void*, int, size_t, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* out, const void*, int, size_t, unsigned) {
  *out = 1;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* out, const void*, int, size_t) {
  *out = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** out, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  *out = reinterpret_cast<void*>(+[] { return 0; });  // a descriptor of TMA is always made
  *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
}

namespace {

using namespace sb::cuda;

int failures = 0;
bool lists = false;

const char* const kPrecisions[] = {"bf16", "tf32", "fp32"};
char* const memory = reinterpret_cast<char*>(uintptr_t{1} << 32);  // never read

// Both passes of a problem on the current device
template <class Fits, class Passes>
bool check(const std::string& name, const Fits& fits, const Passes& passes) {
  Runtime& r = runtime();
  r.faults.clear();
  r.launches = 0;
  const bool may = fits();
  if (r.launches > 0) r.faults.push_back("asking launched kernels");
  const bool made = passes();
  if (may && (!made || r.launches == 0)) r.faults.push_back("fits, but was refused");
  if (!may && made) r.faults.push_back("does not fit, but ran");
  if (!may && r.device.major == kHopper.major) r.faults.push_back("does not fit on Hopper");
  for (const std::string& fault : may || r.device.major == kHopper.major ? r.faults : std::vector<std::string>{}) {
    std::printf("FAILED on %d.%d: %s: %s\n", r.device.major, r.device.minor, name.c_str(), fault.c_str());
    ++failures;
  }
  if (lists) std::printf("%d.%d  %-7s %s\n", r.device.major, r.device.minor, may ? "kernels" : "ATen", name.c_str());
  return may;
}

bool gated_delta(int precision, int factors, int K, int V, int time = 200) {
  DeltaShape shape{2, time, 3, factors, K, V, 1, static_cast<DeltaPrecision>(precision)};
  const DeltaView view{memory, 8, 8, 8, 8};
  const auto name = std::string("gated_delta ") + kPrecisions[precision] + " factors " + std::to_string(factors) +
                    " K " + std::to_string(K) + " V " + std::to_string(V) + " T " + std::to_string(time);
  return check(
      name, [&] { return gated_delta_fits(shape); },
      [&] {
        const DeltaInputs in{view, view, view, view, view};
        const DeltaGradients d{view, nullptr, view, view, view, view, view, nullptr};
        return gated_delta_forward(shape, in, {view}, memory, nullptr, nullptr) == cudaSuccess &&
               gated_delta_backward(shape, in, d, memory, memory, nullptr) == cudaSuccess;
      });
}

bool general_delta(int precision, int K, int V, int time, bool writes_keys) {
  const ConstRows in{memory, 8, 8, 8};
  const Rows out{memory, 8, 8, 8};
  const GeneralDelta p{
      2, time, 3, K,       V,          static_cast<Precision>(precision), false, 1, in, in, in, in, in, nullptr, 0,
      0, 0,    0, nullptr, writes_keys};
  const auto name = std::string("general_delta ") + kPrecisions[precision] + " K " + std::to_string(K) + " V " +
                    std::to_string(V) + " T " + std::to_string(time) + (writes_keys ? " writes keys" : "");
  return check(
      name, [&] { return general_delta_fits(p); },
      [&] {
        const GeneralDeltaGradients d{in, nullptr, out, out, out, out, out, nullptr, 0, 0, 0, nullptr};
        return general_delta_forward(p, out, nullptr, memory, true, nullptr) == cudaSuccess &&
               general_delta_backward(p, memory, d, memory, nullptr) == cudaSuccess;
      });
}

bool decayed_attention(int precision, Decay decay, int K, int V, int time = 200) {
  const ConstRows in{memory, 8, 8, 8};
  const Rows out{memory, 8, 8, 8};
  auto* const floats = reinterpret_cast<float*>(memory);
  const DecayedAttention p{2,  time,   4, 2, K, V,      static_cast<Precision>(precision), decay, 1, in, in,
                           in, floats, 0, 0, 0, nullptr};
  const auto name = std::string("decayed_attention ") + kPrecisions[precision] +
                    (decay == Decay::vector ? " vector" : " scalar") + " K " + std::to_string(K) + " V " +
                    std::to_string(V) + " T " + std::to_string(time);
  return check(
      name, [&] { return decayed_attention_fits(p); },
      [&] {
        const DecayedAttentionGradients d{in, nullptr, out, out, out, floats, 0, 0, 0, nullptr};
        return decayed_attention_forward(p, out, nullptr, memory, memory, nullptr) == cudaSuccess &&
               decayed_attention_backward(p, memory, d, memory, nullptr) == cudaSuccess;
      });
}

LogLinearAttention log_linear_problem(int precision, int time, int K, int V) {
  const ConstRows in{memory, 8, 8, 8};
  auto* const floats = reinterpret_cast<float*>(memory);
  return {2, time, 4, 2, K, V, 15, static_cast<Precision>(precision), in, in, in, floats, floats};
}

bool log_linear_attention(int precision, int time, int K, int V) {
  const Rows out{memory, 8, 8, 8};
  const LogLinearAttention p = log_linear_problem(precision, time, K, V);
  const auto name = std::string("log_linear_attention ") + kPrecisions[precision] + " T " + std::to_string(time) +
                    " K " + std::to_string(K) + " V " + std::to_string(V);
  return check(
      name, [&] { return log_linear_attention_fits(p); },
      [&] {
        auto* const floats = reinterpret_cast<float*>(memory);
        return log_linear_attention_forward(p, out, memory, nullptr) == cudaSuccess &&
               log_linear_attention_backward(p, {p.v, out, out, out, floats, floats}, memory, nullptr) == cudaSuccess;
      });
}

bool selective_scan(bool bf16, int states, int time) {
  SelectiveScan p{};
  p.batch = 2, p.time = time, p.channels = 100, p.states = states, p.bf16 = bf16;
  const auto name = std::string("selective_scan ") + (bf16 ? "bf16" : "fp32") + " states " + std::to_string(states) +
                    " T " + std::to_string(time);
  return check(
      name, [&] { return selective_scan_fits(p); },
      [&] {
        return selective_scan_forward(p, {memory, 8, 8}, nullptr, memory, memory, nullptr) == cudaSuccess &&
               selective_scan_backward(p, memory, {}, memory, nullptr) == cudaSuccess;
      });
}

void expect(bool holds, const char* claim) {
  if (holds) return;
  std::printf("FAILED on %d.%d: %s\n", runtime().device.major, runtime().device.minor, claim);
  ++failures;
}

void check_device(const Device& device) {
  Runtime& r = runtime();
  r.device = device;
  r.most_dynamic.clear();
  r.wgmma_launches = 0;
  for (int precision = 0; precision < 3; ++precision) {
    for (const int K : {16, 64, 72, 81, 96, 128, 192, 256}) {
      for (const int V : {16, 64, 81, 144, 162, 192, 256}) {
        for (const int time : {200, 8192}) {  // whole, and divided into segments
          for (const int factors : {1, 2, 4}) gated_delta(precision, factors, K, V, time);
          for (const Decay decay : {Decay::scalar, Decay::vector}) decayed_attention(precision, decay, K, V, time);
          for (const bool writes_keys : {false, true}) general_delta(precision, K, V, time, writes_keys);
        }
        expect(log_linear_attention(precision, 200, K, V), "log-linear attention has kernels");
      }
    }
  }
  expect(log_linear_attention(0, 4096, 128, 78), "log-linear attention has kernels at T = 4096");
  expect(!log_linear_attention_fits(log_linear_problem(0, 4097, 128, 78)), "no kernels beyond T = 4096");
  for (const int states : {8, 16, 32, 64, 128, 256})
    for (const bool bf16 : {true, false})
      for (const int time : {200, 8192}) selective_scan(bf16, states, time);  // whole, and divided into segments
  expect((r.wgmma_launches > 0) == (device.major == 9), "warp-group kernels run on Hopper and nowhere else");
  expect(forgetting_attention_fits(400, 104), "forgetting attention has a kernel at T = 400");
  expect(mesa_fits(72, 72), "MesaNet has kernels");
  expect(mesa_fits(100, 100) == (device.shared > 120 << 10), "MesaNet with heads of 100 has kernels if a tile fits");
  expect(!mesa_fits(129, 64), "MesaNet has no kernels for wide heads");
  // The paper's models in bf16
  expect(gated_delta(0, 1, 72, 144), "Gated DeltaNet has kernels");
  expect(gated_delta(0, 1, 81, 162), "DeltaNet has kernels");
  expect(gated_delta(0, 4, 96, 192), "Gated DeltaProduct has kernels");
  expect(decayed_attention(0, Decay::vector, 72, 144), "GLA has kernels");
  expect(decayed_attention(0, Decay::scalar, 128, 81), "Mamba2 has kernels");
  expect(selective_scan(true, 64, 400), "Mamba has kernels");
}

}  // namespace

int main(int count, char** arguments) {
  lists = count > 1 && std::strcmp(arguments[1], "--list") == 0;
  for (const Device& device : kDevices) check_device(device);
  std::printf(failures == 0 ? "kernels fit on every GPU, or are not chosen\n" : "%d claims failed\n", failures);
  return failures == 0 ? 0 : 1;
}
