// What the CUDA checks share: device memory that starts as NaN, comparisons with a loop in double, times, verdicts.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace check {

using Doubles = std::vector<double>;

inline void expect(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::printf("[%s] %s\n", what, cudaGetErrorString(status));
  std::exit(2);
}

// What bf16 or float keeps of x
inline double rounded(double x, bool bf16) {
  const float f = static_cast<float>(x);
  return bf16 ? __bfloat162float(__float2bfloat16(f)) : f;
}

inline Doubles normals(size_t size, std::mt19937_64& engine, bool bf16, double scale = 1, double mean = 0) {
  std::normal_distribution<double> normal(mean, scale);
  Doubles x(size);
  for (double& e : x) e = rounded(normal(engine), bf16);
  return x;
}

// Bytes of the device, NaN in bf16 and float
struct Memory {
  void* data = nullptr;
  size_t bytes = 0;
  explicit Memory(size_t size) : bytes((std::max<size_t>(size, 1) + 255) / 256 * 256) {
    expect(cudaMalloc(&data, bytes), "cudaMalloc");
    poison();
  }
  Memory(Memory&& other) noexcept : data(std::exchange(other.data, nullptr)), bytes(other.bytes) {}
  ~Memory() { cudaFree(data); }
  void poison() { expect(cudaMemset(data, 0xff, bytes), "cudaMemset"); }
  char* at(size_t byte) const { return static_cast<char*>(data) + byte; }
  float* floats() const { return static_cast<float*>(data); }
  int64_t* integers() const { return static_cast<int64_t*>(data); }
  double* doubles() const { return static_cast<double*>(data); }
};

template <class T>
Memory upload(const std::vector<T>& x) {
  Memory memory(x.size() * sizeof(T));
  expect(cudaMemcpy(memory.data, x.data(), x.size() * sizeof(T), cudaMemcpyHostToDevice), "upload");
  return memory;
}
template <class T>
std::vector<T> download(const void* data, size_t count) {
  std::vector<T> x(count);
  expect(cudaMemcpy(x.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost), "download");
  return x;
}

// [tokens][heads][width] of bf16 or float, with gaps behind heads and tokens, which stay NaN
struct Rows {
  size_t tokens, heads, width, head, token;
  bool bf16;
  Memory memory;
  Rows(size_t t, size_t h, size_t w, bool low, size_t head_gap = 0, size_t token_gap = 0)
      : tokens(t),
        heads(h),
        width(w),
        head(w + head_gap),
        token(h * head + token_gap),
        bf16(low),
        memory(t * token * (low ? 2 : 4)) {}
  Rows(size_t t, size_t h, size_t w, bool low, size_t head_gap, size_t token_gap, const Doubles& x)
      : Rows(t, h, w, low, head_gap, token_gap) {
    put(x);
  }
  size_t place(size_t i) const { return i / (heads * width) * token + i / width % heads * head + i % width; }
  void put(const Doubles& x) {
    std::vector<char> bytes = download<char>(memory.data, memory.bytes);
    for (size_t i = 0; i < x.size(); ++i) {
      if (bf16)
        reinterpret_cast<__nv_bfloat16*>(bytes.data())[place(i)] = __float2bfloat16(static_cast<float>(x[i]));
      else
        reinterpret_cast<float*>(bytes.data())[place(i)] = static_cast<float>(x[i]);
    }
    expect(cudaMemcpy(memory.data, bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "put");
  }
  // Everything, gaps included, as [tokens][token]
  Doubles all() const {
    Doubles x(tokens * token);
    if (bf16) {
      const auto raw = download<__nv_bfloat16>(memory.data, x.size());
      for (size_t i = 0; i < x.size(); ++i) x[i] = __bfloat162float(raw[i]);
    } else {
      const auto raw = download<float>(memory.data, x.size());
      for (size_t i = 0; i < x.size(); ++i) x[i] = raw[i];
    }
    return x;
  }
  Doubles get() const {
    const Doubles from = all();
    Doubles x(tokens * heads * width);
    for (size_t i = 0; i < x.size(); ++i) x[i] = from[place(i)];
    return x;
  }
  template <class View>
  View view() const {
    return {static_cast<decltype(View::data)>(memory.data), static_cast<int64_t>(token), static_cast<int64_t>(head)};
  }
};

// ||x - reference|| / ||reference||; below `least` absolute. NaN where x has one.
inline double error(const Doubles& x, const Doubles& reference, double least = 1e-30) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    difference += (x[i] - reference[i]) * (x[i] - reference[i]);
    norm += reference[i] * reference[i];
  }
  return std::sqrt(difference) / std::max(std::sqrt(norm), least);
}
inline double error(const Rows& x, const Doubles& reference) {
  return error(x.get(), reference);
}
inline double error(const Memory& x, const Doubles& reference) {
  const auto raw = download<float>(x.data, reference.size());
  return error(Doubles(raw.begin(), raw.end()), reference);
}

// (loss(x + step) - loss(x - step)) / (2 step) for one element of the loss's input
template <class Loss>
double central_difference(double& x, double step, const Loss& loss) {
  const double kept = x;
  x = kept + step;
  const double above = loss();
  x = kept - step;
  const double below = loss();
  x = kept;
  return (above - below) / (2 * step);
}

