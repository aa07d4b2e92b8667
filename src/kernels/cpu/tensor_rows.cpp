#include "kernels/cpu/tensor_rows.h"

#include "kernels/poison.h"

namespace sb::cpu {
namespace {

// [rows, columns] to [columns]: threads own columns, blocks of rows bound the rounding.
template <class T>
void sum_rows(const T* x, int64_t rows, int64_t columns, T* out) {
  constexpr int64_t block = 64;
  at::parallel_for(0, columns, std::max<int64_t>(16, 65536 / std::max<int64_t>(1, rows)),
                   [&](int64_t begin, int64_t end) {
                     std::vector<T> part(static_cast<size_t>(end - begin));
                     const auto width = end - begin;
                     T *sum = part.data(), *total = out + begin;
                     std::fill_n(total, width, T(0));
                     for (int64_t first = 0; first < rows; first += block) {
                       std::fill_n(sum, width, T(0));
                       for (int64_t r = first; r < std::min(rows, first + block); ++r) {
                         const T* row = x + r * columns + begin;
                         for (int64_t c = 0; c < width; ++c) sum[c] += row[c];
                       }
                       for (int64_t c = 0; c < width; ++c) total[c] += sum[c];
                     }
                   });
}

}  // namespace

at::Tensor sum_in_order(const at::Tensor& parts) {
  if (parts.size(0) == 1) return parts.select(0, 0);
  const at::Tensor from = parts.contiguous(), out = kernels::fresh(parts.sizes().slice(1), parts.options());
  with_type_of(from, [&](auto type) {
    using T = decltype(type);
    sum_rows(from.data_ptr<T>(), from.size(0), out.numel(), out.data_ptr<T>());
  });
  return out;
}

}  // namespace sb::cpu
