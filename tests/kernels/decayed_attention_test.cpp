#include "base/error.h"
#include "kernels/step.h"
#include "recurrence_run.h"

namespace sb::test {
namespace {

enum class Form { unit, fixed, scalar, vector };
constexpr Form kForms[] = {Form::unit, Form::fixed, Form::scalar, Form::vector};
const std::vector<std::string> kNames = {"q", "k", "v", "g", "state"};

struct Case {
  Form form;
  int64_t B, T, H, G, K, V;
  double level;  // log-decays: around -0.1 (level 1), all of them `level` (<= 0), or a mixture of all levels (2)
};

std::string text(const Case& c) {
  return "form " + std::to_string(static_cast<int>(c.form)) + " B " + std::to_string(c.B) + " T " +
         std::to_string(c.T) + " H " + std::to_string(c.H) + " G " + std::to_string(c.G) + " K " + std::to_string(c.K) +
         " V " + std::to_string(c.V) + " level " + std::to_string(c.level);
}

Tensor log_decays(at::IntArrayRef sizes, double level, uint64_t seed) {
  if (level <= 0) return at::full(sizes, level, at::kDouble);
  const Tensor mild = -0.1 * noise(sizes, seed).abs();
  if (level == 1) return mild;
  const Tensor choice = noise(sizes, seed + 1);
  return at::where(
      choice > 1.6, at::full_like(mild, -1e4),
      at::where(choice > 1.0, at::full_like(mild, -30.0), at::where(choice < -1, at::zeros_like(mild), mild)));
}

Tensors inputs(const Case& c) {
  const uint64_t seed = static_cast<uint64_t>(c.T * 1000 + c.K * 10 + c.V);
  Tensor g;
  if (c.form == Form::fixed) g = log_decays({c.H}, c.level, seed + 4);
  if (c.form == Form::scalar) g = log_decays({c.B, c.T, c.H}, c.level, seed + 4);
  if (c.form == Form::vector) g = log_decays({c.B, c.T, c.H, c.K}, c.level, seed + 4);
  return {noise({c.B, c.T, c.G, c.K}, seed + 1), noise({c.B, c.T, c.G, c.K}, seed + 2),
          noise({c.B, c.T, c.H, c.V}, seed + 3), g, c.T % 7 == 2 ? Tensor() : noise({c.B, c.H, c.K, c.V}, seed + 6)};
}

double scale(const Tensors& x) {
  return 1 / std::sqrt(static_cast<double>(x[0].size(3)));
}
OutAndState truth(const Tensors& x) {
  return kernels::on(kernels::Backend::naive,
                     [&] { return decayed_attention(x[0], x[1], x[2], x[3], scale(x), x[4]); });
}
OutAndState kernel(const Tensors& x) {
  return decayed_attention(x[0], x[1], x[2], x[3], scale(x), x[4]);
}
OutAndState in_aten(const Tensors& x) {
  return kernels::on(kernels::Backend::aten, [&] { return decayed_attention(x[0], x[1], x[2], x[3], scale(x), x[4]); });
}

// Steps begin..end-1 of the sequence, entered with `state`.
Tensors part(const Tensors& x, int64_t begin, int64_t end, const Tensor& state) {
  const auto cut = [&](const Tensor& t) { return t.slice(1, begin, end); };
  return {cut(x[0]), cut(x[1]), cut(x[2]), x[3].defined() && x[3].dim() > 1 ? cut(x[3]) : x[3], state};
}

std::vector<Case> cases() {
  const int64_t lengths[] = {1, 2, 3, 63, 64, 65, 127, 200, 513}, widths[] = {16, 64, 81, 96, 128};
  const double levels[] = {1, 0, -30, -1e4, 2};
  std::vector<Case> all;
  for (size_t f = 0; f < 4; ++f) {
    for (size_t t = 0; t < 9; ++t) {
      // The longest sequences take the narrow heads: the loop keeps every state for its gradient.
      const int64_t K = t == 8 ? 16 : widths[(t + f) % 5], V = t == 8 ? 81 : widths[(t + 2 * f + 1) % 5];
      const int64_t B = t % 2 == 0 && t < 7 ? 3 : 1;
      all.push_back({kForms[f], B, lengths[t], 2, t % 3 == 0 ? 1 : 2, K, V, levels[(t + f) % 5]});
    }
  }
  for (double level : levels) {
    for (Form form : kForms) all.push_back({form, 1, 130, 1, 1, 16, 16, level});
  }
  return all;
}

using DecayedAttention = RecurrenceTest;

TEST_F(DecayedAttention, KernelInDoubleEqualsTheLoop) {
  for (const Case& c : cases()) {
    const Tensors x = inputs(c);
    expect_close(run(kernel, x, kNames, at::kDouble), run(truth, x, kNames, at::kDouble), 1e-11, text(c));
  }
}

TEST_F(DecayedAttention, KernelInFloatIsWithinTwoMillionths) {
  for (Form form : kForms) {
    for (double level : {1.0, -30.0, 2.0}) {
      const Case c{form, 2, 200, 2, 1, 64, 96, level};
      Tensors x = inputs(c);
      for (Tensor& t : x) t = t.defined() ? t.to(at::kFloat).to(at::kDouble) : t;
      expect_close(run(kernel, x, kNames, at::kFloat), run(truth, x, kNames, at::kDouble), 2e-6, text(c));
    }
  }
}

TEST_F(DecayedAttention, ChunkAlgorithmInAtenEqualsTheLoop) {
  for (Form form : kForms) {
    for (double level : {1.0, 2.0, -1e4}) {
      const Case c{form, 2, 81, 2, 1, 24, 17, level};
      const Tensors x = inputs(c);
      expect_close(run(in_aten, x, kNames, at::kDouble), run(truth, x, kNames, at::kDouble), 1e-10, text(c));
    }
  }
}

TEST_F(DecayedAttention, HalfPrecisionIsComputedInFloat) {
  const Tensors x = inputs({Form::vector, 1, 70, 2, 2, 16, 16, 1});
  Tensors half;
  for (const Tensor& t : x) half.push_back(t.to(at::kBFloat16));
  const OutAndState scan = kernel(half);
  EXPECT_EQ(scan.out.scalar_type(), at::kBFloat16);
  for (Tensor& t : half) t = t.to(at::kDouble);
  EXPECT_LE(relative_error(scan.out, truth(half).out), 1.0 / 128);
}

TEST_F(DecayedAttention, SequenceCutAnywhereEqualsTheWhole) {
  for (Form form : kForms) {
    const Tensors x = inputs({form, 2, 150, 2, 1, 16, 40, 1});
    const Results whole = run(kernel, x, kNames, at::kDouble);
    for (int64_t cut : {1, 16, 64, 77, 149}) {
      const auto in_two = [&](const Tensors& y) -> OutAndState {
        const OutAndState first = kernel(part(y, 0, cut, y[4])), second = kernel(part(y, cut, 150, first.state));
        return {at::cat({first.out, second.out}, 1), second.state};
      };
      expect_close(run(in_two, x, kNames, at::kDouble), whole, 1e-12, "cut at " + std::to_string(cut));
    }
  }
}

TEST_F(DecayedAttention, StepsEqualTheSequence) {
  for (Form form : kForms) {
    const Tensors x = inputs({form, 2, 70, 4, 2, 16, 24, 1});
    const OutAndState whole = kernel(x);
    Tensor state = x[4].clone();
    Tensors out;
    for (int64_t t = 0; t < 70; ++t) {
      const auto at_t = [&](const Tensor& y) { return y.select(1, t); };
      const Tensor g = x[3].defined() && x[3].dim() > 1 ? at_t(x[3]) : x[3];
      out.push_back(decayed_attention_step(at_t(x[0]), at_t(x[1]), at_t(x[2]), g, scale(x), state));
    }
    EXPECT_LE(relative_error(at::stack(out, 1), whole.out), 1e-13);
    EXPECT_LE(relative_error(state, whole.state), 1e-13);
  }
}

TEST_F(DecayedAttention, GradientsMatchFiniteDifferences) {
  for (Form form : kForms) expect_slopes_match(kernel, inputs({form, 1, 70, 2, 1, 5, 3, 1}), kNames, 1e-6);
}

TEST_F(DecayedAttention, BytesDoNotDependOnThreads) {
  for (Form form : kForms) expect_same_on_threads(kernel, inputs({form, 3, 130, 4, 2, 24, 40, 1}), kNames);
}

TEST_F(DecayedAttention, SlicesAndTransposedTensorsGiveTheSameBytes) {
  const Tensors x = inputs({Form::vector, 2, 70, 2, 2, 16, 24, 1});
  const OutAndState plain = kernel(x);
  const Tensor wide = at::cat({x[0].flatten(2), x[1].flatten(2), x[2].flatten(2), x[3].flatten(2)}, 2);
  const auto slice = [&](int64_t from, int64_t width) {
    return wide.narrow(2, from, 2 * width).unflatten(2, {2, width});
  };
  const Tensor v_turned = x[2].transpose(2, 3).contiguous().transpose(2, 3);
  for (const Tensor& v : {slice(64, 24), v_turned}) {
    const OutAndState strided = kernel({slice(0, 16), slice(32, 16), v, slice(112, 16), x[4]});
    expect_same_bytes({{"out", strided.out}, {"state", strided.state}}, {{"out", plain.out}, {"state", plain.state}},
                      "");
  }
}

TEST_F(DecayedAttention, WrittenAttentionEqualsItsParts) {
  for (const int64_t T : {1, 70}) {
    Tensors x = inputs({Form::scalar, 2, T, 4, 1, 8, 6, 1});
    x.insert(x.begin() + 4, {noise({2, T, 4}, 11), noise({4}, 12)});
    const std::vector<std::string> names = {"q", "k", "x", "g", "write", "skip", "state"};
    const Recurrence whole = [](const Tensors& in) {
      return written_attention(in[0], in[1], in[2], in[3], in[4], in[5], 0.7, in[6]);
    };
    const Recurrence parts = [](const Tensors& in) {
      const OutAndState read = kernels::on(kernels::Backend::naive, [&] {
        return decayed_attention(in[0], in[1], in[4].unsqueeze(-1) * in[2], in[3], 0.7, in[6]);
      });
      return OutAndState{read.out + in[5].unsqueeze(-1) * in[2], read.state};
    };
    expect_close(run(whole, x, names, at::kDouble), run(parts, x, names, at::kDouble), 1e-12, "T " + std::to_string(T));
    EXPECT_FALSE(attention_writes(x[0], x[1], x[2], x[3], x[4], x[5], x[6]));  // no kernel for it on a CPU
    x[4] = x[4].narrow(2, 0, 3);
    EXPECT_THROW(whole(x), Error);
  }
}

TEST_F(DecayedAttention, ReportsWrongShapesInOneLine) {
  Tensors x = inputs({Form::scalar, 1, 3, 4, 2, 8, 8, 1});
  x[1] = x[1].narrow(3, 0, 7);
  try {
    kernel(x);
    FAIL() << "accepted keys narrower than queries";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[decayed_attention] k, expected [1, 3, 2, 8], got [1, 3, 2, 7]");
  }
  x = inputs({Form::unit, 1, 3, 4, 3, 8, 8, 1});
  EXPECT_THROW(kernel(x), Error);
}

}  // namespace
}  // namespace sb::test
