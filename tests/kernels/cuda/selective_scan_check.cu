// The selective scan on the device against a double loop: errors ||out - ref|| / ||ref|| of every output and gradient,
// then times. Exit code 1 where a bound is missed.
//   selective_scan_check [--quick | --time] [--model TEXT]
#include <cstring>
#include <thread>

#include "check.cuh"
#include "kernels/cuda/selective_scan.h"

using namespace sb::cuda;
using check::Doubles;
using check::error;
using check::expect;
using check::median_ms;
using check::Memory;
using check::rounded;

namespace {

struct Case {
  int B, T, D, N;
  bool bf16;
  bool write = false, states = true;
  double a_min = 0;
  double delta = 0.1;  // scale of delta; 0: exactly zero
  int gap = 0;         // elements between the rows of steps
  bool keep = true;    // else the backward pass makes the states again
};

struct Data {
  Doubles x, delta, A_log, B, C, skip, write, state, d_out, d_final;
};
struct Result {
  Doubles out, final, dx, d_delta, dA, dB, dC, d_skip, d_write, d_state;
};

// One channel of one sequence, by the definition; dB, dC [T,N] are added to.
void loop(const Case& c, const Data& x, Result& r, int b, int d, Doubles& dB, Doubles& dC, double* dA, double& d_skip) {
  const int N = c.N;
  const auto at = [&](int t) { return (static_cast<size_t>(b) * c.T + t) * c.D + d; };
  const auto row = [&](int t) { return (static_cast<size_t>(b) * c.T + t) * N; };
  const size_t first = (static_cast<size_t>(b) * c.D + d) * N;
  const auto factor = [&](int t, int n) {
    return std::max(c.a_min, std::exp(-x.delta[at(t)] * std::exp(x.A_log[static_cast<size_t>(d) * N + n])));
  };
  const auto gate = [&](int t) { return c.write ? x.write[at(t)] : x.delta[at(t)]; };
  Doubles h(static_cast<size_t>(c.T + 1) * N), gh(N, 0.);
  for (int n = 0; n < N; ++n) h[n] = c.states ? x.state[first + n] : 0;
  for (int t = 0; t < c.T; ++t) {
    double y = x.skip[d] * x.x[at(t)];
    for (int n = 0; n < N; ++n) {
      double& to = h[static_cast<size_t>(t + 1) * N + n];
      to = factor(t, n) * h[static_cast<size_t>(t) * N + n] + gate(t) * x.B[row(t) + n] * x.x[at(t)];
      y += x.C[row(t) + n] * to;
    }
    r.out[at(t)] = y;
  }
  for (int n = 0; n < N; ++n) {
    r.final[first + n] = h[static_cast<size_t>(c.T) * N + n];
    if (c.states) gh[n] = x.d_final[first + n];
    dA[n] = 0;
  }
  d_skip = 0;
  for (int t = c.T - 1; t >= 0; --t) {
    const double gy = x.d_out[at(t)], u = gate(t) * x.x[at(t)];
    double by_write = 0, by_delta = 0;
    for (int n = 0; n < N; ++n) {
      const double a = factor(t, n), A = -std::exp(x.A_log[static_cast<size_t>(d) * N + n]);
      gh[n] += gy * x.C[row(t) + n];
      dC[static_cast<size_t>(t) * N + n] += gy * h[static_cast<size_t>(t + 1) * N + n];
      dB[static_cast<size_t>(t) * N + n] += gh[n] * u;
      by_write += gh[n] * x.B[row(t) + n];
      const double ge = a > c.a_min || c.a_min == 0 ? gh[n] * a * h[static_cast<size_t>(t) * N + n] : 0;
      by_delta += ge * A;
      dA[n] += ge * x.delta[at(t)] * A;
      gh[n] *= a;
    }
    r.dx[at(t)] = gate(t) * by_write + gy * x.skip[d];
    r.d_write[at(t)] = x.x[at(t)] * by_write;
    r.d_delta[at(t)] = by_delta + (c.write ? 0 : r.d_write[at(t)]);
    d_skip += gy * x.x[at(t)];
  }
  for (int n = 0; n < N; ++n) r.d_state[first + n] = gh[n];
}

Result truth(const Case& c, const Data& x) {
  Result r;
  const size_t rows = static_cast<size_t>(c.B) * c.T;
  for (Doubles* to : {&r.out, &r.dx, &r.d_delta, &r.d_write}) to->resize(rows * c.D);
  r.final.resize(static_cast<size_t>(c.B) * c.D * c.N);
  r.d_state.resize(r.final.size());
  r.dB.assign(rows * c.N, 0);
  r.dC.assign(rows * c.N, 0);
  r.dA.assign(static_cast<size_t>(c.D) * c.N, 0);
  r.d_skip.assign(c.D, 0);
  const int workers = std::max(1, std::min(c.D, static_cast<int>(std::thread::hardware_concurrency())));
  for (int b = 0; b < c.B; ++b) {
    std::vector<Doubles> dB(workers), dC(workers);
    std::vector<std::thread> threads;
    for (int w = 0; w < workers; ++w) {
      dB[w].assign(static_cast<size_t>(c.T) * c.N, 0);
      dC[w].assign(static_cast<size_t>(c.T) * c.N, 0);
      threads.emplace_back([&, w] {
        Doubles dA(c.N);
        for (int d = w; d < c.D; d += workers) {
          double d_skip;
          loop(c, x, r, b, d, dB[w], dC[w], dA.data(), d_skip);
          for (int n = 0; n < c.N; ++n) r.dA[static_cast<size_t>(d) * c.N + n] += dA[n];
          r.d_skip[d] += d_skip;
        }
      });
    }
    for (std::thread& t : threads) t.join();
    for (int w = 0; w < workers; ++w)
      for (size_t i = 0; i < dB[w].size(); ++i) {
        r.dB[static_cast<size_t>(b) * c.T * c.N + i] += dB[w][i];
        r.dC[static_cast<size_t>(b) * c.T * c.N + i] += dC[w][i];
      }
  }
  return r;
}

Data random_data(const Case& c, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  const size_t rows = static_cast<size_t>(c.B) * c.T, states = static_cast<size_t>(c.B) * c.D * c.N;
  const auto fill = [&](Doubles& to, size_t size, bool bf16) {
    to.resize(size);
    for (double& e : to) e = rounded(normal(engine), bf16);
  };
  Data x;
  fill(x.x, rows * c.D, c.bf16);
  fill(x.d_out, rows * c.D, c.bf16);
  fill(x.B, rows * c.N, c.bf16);
  fill(x.C, rows * c.N, c.bf16);
  fill(x.skip, c.D, false);
  fill(x.state, states, false);
  fill(x.d_final, states, false);
  fill(x.write, rows * c.D, false);
  x.delta.resize(rows * c.D);
  for (double& e : x.delta) e = rounded(c.delta * uniform(engine), false);
  x.A_log.resize(static_cast<size_t>(c.D) * c.N);
  for (size_t i = 0; i < x.A_log.size(); ++i)
    x.A_log[i] = rounded(std::log(1. + static_cast<double>(i % c.N)) + .1 * normal(engine), false);
  return x;
}

double check_loop() {
  double worst = 0;
  for (bool write : {false, true}) {
    Case c{1, 4, 2, 3, false, write};
    c.a_min = .8;
    Data x = random_data(c, 3);
    const Result r = truth(c, x);
    const auto loss = [&] {
      const Result y = truth(c, x);
      double sum = 0;
      for (size_t i = 0; i < y.out.size(); ++i) sum += y.out[i] * x.d_out[i];
      for (size_t i = 0; i < y.final.size(); ++i) sum += y.final[i] * x.d_final[i];
      return sum;
    };
    const auto compare = [&](Doubles& input, const Doubles& gradient) {
      for (size_t i = 0; i < input.size(); ++i)
        worst = std::max(worst, std::abs(check::central_difference(input[i], 1e-6, loss) - gradient[i]));
    };
    compare(x.x, r.dx), compare(x.delta, r.d_delta), compare(x.A_log, r.dA), compare(x.B, r.dB), compare(x.C, r.dC);
    compare(x.skip, r.d_skip), compare(x.state, r.d_state);
    if (write) compare(x.write, r.d_write);
  }
  return worst;
}

// rows x width with a gap behind each row, bf16 or fp32; NaN, or x repeated until it is full
struct Tensor : check::Rows {
  Tensor(size_t r, size_t w, size_t gap, bool low) : Rows(r, 1, w, low, 0, gap), data(memory.data) {}
  Tensor(size_t r, size_t w, size_t gap, bool low, const Doubles& x) : Tensor(r, w, gap, low) {
    put(x);
    const size_t have = x.size() / width * token * (bf16 ? 2 : 4), all = tokens * token * (bf16 ? 2 : 4);
    for (size_t at = have; at < all; at += have)
      expect(cudaMemcpy(memory.at(at), data, std::min(have, all - at), cudaMemcpyDeviceToDevice), "repeat");
  }
  template <class E>
  ScanRows<E> steps(int64_t time) const {
    const int64_t row = static_cast<int64_t>(token);
    return {static_cast<E*>(data), time * row, row};
  }
  float* floats() const { return memory.floats(); }
  void* data;
};

struct Problem {
  Case c;
  size_t rows, states;
  Tensor x, delta, A_log, B, C, skip, write, state, d_out, d_final;
  Tensor out, final, dx, d_delta, dA, dB, dC, d_skip, d_write, d_state;
  SelectiveScan p;
  Tensor kept, scratch, workspace;
  Problem(const Case& c_, const Data& d)
      : c(c_),
        rows(static_cast<size_t>(c.B) * c.T),
        states(static_cast<size_t>(c.B) * c.D),
        x(rows, c.D, c.gap, c.bf16, d.x),
        delta(rows, c.D, c.gap, false, d.delta),
        A_log(c.D, c.N, 0, false, d.A_log),
        B(rows, c.N, c.gap, c.bf16, d.B),
        C(rows, c.N, c.gap, c.bf16, d.C),
        skip(1, c.D, 0, false, d.skip),
        write(rows, c.D, c.gap, false, d.write),
        state(states, c.N, 0, false, d.state),
        d_out(rows, c.D, c.gap, c.bf16, d.d_out),
        d_final(states, c.N, 0, false, d.d_final),
        out(rows, c.D, c.gap, c.bf16),
        final(states, c.N, 0, false),
        dx(rows, c.D, c.gap, c.bf16),
        d_delta(rows, c.D, c.gap, false),
        dA(c.D, c.N, 0, false),
        dB(rows, c.N, c.gap, c.bf16),
        dC(rows, c.N, c.gap, c.bf16),
        d_skip(1, c.D, 0, false),
        d_write(rows, c.D, c.gap, false),
        d_state(states, c.N, 0, false),
        p{c.B,
          c.T,
          c.D,
          c.N,
          c.bf16,
          x.steps<const void>(c.T),
          B.steps<const void>(c.T),
          C.steps<const void>(c.T),
          delta.steps<const float>(c.T),
          c.write ? write.steps<const float>(c.T) : ScanRows<const float>{},
          A_log.floats(),
          skip.floats(),
          c.states ? state.floats() : nullptr,
          static_cast<float>(c.a_min)},
        kept(1, c.keep ? selective_scan_kept_bytes(p) / 4 : 1, 0, false),
        scratch(1, selective_scan_scratch_bytes(p) / 4 + 1, 0, false),
        workspace(1, selective_scan_workspace_bytes(p, c.keep) / 4, 0, false) {}
  cudaError_t forward() {
    return selective_scan_forward(p, out.steps<void>(c.T), final.floats(), c.keep ? kept.data : nullptr, scratch.data,
                                  nullptr);
  }
  cudaError_t backward() {
    const SelectiveScanGradients d{d_out.steps<const void>(c.T),
                                   c.states ? d_final.floats() : nullptr,
                                   dx.steps<void>(c.T),
                                   dB.steps<void>(c.T),
                                   dC.steps<void>(c.T),
                                   d_delta.steps<float>(c.T),
                                   d_write.steps<float>(c.T),
                                   dA.floats(),
                                   d_skip.floats(),
                                   d_state.floats()};
    return selective_scan_backward(p, c.keep ? kept.data : nullptr, d, workspace.data, nullptr);
  }
};

bool check_case(const Case& c, unsigned seed) {
  const Data x = random_data(c, seed);
  Problem problem(c, x);
  const Result r = truth(c, x);
  expect(problem.forward(), "forward");
  expect(problem.backward(), "backward");
  expect(cudaDeviceSynchronize(), "kernels");
  const double bound = c.bf16 ? 2e-2 : 1e-5;
  const double errors[] = {error(problem.out, r.out),
                           error(problem.final, r.final),
                           error(problem.dx, r.dx),
                           error(problem.d_delta, r.d_delta),
                           error(problem.dA, r.dA),
                           error(problem.dB, r.dB),
                           error(problem.dC, r.dC),
                           error(problem.d_skip, r.d_skip),
                           c.write ? error(problem.d_write, r.d_write) : 0,
                           error(problem.d_state, r.d_state)};
  const Doubles once = problem.dB.get();
  expect(problem.backward(), "backward");
  expect(cudaDeviceSynchronize(), "kernels");
  bool good = once == problem.dB.get();
  std::printf("%s B%d T%-4d D%-4d N%-3d %s%s a_min %.1f delta %-4g|", c.bf16 ? "bf16" : "fp32", c.B, c.T, c.D, c.N,
              c.write ? "W" : " ", c.states ? "S" : " ", c.a_min, c.delta);
  for (double e : errors) {
    std::printf(" %.1e", e);
    good = good && e <= bound;
  }
  std::printf("%s\n", good ? "" : "  <-- FAILS");
  return good;
}

// Exponentials: one a state and step forward, two backward. Bytes: each input and output once.
void time_case(const std::string& only, const char* model, Case c) {
  if (std::string(model).find(only) == std::string::npos) return;
  c.states = false;
  Case one = c;
  one.B = 1;
  Problem problem(c, random_data(one, 5));
  const double forward = median_ms([&](int) { return problem.forward(); });
  const double backward = median_ms([&](int) { return problem.backward(); });
  const double states = 1. * c.B * c.T * c.D * c.N, element = c.bf16 ? 2 : 4, cells = 1. * c.B * c.T * c.D;
  std::printf(
      "%-12s %s B%d T%-4d D%-4d N%-3d%s | forward %7.3f ms %5.2f Texp/s %5.2f TB/s | backward %7.3f ms %5.2f Texp/s "
      "%5.2f TB/s | sum %7.3f ms\n",
      model, c.bf16 ? "bf16" : "fp32", c.B, c.T, c.D, c.N, c.keep ? "" : " states again", forward,
      states / forward / 1e9, cells * (2 * element + 4) / forward / 1e9, backward, 2 * states / backward / 1e9,
      cells * (3 * element + 8) / backward / 1e9, forward + backward);
}

std::vector<Case> cases(bool quick) {
  std::vector<Case> all;
  for (bool bf16 : {true, false}) {
    if (quick) {
      all.push_back({1, 37, 70, 64, bf16, true});
      all.push_back({1, 20, 33, 16, bf16});
      all.push_back({2, 1024, 40, 20, bf16, true});
      continue;
    }
    for (int T : {1, 2, 3, 63, 64, 65, 127, 200, 513, 2200}) all.push_back({2, T, 96, 64, bf16});
    for (int N : {1, 4, 16, 24, 32, 64, 100, 128, 200, 256}) {
      Case c{2, 70, 150, N, bf16, N % 3 == 1, N % 8 == 0};
      c.gap = N % 5;
      c.keep = N % 32 != 0;
      all.push_back(c);
    }
    for (double delta : {0., 1., 30., 1e4}) {
      Case c{2, 100, 64, 64, bf16};
      c.delta = delta;
      all.push_back(c);
    }
    Case held{2, 150, 100, 64, bf16, true};
    held.a_min = .5;
    all.push_back(held);
    held.write = false;
    held.N = 128;
    all.push_back(held);
    all.push_back({1, 400, 2592, 64, bf16});
    // Divided into segments
    for (int N : {8, 20, 64, 100, 200}) {
      Case c{N == 64 ? 2 : 1, 1024 + 4 * N, 70, N, bf16, N % 8 == 0, N % 5 == 0};
      c.a_min = N == 64 ? .5 : 0;  // reached by few steps: rounding decides whether they have a gradient
      c.gap = N % 3;
      c.keep = N % 16 != 0;
      c.delta = .01;
      all.push_back(c);
    }
    all.push_back({1, 32768, 64, 16, bf16});
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  bool quick = false, only_time = false;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    quick = quick || std::strcmp(argv[i], "--quick") == 0;
    only_time = only_time || std::strcmp(argv[i], "--time") == 0;
    if (std::strcmp(argv[i], "--model") == 0 && i + 1 < argc) only = argv[++i];
  }
  bool good = true;
  if (!only_time) {
    const double worst = check_loop();
    std::printf("loop against differences: %.1e\n", worst);
    good = worst < 1e-6;
    std::printf("errors of: y, final state, dx, d delta, dA_log, dB, dC, d skip, d write, d initial state\n");
    unsigned seed = std::random_device{}();
    for (const Case& c : cases(quick)) good = check_case(c, seed++) && good;
    std::printf(good ? "all within bounds\n" : "BOUNDS MISSED\n");
  }
  if (quick) return good ? 0 : 1;
  Case wide{64, 400, 2592, 64, true};
  time_case(only, "Mamba 1296", wide);
  wide.keep = false;
  time_case(only, "Mamba 1296", wide);
  time_case(only, "Mamba 1296", {64, 1300, 2592, 64, true});
  time_case(only, "Mamba 256", {64, 400, 512, 64, true});
  time_case(only, "Mamba 1024", {64, 400, 2048, 128, true});
  time_case(only, "Mamba 1296", {16, 400, 2592, 64, false});
  time_case(only, "Mamba 1296", {2, 16384, 2592, 64, true});
  time_case(only, "Mamba 1296", {1, 32768, 2592, 64, true});
  return good ? 0 : 1;
}
