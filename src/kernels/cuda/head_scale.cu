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

// Forward, or (back) dx and dw. Several rows to a warp, a pack a thread; the next row is read meanwhile.
template <class E, Access A, bool back>
__global__ void __launch_bounds__(kThreads) scale_heads(const __grid_constant__ ScaleRows q) {
  const HeadScale& p = q.p;
  const RowWalk<A, 0> walk(q.rows, p.width, q.lanes);
  const Columns<A, 0>& at = walk.at;
  Raw<E> x, dy;
  float w;
  const auto place = [&](int row, int& head) {
    const auto token = static_cast<int>(q.by_heads(static_cast<uint32_t>(row)));
    head = row - token * p.heads;
    return token;
  };
  const auto read = [&](int row) {
    int head;
    const int64_t token = place(min(row, q.rows - 1), head);
    w = p.w.data[token * p.w.token + head];
    at.load(x, static_cast<const E*>(p.x.data) + token * p.x.token + head * p.x.head, 0);
    if constexpr (back) at.load(dy, static_cast<const E*>(q.d.dy.data) + token * q.d.dy.token + head * q.d.dy.head, 0);
  };
  walk.each(read, [&](int, int row, auto read_next) {
    float v[kPack], dot[1] = {0};
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      v[j] = w * (back ? dy[j] : x[j]);
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

template <bool back>
cudaError_t run(ScaleRows q, cudaStream_t stream) {
  const HeadScale& p = q.p;
  if (p.tokens < 0 || p.heads < 1 || p.width < 1 || p.width > 32 * kPack || p.tokens * p.heads >= int64_t{1} << 30 ||
      !p.x.data || !p.w.data || (back && !q.d.dw.data))
    return cudaErrorInvalidValue;
  if (p.tokens == 0) return cudaSuccess;
  q.rows = static_cast<int>(p.tokens * p.heads);
  q.lanes = (p.width + kPack - 1) / kPack;
  return with_element(p.element, [&]<class E>() {
    const bool whole = all_on_vectors<E>(p.heads, p.x, q.d.dy, q.out) && p.width % kPack == 0;
    const auto kernel = whole ? scale_heads<E, Access::whole, back> : scale_heads<E, Access::scattered, back>;
    return launch_walk<0>(kernel, q, stream);
  });
}

}  // namespace

cudaError_t head_scale_forward(const HeadScale& p, const RowsOut& y, cudaStream_t stream) {
  ScaleRows q{p, 0, 0, Division(static_cast<uint32_t>(std::max(1, p.heads)))};
  q.out = y;
  return run<false>(q, stream);
}

cudaError_t head_scale_backward(const HeadScale& p, const HeadScaleGradients& d, cudaStream_t stream) {
  ScaleRows q{p, 0, 0, Division(static_cast<uint32_t>(std::max(1, p.heads)))};
  q.d = d, q.out = d.dx;
  return run<true>(q, stream);
}

}  // namespace sb::cuda
