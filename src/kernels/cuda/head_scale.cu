#include "kernels/cuda/head_scale.h"

#include "kernels/cuda/rows.cuh"

namespace sb::cuda {
namespace {

struct ScaleRows {
  HeadScale p;
  int rows, lanes;
  Division by_heads;
  HeadScaleGradients d;
  RowsOut out;
};

enum class Pass { forward, backward, backward_more };

// Several rows to a warp, a pack a thread; the next row is read meanwhile.
template <class E, Access A, Pass pass>
__global__ void __launch_bounds__(kThreads) scale_heads(const __grid_constant__ ScaleRows q) {
  constexpr bool back = pass != Pass::forward, adds = pass == Pass::backward_more;
  const HeadScale& p = q.p;
  const RowWalk<A, 0> walk(q.rows, p.width, q.lanes);
  const Columns<A, 0>& at = walk.at;
  Raw<E> x, dy, more;
  float w;
  const auto place = [&](int row, int& head) {
    const auto token = static_cast<int>(q.by_heads(static_cast<uint32_t>(row)));
    head = row - token * p.heads;
    return token;
  };
  const auto read = [&](int row) {
    int head;
    const int64_t token = place(min(row, q.rows - 1), head);
    const auto load = [&](Raw<E>& to, const RowsIn& from) {
      at.load(to, static_cast<const E*>(from.data) + token * from.token + head * from.head, 0);
    };
    w = p.w.data[token * p.w.token + head];
    load(x, p.x);
    if constexpr (back) load(dy, q.d.dy);
    if constexpr (adds) load(more, q.d.more);
  };
  walk.each(read, [&](int, int row, auto read_next) {
    float v[kPack], dot[1] = {0};
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      v[j] = w * (back ? dy[j] : x[j]);
      if constexpr (adds) v[j] += more[j];
      if constexpr (back) dot[0] += dy[j] * x[j];
    }
    read_next();
    if constexpr (back) walk.groups.sum(dot, 0);
    if (row >= q.rows) return;
    int head;
    const int64_t token = place(row, head);
    at.store(static_cast<E*>(q.out.data) + token * q.out.token + head * q.out.head, 0, v);
    if (back && at.lane == 0) q.d.dw.data[token * q.d.dw.token + head] = dot[0];
  });
}

template <Pass pass>
cudaError_t run(ScaleRows q, cudaStream_t stream) {
  const HeadScale& p = q.p;
  if (p.tokens < 0 || p.heads < 1 || p.width < 1 || p.width > 32 * kPack || p.tokens * p.heads >= int64_t{1} << 30 ||
      !p.x.data || !p.w.data || (pass != Pass::forward && !q.d.dw.data))
    return cudaErrorInvalidValue;
  if (p.tokens == 0) return cudaSuccess;
  q.rows = static_cast<int>(p.tokens * p.heads);
  q.lanes = (p.width + kPack - 1) / kPack;
  return with_element(p.element, [&]<class E>() {
    const bool whole = all_on_vectors<E>(p.heads, p.x, q.d.dy, q.d.more, q.out) && p.width % kPack == 0;
    const auto kernel = whole ? scale_heads<E, Access::whole, pass> : scale_heads<E, Access::scattered, pass>;
    return launch_walk<0>(kernel, q, stream);
  });
}

}  // namespace

cudaError_t head_scale_forward(const HeadScale& p, const RowsOut& y, cudaStream_t stream) {
  ScaleRows q{p, 0, 0, Division(static_cast<uint32_t>(std::max(1, p.heads)))};
  q.out = y;
  return run<Pass::forward>(q, stream);
}

cudaError_t head_scale_backward(const HeadScale& p, const HeadScaleGradients& d, cudaStream_t stream) {
  ScaleRows q{p, 0, 0, Division(static_cast<uint32_t>(std::max(1, p.heads)))};
  q.d = d, q.out = d.dx;
  return d.more.data ? run<Pass::backward_more>(q, stream) : run<Pass::backward>(q, stream);
}

}  // namespace sb::cuda
