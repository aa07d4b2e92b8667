// A row is processed by a block, by part of a block, or, if it is narrow, together with other rows by a warp. The
// threads hold the row in registers and read the next one at the same time. Blocks loop over rows, so that a thread
// keeps the gains of its columns and the sums of their gradients.
#include "kernels/cuda/norms.h"

#include <type_traits>

#include "kernels/cuda/rows.cuh"

namespace sb::cuda {
namespace {

// How a row is gated; `skip`: before, and u is x + D w; `sigmoid`: after, by sigma(z) instead of silu(z)
enum class Kind { none, after, before, skip, sigmoid };

struct NormRows {
  RowNorm p;
  int rows, lanes;
  Division by_heads;
  RowsIn gy;
  RowsOut y, dx, dz;
  float* parts;
  struct Place {
    int token, head;
  };
  __device__ Place place(int r) const {
    const int token = static_cast<int>(by_heads(static_cast<uint32_t>(r)));
    return {token, r - token * p.heads};
  }
  template <class E, class Void>
  __device__ E* row(const TokenRows<Void>& view, Place at) const {
    return static_cast<E*>(view.data) + (at.token * view.token + at.head * view.head);
  }
};

template <Kind G>
inline constexpr bool before = G == Kind::before || G == Kind::skip;
template <Kind G>
inline constexpr bool after = G == Kind::after || G == Kind::sigmoid;

// D of a thread's columns: eight neighbours lie in at most two heads.
template <Access A>
struct SkipPack {
  float low = 0, high = 0;
  int bound = 0;  // columns of the first head
  template <class At>
  __device__ void load(const RowNorm& p, const At& at, int pack) {
    const int first = at.column(pack, 0);
    if (A == Access::scattered || first >= p.width) return;
    const int head = first / p.skip_width;
    low = p.skip[head], bound = (head + 1) * p.skip_width - first;
    high = first + bound < p.width ? p.skip[head + 1] : 0.f;
  }
  template <class At>
  __device__ float at(const RowNorm& p, const At& columns, int pack, int j) const {
    if constexpr (A == Access::scattered)
      return columns.inside(pack, j) ? p.skip[columns.column(pack, j) / p.skip_width] : 0.f;
    return j < bound ? low : high;
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

// A row read in advance
template <class E, int Packs, Kind G, bool back>
struct Ahead {
  Raw<E> x[Packs], z[Packs], w[Packs], g[back ? Packs : 1];
  template <class At>
  __device__ __forceinline__ void read(const NormRows& q, const At& at, int row) {
    const NormRows::Place place = q.place(min(row, q.rows - 1));
    const E *const from_x = q.row<const E>(q.p.x, place), *const from_z = q.row<const E>(q.p.z, place),
                   *const from_g = q.row<const E>(q.gy, place), *const from_w = q.row<const E>(q.p.w, place);
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
      if (!at.used(i)) continue;
      at.load(x[i], from_x, i);
      if constexpr (back) at.load(g[i], from_g, i);
      if constexpr (G != Kind::none) at.load(z[i], from_z, i);
      if constexpr (G == Kind::skip) at.load(w[i], from_w, i);
    }
  }
};

// A thread's columns of the parameters
template <Access A, int Packs, Kind G>
struct Parameters {
  float gain[Packs][kPack];
  SkipPack<A> skip[Packs];
  template <class At>
  __device__ __forceinline__ Parameters(const RowNorm& p, const At& at) {
#pragma unroll
    for (int i = 0; i < Packs; ++i)
      if constexpr (G == Kind::skip) skip[i].load(p, at, i);
#pragma unroll
    for (int i = 0; i < Packs; ++i) at.parameters(gain[i], p.gain, i, 1.f);
  }
};

template <class E, Access A, int Lanes, int Packs, Kind G>
__global__ void __launch_bounds__(kThreads) norm_forward(const __grid_constant__ NormRows q) {
  const RowNorm& p = q.p;
  const RowWalk<A, Lanes> walk(q.rows, p.width, q.lanes);
  const Columns<A, Lanes>& at = walk.at;
  const Parameters<A, Packs, G> own(p, at);
  Ahead<E, Packs, G, false> next;
  const auto work = [&](int round, int r, auto read_next) {
    float u[Packs][kPack], squares[1] = {0};
    Raw<E> z[Packs];
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
      if (!at.used(i)) continue;
      if constexpr (after<G>) z[i] = next.z[i];
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        u[i][j] = next.x[i][j];
        if constexpr (G == Kind::skip) u[i][j] += own.skip[i].at(p, at, i, j) * next.w[i][j];
        if constexpr (before<G>) u[i][j] *= next.z[i][j] * sigmoid(next.z[i][j]);
        squares[0] += u[i][j] * u[i][j];
      }
    }
    read_next();
    walk.groups.sum(squares, round & 1);
    const float s = row_scale(p, squares[0]);
    if (r >= q.rows) return;
    if (G == Kind::none && p.scales && at.lane == 0) p.scales[r] = s;
    E* const y = q.row<E>(q.y, q.place(r));
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
      if (!at.used(i)) continue;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        u[i][j] *= s * own.gain[i][j];
        if constexpr (G == Kind::after) u[i][j] *= z[i][j] * sigmoid(z[i][j]);
        if constexpr (G == Kind::sigmoid) u[i][j] *= sigmoid(z[i][j]);
      }
      at.store(y, i, u[i]);
    }
  };
  walk.each([&](int row) { next.read(q, at, row); }, work);
}

