#include "kernels/cpu/matmul.h"

#include <cstring>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/parallel.h"

namespace sb::cpu {
namespace {

// The tile of C that stays in registers: kTileRows rows of kTileVectors vectors.
#if defined(__AVX512F__)
constexpr int kTileRows = 8, kTileVectors = 3;
#elif defined(__aarch64__)
constexpr int kTileRows = 8, kTileVectors = 2;  // 8 x 3 leaves too few registers to run ahead: 74 against 80 GFLOP/s
#else
constexpr int kTileRows = 4, kTileVectors = 3;
#endif
template <class T>
constexpr int64_t kTileColumns = kTileVectors* kLanes<T>;

constexpr int64_t kDepth = 384;    // of a panel: one of A and one of B share the first cache
constexpr int64_t kTaskRows = 96;  // of A in a task: they stay in the second cache
constexpr int64_t kFewTasks = 8;   // below, tasks are made narrower so that more threads have work

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

// Lines (rows of A or columns of B) in panels of `width`: to[panel][k][line], zeros beyond the last line. `line` and
// `along` are the strides from line to line and along a line; `apart` lies between the panels of the copy.
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

// A whole operand in panels, slice after slice.
template <class T, int64_t width>
class Packed {
 public:
  Packed(const T* from, int64_t line, int64_t along, int64_t lines, const Slices& slices)
      : panels_((lines + width - 1) / width), slices_(slices), arena_(Arena<T>::rounded(panels_ * width * slices.K)) {
    data_ = arena_.take(panels_ * width * slices.K);
    // Memory is read in order: all lines of some depth, or some lines over the whole depth.
    const int64_t lines_each = line == 1 ? lines : 8 * width, depth_each = line == 1 ? 64 : slices.depth;
    const int64_t across = (lines + lines_each - 1) / lines_each;
    const int64_t parts = (slices.depth + depth_each - 1) / depth_each;
    for_each_task(across * slices.count * parts, [&](int64_t task) {
      const int64_t first = task % across * lines_each, slice = task / across % slices.count;
      const int64_t k = task / across / slices.count * depth_each, deep = slices.deep(slice);
      if (k >= deep) return;
      pack<T, width>(from + first * line + (slice * slices.depth + k) * along, line, along,
                     std::min(lines_each, lines - first), std::min(depth_each, deep - k),
                     at(slice, first / width) + k * width, deep * width);
    });
  }
  int64_t panels() const { return panels_; }
  T* at(int64_t slice, int64_t panel) const {
    return data_ + (slice * slices_.depth * panels_ + panel * slices_.deep(slice)) * width;
  }

 private:
  int64_t panels_;
  Slices slices_;
  Arena<T> arena_;
  T* data_;
};

// to = before + A B for one tile; `before` may be null, the same as `to`, or one row for all (step 0). The product is
// summed apart, so that rounding grows with the depth of a panel, not with K.
template <class T>
[[gnu::noinline]] void multiply_panels(int64_t depth, const T* a, const T* b, const T* before, int64_t step, T* to,
                                       int64_t ld) {
  tile::Accumulator<T, kTileRows, kTileVectors> acc;
  acc.start(to, ld, false);
  tile::multiply(acc, depth, a, kTileRows, b, kTileColumns<T>);
  if (before) {
    unrolled<kTileRows>([&](auto r) {
      unrolled<kTileVectors>([&](auto n) { acc.v[r][n] += load(before + r * step + n * kLanes<T>); });
    });
  }
  unrolled<kTileRows>(
      [&](auto r) { unrolled<kTileVectors>([&](auto n) { store(to + r * ld + n * kLanes<T>, acc.v[r][n]); }); });
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

  void run() const {
    const Packed<T, C> columns(b.data, b.column, b.row, N, slices);
    // Rows that lie across memory are packed at once; others by the task that needs them, while they are in its cache.
    const std::unique_ptr<Packed<T, R>> all_rows =
        a.row == 1 && a.column != 1 ? std::make_unique<Packed<T, R>>(a.data, a.row, a.column, M, slices) : nullptr;
    const int64_t rows = rounded_up(kTaskRows, R), down = (M + rows - 1) / rows, panels = columns.panels();
    const int64_t wide = down >= kFewTasks ? panels : std::max<int64_t>(1, panels * down / kFewTasks);
    const int64_t across = (panels + wide - 1) / wide;
    for_each_task<T>(down * across, Arena<T>::rounded(rows * slices.depth), [&](int64_t task, Arena<T>& scratch) {
      const int64_t i0 = task / across * rows, i1 = std::min(M, i0 + rows), p0 = task % across * wide;
      T* own = scratch.take(rows * slices.depth);
      for (int64_t s = 0; s < slices.count; ++s) {
        const int64_t deep = slices.deep(s);
        if (!all_rows)
          pack<T, R>(a.data + i0 * a.row + s * slices.depth * a.column, a.row, a.column, i1 - i0, deep, own, deep * R);
        const T* pa = all_rows ? all_rows->at(s, i0 / R) : own;
        for (int64_t p = p0; p < std::min(panels, p0 + wide); ++p) {
          const T* pb = columns.at(s, p);
          for (int64_t i = i0; i < i1; i += R) tile_at(i, p * C, deep, pa + (i - i0) * deep, pb, s == 0);
        }
      }
    });
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
