// A row is processed by a block, by part of a block, or, if it is narrow, together with other rows by a warp. The
// threads hold the row in registers and read the next one at the same time.
#include "kernels/cuda/residual_norm.h"

#include <cmath>

#include "kernels/cuda/philox.cuh"
#include "kernels/cuda/rows.cuh"

namespace sb::cuda {
namespace {

constexpr float kEps = 1e-5f;

// What the kernels need of a DropoutPlace
struct Mask {
  uint2 key;
  uint32_t place, dropped;
  float scale;
  const int64_t *samples, *update;
  int time;
  bool tied;
  explicit Mask(const DropoutPlace& d, int frames)
      : key(make_uint2(static_cast<uint32_t>(d.seed), static_cast<uint32_t>(d.seed >> 32))),
        place(d.place << 8 | kDropoutPurpose),
        dropped(static_cast<uint32_t>(std::clamp(std::round(d.p * 0x1p16), 0.0, 0x1p16 - 1))),
        scale(0x1p16f / (0x1p16f - static_cast<float>(dropped))),
        samples(d.samples),
        update(d.update),
        time(frames),
        tied(d.tied_over_time) {}
  // v of a row's columns 8 block .. 8 block + 7
  __device__ void apply(float (&v)[kPack], int row, int block) const {
    const int sequence = row / time;
    const uint32_t frame = tied ? 0 : static_cast<uint32_t>(row - sequence * time);
    const uint4 words =
        philox(make_uint4(frame << 12 | static_cast<uint32_t>(block), static_cast<uint32_t>(samples[sequence]),
                          static_cast<uint32_t>(*update), place),
               key);
    const uint32_t word[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const uint32_t half = j & 1 ? word[j >> 1] >> 16 : word[j >> 1] & 0xffffu;
      v[j] = half >= dropped ? v[j] * scale : 0.f;
    }
  }
};

struct ResidualRows {
  int rows, width, lanes;
  RowsIn z, residual, gy;
  RowsOut y, d_residual, dz;
  const float *gain, *bias, *stats;
  float *stats_out, *parts;
  Mask mask;
};

// A row read in advance. E: of z; S: of the stream
template <class E, class S, int Packs, bool back>
struct Ahead {
  Raw<E> z[Packs];
  Raw<S> residual[Packs], gy[back ? Packs : 1];
  template <class At>
  __device__ __forceinline__ void read(const ResidualRows& q, const At& at, int row) {
    row = min(row, q.rows - 1);
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
      if (!at.used(i)) continue;
      at.load(z[i], row_of<const E>(q.z, row), i);
      at.load(residual[i], row_of<const S>(q.residual, row), i);
      if constexpr (back) at.load(gy[i], row_of<const S>(q.gy, row), i);
    }
  }
};

template <class E, class S, Access A, int Lanes, int Packs>
__global__ void __launch_bounds__(kThreads) residual_forward(const __grid_constant__ ResidualRows q) {
  const RowWalk<A, Lanes> walk(q.rows, q.width, q.lanes);
  const Columns<A, Lanes>& at = walk.at;
  const float one_nth = 1.f / static_cast<float>(q.width);
  float gain[Packs][kPack], bias[Packs][kPack];
  Ahead<E, S, Packs, false> next;
#pragma unroll
  for (int i = 0; i < Packs; ++i) {
    at.parameters(gain[i], q.gain, i, 1.f);
    at.parameters(bias[i], q.bias, i, 0.f);
  }
  const auto work = [&](int, int r, auto read_next) {
    float u[Packs][kPack], sum[1] = {0}, squares[1] = {0};
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
      if (!at.used(i)) continue;
#pragma unroll
      for (int j = 0; j < kPack; ++j) u[i][j] = next.z[i][j];
      if (q.mask.dropped && at.inside(i, 0)) q.mask.apply(u[i], min(r, q.rows - 1), at.column(i, 0) / kPack);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        u[i][j] += next.residual[i][j];  // zero outside
        sum[0] += u[i][j];
      }
    }
    read_next();
    walk.groups.sum(sum, 0);
    const float mean = sum[0] * one_nth;
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
      if (!at.used(i)) continue;
      float sum_of_pack = 0;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        u[i][j] -= mean;
        sum_of_pack += A == Access::whole || at.inside(i, j) ? u[i][j] * u[i][j] : 0.f;
      }
      squares[0] += at.inside(i, 0) ? sum_of_pack : 0.f;
    }
    walk.groups.sum(squares, 1);
    const float s = 1.f / sqrtf(squares[0] * one_nth + kEps);
    if (r >= q.rows) return;
    if (q.stats_out && at.lane == 0) reinterpret_cast<float2*>(q.stats_out)[r] = make_float2(mean, s);
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
      if (!at.used(i)) continue;
