#include "kernels/cuda/gates.h"

#include "kernels/cuda/rows.cuh"

namespace sb::cuda {
namespace {

template <class E, class Void>
__device__ E* row_of(const TokenRows<Void>& view, int64_t r) {
  return static_cast<E*>(view.data) + r * view.token;
}

__device__ inline float log_sigmoid(float v) {
  return fminf(v, 0.f) - log1pf(expf(-fabsf(v)));
}

template <Access A>
using Pack = Columns<A, 1>;  // a thread's pack is any of a row

// ---- one pack a thread, anywhere ----

// body(columns, row, pack) for every pack of every row
template <Access A, class Body>
__global__ void __launch_bounds__(kThreads)
    each_pack(const __grid_constant__ PackCount count, int width, const __grid_constant__ Body body) {
  const Pack<A> at{0, width, width};
  for_packs(count, [&](int row, int pack) { body(at, row, pack); });
}

template <Access A, class Body>
cudaError_t run_packs(const GateRows& p, const Body& body, cudaStream_t stream) {
  const PackCount count(p.rows, p.width);
  if (count.all == 0) return cudaSuccess;
  const auto kernel = each_pack<A, Body>;
  kernel<<<walking_blocks(kernel, count.blocks(), 1 << 30), kThreads, 0, stream>>>(count, p.width, body);
  return cudaGetLastError();
}
template <class Body>
cudaError_t launch_packs(const GateRows& p, bool vectors, const Body& body, cudaStream_t stream) {
  return vectors ? run_packs<Access::vectors>(p, body, stream) : run_packs<Access::neighbours>(p, body, stream);
}

bool valid(const GateRows& p) {
  return p.rows >= 0 && p.width > 0 && PackCount(p.rows, p.width).valid();
}
template <class E, class... Views>
bool fits(const Views&... views) {
  return (on_vectors(views.data, views.token, 0, 1, sizeof(E)) && ...);
}

// y silu(z), or scale y sigma(z)
template <class E, bool Silu>
struct ProductForward {
  RowsIn y, z;
  RowsOut out;
  float scale = 1;
  template <class At>
  __device__ void operator()(const At& at, int64_t r, int pack) const {
    Raw<E> a, b;
    float v[kPack];
    at.load(a, row_of<const E>(y, r), pack);
    at.load(b, row_of<const E>(z, r), pack);
#pragma unroll
    for (int j = 0; j < kPack; ++j) v[j] = a[j] * (Silu ? b[j] : scale) * sigmoid(b[j]);
    at.store(row_of<E>(out, r), pack, v);
  }
};
template <class E, bool Silu>
struct ProductBackward {
  RowsIn g, y, z;
  RowsOut dy, dz;
  float scale = 1;
  template <class At>
  __device__ void operator()(const At& at, int64_t r, int pack) const {
    Raw<E> go, a, b;
    float to_y[kPack], to_z[kPack];
    at.load(go, row_of<const E>(g, r), pack);
    at.load(a, row_of<const E>(y, r), pack);
    at.load(b, row_of<const E>(z, r), pack);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float sig = sigmoid(b[j]);
      to_y[j] = go[j] * (Silu ? b[j] : scale) * sig;
      to_z[j] = go[j] * a[j] * (Silu ? silu_slope(b[j], sig) : scale * sig * (1 - sig));
    }
    at.store(row_of<E>(dy, r), pack, to_y);
    at.store(row_of<E>(dz, r), pack, to_z);
  }
};
template <class E>
struct SwishForward {
  RowsIn ab;
  const float* beta;
  RowsOut out;
  int width;
  template <class At>
  __device__ void operator()(const At& at, int64_t r, int pack) const {
    const float slope = beta ? *beta : 1.f;
    Raw<E> a, b;
    float v[kPack];
    at.load(a, row_of<const E>(ab, r), pack);
    at.load(b, row_of<const E>(ab, r) + width, pack);
#pragma unroll
    for (int j = 0; j < kPack; ++j) v[j] = a[j] * sigmoid(slope * a[j]) * b[j];
    at.store(row_of<E>(out, r), pack, v);
  }
};
template <class E>
struct StepForward {
  StepGates p;
  TokenRows<float> step, decay;
  template <class At>
  __device__ void operator()(const At& at, int64_t r, int pack) const {
    Raw<E> x;
    float v[kPack], bias[kPack];
    at.load(x, row_of<const E>(p.x, r), pack);
    at.parameters(bias, p.bias, pack, 0.f);
#pragma unroll
    for (int j = 0; j < kPack; ++j) v[j] = softplus(x[j] + bias[j]);
    if (step.data) at.store(row_of<float>(step, r), pack, v);
    if (!decay.data) return;
    float A[kPack];
    at.parameters(A, p.A_log, pack, 0.f);
#pragma unroll
    for (int j = 0; j < kPack; ++j) v[j] = -expf(A[j]) * v[j];
    at.store(row_of<float>(decay, r), pack, v);
  }
};
template <class E>
struct SigmoidForward {
  SigmoidGate p;
  TokenRows<float> out;
  template <class At>
  __device__ void operator()(const At& at, int64_t r, int pack) const {
    Raw<E> x;
    float v[kPack];
    at.load(x, row_of<const E>(p.x, r), pack);
#pragma unroll
    for (int j = 0; j < kPack; ++j) v[j] = p.scale * (p.log ? log_sigmoid(x[j]) : sigmoid(x[j]));
    at.store(row_of<float>(out, r), pack, v);
  }
};
template <class E>
struct SigmoidBackward {
  SigmoidGate p;
  TokenRows<const float> g;
  RowsOut dx;
  template <class At>
  __device__ void operator()(const At& at, int64_t r, int pack) const {
    Raw<E> x;
    Raw<float> go;
    float v[kPack];
    at.load(x, row_of<const E>(p.x, r), pack);
    at.load(go, row_of<const float>(g, r), pack);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float sig = sigmoid(x[j]);
      v[j] = p.scale * go[j] * (p.log ? sigmoid(-x[j]) : sig * (1.f - sig));
    }
    at.store(row_of<E>(dx, r), pack, v);
  }
};

