#include "kernels/cuda/decayed_attention_kernels.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/sizes.h"

namespace sb::cuda {
namespace attention {
namespace {

bool valid(const DecayedAttention& p) {
  return within(p.batch, 1 << 20) && within(p.time, 1 << 24) && within(p.heads, 1 << 16) && within(p.groups, p.heads) &&
         p.heads % p.groups == 0 && within(p.key_width, 256) && within(p.value_width, 256) &&
         p.batch * p.heads * ((p.time + kChunk - 1) / kChunk) < (int64_t{1} << 31) &&
         (p.g != nullptr) == (p.decay != Decay::unit) && ((!p.write && !p.skip) || decayed_attention_writes(p)) &&
         (!p.before || (p.write && p.groups == p.heads && p.decay == Decay::scalar));
}

size_t element_bytes(const DecayedAttention& p) {
  return p.precision == Precision::bf16 ? 2 : 4;
}

// States and decays of all segments, if there are several
struct SegmentMemory {
  size_t decays = 0, bytes = 0;
  SegmentMemory(const DecayedAttention& p, const Sizes& z) {
    if (z.segments.count == 1) return;
    const auto segments = static_cast<size_t>(z.B) * z.H * z.segments.count;
    decays = rounded(segments * z.K * z.V * sizeof(float));
    bytes = decays + rounded(segments * (p.decay == Decay::vector ? z.K : 1) * sizeof(float));
  }
  Joints at(void* memory) const {
    return {static_cast<float*>(memory), reinterpret_cast<float*>(static_cast<char*>(memory) + decays)};
  }
};

struct Workspace {
  size_t state_gradients, dq, dk, dg, skip, by_state, along, joints, bytes;
  Workspace(const DecayedAttention& p, const Sizes& z) {
    const size_t sums =
        z.parts == 1 ? 0 : static_cast<size_t>(z.parts) * z.B * static_cast<size_t>(z.T) * z.G * z.K * sizeof(float);
    state_gradients = 0;
    dq = rounded(static_cast<size_t>(z.states() * z.state_size()) * element_bytes(p));
    dk = dq + rounded(sums);
    dg = dk + rounded(sums);
    const size_t one_each = rounded(static_cast<size_t>(z.states()) * sizeof(float));
    skip = dg + (p.decay == Decay::fixed ? one_each : 0);
    by_state = skip + (p.skip ? one_each : 0);
    const bool vector = p.decay == Decay::vector;
    const size_t rows = vector ? static_cast<size_t>(z.states()) * kChunk * (2 * z.key_row() + kChunk) : 0;
    along = by_state + rounded(rows * element_bytes(p));
    joints = along + (vector ? rounded(static_cast<size_t>(z.states()) * z.K * sizeof(float)) : 0);
    bytes = joints + SegmentMemory(p, z).bytes;
  }
};

// Carries states over the segments of a sequence: S <- decay S + (what the segment adds), from `given` (null: zeros)
// on. A segment's place gets its initial state or, backward, the gradient of its final one. A thread has one element.
__global__ void __launch_bounds__(kBlock)
    join_segments(Joints joints, const float* given, Sizes z, bool by_channel, bool backward) {
  const int64_t size = static_cast<int64_t>(z.K) * z.V, count = z.segments.count;
  const int64_t element = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (element >= size * z.B * z.H) return;
  const int64_t pair = element / size, within = element - pair * size, channel = within / z.V;
  float state = given ? given[element] : 0.f;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t segment = pair * count + (backward ? count - 1 - i : i);
    float& place = joints.states[segment * size + within];
    const float added = i + 1 < count ? place : 0.f;  // the last one has none
    const float decay = i + 1 < count ? joints.decays[by_channel ? segment * z.K + channel : segment] : 0.f;
    place = state;
    state = fmaf(decay, state, added);
  }
}

cudaError_t join(const Joints& joints, const float* given, const DecayedAttention& p, const Sizes& z, bool backward,
                 cudaStream_t stream) {
  const int64_t elements = static_cast<int64_t>(z.B) * z.H * z.K * z.V;
  join_segments<<<static_cast<unsigned>((elements + kBlock - 1) / kBlock), kBlock, 0, stream>>>(
      joints, given, z, p.decay == Decay::vector, backward);
  return cudaGetLastError();
}

cudaError_t forward(ForwardArguments a, void* scratch, cudaStream_t stream) {
  const auto run = a.p.decay == Decay::vector ? vector_forward : scalar_forward;
  const Segments segments = a.z.segments;
  if (segments.count == 1) return run(a, stream);
  ForwardArguments first = a;
  first.first = SegmentMemory(a.p, a.z).at(scratch);
  first.z.segments = segments.some(0, segments.count - 1);
  first.p.initial_state = nullptr;
  cudaError_t status = run(first, stream);
  if (status == cudaSuccess) status = join(first.first, a.p.initial_state, a.p, a.z, false, stream);
  a.p.initial_state = first.first.states;
  return status == cudaSuccess ? run(a, stream) : status;
}

cudaError_t backward(BackwardArguments a, void* memory, cudaStream_t stream) {
  const auto run = a.p.decay == Decay::vector ? vector_backward : scalar_backward;
  const Segments segments = a.z.segments;
  if (segments.count == 1) return run(a, stream);
  BackwardArguments first = a;
  first.first = SegmentMemory(a.p, a.z).at(memory);
  first.z.segments = segments.some(1, segments.count - 1);
  first.d.d_final_state = nullptr;
  cudaError_t status = run(first, stream);
  if (status == cudaSuccess) status = join(first.first, a.d.d_final_state, a.p, a.z, true, stream);
  a.d.d_final_state = first.first.states;
  return status == cudaSuccess ? run(a, stream) : status;
}

// to[b,t,g,k] = sum over the parts [B,T,G,K] in their order; dq and dk at once
template <class E, Access A>
__global__ void __launch_bounds__(kThreads)
    sum_parts(const __grid_constant__ BackwardArguments a, const __grid_constant__ PackCount count, Division by_group,
              Division by_time) {
  const float* const parts = blockIdx.y ? a.dk_parts : a.dq_parts;
  const Rows to = blockIdx.y ? a.d.dk : a.d.dq;
  const Sizes& z = a.z;
  const int64_t size = static_cast<int64_t>(z.B) * z.T * z.G * z.K;
  const Columns<A, 1> at{0, z.K, z.K};
  for_packs(count, [&](int row, int pack) {
    float sum[kPack] = {};
    for (int part = 0; part < z.parts; ++part) {
      Raw<float> more;
      at.load(more, parts + part * size + static_cast<int64_t>(row) * z.K, pack);
#pragma unroll
      for (int j = 0; j < kPack; ++j) sum[j] += more[j];
    }
    const auto token = static_cast<int>(by_group(static_cast<uint32_t>(row))), group = row - token * z.G;
    const auto b = static_cast<int>(by_time(static_cast<uint32_t>(token))), t = token - b * z.T;
    at.store(static_cast<E*>(to.data) + b * to.batch + t * to.time + group * to.head, pack, sum);
  });
}

// to[h] = sum over sequences and chunks
__global__ void __launch_bounds__(kBlock) sum_chunks(const float* parts, float* to, int64_t stride, Sizes z) {
  __shared__ float sums[kBlock];
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < z.B * z.chunks; i += kBlock)
    sum += parts[(static_cast<int64_t>(i / z.chunks) * z.H + blockIdx.x) * z.chunks + i % z.chunks];
  sums[threadIdx.x] = sum;
  for (int half = kBlock / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) to[blockIdx.x * stride] = sums[0];
}

template <class E>
cudaError_t sum_groups(const BackwardArguments& a, cudaStream_t stream) {
  const Sizes& z = a.z;
  const PackCount count(static_cast<int64_t>(z.B) * z.T * z.G, z.K);
  const auto fits = [](const Rows& to) {
    return on_vectors(to.data, to.time, to.head, 2, sizeof(E)) && on_vectors(to.data, to.batch, 0, 1, sizeof(E));
  };
  const auto run = [&](auto kernel) {
    const dim3 grid(static_cast<unsigned>(walking_blocks(kernel, count.blocks(), 1 << 30)), 2);
    kernel<<<grid, kThreads, 0, stream>>>(a, count, Division(static_cast<uint32_t>(z.G)),
                                          Division(static_cast<uint32_t>(z.T)));
    return cudaGetLastError();
  };
  if (!count.valid()) return cudaErrorInvalidValue;
  return z.K % kPack == 0 && fits(a.d.dq) && fits(a.d.dk) ? run(sum_parts<E, Access::vectors>)
                                                          : run(sum_parts<E, Access::neighbours>);
}

}  // namespace
}  // namespace attention