#pragma unroll
      for (int j = 0; j < kPack; ++j) u[i][j] = u[i][j] * s * gain[i][j] + bias[i][j];
      at.store(row_of<S>(q.y, r), i, u[i]);
    }
  };
  walk.each([&](int row) { next.read(q, at, row); }, work);
}

template <class E, class S, Access A, int Lanes, int Packs>
__global__ void __launch_bounds__(kThreads,
                                  sizeof(E) == 2 && A == Access::whole ? (Packs == 1 && sizeof(S) == 2 ? 3 : 2) : 1)
    residual_backward(const __grid_constant__ ResidualRows q) {
  const RowWalk<A, Lanes> walk(q.rows, q.width, q.lanes);
  const Columns<A, Lanes>& at = walk.at;
  const float one_nth = 1.f / static_cast<float>(q.width);
  float gain[Packs][kPack], d_gain[Packs][kPack] = {}, d_bias[Packs][kPack] = {};
  Ahead<E, S, Packs, true> next;
#pragma unroll
  for (int i = 0; i < Packs; ++i) at.parameters(gain[i], q.gain, i, 1.f);
  const auto work = [&](int round, int r, auto read_next) {
    const int here = min(r, q.rows - 1);
    const float2 stats = reinterpret_cast<const float2*>(q.stats)[here];
    const float mean = stats.x, s = stats.y;
    float x[Packs][kPack], g[Packs][kPack], sums[2] = {0, 0};  // of g gain, of g gain x
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
      if (!at.used(i)) continue;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        x[i][j] = next.z[i][j];
        g[i][j] = next.gy[i][j];
      }
      if (q.mask.dropped && at.inside(i, 0)) q.mask.apply(x[i], here, at.column(i, 0) / kPack);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        x[i][j] = (x[i][j] + next.residual[i][j] - mean) * s;
        const float gw = g[i][j] * gain[i][j];
        sums[0] += gw;  // columns outside have g = 0
        sums[1] += gw * x[i][j];
      }
    }
    read_next();
    walk.groups.sum(sums, round & 1);
    if (r >= q.rows) return;
    const float constant = -s * sums[0] * one_nth, by_x = -s * sums[1] * one_nth;
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
      if (!at.used(i)) continue;
      float d[kPack];
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        d_gain[i][j] += g[i][j] * x[i][j];
        d_bias[i][j] += g[i][j];
        d[j] = g[i][j] * gain[i][j] * s + (x[i][j] * by_x + constant);
      }
      at.store(row_of<S>(q.d_residual, r), i, d);
      if (!q.dz.data) continue;
      if (q.mask.dropped && at.inside(i, 0)) q.mask.apply(d, r, at.column(i, 0) / kPack);
      at.store(row_of<E>(q.dz, r), i, d);
    }
  };
  walk.each([&](int row) { next.read(q, at, row); }, work);
  if (!q.parts) return;
  float* const part = q.parts + static_cast<int64_t>(blockIdx.x) * 2 * q.width;
  store_part(d_gain, at, walk.groups, part);
  store_part(d_bias, at, walk.groups, part + q.width);
}

struct Launch {
  ResidualRows q;
  bool back;
  float *d_gain, *d_bias;
  cudaStream_t stream;
  Element stream_element;

  template <class E, class S, Access A, int Lanes, int Packs>
  cudaError_t run() const {
    if (!back) return launch_walk<Lanes>(residual_forward<E, S, A, Lanes, Packs>, q, stream);
    int parts = 0;
    const cudaError_t status =
        launch_walk<Lanes>(residual_backward<E, S, A, Lanes, Packs>, q, stream, kMaxParts, &parts);
    if (status != cudaSuccess || !q.parts) return status;
    return sum_parts(q.parts, parts, 2 * q.width, d_gain, q.width, d_bias, stream);
  }
  template <class E, class S>
  cudaError_t types() const {
    const bool vectors = all_on_vectors<E>(1, q.z, q.dz) && all_on_vectors<S>(1, q.residual, q.gy, q.y, q.d_residual);
    if (!vectors || q.width % kPack || q.width > 256 * kPack) return run<E, S, Access::neighbours, 256, 2>();
    if constexpr (sizeof(E) == 2) {
      if (q.width <= 32 * kPack) return run<E, S, Access::whole, 0, 1>();
      if (q.width <= 128 * kPack) return run<E, S, Access::whole, 128, 1>();
    }
    return run<E, S, Access::whole, 256, 1>();
  }
  cudaError_t operator()(Element e) const {
    if (e == Element::fp32) return types<float, float>();
    return stream_element == Element::fp32 ? types<bf16, float>() : types<bf16, bf16>();
  }
};