template <class E>
struct Hgrn2Forward {
  Hgrn2Keys p;
  RowsOut q, k;
  TokenRows<float> g;
  template <class At>
  __device__ void operator()(const At& at, int64_t r, int pack) const {
    Raw<E> query, forget;
    float to_q[kPack], to_k[kPack], to_g[kPack];
    at.load(query, row_of<const E>(p.query, r), pack);
    at.load(forget, row_of<const E>(p.forget, r), pack);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      to_q[j] = query[j] * sigmoid(query[j]);
      to_k[j] = sigmoid(-forget[j]);
      to_g[j] = log_sigmoid(forget[j]);
    }
    at.store(row_of<E>(q, r), pack, to_q);
    at.store(row_of<E>(k, r), pack, to_k);
    at.store(row_of<float>(g, r), pack, to_g);
  }
};
template <class E>
struct Hgrn2Backward {
  Hgrn2Keys p;
  RowsIn dq, dk;
  TokenRows<const float> dg;
  RowsOut d_query, d_forget;
  template <class At>
  __device__ void operator()(const At& at, int64_t r, int pack) const {
    Raw<E> query, forget, by_q, by_k;
    Raw<float> by_g;
    float to_query[kPack], to_forget[kPack];
    at.load(query, row_of<const E>(p.query, r), pack);
    at.load(forget, row_of<const E>(p.forget, r), pack);
    at.load(by_q, row_of<const E>(dq, r), pack);
    at.load(by_k, row_of<const E>(dk, r), pack);
    at.load(by_g, row_of<const float>(dg, r), pack);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float k = sigmoid(-forget[j]);
      to_query[j] = by_q[j] * silu_slope(query[j], sigmoid(query[j]));
      to_forget[j] = k * (by_g[j] - by_k[j] * (1.f - k));
    }
    at.store(row_of<E>(d_query, r), pack, to_query);
    at.store(row_of<E>(d_forget, r), pack, to_forget);
  }
};

// Swish backward: blocks leave their share of d_beta.
template <class E, Access A>
__global__ void __launch_bounds__(kThreads) swish_backward(const __grid_constant__ PackCount count, int width, RowsIn g,
                                                           RowsIn ab, const float* beta, RowsOut d_ab, float* parts) {
  const Pack<A> at{0, width, width};
  const float slope = beta ? *beta : 1.f;
  float total[1] = {0};
  for_packs(count, [&](int r, int pack) {
    Raw<E> go, a, b;
    float da[kPack], db[kPack];
    at.load(go, row_of<const E>(g, r), pack);
    at.load(a, row_of<const E>(ab, r), pack);
    at.load(b, row_of<const E>(ab, r) + width, pack);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float v = a[j], z = slope * v, sig = sigmoid(z), into = go[j] * b[j];
      db[j] = go[j] * v * sig;
      da[j] = into * silu_slope(z, sig);
      total[0] += into * v * v * sig * (1.f - sig);
    }
    at.store(row_of<E>(d_ab, r), pack, da);
    at.store(row_of<E>(d_ab, r) + width, pack, db);
  });
  sum_over_row<kThreads>(total, 0);
  if (threadIdx.x == 0 && parts) parts[blockIdx.x] = total[0];
}

