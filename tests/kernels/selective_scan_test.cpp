#include "base/error.h"
#include "base/safetensors.h"
#include "kernels/fused.h"
#include "kernels/step.h"
#include "recurrence_run.h"

namespace sb::test {
namespace {

const std::vector<std::string> kNames{"x", "delta", "A_log", "B", "C", "skip", "state", "write"};

OutAndState kernel(const Tensors& x) {
  return selective_scan(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]);
}
OutAndState by_loop(const Tensors& x) {
  return kernels::on(kernels::Backend::naive,
                     [&] { return selective_scan(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]); });
}
OutAndState by_chunks(const Tensors& x) {
  return kernels::on(kernels::Backend::aten,
                     [&] { return selective_scan(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]); });
}

struct Case {
  int64_t batch, time, channels, states;
  bool decoupled = false;
};

Tensors inputs(const Case& c) {
  const auto rows = [&](int64_t width, uint64_t seed) { return noise({c.batch, c.time, width}, seed); };
  return {rows(c.channels, 1),
          at::softplus(rows(c.channels, 2) - 1),
          at::arange(1, c.states + 1, at::kDouble).log().expand({c.channels, c.states}) * 0.7 +
              0.1 * noise({c.channels, c.states}, 3),
          rows(c.states, 4),
          rows(c.states, 5),
          noise({c.channels}, 6),
          noise({c.batch, c.channels, c.states}, 7),
          c.decoupled ? rows(c.channels, 8) : Tensor()};
}

using SelectiveScan = RecurrenceTest;

TEST_F(SelectiveScan, KernelAndChunksEqualTheLoopAtEveryLength) {
  for (int64_t time : {1, 2, 3, 63, 64, 65, 127, 200, 513}) {
    for (int64_t batch : {1, 3}) {
      for (bool decoupled : {false, true}) {
        const Tensors x = inputs({batch, time, 37, 13, decoupled});
        const std::string what = "T " + std::to_string(time) + " batch " + std::to_string(batch);
        const Results truth = run(by_loop, x, kNames, at::kDouble);
        expect_close(run(kernel, x, kNames, at::kDouble), truth, 1e-12, what);
        expect_close(run(kernel, x, kNames, at::kFloat), truth, 2e-6, what + " float");
        if (time < 513) expect_close(run(by_chunks, x, kNames, at::kDouble), truth, 1e-12, what + " chunked");
      }
    }
  }
}

TEST_F(SelectiveScan, KernelEqualsTheLoopForAnyNumberOfStates) {
  for (int64_t states : {1, 2, 3, 4, 7, 8, 16, 31, 64, 65, 128}) {
    const Tensors x = inputs({2, 70, 19, states});
    const Results truth = run(by_loop, x, kNames, at::kDouble);
    expect_close(run(kernel, x, kNames, at::kDouble), truth, 1e-12, std::to_string(states) + " states");
    expect_close(run(kernel, x, kNames, at::kFloat), truth, 2e-6, std::to_string(states) + " states, float");
  }
}

TEST_F(SelectiveScan, SequenceCutAnywhereEqualsTheWhole) {
  const Tensors x = inputs({3, 200, 21, 16});
  const Results whole = run(kernel, x, kNames, at::kDouble);
  for (int64_t cut : {1, 63, 64, 130, 199}) {
    const Recurrence in_two = [&](const Tensors& in) {
      const auto part = [&](int64_t from, int64_t time, const Tensor& state) {
        const auto rows = [&](const Tensor& v) { return v.narrow(1, from, time); };
        return selective_scan(rows(in[0]), rows(in[1]), in[2], rows(in[3]), rows(in[4]), in[5], state);
      };
      const OutAndState first = part(0, cut, in[6]), second = part(cut, 200 - cut, first.state);
      return OutAndState{at::cat({first.out, second.out}, 1), second.state};
    };
    expect_close(run(in_two, x, kNames, at::kDouble), whole, 1e-12, "cut at " + std::to_string(cut));
  }
}

TEST_F(SelectiveScan, StepsEqualTheSequence) {
  const Tensors x = inputs({2, 70, 21, 16, true});
  const OutAndState whole = kernel(x);
  Tensor state = x[6];
  for (int64_t t = 0; t < 70; ++t) {
    const auto row = [&](size_t i) { return x[i].select(1, t); };
    const OutAndState one = selective_scan_step(row(0), row(1), x[2], row(3), row(4), x[5], state, row(7));
    EXPECT_LE(relative_error(one.out, whole.out.select(1, t)), 1e-12) << t;
    state = one.state;
  }
  EXPECT_LE(relative_error(state, whole.state), 1e-12);
}

TEST_F(SelectiveScan, GradientsMatchFiniteDifferences) {
  for (bool decoupled : {false, true}) expect_slopes_match(kernel, inputs({2, 67, 18, 5, decoupled}), kNames, 1e-6);
}

// The same with no factor below 0.6; some of every channel's are.
template <class F>
Recurrence bounded(const F& scan) {
  return [=](const Tensors& x) { return scan(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], 0.6); };
}

