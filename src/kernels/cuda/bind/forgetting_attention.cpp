#include "kernels/cuda/forgetting_attention.h"

#include "kernels/cuda/bind/flash_attention.h"
#include "kernels/cuda/bind/head_rows.h"
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

// [B,T,H,w] with room for more columns, which are not written yet
Tensor with_room(const Tensor& x) {
  const Tensor out = fresh({x.size(0), x.size(1), x.size(2), forgetting_width(x.size(3))}, x);
  out.narrow(3, 0, x.size(3)).copy_(x);
  return out;
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
  const Tensor q = with_room(in[0]), k = with_room(in[1]), v = heads_first(in[2], forgetting_width(width));
  const OnDevice on(q);
  on.check("forgetting_attention", forgetting_attention_columns(forgetting_problem(in[3], width, op.offset),
                                                                head_rows<void>(q), head_rows<void>(k), on.stream()));
  if (op.offset > 0)
    return {frames_first(attend_behind(op.offset, q.transpose(1, 2), k.transpose(1, 2), v, flash_scale(width)), width)};
  Tensors kept = flash_forward(q.transpose(1, 2), k.transpose(1, 2), v, flash_scale(width));
  const Tensor out = kept[3];
  if (saved) {
    kept.push_back(in[3]);
    *saved = kept;
  }
  return {frames_first(out, width)};
}

Tensors forgetting_attention_back(const op::ForgettingAttention&, const Back& back) {
  const int64_t width = back.d_out[0].size(3);
  const Tensors& kept = back.saved;
  const Tensor d_out = with_aligned_rows(heads_first(back.d_out[0], forgetting_width(width))), g = kept[7];
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
  return {frames_first(d[0], width), frames_first(d[1], width), frames_first(d[2], width), dg};
}

}  // namespace sb::cuda::bind