// ---- a thread owns columns and walks rows: sums over rows ----

// Blocks of `lanes` <= 32 packs x 256 / lanes rows; grid (columns, parts)
struct Tiling {
  int lanes, columns, parts;
  Tiling(const GateRows& p) {
    const int packs = (p.width + kPack - 1) / kPack;
    lanes = 1;
    while (lanes < packs && lanes < 32) lanes *= 2;
    columns = (packs + lanes - 1) / lanes;
    const int64_t rows = (p.rows + kThreads / lanes - 1) / (kThreads / lanes);
    parts = static_cast<int>(std::max<int64_t>(1, std::min<int64_t>({rows, std::max(64, 2112 / columns), kMaxParts})));
  }
};

// `Sums` sums a column, added over the rows of a warp, then over warps, in order, to parts [parts][Sums][width]
template <int Sums, Access A>
__device__ void store_sums(float (&sums)[Sums][kPack], const Pack<A>& at, int pack, int lanes, float* parts) {
  __shared__ float shared[kThreads / 32][Sums * kPack][33];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int s = 0; s < Sums; ++s) {
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      for (int step = 16; step >= lanes; step /= 2) sums[s][j] += __shfl_xor_sync(0xffffffffu, sums[s][j], step);
      shared[warp][s * kPack + j][lane] = sums[s][j];
    }
  }
  __syncthreads();
  if (threadIdx.x >= lanes) return;
#pragma unroll
  for (int s = 0; s < Sums; ++s) {
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      if (!at.inside(pack, j)) continue;
      float total = 0;
      for (int from = 0; from < kThreads / 32; ++from) total += shared[from][s * kPack + j][lane];
      parts[(static_cast<int64_t>(blockIdx.y) * Sums + s) * at.width + at.column(pack, j)] = total;
    }
  }
}

template <class E, Access A>
__global__ void __launch_bounds__(kThreads)
    step_backward(const __grid_constant__ StepGates p, TokenRows<const float> d_step, TokenRows<const float> d_decay,
                  RowsOut dx, int lanes, float* parts) {
  const Pack<A> at{0, p.rows.width, p.rows.width};
  const int pack = blockIdx.x * lanes + threadIdx.x % lanes, groups = kThreads / lanes;
  float sums[2][kPack] = {}, bias[kPack], A_log[kPack];
  at.parameters(bias, p.bias, pack, 0.f);
  at.parameters(A_log, p.A_log, pack, 0.f);
#pragma unroll
  for (int j = 0; j < kPack; ++j) A_log[j] = -expf(A_log[j]);
  for (int64_t r = static_cast<int64_t>(blockIdx.y) * groups + threadIdx.x / lanes; r < p.rows.rows;
       r += static_cast<int64_t>(gridDim.y) * groups) {
    if (!at.inside(pack, 0)) break;
    Raw<E> x;
    Raw<float> by_step, by_decay;
    float v[kPack];
    at.load(x, row_of<const E>(p.x, r), pack);
    if (d_step.data) at.load(by_step, row_of<const float>(d_step, r), pack);
    if (d_decay.data) at.load(by_decay, row_of<const float>(d_decay, r), pack);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float in = x[j] + bias[j], slope = in > 20 ? 1.f : sigmoid(in);
      float d = d_step.data ? by_step[j] : 0.f;
      if (d_decay.data) {
        const float step = softplus(in), through = by_decay[j] * A_log[j];
        d += through;
        sums[1][j] += through * step;
      }
      v[j] = d * slope;
      sums[0][j] += v[j];
    }
    at.store(row_of<E>(dx, r), pack, v);
  }
  store_sums<2>(sums, at, pack, lanes, parts);
}