bool valid(const DropoutPlace& d, int64_t rows, int time, int width) {
  return rows >= 0 && PackCount(rows, width).valid() && time > 0 && width > 0 && width <= 8 * 4096 && d.p >= 0 &&
         d.p < 1 && (d.p == 0 || (d.samples && d.update && d.place < 1u << 24 && time <= 1 << 20));
}
bool valid(const ResidualNorm& p) {
  return valid(p.dropout, p.rows, p.time, p.width) && p.width <= kMaxResidualWidth && p.z.data && p.residual.data &&
         (p.element == Element::bf16 || p.stream == Element::fp32);
}
ResidualRows rows_of(const ResidualNorm& p) {
  ResidualRows q{.mask = Mask(p.dropout, p.time)};
  q.rows = static_cast<int>(p.rows), q.width = p.width, q.lanes = (p.width + kPack - 1) / kPack, q.z = p.z,
  q.residual = p.residual, q.gain = p.gain, q.bias = p.bias;
  return q;
}

template <class E, Access A>
__global__ void __launch_bounds__(kThreads)
    drop(const __grid_constant__ Mask mask, const __grid_constant__ PackCount count, int width, RowsIn x, RowsOut y) {
  const Columns<A, 1> at{0, width, width};
  for_packs(count, [&](int row, int pack) {
    Raw<E> in;
    float v[kPack];
    at.load(in, row_of<const E>(x, row), pack);
#pragma unroll
    for (int j = 0; j < kPack; ++j) v[j] = in[j];
    if (mask.dropped) mask.apply(v, row, pack);
    at.store(row_of<E>(y, row), pack, v);
  });
}

}  // namespace

cudaError_t residual_norm_forward(const ResidualNorm& p, const RowsOut& y, float* stats, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  if (p.rows == 0) return cudaSuccess;
  Launch launch{rows_of(p), false, nullptr, nullptr, stream, p.stream};
  launch.q.y = y, launch.q.stats_out = stats;
  return launch(p.element);
}

size_t residual_norm_scratch_bytes(const ResidualNorm& p) {
  return sizeof(float) * 2 * kMaxParts * static_cast<size_t>(p.width);
}

cudaError_t residual_norm_backward(const ResidualNorm& p, const float* stats, const ResidualNormGradients& d,
                                   void* scratch, cudaStream_t stream) {
  if (!valid(p) || !stats || !d.gy.data) return cudaErrorInvalidValue;
  if (p.rows == 0) return cudaSuccess;
  Launch launch{rows_of(p), true, d.d_gain, d.d_bias, stream, p.stream};
  launch.q.stats = stats, launch.q.gy = d.gy;
  launch.q.d_residual = d.d_residual, launch.q.dz = d.dz;
  launch.q.parts = d.d_gain || d.d_bias ? static_cast<float*>(scratch) : nullptr;
  return launch(p.element);
}

cudaError_t dropout_forward(const Dropout& p, const RowsOut& y, cudaStream_t stream) {
  if (!valid(p.dropout, p.rows, p.time, p.width)) return cudaErrorInvalidValue;
  if (p.rows == 0) return cudaSuccess;
  return with_element(p.element, [&]<class E>() {
    const PackCount count(p.rows, p.width);
    const auto run = [&](auto kernel) {
      kernel<<<walking_blocks(kernel, count.blocks(), 1 << 30), kThreads, 0, stream>>>(Mask(p.dropout, p.time), count,
                                                                                       p.width, p.x, y);
      return cudaGetLastError();
    };
    return all_on_vectors<E>(1, p.x, y) ? run(drop<E, Access::vectors>) : run(drop<E, Access::neighbours>);
  });
}

}  // namespace sb::cuda
