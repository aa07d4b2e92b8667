#include "kernels/cpu/matmul.h"

#include <cstring>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/parallel.h"

namespace sb::cpu {
namespace {

// The tile of C that stays in registers: kTileRows rows of kTileVectors vectors.
#if defined(__AVX512F__)
constexpr int kTileRows = 12;
#else
constexpr int kTileRows = tile::kRows;
#endif
constexpr int kTileVectors = tile::kVectors;
template <class T>
constexpr int64_t kTileColumns = kTileVectors* lanes<T>;

#if defined(__AVX512F__)
constexpr int64_t kDepth = 256;  // of a panel: one of A and one of B share the first cache
#else
constexpr int64_t kDepth = 384;
#endif
constexpr int64_t kTaskRows = 96;          // of A in a task: they stay in the second cache
constexpr int64_t kTasks = 32;             // at least, so that threads have equal shares
constexpr int64_t kOneThread = 1 << 17;    // multiplications below which waking threads costs more than they save
constexpr int64_t kSmallResult = 1 << 14;  // elements of C of which every slice may have its own

int64_t rounded_up(int64_t n, int64_t step) {
  return (n + step - 1) / step * step;
}

// K cut into slices of `depth`, the last may be shorter.
struct Slices {
  int64_t K, count, depth;
  explicit Slices(int64_t k) : K(k), count(std::max<int64_t>(1, (K + kDepth - 1) / kDepth)) {
    depth = rounded_up(std::max<int64_t>(1, (K + count - 1) / count), 8);
    count = std::max<int64_t>(1, (K + depth - 1) / depth);
  }
  int64_t deep(int64_t slice) const { return std::min(depth, K - slice * depth); }
};

// Packs lines (rows of A or columns of B) into panels of `width` lines: to[panel][k][line], with zeros beyond the last
// line. Strides: `line` between lines, `along` along a line, `apart` between panels of the copy.
template <class T, int64_t width>
void pack(const T* from, int64_t line, int64_t along, int64_t lines, int64_t depth, T* to, int64_t apart) {
  const int64_t whole = lines / width, rest = lines - whole * width;
  if (line == 1) {
    constexpr int64_t step = 8;  // whole lines of cache are written, a few pages are read at a time
    for (int64_t k0 = 0; k0 < depth; k0 += step) {
      const int64_t k1 = std::min(depth, k0 + step);
      for (int64_t p = 0; p < whole; ++p) {
        for (int64_t k = k0; k < k1; ++k)
          std::memcpy(to + p * apart + k * width, from + k * along + p * width, width * sizeof(T));
      }
    }
  } else {
    for (int64_t p = 0; p < whole; ++p) transpose(width, depth, from + p * width * line, line, to + p * apart, width);
  }
  for (int64_t k = 0; rest > 0 && k < depth; ++k) {
    for (int64_t i = 0; i < width; ++i)
      to[whole * apart + k * width + i] = i < rest ? from[(whole * width + i) * line + k * along] : T(0);
  }
}

// The same on all threads. Reads memory sequentially: all lines for part of the depth, or some lines over all of it.
template <class T, int64_t width>
void pack_shared(const T* from, int64_t line, int64_t along, int64_t lines, int64_t depth, T* to) {
  const int64_t lines_each = line == 1 ? lines : 8 * width, depth_each = line == 1 ? 64 : depth;
  const int64_t across = (lines + lines_each - 1) / lines_each;
  for_each_task(across * ((depth + depth_each - 1) / depth_each), [&](int64_t task) {
    const int64_t first = task % across * lines_each, k = task / across * depth_each;
    pack<T, width>(from + first * line + k * along, line, along, std::min(lines_each, lines - first),
                   std::min(depth_each, depth - k), to + first * depth + k * width, depth * width);
  });
}

// to = before + A B for one tile. `before` may be null, the same as `to`, or one row for all (step 0). The product is
// summed separately, so that rounding errors grow with the depth of a panel, not with K.
template <class T>
[[gnu::noinline]] void multiply_panels(int64_t depth, const T* a, const T* b, const T* before, int64_t step, T* to,
                                       int64_t ld) {
  tile::Accumulator<T, kTileRows, kTileVectors> acc;
  acc.start(to, ld, false);
  tile::multiply(acc, depth, a, kTileRows, b, kTileColumns<T>);
  if (before) {
    acc.each([&](auto r, auto n)
                 __attribute__((always_inline)) { acc.v[r][n] += simd::load(before + r * step + n * lanes<T>); });
  }
  acc.finish(to, ld);
}

template <class T>
struct Product {
  static constexpr int64_t R = kTileRows, C = kTileColumns<T>;
  int64_t M, N;
  Slices slices;
  Matrix<T> a, b;
  T* c;
  int64_t ldc;
  bool add;
  const T* bias;

