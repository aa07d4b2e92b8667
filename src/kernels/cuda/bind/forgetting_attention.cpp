#include "kernels/cuda/forgetting_attention.h"

#include "kernels/cuda/bind/flash_attention.h"
#include "kernels/cuda/bind/head_rows.h"
#include "kernels/cuda/head_copy.h"
#include "kernels/operations.h"

namespace sb::cuda::bind {
namespace {

int64_t forgetting_width(int64_t width) {
  return flash_width(width + kForgettingColumns);
}

ForgettingAttention forgetting_problem(const Tensor& g, int64_t width, int64_t offset) {
  return {g.size(0),
          g.size(1),
          g.size(2),
          width,
          forgetting_width(width),
          static_cast<float>(flash_scale(width)),
          float_data(g),
          g.stride(0),
          g.stride(1),
          g.stride(2),
          offset};
}

// Copies tensors [B,T,H,w] (`to`: of at least this width, the rest becomes zero), one to three at once
void copy_all(const Tensors& from, const Tensors& to) {
  HeadCopies p;
  p.batch = from[0].size(0), p.time = from[0].size(1), p.heads = from[0].size(2), p.width = from[0].size(3);
  p.padded = to[0].size(3), p.count = static_cast<int>(from.size());
  for (size_t i = 0; i < from.size(); ++i) p.from[i] = head_rows<const void>(from[i]), p.to[i] = head_rows<void>(to[i]);
  const OnDevice on(from[0]);
  on.check("forgetting_attention", copy_heads(p, on.stream()));
}

// [B,T,H,w] with zeros behind the rows
Tensors with_room(const Tensors& given) {
  Tensors from, to;
  for (const Tensor& x : given) {
    from.push_back(packed_last(x));
    to.push_back(fresh({x.size(0), x.size(1), x.size(2), forgetting_width(x.size(3))}, x));
  }
  copy_all(from, to);
  return to;
}

// q, k and v behind a cache, where k and v have more frames than q
Tensors with_room_behind(const Tensors& in) {
  const Tensors q = with_room({in[0]}), kv = with_room({in[1], in[2]});
  return {q[0], kv[0], kv[1]};
}

// [B,H,T,padded] as [B,T,H,w] without gaps
Tensor without_room(const Tensor& x, int64_t width) {
  const Tensor from = packed_last(frames_first(x, width)), to = fresh(from.sizes(), from);
  copy_all({from}, {to});
  return to;
}

// [B,H,T,w] with rows that are aligned to 16 bytes
Tensor with_aligned_rows(const Tensor& x) {
  const bool aligned = x.stride(3) == 1 && x.stride(0) % 8 == 0 && x.stride(1) % 8 == 0 && x.stride(2) % 8 == 0 &&
                       reinterpret_cast<uintptr_t>(x.data_ptr()) % 16 == 0;
  return aligned ? x : x.contiguous();
}

}  // namespace

// With an offset, and beyond the time that the gradient's kernel supports, without gradients only.
bool supports_forgetting_attention(const op::ForgettingAttention& op, const Tensors& in) {
  if (!readable(in[0]) || !is_low(in[0]) || !same_type(in[0], in[1]) || !same_type(in[0], in[2]) ||
      in[3].scalar_type() != at::kFloat || forgetting_width(in[0].size(3)) > kMaxFlashWidth)
    return false;
  if (!kernels::records_gradient(in)) return true;
  const c10::DeviceGuard on(in[0].device());
  return op.offset == 0 && forgetting_attention_fits(in[0].size(1), forgetting_width(in[0].size(3)));
}

Tensors forgetting_attention(const op::ForgettingAttention& op, const Tensors& in, Tensors* saved) {
  const int64_t width = in[0].size(3);
  const Tensors rows = op.offset > 0 ? with_room_behind(in) : with_room({in[0], in[1], in[2]});
  const OnDevice on(in[0]);
  on.check("forgetting_attention",
           forgetting_attention_columns(forgetting_problem(in[3], width, op.offset), head_rows<void>(rows[0]),
                                        head_rows<void>(rows[1]), on.stream()));
  const Tensor q = rows[0].transpose(1, 2), k = rows[1].transpose(1, 2), v = rows[2].transpose(1, 2);
  if (op.offset > 0) return {without_room(attend_behind(op.offset, q, k, v, flash_scale(width)), width)};
  Tensors kept = flash_forward(q, k, v, flash_scale(width));
  const Tensor out = without_room(kept[3], width);
  if (saved) {
    kept.push_back(in[3]);
    *saved = kept;
  }
  return {out};
}

Tensors forgetting_attention_back(const op::ForgettingAttention&, const Back& back) {
  const int64_t width = back.d_out[0].size(3);
  const Tensors& kept = back.saved;
  const Tensor d_out = with_room({back.d_out[0]})[0].transpose(1, 2), g = kept[7];
  const Tensors d = flash_backward(d_out, kept, flash_scale(width));
  Tensor dg;
  if (back.wanted[3]) {
    const auto rows = [](const Tensor& x) { return ConstRows{data(x), x.stride(0), x.stride(2), x.stride(1)}; };
    const Tensor out = with_aligned_rows(kept[3]), v = with_aligned_rows(kept[2]), lse = floats(kept[4]);
    dg = fresh(g.sizes(), g);
    const ForgettingGradient given{rows(kept[0]),   rows(kept[1]),  rows(v),      rows(out),    rows(d_out),
                                   float_data(lse), float_data(dg), dg.stride(0), dg.stride(1), dg.stride(2)};
    const OnDevice on(g);
    on.check("forgetting_attention", forgetting_attention_gates(forgetting_problem(g, width, 0), given, on.stream()));
  }
  Tensors from, to;
  for (size_t i = 0; i < 3; ++i) {
    from.push_back(packed_last(frames_first(d[i], width)));
    to.push_back(gradient_of(back, i, back.d_out[0]));
  }
  copy_all(from, to);
  return {to[0], to[1], to[2], dg};
}

}  // namespace sb::cuda::bind
