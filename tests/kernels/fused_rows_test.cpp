// Convolution, token shift, norms and gates.
#include "base/error.h"
#include "fused_claims.h"

namespace sb::test {
namespace {

using FusedRows = RecurrenceTest;

TEST_F(FusedRows, Conv4EqualsItsSum) {
  for (int64_t channels : {1, 3, 16, 81, 200}) {
    for (int64_t time : {1, 2, 3, 4, 5, 63, 66}) {
      const std::string what = std::to_string(channels) + " channels, T " + std::to_string(time);
      const Tensors x{noise({3, time, channels}, 1), noise({channels, 1, 4}, 2), noise({channels}, 3),
                      noise({3, 3, channels}, 4)};
      for (bool silu : {false, true}) {
        expect_fused(
            what, [&](const Tensors& in) { return conv4(in[0], in[1], in[2], silu, in[3]); }, x);
        expect_fused(what + ", bare", [&](const Tensors& in) { return conv4(in[0], in[1], {}, silu); }, {x[0], x[1]});
      }
    }
  }
}

TEST_F(FusedRows, Conv4CutAnywhereEqualsTheWhole) {
  const Tensor x = noise({2, 40, 20}, 1), w = noise({20, 1, 4}, 2);
  const Tensor whole = conv4(x, w, {}, true);
  for (int64_t cut : {1, 2, 3, 17}) {
    const Tensor padded = at::cat({at::zeros({2, 3, 20}, at::kDouble), x}, 1);
    const Tensor second = conv4(x.narrow(1, cut, 40 - cut), w, {}, true, padded.narrow(1, cut, 3));
    EXPECT_LE(relative_error(second, whole.narrow(1, cut, 40 - cut)), 1e-14);
  }
}

TEST_F(FusedRows, TokenShiftMixesWithTheFrameBefore) {
  const Tensors x{noise({2, 5, 3}, 1), noise({2, 1, 3}, 2), noise({1, 1, 3}, 3), noise({1, 1, 3}, 4)};
  const auto frames = [](const Tensors& in) {
    Tensors out;
    for (int64_t t = 0; t < 5; ++t) {
      const Tensor here = in[0].select(1, t), before = t > 0 ? in[0].select(1, t - 1) : in[1].select(1, 0);
      out.push_back(at::cat({(1 - in[2][0]) * here + in[2][0] * before, (1 - in[3][0]) * here + in[3][0] * before}, 1));
    }
    return at::stack(out, 1);
  };
  expect_fused(
      "token shift",
      [](const Tensors& in) {
        return at::cat(token_shift(in[0], in[1], {in[2], in[3]}), 2);
      },
      frames, x);
  EXPECT_TRUE(at::equal(token_shift(x[0], {}, {x[2]})[0], token_shift(x[0], at::zeros_like(x[1]), {x[2]})[0]));
}

TEST_F(FusedRows, OperandsAndReadOutOfRwkv7EqualTheirFormulas) {
  const int64_t B = 2, T = 3, h = 2, K = 6, d = h * K;
  const auto flat = [&](uint64_t seed) { return noise({B, T, d}, seed); };
  const auto by_head = [&](uint64_t seed) { return noise({B, T, h, K}, seed); };
  const auto heads = [&](const Tensor& x) { return x.reshape({B, T, h, K}); };
  const Tensors keys{flat(1), flat(2), flat(3), noise({d}, 4), noise({d}, 5)};
  expect_fused(
      "keys",
      [&](const Tensors& x) {
        const auto [g, k, erase, write] = rwkv7_keys(x[0], x[1], x[2], x[3], x[4], h);
        return at::stack({g, k, erase, write});
      },
      [&](const Tensors& x) {
        const Tensor a = 1 / (1 + (-x[1]).exp()), u = heads(x[2] * x[3]), unit = u / (u * u).sum(-1, true).sqrt();
        return at::stack(
            {heads(-std::exp(-0.5) / (1 + (-x[0]).exp())), heads(x[2] - x[2] * (1 - a) * x[4]), unit, unit * heads(a)});
      },
      keys);
  const Tensors read{by_head(1),       by_head(2),    by_head(3),    by_head(4),
                     noise({h, K}, 5), noise({d}, 6), noise({d}, 7), flat(8)};
  expect_fused(
      "read", [](const Tensors& x) { return rwkv7_read(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], 1e-3); },
      [&](const Tensors& x) {
        const Tensor o = x[0] - x[0].mean(-1, true), normed = o / ((o * o).mean(-1, true) + 1e-3).sqrt();
        const Tensor bonus = (x[1] * x[2] * x[4]).sum(-1, true) * x[3];
        return (normed.flatten(2) * x[5] + x[6] + bonus.flatten(2)) * x[7];
      },
      read, 5e-6);
}

TEST_F(FusedRows, OperandsOfHgrn2EqualTheirFormulas) {
  expect_fused(
      "keys",
      [](const Tensors& x) {
        const auto [q, k, g] = hgrn2_keys(x[0], x[1]);
        return at::stack({q, k, g});
      },
      [](const Tensors& x) {
        const Tensor decay = 1 / (1 + (-x[1]).exp());
        return at::stack({x[0] / (1 + (-x[0]).exp()), 1 - decay, decay.log()});
      },
      {noise({2, 3, 10}, 1), 3 * noise({2, 3, 10}, 2)});
  const Tensor far = hgrn2_keys(at::zeros({1, 1, 1}), at::full({1, 1, 1}, 30.0)).k;
  EXPECT_NEAR(far.item<double>() / std::exp(-30.0), 1, 1e-5);  // without cancellation
}

TEST_F(FusedRows, KeysOfADeltaRuleEqualTheirFormulas) {
  expect_fused(
      "keys",
      [](const Tensors& x) {
        const auto [erase, key] = delta_keys(x[0], x[1]);
        return at::stack({erase, 2 * key});
      },
      [](const Tensors& x) {
        const Tensor y = x[0] * x[1].unsqueeze(-1);
        return at::stack({x[0], 2 * y});
      },
      {noise({2, 3, 4, 10}, 1), noise({2, 3, 4}, 2)});
}

TEST_F(FusedRows, ReadOutOfMlstmEqualsItsFormula) {
  const int64_t h = 3, V = 5;
  const Tensor m = noise({2, 4, h}, 9).abs();
  for (const int64_t unused : {0, 2}) {
    const Tensors in{noise({2, 4, h, V + 1 + unused}, 1), noise({h * V}, 2), noise({2, 4, h * V}, 3)};
    expect_fused(
        "read", [&](const Tensors& x) { return mlstm_read(x[0], m.to(x[0].scalar_type()), x[1], x[2]); },
        [&](const Tensors& x) {
          const Tensor n = x[0].select(3, V).abs(), least = (-m).exp(), divisor = at::where(n > least, n, least);
          const Tensor u = x[0].narrow(3, 0, V) / divisor.unsqueeze(-1), centred = u - u.mean(-1, true);
          const Tensor normed = centred / (centred.square().mean(-1, true) + 1e-6).sqrt();
          return normed.flatten(2) * x[1] / (1 + (-x[2]).exp());
        },
        in, 1e-5);
  }
  EXPECT_THROW(mlstm_read(at::zeros({1, 1, 2, 3}), at::zeros({1, 1, 2}), at::zeros({6}), {}), Error);  // no column n
}

TEST_F(FusedRows, GatesOfMamba3EqualTheirFormulas) {
  const Tensors gates{noise({2, 5, 3}, 1), 3 * noise({2, 5, 3}, 2), noise({2, 5, 3}, 3), noise({3}, 4)};
  expect_fused(
      "gates",
      [&](const Tensors& x) {
        const auto [step, decay, here, before] = mamba3_gates(x[0], x[1], x[2], x[3]);
        return at::stack({step, decay, here, before});
      },
      [&](const Tensors& x) {
        const Tensor step = (1 + (x[0] + x[3]).exp()).log(), share = 1 / (1 + (-x[2]).exp());
        const Tensor f = at::where(x[1] >= 0, x[1] + 1, 1 / (1 + x[1].abs()));
        return at::stack({step, -f * step, share * step, (1 - share) * step});
      },
      gates);
}

TEST_F(FusedRows, KeysOfMamba3EqualTheirFormulas) {
  const int64_t B = 2, T = 6, H = 3, N = 10, A = 2;  // channels 4 to 9 are not rotated
  const Tensors in{noise({B, T, N}, 1), noise({B, T, N}, 2),       noise({N}, 3),
                   noise({N}, 4),       noise({H, N}, 5),          noise({H, N}, 6),
                   noise({B, T, A}, 7), noise({B, T, H}, 8).abs(), noise({B, H, A}, 9)};
  expect_fused(
      "keys",
      [](const Tensors& x) {
        const auto [k, q, angle] = mamba3_keys({x[0], x[1], x[2], x[3], x[4], x[5]}, x[6], x[7], x[8].to(at::kDouble));
        return at::cat({k.flatten(), q.flatten(), angle.to(k.scalar_type()).flatten()});
      },
      [&](const Tensors& x) {
        Tensor theta = x[8];
        Tensors rows[2];
        for (int64_t t = 0; t < T; ++t) {
          theta = theta + M_PI * (x[6].select(1, t).tanh().unsqueeze(1) * x[7].select(1, t).unsqueeze(-1));
          for (size_t i = 0; i < 2; ++i) {
            const Tensor row = x[i].select(1, t), normed = row / (row.square().mean(-1, true) + 1e-5).sqrt() * x[i + 2];
            const Tensor y = normed.unsqueeze(1) + x[i + 4];
            Tensors channels;
            for (int64_t c = 0; c < N; ++c) {
              const Tensor turn = theta.select(-1, std::min(c / 2, A - 1)), own = y.select(-1, c),
                           other = y.select(-1, c ^ 1);
              channels.push_back(c >= 2 * A ? own : own * turn.cos() + (c % 2 ? other : -other) * turn.sin());
            }
            rows[i].push_back(at::stack(channels, -1));
          }
        }
        return at::cat({at::stack(rows[0], 1).flatten(), at::stack(rows[1], 1).flatten(), theta.flatten()});
      },
      in, 1e-5);
}

TEST_F(FusedRows, OwnWriteEqualsItsFormula) {
  const int64_t B = 2, T = 70, H = 3;
  for (const auto& [K, V] : {std::pair{16, 8}, {7, 33}, {128, 64}}) {
    const Tensors in{noise({B, T, H, V}, 1),      noise({B, T, H, K}, 2), noise({B, T, H, K}, 3),
                     noise({B, T, 2 * H * V}, 4), noise({B, T, H}, 5),    noise({H}, 6)};
    const auto values = [&](const Tensors& x) { return x[3].narrow(2, 0, H * V).unflatten(2, {H, V}); };
    const auto formula = [&](const Tensors& x, const Tensor& skip) {
      return x[0] + (.5 * x[4] * (x[1] * x[2]).sum(-1) + skip).unsqueeze(-1) * values(x);
    };
    expect_fused(
        c10::str(K, " keys"), [&](const Tensors& x) { return own_write(x[0], x[1], x[2], values(x), x[4], x[5], .5); },
        [&](const Tensors& x) { return formula(x, x[5]); }, in);
    expect_fused(
        c10::str(K, " keys, no skip"),
        [&](const Tensors& x) { return own_write(x[0], x[1], x[2], values(x), x[4], {}, .5); },
        [&](const Tensors& x) { return formula(x, at::zeros({})); }, {in.begin(), in.end() - 1});
  }
}

TEST_F(FusedRows, RotatedKeysEqualTheirAtenForm) {
  for (const int64_t A : {0, 3, 8}) {
    const int64_t B = 2, T = 150, H = 3, N = 16;
    const Tensor parts = noise({B, T, 2 * N}, 1);
    const Tensor angle = 20 * noise({B, T, H, A}, 4).to(at::kDouble);
    const auto rotated = [&](bool keys, bool queries) {
      return [=](const Tensors& x) {
        const auto [k, q] =
            rotated_keys(x[0].narrow(2, 0, N), x[0].narrow(2, N, N), x[1].t(), x[2], angle + x[3].to(at::kDouble));
        const Tensor none = (0 * (x[1].sum() + x[2].sum())).reshape({1});  // so that both biases have gradients
        return at::cat({keys ? k.flatten() : none, queries ? q.flatten() : none});
      };
    };
    const Tensors in{parts, noise({N, H}, 2), noise({H, N}, 3), noise({B, T, H, A}, 5)};
    for (const auto& [keys, queries] : {std::pair{true, true}, {true, false}, {false, true}})
      expect_fused(std::to_string(A) + " angles", rotated(keys, queries), in, 1e-5);
  }
}

// A piece that starts at the angle of the piece before continues it.
TEST_F(FusedRows, KeysOfMamba3InPiecesEqualTheWhole) {
  const int64_t B = 2, T = 9, H = 3, N = 8;
  const Mamba3Projections x{noise({B, T, N}, 1), noise({B, T, N}, 2), noise({N}, 3),
                            noise({N}, 4),       noise({H, N}, 5),    noise({H, N}, 6)};
  const Tensor turn = noise({B, T, 2}, 7), step = noise({B, T, H}, 8).abs();
  const Mamba3Keys whole = mamba3_keys(x, turn, step);
  for (const int64_t cut : {1, 4, 8}) {
    const auto piece = [&](int64_t from, int64_t to, const Tensor& angle) {
      const auto part = [&](const Tensor& y) { return y.narrow(1, from, to - from); };
      return mamba3_keys({part(x.key), part(x.query), x.key_gain, x.query_gain, x.key_bias, x.query_bias}, part(turn),
                         part(step), angle);
    };
    const Mamba3Keys first = piece(0, cut, {}), second = piece(cut, T, first.angle);
    EXPECT_LE(relative_error(at::cat({first.k, second.k}, 1), whole.k), 1e-13) << cut;
    EXPECT_LE(relative_error(at::cat({first.q, second.q}, 1), whole.q), 1e-13) << cut;
    EXPECT_LE(relative_error(second.angle, whole.angle), 1e-13) << cut;
  }
}

TEST_F(FusedRows, NormsEqualTheirFormulas) {
  for (int64_t width : {3, 16, 64, 81, 200}) {
    const std::string what = "width " + std::to_string(width);
    const Tensors x{noise({2, 7, 3, width}, 1), noise({width}, 2), noise({2, 7, 3, width}, 3)};
    const Tensors no_gate{x[0], x[1]};
    expect_fused(
        "rms " + what, [](const Tensors& in) { return rms_norm(in[0], in[1], 1e-5); }, no_gate);
    expect_fused(
        "outer " + what, [](const Tensors& in) { return rms_norm_outer_eps(in[0], in[1]); }, no_gate);
    expect_fused(
        "then gate " + what, [](const Tensors& in) { return rms_norm_then_gate(in[0], in[1], in[2], 1e-5); }, x);
    expect_fused(
        "then sigmoid " + what, [](const Tensors& in) { return rms_norm_then_sigmoid(in[0], in[1], in[2], 1e-5); },
        [](const Tensors& in) { return rms_norm(in[0], in[1], 1e-5) / (1 + (-in[2]).exp()); }, x);
    expect_fused(
        "gate first " + what, [](const Tensors& in) { return gate_then_rms_norm(in[0], in[1], in[2], 1e-5); }, x, 5e-6);
    expect_fused(
        "l2 " + what, [](const Tensors& in) { return l2_normalise(in[0]); }, {x[0]}, 5e-6);
  }
}

TEST_F(FusedRows, NormsOfZeroRowHaveFiniteGradients) {
  const Tensor gain = at::ones({8});
  for (const auto& norm :
       {std::function<Tensor(const Tensor&)>([&](const Tensor& x) { return rms_norm(x, gain, 1e-5); }),
        std::function<Tensor(const Tensor&)>([&](const Tensor& x) { return rms_norm_outer_eps(x, gain); }),
        std::function<Tensor(const Tensor&)>([&](const Tensor& x) { return l2_normalise(x); })}) {
    const Tensor x = at::zeros({2, 8}).requires_grad_();
    const Tensor y = norm(x);
    y.sum().backward();
    EXPECT_EQ(y.abs().max().item<float>(), 0);
    EXPECT_TRUE(at::isfinite(x.grad()).all().item<bool>());
  }
}

TEST_F(FusedRows, GatesEqualTheirFormulas) {
  for (int64_t width : {1, 5, 64, 130}) {
    const std::string what = "width " + std::to_string(width);
    const Tensor x = 4 * noise({3, 50, width}, 1), y = noise({3, 50, width}, 2), bias = noise({width}, 3);
    expect_fused("silu " + what, [](const Tensors& in) { return gate_silu(in[0], in[1]); }, {y, x});
    expect_fused(
        "sigmoid " + what, [](const Tensors& in) { return gate_sigmoid(in[0], in[1], 2); },
        [](const Tensors& in) { return 2 * in[0] / (1 + (-in[1]).exp()); }, {y, x});
    expect_fused(
        "swish " + what, [](const Tensors& in) { return gate_swish(in[0], in[1]); },
        {noise({3, 50, 2 * width}, 6), at::full({1}, 0.8, at::kDouble)}, 1e-5);
    expect_fused("softplus " + what, [](const Tensors& in) { return softplus_bias(in[0], in[1]); }, {x, bias});
    expect_fused(
        "decay " + what, [](const Tensors& in) { return softplus_decay(in[0], in[1], in[2]); },
        [](const Tensors& in) {
          return -in[2].exp() * kernels::on(kernels::Backend::aten, [&] { return softplus_bias(in[0], in[1]); });
        },
        {x, bias, noise({width}, 5)}, 5e-6);
    expect_fused(
        "step times decay " + what,
        [](const Tensors& in) {
          const auto [step, decay] = softplus_gates(in[0], in[1], in[2]);
          return step * decay;
        },
        [](const Tensors& in) {
          const Tensor step = kernels::on(kernels::Backend::aten, [&] { return softplus_bias(in[0], in[1]); });
          return step * (-in[2].exp() * step);
        },
        {x, bias, noise({width}, 5)}, 1e-5);
    expect_fused("sigmoid " + what, [](const Tensors& in) { return sigmoid_gate(in[0], 2); }, {x});
    expect_fused("log sigmoid " + what, [](const Tensors& in) { return log_sigmoid(in[0], 1.0 / 16); }, {x});
  }
}

TEST_F(FusedRows, ScaledHeadsAndReadOutEqualTheirFormulas) {
  const Tensor x = noise({2, 9, 3, 16}, 1), read = noise({2, 9, 3, 16}, 2), gate = noise({2, 9, 48}, 3);
  expect_fused(
      "scale_heads", [](const Tensors& in) { return scale_heads(in[0], in[1]); },
      [](const Tensors& in) { return in[0] * in[1].unsqueeze(-1); }, {x, noise({2, 9, 3}, 4)});
  expect_fused(
      "read-out",
      [](const Tensors& in) { return skip_then_gate_then_rms_norm(in[0], in[1], in[2], in[3], in[4], 1e-5); },
      [](const Tensors& in) {
        const Tensor u = (in[0] + in[2].unsqueeze(-1) * in[1]).flatten(2) * at::silu(in[4]);
        return in[3] * u / (u.square().mean(-1, true) + 1e-5).sqrt();
      },
      {read, x, noise({3}, 5), noise({48}, 6), gate}, 5e-6);
}

TEST_F(FusedRows, ExtremeGatesAreFiniteAndSaturate) {
  const Tensor z = at::tensor({-1e30F, -1e4F, -90.F, -20.F, 0.F, 20.F, 90.F, 1e4F, 1e30F}), one = at::ones({9});
  EXPECT_LE(relative_error(gate_silu(one, z), at::silu(z.to(at::kDouble))), 1e-6);
  EXPECT_LE(relative_error(softplus_bias(z, at::zeros({9})), at::softplus(z.to(at::kDouble))), 1e-6);
  EXPECT_LE(relative_error(log_sigmoid(z, 1), at::log_sigmoid(z.to(at::kDouble))), 1e-6);
  const Tensor small = softplus_bias(at::full({4}, -30.0), at::zeros({4}));
  EXPECT_NEAR(small[0].item<double>() / std::exp(-30.0), 1, 1e-6);
}

TEST_F(FusedRows, PropagatesNaN) {
  const Tensor gain = at::ones({67}), other = noise({3, 67}, 2).to(at::kFloat);
  for (int64_t at : {0, 5, 37, 64, 66}) {  // in packs of eight, of four, single vectors and the rest
    Tensor x = noise({3, 67}, 1).to(at::kFloat);
    x[1][at] = std::nan("");
    const std::vector<Tensor> same{gate_silu(x, other), gate_silu(other, x), softplus_bias(x, gain), log_sigmoid(x, 1)};
    for (const Tensor& y : same) {
      EXPECT_TRUE(at::isnan(y[1][at]).item<bool>()) << at;
      EXPECT_EQ(at::isnan(y).sum().item<int64_t>(), 1) << at;
    }
    const std::vector<Tensor> whole_row{rms_norm(x, gain, 1e-5), l2_normalise(x),
                                        gate_then_rms_norm(other, gain, x, 1e-5),
                                        residual_layer_norm(x, other, gain, gain, 0, std::nullopt)};
    for (const Tensor& y : whole_row) EXPECT_EQ(at::isnan(y).sum(1)[1].item<int64_t>(), 67) << at;
  }
}

TEST_F(FusedRows, RotationsUseTheirOwnTables) {
  const Tensor x = noise({2, 50, 2, 8}, 1);
  const auto expect_turned = [](const Tensor& in, double base, int64_t offset) {
    EXPECT_LE(relative_error(rope(in, base, 1, offset),
                             kernels::on(kernels::Backend::aten, [&] { return rope(in, base, 1, offset); })),
              1e-12)
        << base << offset;
  };
  expect_turned(x, 1000, 0);
  expect_turned(x.narrow(1, 0, 20), 1000, 0);  // the beginning of the table before
  expect_turned(x, 1000, 7);
  expect_turned(x, 500, 7);
  expect_turned(x.narrow(3, 0, 4).contiguous(), 500, 7);
  expect_turned(x, 1000, 0);
}

TEST_F(FusedRows, RotationEqualsItsFormula) {
  for (int64_t width : {2, 6, 64, 80}) {
    for (int sense : {1, -1}) {
      for (int64_t offset : {0, 9}) {
        expect_fused("rope", [&](const Tensors& in) { return rope(in[0], 1000, sense, offset); },
                     {noise({2, 11, 3, width}, 1)});
      }
    }
  }
}

TEST_F(FusedRows, SlicesOfWiderTensorsGiveTheSameBytes) {
  const Tensor wide = noise({2, 9, 100}, 1).to(at::kFloat), w = noise({32, 1, 4}, 2).to(at::kFloat);
  const Tensor gain = noise({16}, 3).to(at::kFloat), slice = wide.narrow(2, 5, 32), gate = wide.narrow(2, 50, 32);
  const auto heads = [](const Tensor& x) { return x.unflatten(2, {2, 16}); };
  const auto copy = [](const Tensor& x) { return x.contiguous(); };
  EXPECT_TRUE(at::equal(conv4(slice, w, {}, true), conv4(copy(slice), w, {}, true)));
  EXPECT_TRUE(at::equal(gate_silu(slice, gate), gate_silu(copy(slice), copy(gate))));
  EXPECT_TRUE(at::equal(rope(heads(slice), 1000, 1), rope(copy(heads(slice)), 1000, 1)));
  EXPECT_TRUE(at::equal(rms_norm_then_gate(heads(slice), gain, heads(gate), 1e-5),
                        rms_norm_then_gate(copy(heads(slice)), gain, copy(heads(gate)), 1e-5)));
  const Tensor turned = noise({2, 32, 9}, 4).to(at::kFloat).transpose(1, 2);
  EXPECT_TRUE(at::equal(conv4(turned, w, {}, true), conv4(copy(turned), w, {}, true)));
  EXPECT_TRUE(at::equal(rms_norm(heads(turned), gain, 1e-5), rms_norm(copy(heads(turned)), gain, 1e-5)));
}

TEST_F(FusedRows, HalfPrecisionRunsInAten) {
  const Tensor x = noise({2, 9, 16}, 1).to(at::kBFloat16), gain = at::ones({16}, at::kBFloat16);
  EXPECT_LE(relative_error(rms_norm(x, gain, 1e-5),
                           kernels::on(kernels::Backend::aten,
                                       [&] { return rms_norm(x.to(at::kDouble), gain.to(at::kDouble), 1e-5); })),
            0.02);
}

TEST_F(FusedRows, ReportsWrongShapesInOneLine) {
  try {
    rms_norm(at::ones({2, 8}), at::ones({7}), 1e-5);
    FAIL() << "accepted a gain narrower than the row";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[rms_norm] gain, expected [8], got [7]");
  }
  EXPECT_THROW(conv4(at::ones({2, 5, 8}), at::ones({8, 4}), {}, true), Error);
  EXPECT_THROW(token_shift(at::ones({2, 5, 8}), {}, {at::ones({8})}), Error);
  const Tensor x = at::ones({2, 5, 8}), row = at::ones({8});
  EXPECT_THROW(rwkv7_keys(x, x, x, row, row, 3), Error);
  EXPECT_THROW(mamba3_gates(x, x, x, at::ones({7})), Error);
  EXPECT_THROW(mamba3_keys({x, x, row, row, at::ones({3, 8}), at::ones({3, 8})}, x, at::ones({2, 5, 3})), Error);
  const Tensor bias = at::ones({3, 8});
  EXPECT_THROW(rotated_keys(x, x, bias, bias, at::ones({2, 5, 3, 4})), Error) << "angles in float";
  EXPECT_THROW(rotated_keys(x, x, bias, bias, at::ones({2, 5, 3, 5}, at::kDouble)), Error);
  EXPECT_THROW(gate_silu(at::ones({2, 8}), at::ones({8})), Error);
  EXPECT_THROW(gate_sigmoid(at::ones({2, 8}), at::ones({8})), Error);
  EXPECT_THROW(gate_swish(at::ones({2, 7}), at::ones({1})), Error);
  EXPECT_THROW(rope(at::ones({1, 2, 1, 81}), 1000, 1), Error);
}

}  // namespace
}  // namespace sb::test
