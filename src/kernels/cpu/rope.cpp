#include "kernels/cpu/rope.h"

#include <cmath>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/cpu/packs.h"

namespace sb::cpu {

double rope_rate(double base, int64_t j, int64_t half) {
  const float exponent = static_cast<float>(j) / static_cast<float>(half);
  return 1.0F / static_cast<float>(std::pow(base, static_cast<double>(exponent)));
}

namespace {

// cos and sin of the angles of positions offset .. offset + time - 1, [time][2][half]; angles in double
template <class T>
std::vector<T> turns(int64_t time, int64_t half, double base, int64_t offset) {
  std::vector<T> table(static_cast<size_t>(time * 2 * half));
  std::vector<double> rate(static_cast<size_t>(half));
  for (int64_t j = 0; j < half; ++j) rate[static_cast<size_t>(j)] = rope_rate(base, j, half);
  // Exact angles every kTurns steps; between them one rotation more a step, in double.
  constexpr int64_t kTurns = 16;
  const int64_t blocks = (time + kTurns - 1) / kTurns;
  Ranges(blocks, half * 256).split([&](int64_t begin, int64_t end) {
    for (int64_t j = 0; j < half; ++j) {
      const double step = rate[static_cast<size_t>(j)], c1 = std::cos(step), s1 = std::sin(step);
      for (int64_t block = begin; block < end; ++block) {
        const double angle = static_cast<double>(offset + block * kTurns) * step;
        double c = std::cos(angle), s = std::sin(angle);
        for (int64_t t = block * kTurns; t < std::min(time, (block + 1) * kTurns); ++t) {
          T* row = table.data() + t * 2 * half;
          row[j] = static_cast<T>(c);
          row[half + j] = static_cast<T>(s);
          const double next = c * c1 - s * s1;
          s = s * c1 + c * s1;
          c = next;
        }
      }
    }
  });
  return table;
}

// Caches the table of the last call, since all layers, passes and steps of a run use the same one.
template <class T>
std::shared_ptr<const std::vector<T>> shared_turns(int64_t time, int64_t half, double base, int64_t offset) {
  struct Kept {
    int64_t time = 0, half = 0, offset = 0;
    double base = 0;
    std::shared_ptr<const std::vector<T>> table;
  };
  static std::mutex mutex;
  static Kept* const kept = new Kept;  // never destroyed: tensors of static life may be turned late
  {
    const std::lock_guard lock(mutex);
    if (kept->table && kept->time >= time && kept->half == half && kept->offset == offset && kept->base == base)
      return kept->table;
  }
  auto table = std::make_shared<const std::vector<T>>(turns<T>(time, half, base, offset));
  const std::lock_guard lock(mutex);
  *kept = {time, half, offset, base, table};
  return table;
}

// [y1, y2] of one row of 2 * half elements, turned by the angles of its position, forwards or back.
template <class T, bool forwards>
inline __attribute__((always_inline)) void turn(int64_t half, const T* cosine, const T* x, T* y) {
  simd::for_packs<T, 2>(  // heads are narrow
      half, [=](int64_t i, auto io) __attribute__((always_inline)) {
        const auto a = io.load(x + i), b = io.load(x + half + i), c = io.load(cosine + i),
                   s = io.load(cosine + half + i);
        io.store(y + i, forwards ? a * c + b * s : a * c - b * s);
        io.store(y + half + i, forwards ? b * c - a * s : b * c + a * s);
      });
}

template <class T, bool forwards>
void turn_tokens(const RowStarts<T> x, const T* table, T* y, int64_t begin, int64_t end, int64_t time, int64_t heads,
                 int64_t half) {
  int64_t position = begin % time;
  for (int64_t token = begin; token < end; ++token) {
    for (int64_t r = token * heads; r < (token + 1) * heads; ++r)
      turn<T, forwards>(half, table + position * 2 * half, x[r], y + r * 2 * half);
    if (++position == time) position = 0;
  }
}

}  // namespace

template <class T>
void rope_turn(const RopeInput<T>& p, int sense, T* y) {
  const auto table = shared_turns<T>(p.time, p.half, p.base, p.offset);
  Ranges(p.batch * p.time, p.heads * 2 * p.half).split([&](int64_t begin, int64_t end) {
    (sense > 0 ? turn_tokens<T, true> : turn_tokens<T, false>)(p.x, table->data(), y, begin, end, p.time, p.heads,
                                                               p.half);
  });
}

template void rope_turn(const RopeInput<float>&, int, float*);
template void rope_turn(const RopeInput<double>&, int, double*);

}  // namespace sb::cpu
