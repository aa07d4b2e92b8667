#include <torch/csrc/autograd/custom_function.h>

#include <memory>
#include <mutex>

#include "base/error.h"
#include "kernels/cpu/packs.h"
#include "kernels/cpu/tensor_rows.h"
#include "kernels/plain.h"
#include "kernels/poison.h"

namespace sb {

double plain::rope_rate(double base, int64_t j, int64_t half) {
  const float exponent = static_cast<float>(j) / static_cast<float>(half);
  return 1.0F / static_cast<float>(std::pow(base, static_cast<double>(exponent)));
}

namespace {

using at::Tensor;
using simd::Vec;

// cos and sin of the angles of positions offset .. offset + time - 1, [time][2][half]; angles in double
template <class T>
std::vector<T> turns(int64_t time, int64_t half, double base, int64_t offset) {
  std::vector<T> table(static_cast<size_t>(time * 2 * half));
  std::vector<double> rate(static_cast<size_t>(half));
  for (int64_t j = 0; j < half; ++j) rate[static_cast<size_t>(j)] = plain::rope_rate(base, j, half);
  // Exact angles every kTurns steps; between them one rotation more a step, in double.
  constexpr int64_t kTurns = 16;
  const int64_t blocks = (time + kTurns - 1) / kTurns;
  cpu::Ranges(blocks, half * 256).split([&](int64_t begin, int64_t end) {
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

// The table of the last call is kept: layers, passes and steps of a run ask for the same one.
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
void turn_tokens(const cpu::RowStarts<T> x, const T* table, T* y, int64_t begin, int64_t end, int64_t time,
                 int64_t heads, int64_t half) {
  int64_t position = begin % time;
  for (int64_t token = begin; token < end; ++token) {
    for (int64_t r = token * heads; r < (token + 1) * heads; ++r)
      turn<T, forwards>(half, table + position * 2 * half, x[r], y + r * 2 * half);
    if (++position == time) position = 0;
  }
}

Tensor rotated(const Tensor& x, double base, int64_t sense, int64_t offset) {
  const Tensor y = kernels::fresh(x.sizes(), x.options());
  cpu::with_type_of(x, [&](auto type) {
    using T = decltype(type);
    const int64_t time = x.size(1), heads = x.size(2), half = x.size(3) / 2;
    const auto table = shared_turns<T>(time, half, base, offset);
    const cpu::Rows<T> xs(x);
    T* out = y.data_ptr<T>();
    cpu::Ranges(x.size(0) * time, heads * 2 * half).split([&](int64_t begin, int64_t end) {
      (sense > 0 ? turn_tokens<T, true> : turn_tokens<T, false>)(xs.starts(), table->data(), out, begin, end, time,
                                                                 heads, half);
    });
  });
  return y;
}

class Rope : public torch::autograd::Function<Rope> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* ctx, const Tensor& x, double base, int64_t sense,
                        int64_t offset) {
    ctx->saved_data["base"] = base;
    ctx->saved_data["sense"] = sense;
    ctx->saved_data["offset"] = offset;
    return rotated(x, base, sense, offset);
  }
  // A rotation's transpose turns the other way.
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& grads) {
    return {rotated(grads[0], ctx->saved_data["base"].toDouble(), -ctx->saved_data["sense"].toInt(),
                    ctx->saved_data["offset"].toInt()),
            Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor rope(const Tensor& x, double base, int sense, int64_t offset) {
  if (x.dim() != 4 || x.size(3) % 2 != 0)
    throw bad_input("rope", "x, expected [B,T,h,K] with even K, got " + c10::str(x.sizes()));
  if (sense != 1 && sense != -1) throw bad_input("rope", "sense, expected 1 or -1, got " + std::to_string(sense));
  if (!kernels::has_cpu_kernel(x)) return plain::rope(x, base, sense, offset);
  return Rope::apply(x, base, static_cast<int64_t>(sense), offset);
}

}  // namespace sb