// The command line: --quick, --long, --time, --model TEXT, and cases: --shape and `count` words, given to parse()
template <class Case>
struct Arguments {
  bool quick = false, lengthy = false, timed = false;
  std::string model;
  std::vector<Case> cases;
  template <class Parse>
  Arguments(int argc, char** argv, int count, const Parse& parse) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--quick") quick = true;
      if (word == "--long") lengthy = true;
      if (word == "--time") timed = true;
      if (word == "--model" && i + 1 < argc) model = argv[++i];
      if (word == "--shape" && i + count < argc) cases.push_back(parse(argv + i + 1)), i += count;
    }
  }
  bool checks() const { return !timed || !cases.empty(); }
  bool times() const { return timed && cases.empty(); }
};

// A check's main: the loop against finite differences, then every case, or the times. Returns the exit code.
template <class Case, class Matrix, class Run>
int check_or_time(const Arguments<Case>& arguments, bool (*truth_holds)(), const Matrix& matrix, const Run& run_case,
                  void (*time_all)()) {
  bool good = true;
  if (arguments.checks()) {
    good = truth_holds();
    std::mt19937_64 random(std::random_device{}());
    for (const Case& c : arguments.cases.empty() ? matrix(arguments.quick) : arguments.cases)
      good = run_case(c, random) && good;
    std::printf("%s\n", good ? "PASS" : "FAIL");
  }
  if (arguments.times()) time_all();
  return good ? 0 : 1;
}

// Worst errors by name, and whether all kept their bounds
struct Verdict {
  struct Row {
    std::string name;
    double worst = 0, bound = 0;
    int count = 0;
  };
  std::vector<Row> rows;
  bool good = true;
  void judge(const std::string& name, double error, double bound, const std::string& where) {
    auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.name == name && r.bound == bound; });
    if (row == rows.end()) row = rows.insert(row, Row{name, 0, bound, 0});
    ++row->count;
    if (!(error <= row->worst)) row->worst = error;
    if (error <= bound) return;
    if (good || row->count < 4)
      std::printf("FAILS: %s %s: %.2e, bound %.0e\n", name.c_str(), where.c_str(), error, bound);
    good = false;
  }
  int finish() const {
    for (const Row& r : rows)
      std::printf("%-28s %3d cases, worst %.1e, bound %.0e\n", r.name.c_str(), r.count, r.worst, r.bound);
    std::printf(good ? "all within bounds\n" : "BOUNDS MISSED\n");
    return good ? 0 : 1;
  }
};

// Median of the times of body(0), body(1), ... by events, after three that do not count. Milliseconds.
template <class Body>
double median_ms(Body body, int repeats = 20) {
  cudaEvent_t begin, end;
  expect(cudaEventCreate(&begin), "event");
  expect(cudaEventCreate(&end), "event");
  std::vector<float> times(static_cast<size_t>(repeats));
  for (int i = -3; i < repeats; ++i) {
    expect(cudaEventRecord(begin), "record");
    expect(body(i + 3), "launch");
    expect(cudaEventRecord(end), "record");
    expect(cudaEventSynchronize(end), "synchronize");
    if (i >= 0) expect(cudaEventElapsedTime(&times[static_cast<size_t>(i)], begin, end), "elapsed");
  }
  std::sort(times.begin(), times.end());
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return times[times.size() / 2];
}

// Bytes per second, read plus written, of a large copy inside the GPU
inline double copy_rate() {
  const size_t bytes = size_t{2} << 30;
  Memory from(bytes), to(bytes);
  const double ms =
      median_ms([&](int) { return cudaMemcpyAsync(to.data, from.data, bytes, cudaMemcpyDeviceToDevice); }, 10);
  return 2. * static_cast<double>(bytes) / ms * 1e3;
}

template <class E>
__global__ void fill_random(E* x, size_t n, unsigned seed) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += size_t{gridDim.x} * blockDim.x) {
    uint64_t h = (i + 1) * 0x9E3779B97F4A7C15ull + seed * 0xD1B54A32D192ED03ull;
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9ull;
    h = (h ^ h >> 27) * 0x94D049BB133111EBull;
    float sum = 0;  // of four uniform numbers: nearly normal, variance 1
    for (int part = 0; part < 4; ++part) sum += static_cast<float>(h >> (16 * part) & 0xffff) / 65536.f - .5f;
    x[i] = static_cast<E>(sum * 1.7320508f);
  }
}

// Several copies of a tensor side by side: a repeated call takes the next one, so that no call finds its inputs in the
// cache.
struct Sets {
  size_t each;
  int count;
  Memory memory;
  Sets(size_t elements, bool bf16, int sets, unsigned seed = 0)
      : each((elements * (bf16 ? 2 : 4) + 255) / 256 * 256), count(sets), memory(each * static_cast<size_t>(sets)) {
    if (seed == 0) return;
    if (bf16)
      fill_random<<<1024, 256>>>(static_cast<__nv_bfloat16*>(memory.data), memory.bytes / 2, seed);
    else
      fill_random<<<1024, 256>>>(static_cast<float*>(memory.data), memory.bytes / 4, seed);
    expect(cudaDeviceSynchronize(), "fill");
  }
  void* at(int i) const { return memory.at(each * static_cast<size_t>(i % count)); }
};
// Sets of a tensor of so many bytes that together outgrow the cache several times
inline int sets_for(double bytes) {
  return std::max(2, std::min(24, static_cast<int>(4e8 / bytes) + 1));
}

}  // namespace check
