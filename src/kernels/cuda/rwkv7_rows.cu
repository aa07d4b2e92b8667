// A warp has one head, and walks over tokens: its parameters and the sums of their gradients stay in registers. A lane
// has pairs of columns, 64 columns apart.
#include "kernels/cuda/rwkv7_rows.h"

#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/rows.cuh"

namespace sb::cuda {
namespace {

constexpr int kRowWarps = kThreads / 32;
constexpr int kKeySums = 2, kReadSums = 3;   // of parameters' gradients
constexpr float kDecayScale = -0.60653066f;  // -e^{-1/2}
constexpr float kLeastNorm = 1e-12f;

template <int P>
struct Pairs {
  float v[2 * P];
};

// The warp's walk
template <int P>
struct HeadWalk {
  int lane, head, heads, width, part, parts;
  int64_t tokens;
  __device__ HeadWalk(const Rwkv7Rows& rows, int all_parts)
      : lane(static_cast<int>(threadIdx.x) % 32),
        heads(rows.heads),
        width(rows.width),
        parts(all_parts),
        tokens(rows.tokens) {
    const int warp = static_cast<int>(blockIdx.x) * kRowWarps + static_cast<int>(threadIdx.x) / 32;
    part = warp / heads, head = warp - part * heads;
  }
  __device__ bool idle() const { return part >= parts; }
  __device__ int column(int i) const { return 2 * (lane + 32 * i); }
  __device__ int64_t place(int64_t token) const { return (token * heads + head) * width; }
  template <class E>
  __device__ Pairs<P> load(const E* from) const {
    Pairs<P> x;
#pragma unroll
    for (int i = 0; i < P; ++i) {
      const bool inside = column(i) < width;
      if constexpr (sizeof(E) == 2) {
        const uint32_t bits = inside ? *reinterpret_cast<const uint32_t*>(from + column(i)) : 0u;
        x.v[2 * i] = __uint_as_float(bits << 16), x.v[2 * i + 1] = __uint_as_float(bits & 0xffff0000u);
      } else {
        const float2 pair = inside ? *reinterpret_cast<const float2*>(from + column(i)) : make_float2(0, 0);
        x.v[2 * i] = pair.x, x.v[2 * i + 1] = pair.y;
      }
    }
    return x;
  }
  template <class E>
  __device__ Pairs<P> row(const void* from, int64_t token) const {
    return load(static_cast<const E*>(from) + place(token));
  }
  __device__ Pairs<P> parameters(const float* from) const {
    return load(from + head * width);
  }
  template <class E>
  __device__ void store(E* to, const Pairs<P>& x) const {
#pragma unroll
    for (int i = 0; i < P; ++i) {
      if (column(i) >= width) continue;
      if constexpr (sizeof(E) == 2)
        *reinterpret_cast<uint32_t*>(to + column(i)) = pack(x.v[2 * i], x.v[2 * i + 1]);
      else
        *reinterpret_cast<float2*>(to + column(i)) = make_float2(x.v[2 * i], x.v[2 * i + 1]);
    }
  }
  template <class E>
  __device__ void put(void* to, int64_t token, const Pairs<P>& x) const {
    store(static_cast<E*>(to) + place(token), x);
  }
  // Sum number `which` of `count` of this part
  __device__ void put_sum(float* sums, int which, int count, const Pairs<P>& x) const {
    store(sums + ((static_cast<int64_t>(part) * count + which) * heads + head) * width, x);
  }
};

template <class E, int P>
__global__ void __launch_bounds__(kThreads) keys_forward(Rwkv7Keys p, Rwkv7KeyOutputs out, int parts) {
  const HeadWalk<P> walk(p.rows, parts);
  if (walk.idle()) return;
  const Pairs<P> scale = walk.parameters(p.key_scale), share = walk.parameters(p.key_rate);
  for (int64_t token = walk.part; token < walk.tokens; token += parts) {
    const Pairs<P> key = walk.template row<E>(p.key, token), rate = walk.template row<E>(p.rate, token),
                   decay = walk.template row<E>(p.decay, token);
    Pairs<P> g, k, erase, write;
    float norm[1] = {0};
#pragma unroll
    for (int i = 0; i < 2 * P; ++i) {
      erase.v[i] = key.v[i] * scale.v[i];
      norm[0] += erase.v[i] * erase.v[i];
    }
    sum_over_warp(norm);
    const float inverse = 1 / fmaxf(sqrtf(norm[0]), kLeastNorm);
#pragma unroll
    for (int i = 0; i < 2 * P; ++i) {
      const float a = sigmoid(rate.v[i]);
      g.v[i] = kDecayScale * sigmoid(decay.v[i]);
      k.v[i] = key.v[i] * (1 + (a - 1) * share.v[i]);
      erase.v[i] *= inverse;
      write.v[i] = a * erase.v[i];
    }
    walk.store(out.g + walk.place(token), g);
    walk.template put<E>(out.k, token, k);
    walk.template put<E>(out.erase, token, erase);
    walk.template put<E>(out.write, token, write);
  }
}

template <class E, int P>
__global__ void __launch_bounds__(kThreads) keys_backward(Rwkv7Keys p, Rwkv7KeyGradients d, float* sums, int parts) {
  const HeadWalk<P> walk(p.rows, parts);
  if (walk.idle()) return;
  const Pairs<P> scale = walk.parameters(p.key_scale), share = walk.parameters(p.key_rate);
  Pairs<P> d_scale{}, d_share{};
  for (int64_t token = walk.part; token < walk.tokens; token += parts) {
    const Pairs<P> key = walk.template row<E>(p.key, token), rate = walk.template row<E>(p.rate, token),
                   decay = walk.template row<E>(p.decay, token);
    const Pairs<P> dg = walk.load(d.dg + walk.place(token)), dk = walk.template row<E>(d.dk, token),
                   d_erase = walk.template row<E>(d.d_erase, token), d_write = walk.template row<E>(d.d_write, token);
    float dots[2] = {0, 0};  // |u|^2, u . d(erase)
#pragma unroll
    for (int i = 0; i < 2 * P; ++i) {
      const float u = key.v[i] * scale.v[i];
      dots[0] += u * u;
      dots[1] += u * (d_erase.v[i] + d_write.v[i] * sigmoid(rate.v[i]));
    }
    sum_over_warp(dots);
    const float norm = sqrtf(dots[0]), inverse = 1 / fmaxf(norm, kLeastNorm);
    const float along = norm > kLeastNorm ? dots[1] * inverse * inverse : 0.f;
    Pairs<P> d_decay, d_rate, d_key;
#pragma unroll
    for (int i = 0; i < 2 * P; ++i) {
      const float a = sigmoid(rate.v[i]), s = sigmoid(decay.v[i]), u = key.v[i] * scale.v[i];
      const float du = (d_erase.v[i] + d_write.v[i] * a - u * along) * inverse;
      const float da = dk.v[i] * key.v[i] * share.v[i] + d_write.v[i] * u * inverse;
      d_decay.v[i] = dg.v[i] * kDecayScale * s * (1 - s);
      d_rate.v[i] = da * a * (1 - a);
      d_key.v[i] = dk.v[i] * (1 + (a - 1) * share.v[i]) + du * scale.v[i];
      d_scale.v[i] += du * key.v[i];
      d_share.v[i] += dk.v[i] * key.v[i] * (a - 1);
    }
    walk.template put<E>(d.d_decay, token, d_decay);
    walk.template put<E>(d.d_rate, token, d_rate);
    walk.template put<E>(d.d_key, token, d_key);
  }
  walk.put_sum(sums, 0, kKeySums, d_scale);
  walk.put_sum(sums, 1, kKeySums, d_share);
}

// Mean and inverse deviation of o, and the sum of r k bonus
template <int P>
struct ReadSums {
  float mean, inverse, bonus;
  __device__ ReadSums(const HeadWalk<P>& walk, float eps, const Pairs<P>& o, const Pairs<P>& r, const Pairs<P>& k,
                      const Pairs<P>& weight) {
    float sums[2] = {0, 0}, square[1] = {0};
#pragma unroll
    for (int i = 0; i < 2 * P; ++i) sums[0] += o.v[i], sums[1] += r.v[i] * k.v[i] * weight.v[i];
    sum_over_warp(sums);
    mean = sums[0] / static_cast<float>(walk.width), bonus = sums[1];
#pragma unroll
    for (int i = 0; i < 2 * P; ++i)
      if (walk.column(i / 2) < walk.width) square[0] += (o.v[i] - mean) * (o.v[i] - mean);
    sum_over_warp(square);
    inverse = rsqrtf(square[0] / static_cast<float>(walk.width) + eps);
  }
};

template <class E, int P>
__global__ void __launch_bounds__(kThreads) read_forward(Rwkv7Read p, void* to, int parts) {
  const HeadWalk<P> walk(p.rows, parts);
  if (walk.idle()) return;
  const Pairs<P> weight = walk.parameters(p.bonus), gain = walk.parameters(p.gain), bias = walk.parameters(p.bias);
  for (int64_t token = walk.part; token < walk.tokens; token += parts) {
    const Pairs<P> o = walk.template row<E>(p.o, token), r = walk.template row<E>(p.r, token),
                   k = walk.template row<E>(p.k, token), v = walk.template row<E>(p.v, token),
                   gate = walk.template row<E>(p.gate, token);
    const ReadSums<P> sums(walk, p.eps, o, r, k, weight);
    Pairs<P> y;
#pragma unroll
    for (int i = 0; i < 2 * P; ++i)
      y.v[i] = ((o.v[i] - sums.mean) * sums.inverse * gain.v[i] + bias.v[i] + sums.bonus * v.v[i]) * gate.v[i];
    walk.template put<E>(to, token, y);
  }
}

template <class E, int P>
__global__ void __launch_bounds__(kThreads) read_backward(Rwkv7Read p, Rwkv7ReadGradients d, float* sums, int parts) {
  const HeadWalk<P> walk(p.rows, parts);
  if (walk.idle()) return;
  const Pairs<P> weight = walk.parameters(p.bonus), gain = walk.parameters(p.gain), bias = walk.parameters(p.bias);
  Pairs<P> d_weight{}, d_gain{}, d_bias{};
  for (int64_t token = walk.part; token < walk.tokens; token += parts) {
    const Pairs<P> o = walk.template row<E>(p.o, token), r = walk.template row<E>(p.r, token),
                   k = walk.template row<E>(p.k, token), v = walk.template row<E>(p.v, token),
                   gate = walk.template row<E>(p.gate, token), dy = walk.template row<E>(d.dy, token);
    const ReadSums<P> at(walk, p.eps, o, r, k, weight);
    float dots[3] = {0, 0, 0};  // of the norm's gradient: its sum, with the norm; of the bonus
#pragma unroll
    for (int i = 0; i < 2 * P; ++i) {
      const float dz = dy.v[i] * gate.v[i], normed = (o.v[i] - at.mean) * at.inverse;
      dots[0] += dz * gain.v[i];
      dots[1] += dz * gain.v[i] * normed;
      dots[2] += dz * v.v[i];
    }
    sum_over_warp(dots);
    const float each = 1 / static_cast<float>(walk.width);
    Pairs<P> d_o, dr, dk, dv, d_gate;
#pragma unroll
    for (int i = 0; i < 2 * P; ++i) {
      const float dz = dy.v[i] * gate.v[i], normed = (o.v[i] - at.mean) * at.inverse;
      d_gate.v[i] = dy.v[i] * (normed * gain.v[i] + bias.v[i] + at.bonus * v.v[i]);
      d_o.v[i] = (dz * gain.v[i] - each * dots[0] - normed * each * dots[1]) * at.inverse;
      dv.v[i] = dz * at.bonus;
      dr.v[i] = dots[2] * k.v[i] * weight.v[i];
      dk.v[i] = dots[2] * r.v[i] * weight.v[i];
      d_weight.v[i] += dots[2] * r.v[i] * k.v[i];
      d_gain.v[i] += dz * normed;
      d_bias.v[i] += dz;
    }
    walk.template put<E>(d.d_o, token, d_o);
    walk.template put<E>(d.dr, token, dr);
    walk.template put<E>(d.dk, token, dk);
    walk.template put<E>(d.dv, token, dv);
    walk.template put<E>(d.d_gate, token, d_gate);
  }
  walk.put_sum(sums, 0, kReadSums, d_weight);
  walk.put_sum(sums, 1, kReadSums, d_gain);
  walk.put_sum(sums, 2, kReadSums, d_bias);
}

// ---- launches ----

bool valid(const Rwkv7Rows& rows) {
  return rows.tokens > 0 && rows.heads > 0 && rows.width > 0 && rows.width % 2 == 0 && rows.width <= 256;
}

// Warps per head: enough to fill the GPU
int parts_of(const Rwkv7Rows& rows) {
  const int64_t wanted = static_cast<int64_t>(multiprocessors()) * 4 * kRowWarps / rows.heads;
  return static_cast<int>(std::clamp<int64_t>(std::min(wanted, rows.tokens), 1, kMaxParts));
}
unsigned blocks_of(const Rwkv7Rows& rows) {
  return static_cast<unsigned>((static_cast<int64_t>(parts_of(rows)) * rows.heads + kRowWarps - 1) / kRowWarps);
}

// launch<E, P>() for the type and for pairs of columns per lane
template <class Launch>
cudaError_t with_pairs(const Rwkv7Rows& rows, const Launch& launch) {
  if (!valid(rows)) return cudaErrorInvalidValue;
  return with_element(rows.element, [&]<class E>() {
    if (rows.width <= 64)
      launch.template operator()<E, 1>();
    else if (rows.width <= 128)
      launch.template operator()<E, 2>();
    else
      launch.template operator()<E, 4>();
    return cudaGetLastError();
  });
}

cudaError_t sum_heads(const Rwkv7Rows& rows, const float* parts, int count, float* to, cudaStream_t stream) {
  const int width = count * rows.heads * rows.width;
  return sum_parts(parts, parts_of(rows), width, to, width, nullptr, stream);
}

}  // namespace

size_t rwkv7_scratch_bytes(const Rwkv7Rows& rows) {
  return sizeof(float) * kReadSums * static_cast<size_t>(parts_of(rows)) * rows.heads * rows.width;
}

cudaError_t rwkv7_keys_forward(const Rwkv7Keys& p, const Rwkv7KeyOutputs& out, cudaStream_t stream) {
  return with_pairs(p.rows, [&]<class E, int P>() {
    keys_forward<E, P><<<blocks_of(p.rows), kThreads, 0, stream>>>(p, out, parts_of(p.rows));
  });
}
cudaError_t rwkv7_keys_backward(const Rwkv7Keys& p, const Rwkv7KeyGradients& d, void* scratch, cudaStream_t stream) {
  auto* const sums = static_cast<float*>(scratch);
  const cudaError_t status = with_pairs(p.rows, [&]<class E, int P>() {
    keys_backward<E, P><<<blocks_of(p.rows), kThreads, 0, stream>>>(p, d, sums, parts_of(p.rows));
  });
  return status == cudaSuccess ? sum_heads(p.rows, sums, kKeySums, d.d_parameters, stream) : status;
}

cudaError_t rwkv7_read_forward(const Rwkv7Read& p, void* y, cudaStream_t stream) {
  return with_pairs(p.rows, [&]<class E, int P>() {
    read_forward<E, P><<<blocks_of(p.rows), kThreads, 0, stream>>>(p, y, parts_of(p.rows));
  });
}
cudaError_t rwkv7_read_backward(const Rwkv7Read& p, const Rwkv7ReadGradients& d, void* scratch, cudaStream_t stream) {
  auto* const sums = static_cast<float*>(scratch);
  const cudaError_t status = with_pairs(p.rows, [&]<class E, int P>() {
    read_backward<E, P><<<blocks_of(p.rows), kThreads, 0, stream>>>(p, d, sums, parts_of(p.rows));
  });
  return status == cudaSuccess ? sum_heads(p.rows, sums, kReadSums, d.d_parameters, stream) : status;
}

}  // namespace sb::cuda