using namespace attention;

bool decayed_attention_writes(const DecayedAttention& p) {
  return by_wgmma(p, Sizes(p));
}

bool decayed_attention_fits(const DecayedAttention& p) {
  const ForwardArguments forward{p, Sizes(p), {}, nullptr, nullptr};
  const BackwardArguments backward{p, Sizes(p)};
  const Target nowhere = Target::nowhere();
  if (p.decay == Decay::vector)
    return vector_forward(forward, nowhere) == cudaSuccess && vector_backward(backward, nowhere) == cudaSuccess;
  return scalar_forward(forward, nowhere) == cudaSuccess && scalar_backward(backward, nowhere) == cudaSuccess;
}

size_t decayed_attention_kept_bytes(const DecayedAttention& p) {
  return static_cast<size_t>(Kept(Sizes(p), p.decay == Decay::vector, static_cast<int>(element_bytes(p))).bytes);
}

size_t decayed_attention_scratch_bytes(const DecayedAttention& p) {
  return SegmentMemory(p, Sizes(p)).bytes;
}

size_t decayed_attention_workspace_bytes(const DecayedAttention& p) {
  return Workspace(p, Sizes(p)).bytes;
}

cudaError_t decayed_attention_forward(const DecayedAttention& p, const Rows& out, float* final_state, void* kept,
                                      void* scratch, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  return attention::forward({p, Sizes(p), out, final_state, kept}, scratch, stream);
}

