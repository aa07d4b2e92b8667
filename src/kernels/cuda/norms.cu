// A row belongs to `Lanes` threads, which hold it in registers and read the next one while they work; blocks walk the
// rows, so that a thread keeps its columns' gains and the sums of their gradients.
#include "kernels/cuda/norms.h"

#include "kernels/cuda/rows.cuh"

namespace sb::cuda {
namespace {

struct NormRows {
  RowNorm p;
  int64_t rows;
  RowsIn gy;
  RowsOut y, dx, dz;
  float* parts;
  template <class E, class Void>
  __device__ E* row(const TokenRows<Void>& view, int64_t r) const {
    E* const data = static_cast<E*>(view.data);
    if (p.heads == 1) return data + r * view.token;
    const int64_t token = r / p.heads;
    return data + token * view.token + (r - token * p.heads) * view.head;
  }
};

__device__ inline float row_scale(const RowNorm& p, float squares) {
  const float n = static_cast<float>(p.width);
  if (p.kind == NormKind::rms) return 1.f / sqrtf(squares / n + p.eps);
  if (p.kind == NormKind::outer_eps) return 1.f / (sqrtf(squares / n) + p.eps);
  return 1.f / sqrtf(squares + p.eps);
}
// c of du = s t - c u (t . u)
__device__ inline float row_slope(const RowNorm& p, float squares, float s) {
  const float n = static_cast<float>(p.width);
  if (p.kind == NormKind::rms) return s * s * s / n;
  if (p.kind == NormKind::l2) return s * s * s;
  const float root = sqrtf(squares / n);
  return root > 0 ? s * s / (n * root) : 0.f;
}

template <class E, Access A, int Lanes, int Packs, NormGate G>
__global__ void __launch_bounds__(kThreads) norm_forward(const __grid_constant__ NormRows q) {
  const RowNorm& p = q.p;
  const Columns<A, Lanes> at{static_cast<int>(threadIdx.x) % Lanes, p.width, p.padded};
  const int64_t step = static_cast<int64_t>(gridDim.x) * (kThreads / Lanes);
  int64_t r = static_cast<int64_t>(blockIdx.x) * (kThreads / Lanes) + threadIdx.x / Lanes;
  const int64_t rounds = (q.rows - static_cast<int64_t>(blockIdx.x) * (kThreads / Lanes) + step - 1) / step;
  float gain[Packs][kPack];
  Raw<E> x[Packs], z[Packs];
#pragma unroll
  for (int i = 0; i < Packs; ++i) at.parameters(gain[i], p.gain, i, 1.f);
  const auto read = [&](int64_t row) {
    if (row >= q.rows) row = q.rows - 1;
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
      at.load(x[i], q.row<const E>(p.x, row), i);
      if constexpr (G != NormGate::none) at.load(z[i], q.row<const E>(p.z, row), i);
    }
  };
  read(r);
  for (int64_t round = 0; round < rounds; ++round, r += step) {
    float u[Packs][kPack], squares[1] = {0};
    Raw<E> gate[Packs];
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
      if constexpr (G == NormGate::after) gate[i] = z[i];
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        u[i][j] = x[i][j];
        if constexpr (G == NormGate::before) u[i][j] *= z[i][j] * sigmoid(z[i][j]);
        squares[0] += u[i][j] * u[i][j];
      }
    }
    if (round + 1 < rounds) read(r + step);
    sum_over_row<Lanes>(squares, round & 1);
    const float s = row_scale(p, squares[0]);
    if (r >= q.rows) continue;
    E* const y = q.row<E>(q.y, r);
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        u[i][j] *= s * gain[i][j];
        if constexpr (G == NormGate::after) u[i][j] *= gate[i][j] * sigmoid(gate[i][j]);
      }
      at.store(y, i, u[i]);
    }
  }
}

template <class E, Access A, int Lanes, int Packs, NormGate G>
__global__ void __launch_bounds__(kThreads) norm_backward(const __grid_constant__ NormRows q) {
  const RowNorm& p = q.p;
  const Columns<A, Lanes> at{static_cast<int>(threadIdx.x) % Lanes, p.width, p.padded};
  const int64_t step = static_cast<int64_t>(gridDim.x) * (kThreads / Lanes);
  int64_t r = static_cast<int64_t>(blockIdx.x) * (kThreads / Lanes) + threadIdx.x / Lanes;
  const int64_t rounds = (q.rows - static_cast<int64_t>(blockIdx.x) * (kThreads / Lanes) + step - 1) / step;
  float gain[Packs][kPack], d_gain[Packs][kPack] = {};
  Raw<E> next_x[Packs], next_z[Packs], next_g[Packs];
#pragma unroll
  for (int i = 0; i < Packs; ++i) at.parameters(gain[i], p.gain, i, 1.f);
  const auto read = [&](int64_t row) {
    if (row >= q.rows) row = q.rows - 1;
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
      at.load(next_x[i], q.row<const E>(p.x, row), i);
      at.load(next_g[i], q.row<const E>(q.gy, row), i);
      if constexpr (G != NormGate::none) at.load(next_z[i], q.row<const E>(p.z, row), i);
    }
  };
  read(r);
  for (int64_t round = 0; round < rounds; ++round, r += step) {
    Raw<E> x[Packs], z[Packs], g[Packs];
    float sums[2] = {0, 0};  // u . u, t . u
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
      x[i] = next_x[i], g[i] = next_g[i];
      if constexpr (G != NormGate::none) z[i] = next_z[i];
    }
    if (round + 1 < rounds) read(r + step);
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        float u = x[i][j], t = g[i][j] * gain[i][j];
        if constexpr (G == NormGate::before) u *= z[i][j] * sigmoid(z[i][j]);
        if constexpr (G == NormGate::after) t *= z[i][j] * sigmoid(z[i][j]);
        sums[0] += u * u;
        sums[1] += t * u;
      }
    }
    sum_over_row<Lanes>(sums, round & 1);
    if (r >= q.rows) continue;
    const float s = row_scale(p, sums[0]), c = row_slope(p, sums[0], s) * sums[1];
    E *const dx = q.row<E>(q.dx, r), *const dz = G == NormGate::none ? nullptr : q.row<E>(q.dz, r);
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
      float to_x[kPack], to_z[kPack];
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const float gy = g[i][j], v = x[i][j];
        if constexpr (G == NormGate::none) {
          d_gain[i][j] += gy * v * s;
          to_x[j] = gy * gain[i][j] * s - v * c;
        } else {
          const float gate = z[i][j], sig = sigmoid(gate), silu = gate * sig;
          if constexpr (G == NormGate::after) {
            const float t = gy * silu;
            d_gain[i][j] += t * v * s;
            to_x[j] = t * gain[i][j] * s - v * c;
            to_z[j] = gy * v * s * gain[i][j] * silu_slope(gate, sig);
          } else {
            const float u = v * silu, du = gy * gain[i][j] * s - u * c;
            d_gain[i][j] += gy * u * s;
            to_x[j] = du * silu;
            to_z[j] = du * v * silu_slope(gate, sig);
          }
        }
      }
      at.store(dx, i, to_x);
      if constexpr (G != NormGate::none) at.store(dz, i, to_z);
    }
  }
  if (q.parts) store_part(d_gain, at, q.parts + static_cast<int64_t>(blockIdx.x) * p.width);
}

