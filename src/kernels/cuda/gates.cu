// Products with gates: silu(z), sigma(z), swish.
#include "kernels/cuda/gates.cuh"

namespace sb::cuda {
namespace {

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

}  // namespace

cudaError_t gate_silu_forward(const GateRows& p, const RowsIn& y, const RowsIn& z, const RowsOut& out,
                              cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  return with_element(p.element, [&]<class E>() {
    return launch_packs(p, all_on_vectors<E>(1, y, z, out), ProductForward<E, true>{y, z, out}, stream);
  });
}
cudaError_t gate_silu_backward(const GateRows& p, const RowsIn& d_out, const RowsIn& y, const RowsIn& z,
                               const RowsOut& dy, const RowsOut& dz, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  return with_element(p.element, [&]<class E>() {
    return launch_packs(p, all_on_vectors<E>(1, d_out, y, z, dy, dz), ProductBackward<E, true>{d_out, y, z, dy, dz},
                        stream);
  });
}
cudaError_t gate_sigmoid_forward(const GateRows& p, float scale, const RowsIn& y, const RowsIn& z, const RowsOut& out,
                                 cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  return with_element(p.element, [&]<class E>() {
    return launch_packs(p, all_on_vectors<E>(1, y, z, out), ProductForward<E, false>{y, z, out, scale}, stream);
  });
}
cudaError_t gate_sigmoid_backward(const GateRows& p, float scale, const RowsIn& d_out, const RowsIn& y, const RowsIn& z,
                                  const RowsOut& dy, const RowsOut& dz, cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  return with_element(p.element, [&]<class E>() {
    return launch_packs(p, all_on_vectors<E>(1, d_out, y, z, dy, dz),
                        ProductBackward<E, false>{d_out, y, z, dy, dz, scale}, stream);
  });
}

cudaError_t gate_swish_forward(const GateRows& p, const RowsIn& ab, const float* beta, const RowsOut& out,
                               cudaStream_t stream) {
  if (!valid(p)) return cudaErrorInvalidValue;
  return with_element(p.element, [&]<class E>() {
    const bool vectors = all_on_vectors<E>(1, ab, out) && p.width * sizeof(E) % 16 == 0;
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
    return all_on_vectors<E>(1, d_out, ab, d_ab) && p.width * sizeof(E) % 16 == 0
               ? run(swish_backward<E, Access::vectors>)
               : run(swish_backward<E, Access::neighbours>);
  });
}

cudaError_t hgrn2_keys_forward(const Hgrn2Keys& p, const RowsOut& q, const RowsOut& k, const TokenRows<float>& g,
                               cudaStream_t stream) {
  if (!valid(p.rows)) return cudaErrorInvalidValue;
  return with_element(p.rows.element, [&]<class E>() {
    const bool vectors = all_on_vectors<E>(1, p.query, p.forget, q, k) && all_on_vectors<float>(1, g);
    return launch_packs(p.rows, vectors, Hgrn2Forward<E>{p, q, k, g}, stream);
  });
}
cudaError_t hgrn2_keys_backward(const Hgrn2Keys& p, const RowsIn& dq, const RowsIn& dk,
                                const TokenRows<const float>& dg, const RowsOut& d_query, const RowsOut& d_forget,
                                cudaStream_t stream) {
  if (!valid(p.rows)) return cudaErrorInvalidValue;
  return with_element(p.rows.element, [&]<class E>() {
    const bool vectors =
        all_on_vectors<E>(1, p.query, p.forget, dq, dk, d_query, d_forget) && all_on_vectors<float>(1, dg);
    return launch_packs(p.rows, vectors, Hgrn2Backward<E>{p, dq, dk, dg, d_query, d_forget}, stream);
  });
}

}  // namespace sb::cuda