// With t' = gy, times the gate if it comes after: du = s gain t' - c u, d gain = t' u s.
template <class E, Access A, int Lanes, int Packs, Kind G>
__global__ void __launch_bounds__(kThreads, sizeof(E) == 4 || Packs > 2 ? 1
                                            : Lanes == 0                ? 4 - Packs
                                                         : 2) norm_backward(const __grid_constant__ NormRows q) {
  const RowNorm& p = q.p;
  const RowWalk<A, Lanes> walk(q.rows, p.width, q.lanes);
  const Columns<A, Lanes>& at = walk.at;
  const Parameters<A, Packs, G> own(p, at);
  float d_gain[Packs][kPack] = {};
  Ahead<E, Packs, G, true> next;
  const auto work = [&](int round, int r, auto read_next) {
    Raw<E> g[Packs];
    std::conditional_t<G == Kind::skip, Raw<float>, Raw<E>> x[Packs];  // the row before its gate
    // what the gate makes of the row: t' and gy gate'(z) (after), silu(z) and x silu'(z) (before)
    float gated[Packs][kPack], slope[Packs][kPack];
    float sums[2] = {0, 0};  // u . u, gain t' . u
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
      if (!at.used(i)) continue;
      g[i] = next.g[i];
      if constexpr (G != Kind::skip) x[i] = next.x[i];
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        float u = next.x[i][j], t = g[i][j];
        if constexpr (G == Kind::skip) u += own.skip[i].at(p, at, i, j) * next.w[i][j];
        if constexpr (G == Kind::skip) x[i].set(j, u);
        if constexpr (G != Kind::none) {
          const float z = next.z[i][j], sig = sigmoid(z);
          if constexpr (G == Kind::after) {
            gated[i][j] = t *= z * sig;
            slope[i][j] = g[i][j] * silu_slope(z, sig);
          } else if constexpr (G == Kind::sigmoid) {
            gated[i][j] = t *= sig;
            slope[i][j] = g[i][j] * sig * (1.f - sig);
          } else {
            gated[i][j] = z * sig;
            slope[i][j] = u * silu_slope(z, sig);
            u *= gated[i][j];
          }
        }
        sums[0] += u * u;
        sums[1] += t * own.gain[i][j] * u;
      }
    }
    read_next();
    walk.groups.sum(sums, round & 1);
    if (r >= q.rows) return;
    // y = s x: s t - s^3 x (t . x) = s t - s y (t . y)
    const bool scaled = G == Kind::none && p.scales;
    const float s = scaled ? p.scales[r] : row_scale(p, sums[0]);
    const float c = (scaled ? s : row_slope(p, sums[0], s)) * sums[1];
    const NormRows::Place place = q.place(r);
    E *const dx = q.row<E>(q.dx, place), *const dz = q.row<E>(q.dz, place);
