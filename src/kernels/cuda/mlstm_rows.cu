// A few lanes of a warp have one head, eight columns each, and walk over tokens: gains and the sums of their gradients
// stay in registers. They read the next token's row while they compute.
#include "kernels/cuda/mlstm_rows.h"

#include "kernels/cuda/rows.cuh"

namespace sb::cuda {
namespace {

// Lanes per row, and tokens that are read at the same time (`parts`)
struct ReadWalk {
  int lanes, parts;
  explicit ReadWalk(const MlstmRead& p) : lanes((p.width + kPack - 1) / kPack) {
    const int64_t wanted = static_cast<int64_t>(multiprocessors()) * 4 * rows_per_block() / p.heads;
    parts = static_cast<int>(std::clamp<int64_t>(std::min(wanted, p.tokens), 1, kMaxParts));
  }
  int rows_per_block() const { return kThreads / 32 * (32 / lanes); }
  unsigned blocks(int heads) const {
    return static_cast<unsigned>((static_cast<int64_t>(parts) * heads + rows_per_block() - 1) / rows_per_block());
  }
};

// What one token's row needs
template <class E>
struct ReadAhead {
  Raw<E> o, gate, dy;
  float n, m;
};

template <class E, Access A>
struct ReadRows {
  const MlstmRead& p;
  RowGroups<0> groups;
  Columns<A, 0> at;
  int head, part;
  __device__ ReadRows(const MlstmRead& problem, const ReadWalk& walk)
      : p(problem), groups(walk.lanes), at{groups.lane, problem.width, problem.width, walk.lanes} {
    const int index = static_cast<int>(blockIdx.x) * groups.groups + groups.group;
    part = index / p.heads, head = index - part * p.heads;
  }
  template <class F, class Void>
  __device__ F* row(const TokenRows<Void>& view, int64_t token) const {
    return static_cast<F*>(view.data) + token * view.token + head * view.head;
  }
  __device__ void load(ReadAhead<E>& to, int64_t token, const RowsIn& dy) const {
    const E* const read = row<const E>(p.read, token);
    at.load(to.o, read, 0);
    if (p.gate.data) at.load(to.gate, row<const E>(p.gate, token), 0);
    if (dy.data) at.load(to.dy, row<const E>(dy, token), 0);
    to.n = to_float(read[p.width]);
    to.m = p.m[token * p.heads + head];
  }
  __device__ float gate(const ReadAhead<E>& x, int j) const { return p.gate.data ? sigmoid(x.gate[j]) : 1.f; }
};

// u and its mean and inverse deviation
struct Normed {
  float u[kPack], inverse_divisor, mean, inverse;
  template <class Rows, class Ahead>
  __device__ Normed(const Rows& rows, const Ahead& x) {
    inverse_divisor = 1.f / fmaxf(fabsf(x.n), expf(-x.m));
    const float each = 1.f / static_cast<float>(rows.p.width);
    float sum[1] = {0}, square[1] = {0};
#pragma unroll
    for (int j = 0; j < kPack; ++j) sum[0] += u[j] = x.o[j] * inverse_divisor;
    rows.groups.sum(sum, 0);
    mean = sum[0] * each;
#pragma unroll
    for (int j = 0; j < kPack; ++j)
      if (rows.at.inside(0, j)) square[0] += (u[j] - mean) * (u[j] - mean);
    rows.groups.sum(square, 0);
    inverse = rsqrtf(square[0] * each + rows.p.eps);
  }
  __device__ float operator[](int j) const {
    return (u[j] - mean) * inverse;
  }
};

template <class E, Access A>
__global__ void __launch_bounds__(kThreads)
    read_forward(const __grid_constant__ MlstmRead p, const __grid_constant__ ReadWalk walk, RowsOut y) {
  const ReadRows<E, A> rows(p, walk);
  float gain[kPack];
  rows.at.parameters(gain, p.gain + rows.head * p.width, 0, 0.f);
  const bool idle = rows.part >= walk.parts;
  const auto rounds = static_cast<int>((p.tokens + walk.parts - 1) / walk.parts);
  int64_t token = rows.part;
  ReadAhead<E> next;
  rows.load(next, min(token, p.tokens - 1), {});
  for (int round = 0; round < rounds; ++round, token += walk.parts) {
    const ReadAhead<E> x = next;
    rows.load(next, min(token + walk.parts, p.tokens - 1), {});
    const Normed normed(rows, x);
    if (idle || token >= p.tokens) continue;
    float to[kPack];
#pragma unroll
    for (int j = 0; j < kPack; ++j) to[j] = normed[j] * gain[j] * rows.gate(x, j);
    rows.at.store(rows.template row<E>(y, token), 0, to);
  }
}

template <class E, Access A>
__global__ void __launch_bounds__(kThreads, sizeof(E) == 2 && A == Access::whole ? 3 : 2)
    read_backward(const __grid_constant__ MlstmRead p, const __grid_constant__ ReadWalk walk,
                  const __grid_constant__ MlstmReadGradients d, float* sums) {
  const ReadRows<E, A> rows(p, walk);
  float gain[kPack], d_gain[kPack] = {};
  rows.at.parameters(gain, p.gain + rows.head * p.width, 0, 0.f);
  const bool idle = rows.part >= walk.parts;
  const auto rounds = static_cast<int>((p.tokens + walk.parts - 1) / walk.parts);
  const float each = 1.f / static_cast<float>(p.width);
  int64_t token = rows.part;
  ReadAhead<E> next;
  rows.load(next, min(token, p.tokens - 1), d.dy);
  for (int round = 0; round < rounds; ++round, token += walk.parts) {
    const ReadAhead<E> x = next;
    rows.load(next, min(token + walk.parts, p.tokens - 1), d.dy);
    const Normed normed(rows, x);
    float dots[2] = {0, 0};  // of the normed row's gradient: its sum, its product with the normed row
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float t = x.dy[j] * rows.gate(x, j) * gain[j];
      dots[0] += t;
      dots[1] += t * normed[j];
    }
    rows.groups.sum(dots, 0);
    if (idle || token >= p.tokens) continue;
    float to_o[kPack], to_gate[kPack];
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float sig = rows.gate(x, j), t = x.dy[j] * sig;
      to_o[j] = (t * gain[j] - each * (dots[0] + normed[j] * dots[1])) * normed.inverse * normed.inverse_divisor;
      to_gate[j] = x.dy[j] * normed[j] * gain[j] * sig * (1.f - sig);
      if (rows.at.inside(0, j)) d_gain[j] += t * normed[j];
    }
    E* const d_read = rows.template row<E>(d.d_read, token);
    rows.at.store(d_read, 0, to_o);
    if (p.gate.data) rows.at.store(rows.template row<E>(d.d_gate, token), 0, to_gate);
    if (rows.groups.lane == 0) {
      const float dn = -dots[1] * p.eps * normed.inverse * normed.inverse * normed.inverse_divisor;
      d_read[p.width] = from_float<E>(fabsf(x.n) > expf(-x.m) ? copysignf(1.f, x.n) * dn : 0.f);
      for (int c = p.width + 1; c < p.read_width; ++c) d_read[c] = from_float<E>(0.f);
    }
  }
  if (idle) return;
  float* const to = sums + (static_cast<int64_t>(rows.part) * p.heads + rows.head) * p.width;
#pragma unroll
  for (int j = 0; j < kPack; ++j)
    if (rows.at.inside(0, j)) to[rows.at.column(0, j)] = d_gain[j];
}