  // One tile of C at row i, column j: what was there (or the bias, or nothing) plus the product of two panels.
  void tile_at(int64_t i, int64_t j, int64_t deep, const T* pa, const T* pb, bool first) const {
    const int64_t rows = std::min(R, M - i), columns = std::min(C, N - j);
    T* to = c + i * ldc + j;
    const T* before = add || !first ? to : bias ? bias + j : nullptr;
    const int64_t step = add || !first ? ldc : 0;
    if (rows == R && columns == C) return multiply_panels<T>(deep, pa, pb, before, step, to, ldc);
    alignas(64) T edge[R * C] = {};
    for (int64_t r = 0; before && r < rows; ++r) std::copy_n(before + r * step, columns, edge + r * C);
    multiply_panels<T>(deep, pa, pb, edge, C, edge, C);
    for (int64_t r = 0; r < rows; ++r) std::copy_n(edge + r * C, columns, to + r * ldc);
  }

  int64_t panels() const { return (N + C - 1) / C; }
  const T* rows_at(int64_t i, int64_t slice) const { return a.data + i * a.row + slice * slices.depth * a.column; }
  const T* columns_at(int64_t slice) const { return b.data + slice * slices.depth * b.row; }
  void pack_columns(int64_t slice, T* to) const {
    pack_shared<T, C>(columns_at(slice), b.column, b.row, N, slices.deep(slice), to);
  }

  // Rows i0 .. i1 by panels p0 .. p1 of one slice; first: nothing has been summed yet.
  void block(int64_t i0, int64_t i1, int64_t p0, int64_t p1, int64_t deep, bool first, const T* rows,
             const T* columns) const {
    for (int64_t p = p0; p < p1; ++p) {
      for (int64_t i = i0; i < i1; i += R)
        tile_at(i, p * C, deep, rows + (i - i0) * deep, columns + p * C * deep, first);
    }
  }

  int64_t row_elements() const { return Arena<T>::rounded(rounded_up(M, R) * slices.depth); }
  int64_t column_elements() const { return Arena<T>::rounded(panels() * C * slices.depth); }

  // All of C for one slice, on this thread.
  void whole_slice(int64_t s, bool first, Arena<T>& scratch) const {
    const int64_t deep = slices.deep(s);
    T *const rows = scratch.take(row_elements()), *const columns = scratch.take(column_elements());
    pack<T, R>(rows_at(0, s), a.row, a.column, M, deep, rows, deep * R);
    pack<T, C>(columns_at(s), b.column, b.row, N, deep, columns, deep * C);
    block(0, M, 0, panels(), deep, first, rows, columns);
  }

  void alone() const {
    Arena<T> scratch(row_elements() + column_elements());
    for (int64_t s = 0; s < slices.count; ++s, scratch.reset()) whole_slice(s, s == 0, scratch);
  }

