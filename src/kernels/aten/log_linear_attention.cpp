#include "kernels/aten/chunks.h"
#include "kernels/operations.h"

namespace sb::aten {
namespace {

using at::Tensor;

constexpr int64_t kLevelsInChunk = 6;  // a chunk is a block of 2^6 frames

// Level of every pair of rows of a chunk, [64,64]: 1 + the highest bit in which their numbers differ; 0: equal
Tensor chunk_levels(const at::TensorOptions& options) {
  const Tensor row = at::arange(kChunk, options.dtype(at::kLong));
  const Tensor different = at::bitwise_xor(row.unsqueeze(1), row.unsqueeze(0));
  Tensor level = at::zeros_like(different);
  for (int64_t bit = 0; bit < kLevelsInChunk; ++bit) level = level + (different >= (int64_t{1} << bit)).to(at::kLong);
  return level;
}

// First row, in its chunk, of the block that state m holds when the next frame is row `row`.
int64_t block_start(int64_t row, int64_t m) {
  return (row >> (m + 1)) << (m + 1);
}

// [B,T,H,...] to [B,H,chunks,64,...], chunks at multiples of 64 of the whole sequence
Tensor aligned_chunks(const Tensor& x, int64_t first_row, at::ScalarType type) {
  if (first_row == 0) return split_time(x, kChunk, type);
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes[1] = first_row;
  return split_time(at::cat({at::zeros(sizes, x.options()), x}, 1), kChunk, type);
}

}  // namespace

// q, k, v, g, levels, state?
// States below kLevelsInChunk hold blocks of the chunk that the sequence is in, the others hold whole chunks.
kernels::Tensors log_linear_attention(const op::LogLinearAttention& op, const kernels::Tensors& in, kernels::Tensors*) {
  const Tensor &v_in = in[2], &state = in[5];
  const auto type = compute_type(v_in);
  const int64_t T = v_in.size(1), H = v_in.size(2), blocks = in[4].size(3) - 1, first_row = op.position % kChunk;
  const auto heads = [&](const Tensor& x) { return H == x.size(2) ? x : x.repeat_interleave(H / x.size(2), 2); };
  const auto chunks = [&](const Tensor& x) { return aligned_chunks(x, first_row, type); };
  const Tensor q = chunks(heads(in[0])), k = chunks(heads(in[1])), v = chunks(v_in), weights = chunks(in[4]);
  const Tensor b = cumulative(aligned_chunks(in[3], first_row, at::kDouble), 3), end = b.narrow(3, kChunk - 1, 1);

  const Tensor level = chunk_levels(q.options());
  Tensor of_pair;  // weight of every pair of rows
  for (int64_t l = 0; l <= kLevelsInChunk; ++l) {
    const Tensor part = weights.narrow(-1, l, 1) * (level == l).to(type);
    of_pair = l == 0 ? part : of_pair + part;
  }
  const Tensor P = product(q, k.transpose(-1, -2)) * decay_between(b, type);
  const Tensor inside = product(P * of_pair, v), reads = q * b.to(type).exp().unsqueeze(-1);
  const Tensor writes = k * (end - b).to(type).exp().unsqueeze(-1), total = end.to(type).exp().unsqueeze(-1);

  std::vector<Tensor> S(static_cast<size_t>(blocks));  // undefined: empty
  const auto at_level = [&](int64_t m) -> Tensor& { return S[static_cast<size_t>(m)]; };
  const auto add = [](const Tensor& x, const Tensor& y) { return !x.defined() ? y : !y.defined() ? x : x + y; };
  if (state.defined() && op.position > 0)
    for (int64_t m = 0; m < blocks; ++m)
      if (((op.position >> m) & 1) != 0 || (m == blocks - 1 && (op.position >> m) > 0))
        at_level(m) = state.to(type).select(2, m);

  std::vector<Tensor> out;
  for (int64_t c = 0; c < v.size(2); ++c) {
    Tensor read = inside.select(2, c);
    const auto state_read = [&](int64_t m, const Tensor& weight) {
      read = read + weight * product(reads.select(2, c), at_level(m));
    };
    for (int64_t m = 0; m < blocks; ++m) {
      if (!at_level(m).defined()) continue;
      if (m < kLevelsInChunk)
        state_read(m, of_pair.select(2, c).narrow(-1, block_start(first_row, m), 1));
      else
        state_read(m, weights.select(2, c).narrow(-1, m + 1, 1));
      at_level(m) = at_level(m) * total.select(2, c);
    }
    out.push_back(read);

    const auto written = [&](int64_t from, int64_t rows) {
      return product(writes.select(2, c).narrow(-2, from, rows).transpose(-1, -2),
                     v.select(2, c).narrow(-2, from, rows));
    };
    const int64_t done = c == v.size(2) - 1 ? (op.position + T) % kChunk : 0;
    if (done > 0) {  // the chunk is not complete: its blocks by the bits of `done`
      std::vector<Tensor> low(kLevelsInChunk);
      for (int64_t m = 0; m < kLevelsInChunk; ++m) {
        if (((done >> m) & 1) == 0) continue;
        const int64_t from = block_start(done, m), rows = int64_t{1} << m;
        low[static_cast<size_t>(m)] = written(from, rows);
        for (int64_t e = 0; e < kLevelsInChunk; ++e)
          if (at_level(e).defined() && block_start(first_row, e) >= from && block_start(first_row, e) < from + rows)
            low[static_cast<size_t>(m)] = low[static_cast<size_t>(m)] + at_level(e);
      }
      for (int64_t m = 0; m < kLevelsInChunk; ++m) at_level(m) = low[static_cast<size_t>(m)];
      continue;
    }
    Tensor block = written(0, kChunk);
    const int64_t next = op.position / kChunk + c + 1;  // in chunks
    int64_t m = 0;
    for (; m < kLevelsInChunk || (m + 1 < blocks && next % (int64_t{2} << (m - kLevelsInChunk)) == 0); ++m) {
      block = add(block, at_level(m));
      at_level(m) = Tensor();
    }
    at_level(m) = add(at_level(m), block);
  }
  kernels::Tensors results = {at::zeros_like(v_in)};
  if (!out.empty()) {
    const Tensor joined = at::stack(out, 2).flatten(2, 3).narrow(2, first_row, T);
    results[0] = joined.transpose(1, 2).to(v_in.scalar_type());
  }
  if (op.final_state) {
    const Tensor none = at::zeros({v.size(0), H, k.size(4), v.size(4)}, v.options());
    for (Tensor& each : S) each = each.defined() ? each : none;
    results.push_back(at::stack(S, 2));
  }
  return results;
}

}  // namespace sb::aten
