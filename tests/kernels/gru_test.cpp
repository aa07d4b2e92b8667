#include "base/error.h"
#include "recurrence_run.h"

namespace sb::test {
namespace {

using Gru = RecurrenceTest;

const std::vector<std::string> kNames{"gates", "weight", "bias", "first"};

Recurrence gru(double a_min) {
  return [a_min](const Tensors& x) -> OutAndState {
    const Tensor h = gru_sequence(x[0], x[1], x[2], x[3], a_min);
    return {h, h.select(1, h.size(1) - 1)};
  };
}

Tensors inputs(int64_t batch, int64_t time, int64_t d) {
  return {noise({batch, time, 3 * d}, 1), noise({3 * d, d}, 2) / std::sqrt(static_cast<double>(d)), noise({3 * d}, 3),
          noise({batch, d}, 4)};
}

TEST_F(Gru, KernelEqualsTheLoop) {
  for (const int64_t d : {1, 5, 64, 81})
    for (const int64_t time : {1, 2, 33})
      for (const double a_min : {0.0, 0.6}) {
        const std::string what = c10::str("d ", d, ", T ", time, ", a_min ", a_min);
        const Tensors x = inputs(3, time, d);
        const Results truth = run(on_naive(gru(a_min)), x, kNames, at::kDouble);
        expect_close(run(gru(a_min), x, kNames, at::kDouble), truth, 1e-12, what);
        expect_close(run(gru(a_min), x, kNames, at::kFloat), truth, 1e-5, what + ", float");
      }
}

TEST_F(Gru, GradientsMatchFiniteDifferences) {
  expect_slopes_match(gru(0), inputs(2, 9, 7), kNames, 1e-6);
}

TEST_F(Gru, BytesDoNotDependOnThreads) {
  expect_same_on_threads(gru(0), inputs(5, 20, 70), kNames);
}

TEST_F(Gru, StatesStayInFloatIfGatesAreInHalfPrecision) {
  Tensors x = inputs(2, 30, 9);
  x[0] = x[0].to(at::kBFloat16);
  for (size_t i = 1; i < x.size(); ++i) x[i] = x[i].to(at::kFloat);
  const Tensor whole = gru_sequence(x[0], x[1], x[2], x[3]);
  EXPECT_EQ(whole.scalar_type(), at::kFloat);
  const Tensor first = gru_sequence(x[0].narrow(1, 0, 17), x[1], x[2], x[3]);
  const Tensor second = gru_sequence(x[0].narrow(1, 17, 13), x[1], x[2], first.select(1, 16));
  EXPECT_LE(relative_error(second, whole.narrow(1, 17, 13)), 1e-6);
}

TEST_F(Gru, ReportsWrongShapesInOneLine) {
  const Tensors x = inputs(2, 3, 4);
  try {
    gru_sequence(x[0], x[1], x[2], at::zeros({2, 5}, at::kDouble));
    FAIL() << "took a state of another width";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[gru_sequence] first, expected [2, 4], got [2, 5]");
  }
}

}  // namespace
}  // namespace sb::test