template <class E, Access A>
__global__ void __launch_bounds__(kThreads) add_columns(GateRows p, RowsIn x, int lanes, float* parts) {
  const Pack<A> at{0, p.width, p.width};
  const int pack = blockIdx.x * lanes + threadIdx.x % lanes, groups = kThreads / lanes;
  const int64_t step = static_cast<int64_t>(gridDim.y) * groups;
  float sums[1][kPack] = {};
  if (at.inside(pack, 0)) {
#pragma unroll 4
    for (int64_t r = static_cast<int64_t>(blockIdx.y) * groups + threadIdx.x / lanes; r < p.rows; r += step) {
      Raw<E> v;
      at.load(v, row_of<const E>(x, r), pack);
#pragma unroll
      for (int j = 0; j < kPack; ++j) sums[0][j] += v[j];
    }
  }
  store_sums<1>(sums, at, pack, lanes, parts);
}

}  // namespace

cudaError_t gate_silu_forward(const GateRows& p, const RowsIn& y, const RowsIn& z, const RowsOut& out,
                              cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  return with_element(p.element, [&]<class E>() {
    return launch_packs(p, fits<E>(y, z, out), ProductForward<E, true>{y, z, out}, stream);
  });
}
cudaError_t gate_silu_backward(const GateRows& p, const RowsIn& d_out, const RowsIn& y, const RowsIn& z,
                               const RowsOut& dy, const RowsOut& dz, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  return with_element(p.element, [&]<class E>() {
    return launch_packs(p, fits<E>(d_out, y, z, dy, dz), ProductBackward<E, true>{d_out, y, z, dy, dz}, stream);
  });
}
cudaError_t gate_sigmoid_forward(const GateRows& p, float scale, const RowsIn& y, const RowsIn& z, const RowsOut& out,
                                 cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  return with_element(p.element, [&]<class E>() {
    return launch_packs(p, fits<E>(y, z, out), ProductForward<E, false>{y, z, out, scale}, stream);
  });
}
cudaError_t gate_sigmoid_backward(const GateRows& p, float scale, const RowsIn& d_out, const RowsIn& y, const RowsIn& z,
                                  const RowsOut& dy, const RowsOut& dz, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  return with_element(p.element, [&]<class E>() {
    return launch_packs(p, fits<E>(d_out, y, z, dy, dz), ProductBackward<E, false>{d_out, y, z, dy, dz, scale}, stream);
  });
}

cudaError_t gate_swish_forward(const GateRows& p, const RowsIn& ab, const float* beta, const RowsOut& out,
                               cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  return with_element(p.element, [&]<class E>() {
    const bool vectors = fits<E>(ab, out) && p.width * sizeof(E) % 16 == 0;
    return launch_packs(p, vectors, SwishForward<E>{ab, beta, out, p.width}, stream);
  });
}
size_t gate_swish_scratch_bytes() {
  return sizeof(float) * kMaxParts;
}
cudaError_t gate_swish_backward(const GateRows& p, const RowsIn& d_out, const RowsIn& ab, const float* beta,
                                const RowsOut& d_ab, float* d_beta, void* scratch, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  if (p.rows == 0) return d_beta ? cudaMemsetAsync(d_beta, 0, sizeof(float), stream) : cudaSuccess;
  return with_element(p.element, [&]<class E>() {
    const PackCount count(p.rows, p.width);
    const auto run = [&](auto kernel) {
      const int parts = walking_blocks(kernel, count.blocks());
      kernel<<<parts, kThreads, 0, stream>>>(count, p.width, d_out, ab, beta, d_ab, static_cast<float*>(scratch));
      const cudaError_t status = cudaGetLastError();
      if (status != cudaSuccess || !d_beta) return status;
      return sum_parts(static_cast<float*>(scratch), parts, 1, d_beta, 1, nullptr, stream);
    };
    return fits<E>(d_out, ab, d_ab) && p.width * sizeof(E) % 16 == 0 ? run(swish_backward<E, Access::vectors>)
                                                                     : run(swish_backward<E, Access::neighbours>);
  });
}