bool valid(const MlstmRead& p) {
  return p.tokens > 0 && p.heads > 0 && p.width > 0 && p.width <= kMaxReadWidth && p.read_width > p.width &&
         p.read.data && p.m && p.gain;
}

template <class E, class... Views>
bool whole_rows(const MlstmRead& p, const Views&... views) {
  return p.width % kPack == 0 && (on_vectors(views.data, views.token, views.head, p.heads, sizeof(E)) && ...);
}

}  // namespace

cudaError_t mlstm_read_forward(const MlstmRead& p, const RowsOut& y, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  const ReadWalk walk(p);
  return with_element(p.element, [&]<class E>() {
    const auto run = [&](auto kernel) {
      kernel<<<walk.blocks(p.heads), kThreads, 0, stream>>>(p, walk, y);
      return cudaGetLastError();
    };
    return whole_rows<E>(p, p.read, p.gate, y) ? run(read_forward<E, Access::whole>)
                                               : run(read_forward<E, Access::neighbours>);
  });
}

size_t mlstm_read_scratch_bytes(const MlstmRead& p) {
  return sizeof(float) * static_cast<size_t>(ReadWalk(p).parts) * p.heads * p.width;
}

cudaError_t mlstm_read_backward(const MlstmRead& p, const MlstmReadGradients& d, void* scratch, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  const ReadWalk walk(p);
  auto* const sums = static_cast<float*>(scratch);
  const cudaError_t status = with_element(p.element, [&]<class E>() {
    const auto run = [&](auto kernel) {
      kernel<<<walk.blocks(p.heads), kThreads, 0, stream>>>(p, walk, d, sums);
      return cudaGetLastError();
    };
    return whole_rows<E>(p, p.read, p.gate, d.dy, d.d_read, d.d_gate) ? run(read_backward<E, Access::whole>)
                                                                      : run(read_backward<E, Access::neighbours>);
  });
  const int width = p.heads * p.width;
  return status == cudaSuccess ? sum_parts(sums, walk.parts, width, d.d_gain, width, nullptr, stream) : status;
}

}  // namespace sb::cuda
