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

// backward_all: with dy2 and more
enum class Pass { forward, backward, backward_all };

// Several rows to a warp, a pack a thread; the next row is read meanwhile.
template <class E, Access A, Pass pass>
__global__ void __launch_bounds__(kThreads) scale_heads(const __grid_constant__ ScaleRows q) {
  constexpr bool back = pass != Pass::forward, all = pass == Pass::backward_all;
  const HeadScale& p = q.p;
  const RowGroups<0> groups(q.lanes);
  const Columns<A, 0> at{groups.lane, p.width, p.width, q.lanes};
  const int step = gridDim.x * groups.groups, first = blockIdx.x * groups.groups;
  const int rounds = (q.rows - first + step - 1) / step;
  struct Ahead {
    Raw<E> x, dy, dy2, more;
    float w;
  } ahead;
  const auto place = [&](int row, int& head) {
    const auto token = static_cast<int>(q.by_heads(static_cast<uint32_t>(row)));
    head = row - token * p.heads;
    return token;
  };
  const auto read = [&](Ahead& next, int row) {
    int head;
    const int64_t token = place(min(row, q.rows - 1), head);
    const auto load = [&](Raw<E>& to, const RowsIn& from) {
      at.load(to, static_cast<const E*>(from.data) + token * from.token + head * from.head, 0);
    };
    next.w = p.w.data[token * p.w.token + head];
    load(next.x, p.x);
    if constexpr (back) load(next.dy, q.d.dy);
    if constexpr (all) {
      load(next.dy2, q.d.dy2);
      load(next.more, q.d.more);
    }
  };
  walk_rows(ahead, rounds, first + groups.group, step, read, [&](Ahead& next, int round, int row) {
    float v[kPack], dot[1] = {0};
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      float dy = back ? next.dy[j] : 0.f;
      if constexpr (all) dy += next.dy2[j];
      v[j] = next.w * (back ? dy : next.x[j]);
      if constexpr (all) v[j] += next.more[j];
      if constexpr (back) dot[0] += dy * next.x[j];
    }
    if (round + 1 < rounds) read(next, row + step);
    if constexpr (back) groups.sum(dot, 0);
    if (row >= q.rows) return;
    int head;
    const int64_t token = place(row, head);
    at.store(static_cast<E*>(q.out.data) + token * q.out.token + head * q.out.head, 0, v);
    if (back && groups.lane == 0) q.d.dw.data[token * q.d.dw.token + head] = dot[0];
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
    const auto fits = [&](const auto& view) {
      return on_vectors(view.data, view.token, view.head, p.heads, sizeof(E));
    };
    const bool whole =
        fits(p.x) && fits(q.d.dy) && fits(q.d.dy2) && fits(q.d.more) && fits(q.out) && p.width % kPack == 0;
    const int groups = kThreads / 32 * (32 / q.lanes);
    const auto launch = [&](auto kernel) {
      kernel<<<walking_blocks(kernel, (q.rows + groups - 1) / groups, 1 << 30), kThreads, 0, stream>>>(q);
      return cudaGetLastError();
    };
    return launch(whole ? scale_heads<E, Access::whole, pass> : scale_heads<E, Access::scattered, pass>);
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
  if ((d.dy2.data == nullptr) != (d.more.data == nullptr)) return cudaErrorInvalidValue;
  return d.more.data ? run<Pass::backward_all>(q, stream) : run<Pass::backward>(q, stream);
}

}  // namespace sb::cuda
