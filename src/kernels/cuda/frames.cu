#include "kernels/cuda/frames.h"

#include "kernels/cuda/philox.cuh"
#include "kernels/cuda/rows.cuh"

namespace sb::cuda {
namespace {

constexpr int16_t kPadding = -2;

// Four elements of a sequence a thread: one block of the generator
template <class E>
__global__ void __launch_bounds__(kThreads) expand(const __grid_constant__ FrameRows p, E* out) {
  const int64_t length = static_cast<int64_t>(p.time) * p.vocab, blocks = (length + 3) / 4;
  const int64_t id = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, b = id / blocks,
                block = id - b * blocks;
  if (b >= p.batch) return;
  uint32_t word[4] = {};
  if (p.noise > 0) {
    const auto sample = static_cast<uint64_t>(p.samples[b]);
    const uint4 words = philox(make_uint4(static_cast<uint32_t>(block), static_cast<uint32_t>(sample),
                                          static_cast<uint32_t>(sample >> 32) ^ p.split << 24, kNoisePurpose),
                               make_uint2(static_cast<uint32_t>(p.seed), static_cast<uint32_t>(p.seed >> 32)));
    word[0] = words.x, word[1] = words.y, word[2] = words.z, word[3] = words.w;
  }
  int64_t t = block * 4 / p.vocab;
  int c = static_cast<int>(block * 4 - t * p.vocab);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (block * 4 + i >= length) return;
    const int16_t symbol = p.symbol[b * p.time + t];
    // rounded before the sum, as on the CPU
    float v = p.noise > 0 && symbol != kPadding
                  ? __fmul_rn(p.noise, __fmul_rn(static_cast<float>(word[i] >> 8), 0x1p-24f))
                  : 0.f;
    if (symbol == c) v = __fadd_rn(v, 1.f);
    out[b * length + block * 4 + i] = from_float<E>(v);
    if (++c == p.vocab) c = 0, ++t;
  }
}

// Rows of the table: W's columns plus the bias, then the bias alone (blanks and padding)
__global__ void __launch_bounds__(kThreads) fill_table(const __grid_constant__ SymbolEncoder p, float* table, int ld) {
  const int at = blockIdx.x * kThreads + threadIdx.x, s = at / p.width, c = at - s * p.width;
  if (s > p.vocab) return;
  table[static_cast<int64_t>(s) * ld + c] =
      (p.bias ? p.bias[c] : 0.f) + (s < p.vocab ? p.weight[static_cast<int64_t>(c) * p.vocab + s] : 0.f);
}

template <class E, Access A>
__global__ void __launch_bounds__(kThreads)
    gather(const __grid_constant__ SymbolEncoder p, const __grid_constant__ PackCount count, const float* table, int ld,
           RowsOut h, RowsOut low) {
  const Columns<A, 1> at{0, p.width, p.width};
  for_packs(count, [&](int r, int pack) {
    const int symbol = p.symbol[r];
    Raw<float> row;
    float v[kPack];
    at.load(row, table + static_cast<int64_t>(symbol < 0 ? p.vocab : symbol) * ld, pack);
#pragma unroll
    for (int j = 0; j < kPack; ++j) v[j] = row[j];
    at.store(static_cast<E*>(h.data) + r * h.token, pack, v);
    if (low.data) at.store(static_cast<bf16*>(low.data) + r * low.token, pack, v);
  });
}

constexpr int kBinColumns = 64;  // of a block
constexpr int kBinParts = 64;    // blocks along the rows

// A thread owns one column and one of four quarters of the block's rows, and adds its rows to its bins in order; the
// quarters are then added in order. parts [part][vocab + 1][width]
template <class E>
__global__ void __launch_bounds__(4 * kBinColumns)
    scatter(const __grid_constant__ SymbolEncoder p, RowsIn dh, RowsIn low, float* parts) {
  extern __shared__ float bins[];  // [4][vocab + 1][kBinColumns]
  const int column = blockIdx.x * kBinColumns + threadIdx.x % kBinColumns, quarter = threadIdx.x / kBinColumns;
  const int size = (p.vocab + 1) * kBinColumns;
  for (int i = threadIdx.x; i < 4 * size; i += 4 * kBinColumns) bins[i] = 0;
  __syncthreads();
  float* const mine = bins + quarter * size + threadIdx.x % kBinColumns;
  const int64_t each = (p.rows + 4 * gridDim.y - 1) / (4 * gridDim.y);
  const int64_t begin = (static_cast<int64_t>(blockIdx.y) * 4 + quarter) * each;
  const int64_t end = begin + each < p.rows ? begin + each : p.rows;
  if (column < p.width) {
    constexpr int ahead = 8;  // rows read before the first is added
    for (int64_t r = begin; r < end; r += ahead) {
      float g[ahead];
      int symbol[ahead];
#pragma unroll
      for (int i = 0; i < ahead; ++i) {
        const int64_t row = r + i < end ? r + i : end - 1;
        symbol[i] = p.symbol[row];
        g[i] = to_float(static_cast<const E*>(dh.data)[row * dh.token + column]);
        if (low.data) g[i] += to_float(static_cast<const bf16*>(low.data)[row * low.token + column]);
      }
#pragma unroll
      for (int i = 0; i < ahead; ++i)
        if (r + i < end) mine[(symbol[i] < 0 ? p.vocab : symbol[i]) * kBinColumns] += g[i];
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < size; i += 4 * kBinColumns) {
    const int s = i / kBinColumns, c = blockIdx.x * kBinColumns + i % kBinColumns;
    if (c >= p.width) continue;
    const float sum = ((bins[i] + bins[size + i]) + bins[2 * size + i]) + bins[3 * size + i];
    parts[(static_cast<int64_t>(blockIdx.y) * (p.vocab + 1) + s) * p.width + c] = sum;
  }
}

// d_weight [width][vocab] and d_bias, the sum over all symbols, from sums [vocab + 1][width]
__global__ void __launch_bounds__(kThreads)
    turn_gradients(const __grid_constant__ SymbolEncoder p, const float* sums, float* d_weight, float* d_bias) {
  const int c = blockIdx.x * kThreads + threadIdx.x;
  if (c >= p.width) return;
  float total = sums[static_cast<int64_t>(p.vocab) * p.width + c];
  for (int s = 0; s < p.vocab; ++s) {
    const float g = sums[static_cast<int64_t>(s) * p.width + c];
    if (d_weight) d_weight[static_cast<int64_t>(c) * p.vocab + s] = g;
    total += g;
  }
  if (d_bias) d_bias[c] = total;
}

bool valid(const SymbolEncoder& p) {
  return p.rows >= 0 && p.width > 0 && PackCount(p.rows, p.width).valid() && p.vocab > 0 &&
         p.vocab <= kMaxEncoderVocab && p.symbol;
}
int table_stride(const SymbolEncoder& p) {
  return (p.width + 3) / 4 * 4;
}

}  // namespace

cudaError_t expand_frames(const FrameRows& p, void* out, cudaStream_t stream) {
  if (p.batch < 0 || p.time < 0 || p.vocab <= 0 || (p.noise > 0 && !p.samples)) return cudaErrorInvalidValue;
  const int64_t blocks = (static_cast<int64_t>(p.time) * p.vocab + 3) / 4 * p.batch;
  if (blocks == 0) return cudaSuccess;
  return with_element(p.element, [&]<class E>() {
    expand<E>
        <<<static_cast<unsigned>((blocks + kThreads - 1) / kThreads), kThreads, 0, stream>>>(p, static_cast<E*>(out));
    return cudaGetLastError();
  });
}

size_t symbol_encoder_scratch_bytes(const SymbolEncoder& p, bool backward) {
  if (!backward) return sizeof(float) * table_stride(p) * (p.vocab + 1);
  return sizeof(float) * p.width * (p.vocab + 1) * (kBinParts + 1);
}

cudaError_t symbol_encoder_forward(const SymbolEncoder& p, const RowsOut& h, const RowsOut& low, void* scratch,
                                   cudaStream_t stream) {
  if (!valid(p) || !p.weight) return cudaErrorInvalidValue;
  if (p.rows == 0) return cudaSuccess;
  float* const table = static_cast<float*>(scratch);
  const int cells = p.width * (p.vocab + 1), ld = table_stride(p);
  fill_table<<<(cells + kThreads - 1) / kThreads, kThreads, 0, stream>>>(p, table, ld);
  return with_element(p.element, [&]<class E>() {
    const PackCount count(p.rows, p.width);
    const auto run = [&](auto kernel) {
      kernel<<<walking_blocks(kernel, count.blocks(), 1 << 30), kThreads, 0, stream>>>(p, count, table, ld, h, low);
      return cudaGetLastError();
    };
    const bool vectors = on_vectors(h.data, h.token, 0, 1, sizeof(E)) && on_vectors(low.data, low.token, 0, 1, 2);
    return vectors ? run(gather<E, Access::vectors>) : run(gather<E, Access::neighbours>);
  });
}

cudaError_t symbol_encoder_backward(const SymbolEncoder& p, const RowsIn& dh, const RowsIn& dh_low, float* d_weight,
                                    float* d_bias, void* scratch, cudaStream_t stream) {
  if (!valid(p) || p.rows == 0) return cudaErrorInvalidValue;
  const int size = p.width * (p.vocab + 1);
  float *const sums = static_cast<float*>(scratch), *const parts = sums + size;
  cudaError_t status = with_element(p.element, [&]<class E>() {
    const size_t shared = sizeof(float) * 4 * (p.vocab + 1) * kBinColumns;
    const cudaError_t raised =
        cudaFuncSetAttribute(scatter<E>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
    if (raised != cudaSuccess) return raised;
    scatter<E><<<dim3((p.width + kBinColumns - 1) / kBinColumns, kBinParts), 4 * kBinColumns, shared, stream>>>(
        p, dh, dh_low, parts);
    return cudaGetLastError();
  });
  if (status == cudaSuccess) status = sum_parts(parts, kBinParts, size, sums, size, nullptr, stream);
  if (status != cudaSuccess) return status;
  turn_gradients<<<(p.width + kThreads - 1) / kThreads, kThreads, 0, stream>>>(p, sums, d_weight, d_bias);
  return cudaGetLastError();
}

}  // namespace sb::cuda