struct Launch {
  NormRows q;
  bool back;
  float* d_gain;
  cudaStream_t stream;

  template <class E, Access A, int Lanes, int Packs, NormGate G>
  cudaError_t run() const {
    const int64_t blocks = (q.rows + kThreads / Lanes - 1) / (kThreads / Lanes);
    if (!back) {
      const auto kernel = norm_forward<E, A, Lanes, Packs, G>;
      kernel<<<walking_blocks(kernel, blocks, 1 << 30), kThreads, 0, stream>>>(q);
      return cudaGetLastError();
    }
    const auto kernel = norm_backward<E, A, Lanes, Packs, G>;
    const int parts = walking_blocks(kernel, blocks);
    kernel<<<parts, kThreads, 0, stream>>>(q);
    const cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess || !q.parts) return status;
    return sum_parts(q.parts, parts, q.p.width, d_gain, q.p.width, nullptr, stream);
  }
  template <class E, Access A, int Lanes, int Packs>
  cudaError_t gated() const {
    if (q.p.gate == NormGate::after) return run<E, A, Lanes, Packs, NormGate::after>();
    if (q.p.gate == NormGate::before) return run<E, A, Lanes, Packs, NormGate::before>();
    return run<E, A, Lanes, Packs, NormGate::none>();
  }
  template <class E>
  cudaError_t operator()() const {
    const int n = q.p.width;
    const size_t size = sizeof(E);
    const auto fits = [&](const auto& view) { return on_vectors(view.data, view.token, view.head, q.p.heads, size); };
    const bool vectors = fits(q.p.x) && fits(q.p.z) && fits(q.gy) && fits(q.y) && fits(q.dx) && fits(q.dz);
    if (!vectors) {
      if (n <= 256) return gated<E, Access::scattered, 32, 1>();
      return gated<E, Access::scattered, 256, 3>();
    }
    if constexpr (sizeof(E) == 2) {
      if (n <= 64) return gated<E, Access::vectors, 8, 1>();
      if (n <= 128) return gated<E, Access::vectors, 16, 1>();
      if (n > 256 && n <= 512) return gated<E, Access::vectors, 64, 1>();
      if (n > 512 && n <= 1536) return gated<E, Access::vectors, 64, 3>();
    }
    if (n <= 256) return gated<E, Access::vectors, 32, 1>();
    if (n <= 3072) return gated<E, Access::vectors, 128, 3>();
    return gated<E, Access::scattered, 256, 3>();
  }
};

bool valid(const RowNorm& p) {
  return p.tokens >= 0 && p.heads > 0 && p.width > 0 && p.width <= kMostNormWidth && p.x.data &&
         (p.gate == NormGate::none || p.z.data);
}

NormRows rows_of(const RowNorm& p) {
  NormRows q{p, p.tokens * p.heads};
  q.p.padded = std::max(p.padded, p.width);
  if (p.gate == NormGate::none) q.p.z = {};
  return q;
}

}  // namespace

cudaError_t row_norm_forward(const RowNorm& p, const RowsOut& y, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  if (p.tokens == 0) return cudaSuccess;
  Launch launch{rows_of(p), false, nullptr, stream};
  launch.q.y = y;
  return with_element(p.element, launch);
}

size_t row_norm_scratch_bytes(const RowNorm& p) {
  return sizeof(float) * kMostParts * static_cast<size_t>(p.width);
}

cudaError_t row_norm_backward(const RowNorm& p, const RowsIn& gy, const RowsOut& dx, const RowsOut& dz, float* d_gain,
                              void* scratch, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  if (p.tokens == 0) return d_gain ? cudaMemsetAsync(d_gain, 0, sizeof(float) * p.width, stream) : cudaSuccess;
  Launch launch{rows_of(p), true, d_gain, stream};
  launch.q.gy = gy;
  launch.q.dx = dx;
  if (p.gate != NormGate::none) launch.q.dz = dz;
  launch.q.parts = d_gain ? static_cast<float*>(scratch) : nullptr;
  return with_element(p.element, launch);
}

}  // namespace sb::cuda