TEST_F(SelectiveScan, BoundsDecayElementwise) {
  for (bool decoupled : {false, true}) {
    const Tensors x = inputs({2, 131, 21, 13, decoupled});
    const Tensor factors = (x[1].unsqueeze(-1) * -x[2].exp()).exp();
    const double held = factors.lt(0.6).to(at::kDouble).mean().item<double>();
    ASSERT_GT(held, 0.1);
    ASSERT_LT(held, 0.9);
    const Results truth = run(on_naive(bounded(selective_scan)), x, kNames, at::kDouble);
    expect_close(run(bounded(selective_scan), x, kNames, at::kDouble), truth, 1e-12, "kernel");
    expect_close(run(bounded(selective_scan), x, kNames, at::kFloat), truth, 2e-6, "kernel, float");
    expect_close(run(on_aten(bounded(selective_scan)), x, kNames, at::kDouble), truth, 1e-12, "chunked");
    EXPECT_GT(relative_error(kernel(x).out, truth[0].value), 1e-3);  // the bound does something
  }
  const Tensors x = inputs({2, 20, 21, 13});
  const OutAndState whole = bounded(selective_scan)(x);
  Tensor state = x[6];
  for (int64_t t = 0; t < 20; ++t) {
    const auto row = [&](size_t i) { return x[i].select(1, t); };
    const OutAndState one = selective_scan_step(row(0), row(1), x[2], row(3), row(4), x[5], state, {}, 0.6);
    EXPECT_LE(relative_error(one.out, whole.out.select(1, t)), 1e-12) << t;
    state = one.state;
  }
  for (double a_min : {-0.1, 1.0, std::nan("")})
    EXPECT_THROW(selective_scan(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], a_min), Error);
}

TEST_F(SelectiveScan, NoDecayAndFullDecayStayFinite) {
  for (double exponent : {0.0, 30.0, 1e4}) {
    Tensors x = inputs({2, 90, 17, 16, true});
    x[1] = at::full_like(x[1], exponent);
    x[2] = at::zeros_like(x[2]);
    const Results truth = run(by_loop, x, kNames, at::kDouble);
    for (const auto type : {at::kDouble, at::kFloat}) {
      const Results got = run(kernel, x, kNames, type);
      for (const Named& result : got) EXPECT_TRUE(at::isfinite(result.value).all().item<bool>()) << result.name;
      const double tolerance = type == at::kDouble ? 1e-11 : 2e-6;
      for (size_t i = 0; i < got.size(); ++i) {
        const double scale = std::max(truth[i].value.abs().max().item<double>(), 1e-6);
        EXPECT_LE((got[i].value.to(at::kDouble) - truth[i].value).abs().max().item<double>() / scale, tolerance)
            << got[i].name << " at exponent " << exponent;
      }
    }
  }
}

TEST_F(SelectiveScan, BytesDoNotDependOnThreads) {
  for (int64_t batch : {1, 3, 9}) expect_same_on_threads(kernel, inputs({batch, 130, 70, 24}), kNames);
}

TEST_F(SelectiveScan, ReproducesTheRecordedVectors) {
  const Safetensors file = Safetensors::load(SB_TEST_DATA "/layers/core_selective_scan.safetensors");
  const auto recorded = [&](const std::string& name) {
    const StoredTensor& stored = file.at("selective_scan." + name);
    return at::tensor(stored.as_doubles(), at::kDouble).reshape(stored.shape);
  };
  const std::vector<std::string> names{"u", "delta", "A", "B", "C", "D", "z", "delta_bias"};
  for (const auto type : {at::kDouble, at::kFloat}) {
    Tensors in;
    for (const std::string& name : names) in.push_back(recorded(name).to(type).set_requires_grad(true));
    const auto time_first = [](const Tensor& x) { return x.transpose(1, 2); };  // recorded as [B, channel, T]
    const Tensor delta = softplus_bias(time_first(in[1]), in[7]);
    const OutAndState scan =
        selective_scan(time_first(in[0]), delta, (-in[2]).log(), time_first(in[3]), time_first(in[4]), in[5]);
    const Tensor out = time_first(gate_silu(scan.out, time_first(in[6])));
    const bool exact = type == at::kDouble;
    EXPECT_LE(relative_error(out.detach(), recorded("out")), exact ? 1e-11 : 2e-6);
    (out * recorded("cot").to(type)).sum().backward();
    for (size_t i = 0; i < names.size(); ++i)
      EXPECT_LE(relative_error(in[i].grad(), recorded("grad_" + names[i])), exact ? 6e-8 : 2e-6) << names[i];
  }
}

TEST_F(SelectiveScan, ReportsWrongShapesInOneLine) {
  Tensors x = inputs({2, 5, 6, 4});
  x[3] = x[3].narrow(2, 0, 3);
  try {
    kernel(x);
    FAIL() << "accepted a B narrower than the state";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[selective_scan] B, expected [2, 5, 4], got [2, 5, 3]");
  }
  x = inputs({2, 5, 6, 4});
  x[2] = at::zeros({6, 0}, at::kDouble);
  EXPECT_THROW(kernel(x), Error);
}

}  // namespace
}  // namespace sb::test
