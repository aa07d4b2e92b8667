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
constexpr int64_t kBlockTiles = 96 / kTileRows;  // rows of tiles whose part of A stays in the second cache
constexpr int64_t kManyTiles = 128;              // rows of tiles, of which every thread can have several
constexpr int64_t kOneThread = 1 << 17;          // multiplications below which waking threads costs more than they save
constexpr int64_t kSmallResult = 1 << 13;        // elements of C per thread below which every slice has a C of its own,
constexpr int64_t kPartElements = 1 << 22;       // if all of them have at most so many

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

// The lines of an operand in one slice, packed in parts, in any order and on any thread. A part reads memory
// sequentially: a panel of lines over the whole depth or, if lines lie side by side, all lines over eight steps.
template <class T, int64_t width>
struct Lines {
  static constexpr int64_t kSteps = 8;
  const T* from;
  int64_t line, along, lines, depth;

  int64_t parts() const { return line == 1 ? (depth + kSteps - 1) / kSteps : (lines + width - 1) / width; }
  void pack_parts(int64_t first, int64_t last, T* to) const {
    if (first >= last) return;
    if (line == 1) {
      const int64_t k = first * kSteps;
      pack<T, width>(from + k * along, line, along, lines, std::min(depth, last * kSteps) - k, to + k * width,
                     depth * width);
    } else {
      const int64_t i = first * width;
      pack<T, width>(from + i * line, line, along, std::min(lines, last * width) - i, depth, to + i * depth,
                     depth * width);
    }
  }
  // The share of items first .. last of `items`
  void pack_share(int64_t first, int64_t last, int64_t items, T* to) const {
    pack_parts(parts() * first / items, parts() * last / items, to);
  }
};

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
  int64_t row_tiles() const { return (M + R - 1) / R; }
  Lines<T, R> rows_of(int64_t slice, int64_t i0, int64_t i1) const {
    return {a.data + i0 * a.row + slice * slices.depth * a.column, a.row, a.column, i1 - i0, slices.deep(slice)};
  }
  Lines<T, C> columns_of(int64_t slice) const {
    return {b.data + slice * slices.depth * b.row, b.column, b.row, N, slices.deep(slice)};
  }

  // Rows i0 .. i1 by panels p0 .. p1 of one slice; first: nothing has been summed yet.
  void block(int64_t i0, int64_t i1, int64_t p0, int64_t p1, int64_t deep, bool first, const T* rows,
             const T* columns) const {
    for (int64_t p = p0; p < p1; ++p) {
      for (int64_t i = i0; i < i1; i += R)
        tile_at(i, p * C, deep, rows + (i - i0) * deep, columns + p * C * deep, first);
    }
  }

  // Tiles first .. last, counted by blocks of rows, panels, and rows of the block.
  void tiles(int64_t first, int64_t last, int64_t deep, bool at_first, const T* rows, const T* columns) const {
    for (int64_t t = first; t < last;) {
      const int64_t top = t / (kBlockTiles * panels()) * kBlockTiles, high = std::min(kBlockTiles, row_tiles() - top);
      const int64_t p = (t - top * panels()) / high, row = (t - top * panels()) % high;
      const int64_t end = std::min(high, row + last - t);
      block((top + row) * R, std::min(M, (top + end) * R), p, p + 1, deep, at_first, rows + (top + row) * R * deep,
            columns);
      t += end - row;
    }
  }

  int64_t row_elements() const { return Arena<T>::rounded(rounded_up(M, R) * slices.depth); }
  int64_t column_elements() const { return Arena<T>::rounded(panels() * C * slices.depth); }

  // All of C for one slice, on this thread.
  void whole_slice(int64_t s, bool first, Arena<T>& scratch) const {
    const int64_t deep = slices.deep(s);
    T *const rows = scratch.take(row_elements()), *const columns = scratch.take(column_elements());
    rows_of(s, 0, M).pack_share(0, 1, 1, rows);
    columns_of(s).pack_share(0, 1, 1, columns);
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
    for_each_task(M, [&](int64_t i) {
      T* const to = c + i * ldc;
      const bool empty = !add && !bias;
      if (!add) std::copy_n(empty ? parts + i * N : bias, N, to);
      for (int64_t s = empty ? 1 : 0; s < slices.count; ++s) {
        const T* const part = parts + (s * M + i) * N;
        for (int64_t j = 0; j < N; ++j) to[j] += part[j];
      }
    });
  }

  // For many contiguous rows: each thread packs its own rows, while they are in its cache, and uses all of B.
  void by_rows() const {
    const int64_t wide = panels() * C;
    Arena<T> arena(Arena<T>::rounded(wide * slices.K));
    T* const columns = arena.take(wide * slices.K);
    parallel_for(panels() * slices.count, 1, [&](int64_t first, int64_t last) {
      for (int64_t s = first / panels(); s * panels() < last; ++s)
        columns_of(s).pack_share(std::max<int64_t>(0, first - s * panels()), std::min(panels(), last - s * panels()),
                                 panels(), columns + s * slices.depth * wide);
    });
    parallel_for(row_tiles(), 1, [&](int64_t first, int64_t last) {
      Arena<T> scratch(Arena<T>::rounded(kBlockTiles * R * slices.depth));
      T* const own = scratch.take(kBlockTiles * R * slices.depth);
      for (int64_t tile = first; tile < last; tile += kBlockTiles) {
        const int64_t i0 = tile * R, i1 = std::min(M, std::min(last, tile + kBlockTiles) * R);
        for (int64_t s = 0; s < slices.count; ++s) {
          rows_of(s, i0, i1).pack_share(0, 1, 1, own);
          block(i0, i1, 0, panels(), slices.deep(s), s == 0, own, columns + s * slices.depth * wide);
        }
      }
    });
  }

  // For strided or few rows: slice after slice, each packed by all threads together.
  void by_slices() const {
    const int64_t count = row_tiles() * panels();
    Arena<T> arena(row_elements() + column_elements());
    T *const rows = arena.take(row_elements()), *const columns = arena.take(column_elements());
    for (int64_t s = 0; s < slices.count; ++s) {
      parallel_for(count, 1, [&](int64_t first, int64_t last) {
        rows_of(s, 0, M).pack_share(first, last, count, rows);
        columns_of(s).pack_share(first, last, count, columns);
      });
      parallel_for(count, 1,
                   [&](int64_t first, int64_t last) { tiles(first, last, slices.deep(s), s == 0, rows, columns); });
    }
  }

  void run() const {
    if (M * N * slices.K <= kOneThread) return alone();
    const int64_t threads = thread_count();
    if (M * N <= threads * kSmallResult && M * N * slices.count <= kPartElements &&
        slices.count >= std::max<int64_t>(4, threads / 2))
      return by_depth();
    if (row_tiles() >= kManyTiles && a.column == 1) return by_rows();
    by_slices();
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
