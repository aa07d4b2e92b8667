#include <type_traits>

#include "kernels/cuda/selective_scan_tiles.cuh"
#include "kernels/cuda/sizes.h"

namespace sb::cuda {
namespace scan {
namespace {

bool valid(const SelectiveScan& p) {
  return p.batch >= 1 && p.batch < 65536 && p.time >= 1 && p.time < (1 << 24) && p.channels >= 1 &&
         p.channels < (1 << 20) && p.states >= 1 && p.states <= 256 && p.a_min >= 0 && p.a_min < 1;
}

// The number of states that the kernels work with: more than p.states if a wider shape needs less shared memory, which
// the current device does not have. 0: no shape fits.
int padded_states(const SelectiveScan& p) {
  const Target nowhere = Target::nowhere();
  for (const int padded : kPaddedStates) {
    if (p.states <= padded && forward({p}, padded, nowhere) == cudaSuccess &&
        backward({p}, padded, nowhere) == cudaSuccess)
      return padded;
  }
  return 0;
}

Sizes sizes(const SelectiveScan& p, int padded) {
  return with_shape(p, padded, [&](auto shape) { return sizes_of(p, shape); });
}

// How a problem is computed. With several segments, the sequences are processed one after the other, each as a batch of
// its segments.
struct Plan {
  int padded;  // number of states that the kernels work with
  int64_t segments = 1;
  Sizes z;      // of all sequences or, with several segments, of one
  size_t kept;  // bytes of the kept states of z
  int64_t sequences(const SelectiveScan& p) const { return segments == 1 ? 1 : p.batch; }
};

// Rounds of blocks, two at a time per multiprocessor, relative to a scan of whole sequences in one round
double rounds(int64_t blocks, int64_t segments) {
  const int64_t at_once = 2 * multiprocessors();
  return static_cast<double>((blocks * segments + at_once - 1) / at_once) / static_cast<double>(segments);
}

// Segments must be of one length. To find their initial states takes less than 0.6 of the scan's time.
int64_t best_segments(const SelectiveScan& p, int64_t groups) {
  constexpr int64_t least_steps = 256, most = 64;
  int64_t best = 1;
  for (int64_t s = 2; s <= most && p.time / s >= least_steps; ++s)
    if (p.time % s == 0 && (best == 1 || rounds(groups, s) < rounds(groups, best))) best = s;
  return static_cast<double>(p.batch) * 1.6 * rounds(groups, best) < rounds(groups * p.batch, 1) ? best : 1;
}

// The rows of a sequence, with its segments in the place of the batch
template <class E>
ScanRows<E> segments_of(ScanRows<E> rows, int64_t sequence, int64_t steps) {
  if (!rows.data) return rows;
  return {rows.data + sequence * rows.batch, steps * rows.time, rows.time};
}
template <class E>
ScanRows<E> segments_of(ScanRows<E> rows, int64_t sequence, int64_t steps, size_t element) requires std::is_void_v<E> {
  if (!rows.data) return rows;
  using Byte = std::conditional_t<std::is_const_v<E>, const char, char>;
  return {static_cast<Byte*>(rows.data) + sequence * rows.batch * static_cast<int64_t>(element), steps * rows.time,
          rows.time};
}
size_t element_bytes(const SelectiveScan& p) {
  return p.bf16 ? 2 : 4;
}

SelectiveScan sequence_of(const SelectiveScan& p, int64_t b, int64_t segments) {
  const int64_t steps = p.time / segments;
  SelectiveScan q = p;
  q.batch = segments, q.time = steps;
  for (auto* rows : {&q.x, &q.B, &q.C}) *rows = segments_of(*rows, b, steps, element_bytes(p));
  for (auto* rows : {&q.delta, &q.write}) *rows = segments_of(*rows, b, steps);
  return q;
}

Plan plan(const SelectiveScan& p) {
  Plan out{padded_states(p)};
  out.z = sizes(p, out.padded);
  out.segments = best_segments(p, out.z.groups);
  if (out.segments > 1) out.z = sizes(sequence_of(p, 0, out.segments), out.padded);
  out.kept = with_shape(p, out.padded, [&](auto shape) {
    return static_cast<size_t>(out.z.batch) * static_cast<size_t>(out.z.groups) * static_cast<size_t>(out.z.chunks) *
           decltype(shape)::parts * kThreads * sizeof(uint4);
  });
  return out;
}

// States and decays of the segments of one sequence
struct Joints {
  size_t states = 0, decays, bytes;
  Joints(const SelectiveScan& p, const Plan& plan) {
    decays = plan.segments == 1 ? 0 : rounded(static_cast<size_t>(plan.segments * p.channels * p.states) * 4);
    bytes = 2 * decays;
  }
};

struct Workspace {
  size_t dB, dC, d_A_log, d_skip, joints, kept, bytes;
  Workspace(const SelectiveScan& p, const Plan& plan, bool has_kept) {
    const Sizes& z = plan.z;
    const size_t rows = rounded(static_cast<size_t>(z.groups) * static_cast<size_t>(z.batch) *
                                static_cast<size_t>(z.time) * static_cast<size_t>(p.states) * 4);
    const size_t parts = static_cast<size_t>(p.batch * plan.segments);
    dB = 0;
    dC = dB + rows;
    d_A_log = dC + rows;
    d_skip = d_A_log + rounded(parts * static_cast<size_t>(p.channels * p.states) * 4);
    joints = d_skip + rounded(parts * static_cast<size_t>(p.channels) * 4);
    kept = joints + Joints(p, plan).bytes;
    bytes = kept + (has_kept ? 0 : static_cast<size_t>(plan.sequences(p)) * plan.kept);
  }
};

// to[row, n] = sum over the parts in their order; rows of `width`, batch and time strides
template <class E>
__global__ void __launch_bounds__(kThreads)
    sum_parts(const float* parts, int count, int64_t rows, int width, int time, ScanRows<void> to) {
  const int64_t size = rows * width;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < size;
       i += static_cast<int64_t>(gridDim.x) * kThreads) {
    float sum = 0;
#pragma unroll 8
    for (int part = 0; part < count; ++part) sum += parts[part * size + i];
    const int64_t row = i / width, column = i % width;
    static_cast<E*>(to.data)[row / time * to.batch + row % time * to.time + column] = from_float<E>(sum);
  }
}

const float* offset(const float* p, int64_t by) {
  return p ? p + by : nullptr;
}

cudaError_t forward_all(const SelectiveScan& p, const Plan& plan, const ScanRows<void>& out, float* final_state,
                        void* kept, void* scratch, cudaStream_t stream) {
  if (plan.segments == 1) return forward({p, plan.z, out, final_state, kept}, plan.padded, stream);
  const Joints at(p, plan);
  auto* const states = static_cast<float*>(scratch);
  auto* const decays = reinterpret_cast<float*>(static_cast<char*>(scratch) + at.decays);
  const int64_t size = p.channels * p.states;
  for (int64_t b = 0; b < p.batch; ++b) {
    SelectiveScan q = sequence_of(p, b, plan.segments);
    cudaError_t status =
        join({q, plan.z, {}, states, decays}, offset(p.initial_state, b * size), false, plan.padded, stream);
    if (status != cudaSuccess) return status;
    q.initial_state = states;
    float* const finals = final_state ? decays : nullptr;  // of every segment; the decays are used up
    void* const kept_here = kept ? static_cast<char*>(kept) + static_cast<size_t>(b) * plan.kept : nullptr;
    status =
        forward({q, plan.z, segments_of(out, b, q.time, element_bytes(p)), finals, kept_here}, plan.padded, stream);
    if (status == cudaSuccess && final_state)
      status = cudaMemcpyAsync(final_state + b * size, finals + (plan.segments - 1) * size,
                               static_cast<size_t>(size) * 4, cudaMemcpyDeviceToDevice, stream);
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

// Gradients of all sequences, or of one (its segments as a batch); sums over sequences are left to the caller
cudaError_t backward_rows(const BackwardArguments& a, int padded, cudaStream_t stream) {
  if (const cudaError_t status = backward(a, padded, stream); status != cudaSuccess) return status;
  const unsigned blocks = static_cast<unsigned>(multiprocessors()) * 8;
  const int64_t rows = a.p.batch * a.p.time;
  const auto sum_rows = a.p.bf16 ? sum_parts<__nv_bfloat16> : sum_parts<float>;
  sum_rows<<<blocks, kThreads, 0, stream>>>(a.dB, a.z.groups, rows, a.z.states, a.z.time, a.d.dB);
  sum_rows<<<blocks, kThreads, 0, stream>>>(a.dC, a.z.groups, rows, a.z.states, a.z.time, a.d.dC);
  return cudaGetLastError();
}

cudaError_t backward_all(const BackwardArguments& a, const Plan& plan, void* joints, cudaStream_t stream) {
  if (plan.segments == 1) return backward_rows(a, plan.padded, stream);
  const SelectiveScan& p = a.p;
  const Joints at(p, plan);
  auto* const states = static_cast<float*>(joints);
  auto* const decays = reinterpret_cast<float*>(static_cast<char*>(joints) + at.decays);
  const int64_t size = p.channels * p.states, steps = p.time / plan.segments;
  const size_t element = element_bytes(p);
  for (int64_t b = 0; b < p.batch; ++b) {
    const SelectiveScan q = sequence_of(p, b, plan.segments);
    SelectiveScanGradients d = a.d;
    d.d_out = segments_of(d.d_out, b, steps, element);
    for (auto* rows : {&d.dx, &d.dB, &d.dC}) *rows = segments_of(*rows, b, steps, element);
    for (auto* rows : {&d.d_delta, &d.d_write}) *rows = segments_of(*rows, b, steps);
    cudaError_t status =
        join({q, plan.z, d.d_out, states, decays}, offset(a.d.d_final_state, b * size), true, plan.padded, stream);
    if (status != cudaSuccess) return status;
    d.d_final_state = states;
    d.d_initial_state = a.d.d_initial_state ? decays : nullptr;  // of every segment; the decays are used up
    const void* const kept = static_cast<const char*>(a.kept) + static_cast<size_t>(b) * plan.kept;
    status = backward_rows({q, plan.z, d, kept, a.dB, a.dC, a.d_A_log + b * plan.segments * size,
                            a.d_skip + b * plan.segments * p.channels},
                           plan.padded, stream);
    if (status == cudaSuccess && a.d.d_initial_state)
      status = cudaMemcpyAsync(a.d.d_initial_state + b * size, decays, static_cast<size_t>(size) * 4,
                               cudaMemcpyDeviceToDevice, stream);
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

}  // namespace
}  // namespace scan

bool selective_scan_fits(const SelectiveScan& p) {
  return scan::padded_states(p) > 0;
}

size_t selective_scan_kept_bytes(const SelectiveScan& p) {
  const scan::Plan plan = scan::plan(p);
  return static_cast<size_t>(plan.sequences(p)) * plan.kept;
}

size_t selective_scan_scratch_bytes(const SelectiveScan& p) {
  return scan::Joints(p, scan::plan(p)).bytes;
}

size_t selective_scan_workspace_bytes(const SelectiveScan& p, bool has_kept) {
  return scan::Workspace(p, scan::plan(p), has_kept).bytes;
}

cudaError_t selective_scan_forward(const SelectiveScan& p, const ScanRows<void>& out, float* final_state, void* kept,
                                   void* scratch, cudaStream_t stream) {
  if (!scan::valid(p)) return cudaErrorInvalidValue;
  const scan::Plan plan = scan::plan(p);
  if (plan.padded == 0) return cudaErrorInvalidConfiguration;
  return scan::forward_all(p, plan, out, final_state, kept, scratch, stream);
}

cudaError_t selective_scan_backward(const SelectiveScan& p, const void* kept, const SelectiveScanGradients& d,
                                    void* workspace, cudaStream_t stream) {
  if (!scan::valid(p)) return cudaErrorInvalidValue;
  const scan::Plan plan = scan::plan(p);
  if (plan.padded == 0) return cudaErrorInvalidConfiguration;
  const scan::Workspace w(p, plan, kept != nullptr);
  char* const memory = static_cast<char*>(workspace);
  const auto floats = [&](size_t at) { return reinterpret_cast<float*>(memory + at); };
  cudaError_t status = cudaSuccess;
  if (!kept) {
    status = scan::forward_all(p, plan, {}, nullptr, memory + w.kept, memory + w.joints, stream);
    kept = memory + w.kept;
  }
  if (status == cudaSuccess)
    status = scan::backward_all({p, plan.z, d, kept, floats(w.dB), floats(w.dC), floats(w.d_A_log), floats(w.d_skip)},
                                plan, memory + w.joints, stream);
  if (status != cudaSuccess) return status;
  const unsigned blocks = static_cast<unsigned>(multiprocessors()) * 8;
  const int parts = static_cast<int>(p.batch * plan.segments), channels = static_cast<int>(p.channels),
            states = static_cast<int>(p.states);
  scan::sum_parts<float><<<blocks, scan::kThreads, 0, stream>>>(floats(w.d_A_log), parts, channels, states, channels,
                                                                {d.d_A_log, 0, states});
  scan::sum_parts<float>
      <<<blocks, scan::kThreads, 0, stream>>>(floats(w.d_skip), parts, 1, channels, 1, {d.d_skip, 0, channels});
  return cudaGetLastError();
}

}  // namespace sb::cuda