  // For a small C and a large K: each slice of K is a task with its own C; these are then added from front to back.
  void by_depth() const {
    Arena<T> arena(Arena<T>::rounded(slices.count * M * N));
    T* const parts = arena.take(slices.count * M * N);
    for_each_task<T>(slices.count, row_elements() + column_elements(), [&](int64_t s, Arena<T>& scratch) {
      Product part = *this;
      part.c = parts + s * M * N;
      part.ldc = N;
      part.add = false;
      part.bias = nullptr;
      part.whole_slice(s, true, scratch);
    });
    for (int64_t i = 0; i < M; ++i) {
      T* const to = c + i * ldc;
      if (!add) bias ? std::copy_n(bias, N, to) : std::fill_n(to, N, T(0));
      for (int64_t s = 0; s < slices.count; ++s) {
        const T* const part = parts + (s * M + i) * N;
        for (int64_t j = 0; j < N; ++j) to[j] += part[j];
      }
    }
  }

  // For many contiguous rows: each task packs its own rows, while they are in its cache, and uses all of B.
  void by_rows(int64_t rows, int64_t tasks) const {
    const int64_t wide = panels() * C;
    Arena<T> arena(Arena<T>::rounded(wide * slices.K));
    T* const columns = arena.take(wide * slices.K);
    for (int64_t s = 0; s < slices.count; ++s) pack_columns(s, columns + s * slices.depth * wide);
    for_each_task<T>(tasks, Arena<T>::rounded(rows * slices.depth), [&](int64_t task, Arena<T>& scratch) {
      const int64_t i0 = task * rows, i1 = std::min(M, i0 + rows);
      T* const own = scratch.take(rows * slices.depth);
      for (int64_t s = 0; s < slices.count; ++s) {
        const int64_t deep = slices.deep(s);
        pack<T, R>(rows_at(i0, s), a.row, a.column, i1 - i0, deep, own, deep * R);
        block(i0, i1, 0, panels(), deep, s == 0, own, columns + s * slices.depth * wide);
      }
    });
  }

  // For strided or few rows: processes slice after slice, each packed by all threads together.
  void by_slices(int64_t rows, int64_t down) const {
    const int64_t across = std::min(panels(), (kTasks + down - 1) / down), wide = (panels() + across - 1) / across;
    Arena<T> arena(row_elements() + column_elements());
    T *const packed = arena.take(row_elements()), *const columns = arena.take(column_elements());
    for (int64_t s = 0; s < slices.count; ++s) {
      const int64_t deep = slices.deep(s);
      pack_shared<T, R>(rows_at(0, s), a.row, a.column, M, deep, packed);
      pack_columns(s, columns);
      for_each_task(down * across, [&](int64_t task) {
        const int64_t i0 = task / across * rows, p0 = task % across * wide;
        block(i0, std::min(M, i0 + rows), p0, std::min(panels(), p0 + wide), deep, s == 0, packed + i0 * deep, columns);
      });
    }
  }

  void run() const {
    if (M * N * slices.K <= kOneThread) return alone();
    if (M * N <= kSmallResult && slices.count >= 4) return by_depth();
    const int64_t down = (M + kTaskRows - 1) / kTaskRows, rows = rounded_up((M + down - 1) / down, R);
    if (down >= kTasks && a.column == 1) return by_rows(rows, down);
    by_slices(rows, down);
  }
};

}  // namespace

template <class T>
void matmul(int64_t M, int64_t N, int64_t K, const Matrix<T>& a, const Matrix<T>& b, T* c, int64_t ldc, Start start,
            const T* bias) {
  if (M > 0 && N > 0) Product<T>{M, N, Slices(K), a, b, c, ldc, start == Start::add, bias}.run();
}

template void matmul(int64_t, int64_t, int64_t, const Matrix<float>&, const Matrix<float>&, float*, int64_t, Start,
                     const float*);
template void matmul(int64_t, int64_t, int64_t, const Matrix<double>&, const Matrix<double>&, double*, int64_t, Start,
                     const double*);

}  // namespace sb::cpu