cudaError_t step_gates_forward(const StepGates& p, const TokenRows<float>& step, const TokenRows<float>& decay,
                               cudaStream_t stream) {
  if (!valid(p.rows)) return cudaErrorInvalidValue;
  return with_element(p.rows.element, [&]<class E>() {
    return launch_packs(p.rows, fits<E>(p.x) && fits<float>(step, decay), StepForward<E>{p, step, decay}, stream);
  });
}
size_t step_gates_scratch_bytes(const StepGates& p) {
  return sizeof(float) * 2 * p.rows.width * Tiling(p.rows).parts;
}
cudaError_t step_gates_backward(const StepGates& p, const TokenRows<const float>& d_step,
                                const TokenRows<const float>& d_decay, const RowsOut& dx, float* d_bias, float* d_A_log,
                                void* scratch, cudaStream_t stream) {
  if (!valid(p.rows) || p.rows.rows == 0) return cudaErrorInvalidValue;
  const Tiling tiling(p.rows);
  const cudaError_t status = with_element(p.rows.element, [&]<class E>() {
    const auto run = [&](auto kernel) {
      kernel<<<dim3(tiling.columns, tiling.parts), kThreads, 0, stream>>>(p, d_step, d_decay, dx, tiling.lanes,
                                                                          static_cast<float*>(scratch));
      return cudaGetLastError();
    };
    return fits<E>(p.x, dx) && fits<float>(d_step, d_decay) ? run(step_backward<E, Access::vectors>)
                                                            : run(step_backward<E, Access::neighbours>);
  });
  if (status != cudaSuccess) return status;
  return sum_parts(static_cast<float*>(scratch), tiling.parts, 2 * p.rows.width, d_bias, p.rows.width, d_A_log, stream);
}

cudaError_t sigmoid_gate_forward(const SigmoidGate& p, const TokenRows<float>& out, cudaStream_t stream) {
  if (!valid(p.rows)) return cudaErrorInvalidValue;
  return with_element(p.rows.element, [&]<class E>() {
    return launch_packs(p.rows, fits<E>(p.x) && fits<float>(out), SigmoidForward<E>{p, out}, stream);
  });
}
cudaError_t sigmoid_gate_backward(const SigmoidGate& p, const TokenRows<const float>& d_out, const RowsOut& dx,
                                  cudaStream_t stream) {
  if (!valid(p.rows)) return cudaErrorInvalidValue;
  return with_element(p.rows.element, [&]<class E>() {
    return launch_packs(p.rows, fits<E>(p.x, dx) && fits<float>(d_out), SigmoidBackward<E>{p, d_out, dx}, stream);
  });
}

cudaError_t hgrn2_keys_forward(const Hgrn2Keys& p, const RowsOut& q, const RowsOut& k, const TokenRows<float>& g,
                               cudaStream_t stream) {
  if (!valid(p.rows)) return cudaErrorInvalidValue;
  return with_element(p.rows.element, [&]<class E>() {
    const bool vectors = fits<E>(p.query, p.forget, q, k) && fits<float>(g);
    return launch_packs(p.rows, vectors, Hgrn2Forward<E>{p, q, k, g}, stream);
  });
}
cudaError_t hgrn2_keys_backward(const Hgrn2Keys& p, const RowsIn& dq, const RowsIn& dk,
                                const TokenRows<const float>& dg, const RowsOut& d_query, const RowsOut& d_forget,
                                cudaStream_t stream) {
  if (!valid(p.rows)) return cudaErrorInvalidValue;
  return with_element(p.rows.element, [&]<class E>() {
    const bool vectors = fits<E>(p.query, p.forget, dq, dk, d_query, d_forget) && fits<float>(dg);
    return launch_packs(p.rows, vectors, Hgrn2Backward<E>{p, dq, dk, dg, d_query, d_forget}, stream);
  });
}

size_t column_sums_scratch_bytes(const GateRows& p) {
  return sizeof(float) * p.width * Tiling(p).parts;
}
cudaError_t column_sums(const GateRows& p, const RowsIn& x, float* sums, void* scratch, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  const Tiling tiling(p);
  const cudaError_t status = with_element(p.element, [&]<class E>() {
    const auto run = [&](auto kernel) {
      kernel<<<dim3(tiling.columns, tiling.parts), kThreads, 0, stream>>>(p, x, tiling.lanes,
                                                                          static_cast<float*>(scratch));
      return cudaGetLastError();
    };
    return fits<E>(x) ? run(add_columns<E, Access::vectors>) : run(add_columns<E, Access::neighbours>);
  });
  if (status != cudaSuccess) return status;
  return sum_parts(static_cast<float*>(scratch), tiling.parts, p.width, sums, p.width, nullptr, stream);
}

}  // namespace sb::cuda
