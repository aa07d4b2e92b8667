#include "models/matmul.h"

#include "base/torch_pch.h"

namespace sb {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t most_tiles = 16;
constexpr int64_t smallest_tile = 128;       // below, packing the other operand again for every tile shows
constexpr int64_t never_threaded = 1 << 15;  // multiplications that no BLAS spreads over threads

// At least two tiles: a loop over one would run outside a parallel region, where the BLAS uses threads of its own.
int64_t tile_size(int64_t extent) {
  const int64_t tile = std::max(smallest_tile, (extent + most_tiles - 1) / most_tiles);
  return (tile + 15) / 16 * 16 < extent ? (tile + 15) / 16 * 16 : (extent + 1) / 2;
}

void multiply(at::Tensor out, const at::Tensor& a, const at::Tensor& b, bool add) {
  if (add)
    out.addmm_(a, b);
  else
    at::mm_out(out, a, b);
}

void tiled(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add) {
  const at::NoGradGuard no_gradients;
  const int64_t rows = out.size(0), columns = out.size(1);
  if (!out.device().is_cpu() || rows * columns * a.size(1) <= never_threaded) return multiply(out, a, b, add);
  const bool by_rows = rows >= columns;
  const int64_t extent = by_rows ? rows : columns, tile = tile_size(extent);
  at::parallel_for(0, (extent + tile - 1) / tile, 1, [&](int64_t begin, int64_t end) {
    const at::NoGradGuard none_here_either;
    for (int64_t t = begin; t < end; ++t) {
      const int64_t from = t * tile, length = std::min(tile, extent - from);
      if (by_rows)
        multiply(out.narrow(0, from, length), a.narrow(0, from, length), b, add);
      else
        multiply(out.narrow(1, from, length), a, b.narrow(1, from, length), add);
    }
  });
}

at::Tensor each_product(const at::Tensor& a, const at::Tensor& b) {
  const at::NoGradGuard no_gradients;
  if (!a.device().is_cpu()) return at::bmm(a, b);
  auto out = at::empty({a.size(0), a.size(1), b.size(2)}, a.options());
  at::parallel_for(0, a.size(0), 1, [&](int64_t begin, int64_t end) {
    const at::NoGradGuard none_here_either;
    for (int64_t i = begin; i < end; ++i) multiply(out.select(0, i), a.select(0, i), b.select(0, i), false);
  });
  return out;
}

struct BatchedProduct : torch::autograd::Function<BatchedProduct> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& a, const at::Tensor& b) {
    ctx->save_for_backward({a, b});
    return each_product(a, b);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    return {each_product(grads[0], saved[1].transpose(1, 2)), each_product(saved[0].transpose(1, 2), grads[0])};
  }
};

}  // namespace

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  auto out = at::empty({a.size(0), b.size(1)}, a.options());
  tiled(out, a.detach(), b.detach(), false);
  return out;
}

void product_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  tiled(out, a.detach(), b.detach(), false);
}
void add_product_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  tiled(out, a.detach(), b.detach(), true);
}

at::Tensor batched_product(const at::Tensor& a, const at::Tensor& b) {
  return BatchedProduct::apply(a, b);
}

}  // namespace sb
