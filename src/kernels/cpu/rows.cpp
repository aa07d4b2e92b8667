#include "kernels/cpu/rows.h"

#include <vector>

namespace sb::cpu {

// Each thread sums some columns. Summing in blocks of rows limits the rounding error.
template <class T>
void sum_rows(const T* x, int64_t rows, int64_t stride, int64_t columns, T* out) {
  constexpr int64_t block = 64;
  parallel_for(columns, std::max<int64_t>(16, 65536 / std::max<int64_t>(1, rows)), [=](int64_t begin, int64_t end) {
    const int64_t width = end - begin;
    std::vector<T> part(static_cast<size_t>(rows > block ? width : 0));
    T* const total = out + begin;
    std::fill_n(total, width, T(0));
    for (int64_t first = 0; first < rows; first += block) {
      T* const sum = first == 0 ? total : part.data();  // a sum begins with the first block
      if (first > 0) std::fill_n(sum, width, T(0));
      for (int64_t r = first; r < std::min(rows, first + block); ++r) {
        const T* const row = x + r * stride + begin;
        for (int64_t c = 0; c < width; ++c) sum[c] += row[c];
      }
      if (first > 0)
        for (int64_t c = 0; c < width; ++c) total[c] += sum[c];
    }
  });
}
template void sum_rows<float>(const float*, int64_t, int64_t, int64_t, float*);
template void sum_rows<double>(const double*, int64_t, int64_t, int64_t, double*);

}  // namespace sb::cpu