#pragma unroll
    for (int i = 0; i < Packs; ++i) {
      if (!at.used(i)) continue;
      float to_x[kPack], to_z[kPack];
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const float v = x[i][j];
        if constexpr (before<G>) {
          const float u = v * gated[i][j], du = g[i][j] * own.gain[i][j] * s - u * c;
          d_gain[i][j] += g[i][j] * u * s;
          to_x[j] = du * gated[i][j];
          to_z[j] = du * slope[i][j];
        } else {
          const float t = after<G> ? gated[i][j] : g[i][j];
          d_gain[i][j] += t * v * s;
          to_x[j] = t * own.gain[i][j] * s - v * c;
          if constexpr (after<G>) to_z[j] = slope[i][j] * v * s * own.gain[i][j];
        }
      }
      at.store(dx, i, to_x);
      if constexpr (G != Kind::none) at.store(dz, i, to_z);
    }
  };
  walk.each([&](int row) { next.read(q, at, row); }, work);
  if (q.parts) store_part(d_gain, at, walk.groups, q.parts + static_cast<int64_t>(blockIdx.x) * p.width);
}

struct Launch {
  NormRows q;
  bool back;
  float* d_gain;
  cudaStream_t stream;

  template <class E, Access A, int Lanes, int Packs, Kind G>
  cudaError_t run() const {
    if (!back) return launch_walk<Lanes>(norm_forward<E, A, Lanes, Packs, G>, q, stream);
    int parts = 0;
    const cudaError_t status = launch_walk<Lanes>(norm_backward<E, A, Lanes, Packs, G>, q, stream, kMaxParts, &parts);
    if (status != cudaSuccess || !q.parts) return status;
    return sum_parts(q.parts, parts, q.p.width, d_gain, q.p.width, nullptr, stream);
  }
  template <class E, Access A, int Lanes, int Packs>
  cudaError_t gated() const {
    if (q.p.skip) return run<E, A, Lanes, Packs, Kind::skip>();
    if (q.p.gate == NormGate::after) return run<E, A, Lanes, Packs, Kind::after>();
    if (q.p.gate == NormGate::before) return run<E, A, Lanes, Packs, Kind::before>();
    if (q.p.gate == NormGate::sigmoid) return run<E, A, Lanes, Packs, Kind::sigmoid>();
    return run<E, A, Lanes, Packs, Kind::none>();
  }
  // For rows of up to 256 columns: one pack per thread, or two if fewer threads of a warp are then idle
  template <class E, Access A>
  cudaError_t narrow() {
    const int packs = (q.p.width + kPack - 1) / kPack, half = (packs + 1) / 2;
    if constexpr (sizeof(E) == 2 && A != Access::scattered) {
      if (2 * (32 / packs) < 32 / half) {
        q.lanes = half;
        return gated<E, A, 0, 2>();
      }
    }
    q.lanes = packs;
    return gated<E, A, 0, 1>();
  }
  template <class E>
  cudaError_t operator()() {
    const int n = q.p.width;
    const bool vectors = all_on_vectors<E>(q.p.heads, q.p.x, q.p.z, q.gy, q.y, q.dx, q.dz, q.p.w);
    const bool whole = vectors && n % kPack == 0;
    if (n <= 32 * kPack) return whole ? narrow<E, Access::whole>() : narrow<E, Access::scattered>();
    if (!whole || n > 512 * kPack) return gated<E, Access::scattered, 256, 3>();
    if constexpr (sizeof(E) == 2) {
      if (n <= 64 * kPack) return gated<E, Access::whole, 64, 1>();
      if (n <= 128 * kPack) return gated<E, Access::whole, 128, 1>();
      if (n <= 192 * kPack) return gated<E, Access::whole, 128, 2>();
    }
    return gated<E, Access::whole, 256, 2>();
  }
};

bool valid(const RowNorm& p) {
  return p.tokens >= 0 && p.heads > 0 && p.tokens * p.heads < int64_t{1} << 30 && p.width > 0 &&
         p.width <= kMaxNormWidth && p.x.data && (p.gate == NormGate::none || p.z.data) &&
         (!p.scales || (p.kind == NormKind::l2 && p.gate == NormGate::none && !p.gain)) &&
         (!p.skip || (p.gate == NormGate::before && p.w.data && p.skip_width >= kPack && p.width % p.skip_width == 0));
}

NormRows rows_of(const RowNorm& p) {
  NormRows q{p, static_cast<int>(p.tokens * p.heads), 0, Division(static_cast<uint32_t>(p.heads))};
  if (p.gate == NormGate::none) q.p.z = {};
  if (!p.skip) q.p.w = {};
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
  return sizeof(float) * kMaxParts * static_cast<size_t>(p.width);
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