cudaError_t decayed_attention_backward(const DecayedAttention& p, const void* kept, const DecayedAttentionGradients& d,
                                       void* workspace, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  const Sizes z(p);
  const Workspace w(p, z);
  unsigned char* memory = static_cast<unsigned char*>(workspace);
  const auto floats = [&](size_t at) { return reinterpret_cast<float*>(memory + at); };
  const BackwardArguments a{p,
                            z,
                            d,
                            kept,
                            memory + w.state_gradients,
                            floats(w.dq),
                            floats(w.dk),
                            floats(w.dg),
                            floats(w.skip),
                            memory + w.by_state,
                            floats(w.along)};
  cudaError_t status = attention::backward(a, memory + w.joints, stream);
  if (status == cudaSuccess && z.parts > 1)
    status = p.precision == Precision::bf16 ? sum_groups<__nv_bfloat16>(a, stream) : sum_groups<float>(a, stream);
  if (status != cudaSuccess) return status;
  const auto heads = static_cast<unsigned>(z.H);
  if (p.decay == Decay::fixed) sum_chunks<<<heads, kBlock, 0, stream>>>(a.dg_parts, d.dg, d.dg_head, z);
  if (p.skip) sum_chunks<<<heads, kBlock, 0, stream>>>(a.skip_parts, d.d_skip, 1, z);
  return cudaGetLastError();
}

}  // namespace sb::cuda
