// What each statistic of a comparison measures.
#include <gtest/gtest.h>

#include <cmath>

#include "base/format.h"
#include "worlds.h"

namespace sb::test {
namespace {

// Seven models of task 2, tested at other gaps.
std::vector<TableRun> gap_runs(const std::function<double(const Result&, int)>& accuracy) {
  return small_runs("[task]\nnumber = 2\n[eval]\ngaps = [10, 20, 50, 100]\n[grid]\nmodel.name = " + std::string(seven) +
                        "\nrun.seed = [1, 2, 3]\n",
                    [&](Result& r) {
                      for (auto& m : r.grid) m.accuracy = accuracy(r, *m.at) + (*m.at == 10 ? 0 : wobble(r));
                    });
}

TEST(Retention, IsAccuracyRelativeToTrainedGap) {
  const Rows rows = rows_from(gap_runs([](const Result& r, int gap) {
    const bool keeps = r.model.starts_with("gated_delta");
    return gap == 10 ? .8 : keeps ? .6 : r.model == "transformer" ? .001 : .2;
  }));
  const ScaleVerdict v = judged(rows, "mixing_generalises");
  for (size_t i = 0; i < 12; ++i)
    EXPECT_EQ(v.comparisons[i].verdict, Verdict::supported) << v.comparisons[i].comparison->name();
  EXPECT_NEAR(v.comparisons[0].a->mean, .6, .01);
  EXPECT_NEAR(v.comparisons[6].a->mean, .75, .01);
  EXPECT_EQ(v.comparisons[12].decides,
            std::vector<std::string>{"Gated DeltaNet, delta off on task 4, gap 20, 50, 100 at scale small, corrected "
                                     "protocol"});
  EXPECT_EQ(v.words(), "undecided, supported in 12 of 12, 3 not run");
  EXPECT_EQ(judged(rows, "attention_falls_to_chance").verdict, Verdict::supported);
}

TEST(ScheduleArms, AreApartFromRunsWithoutOne) {
  const auto runs = small_runs(
      "[task]\nnumber = 2\n[eval]\ngaps = [10, 20, 50, 100]\n[grid]\nmodel.name = [\"transformer\", "
      "\"gated_delta_net\", \"mamba2\"]\nrun.seed = [1, 2, 3]\ntraining = [{task.gap_max = 10}, {task.gap_max = "
      "100}, {task.gap_max = 100, train.schedule = {task.gap_max = {from = 10, over = 0.5}}}]\n",
      [](Result& r) {
        const double all = r.config.contains("train.schedule") ? .6 : r.config.at("task.gap_max") == "100" ? .5 : .3;
        for (auto& m : r.grid) m.accuracy = all + wobble(r);
      });
  const Rows rows = rows_from(runs);
  const ScaleVerdict v = judged(rows, "curriculum");
  EXPECT_EQ(v.verdict, Verdict::supported);
  ASSERT_EQ(v.comparisons.size(), 2U);
  EXPECT_NEAR(v.comparisons[0].effect.mean, .1, .01);
  EXPECT_NEAR(v.comparisons[1].effect.mean, .3, .01);
  EXPECT_EQ(v.comparisons[0].comparison->name(),
            "task 4, gap max 100, gap 20, 50, 100: Transformer, schedule gap_max from 10 over 0.5 − "
            "Transformer, no schedule");
  EXPECT_EQ(judged(rows, "curriculum_cost").verdict, Verdict::supported);
  EXPECT_EQ(judged(rows, "curriculum_recurrent").verdict, Verdict::supported);
  // Claims about the paper's training see only runs without a schedule.
  const ScaleVerdict chance = judged(rows, "attention_falls_to_chance");
  EXPECT_NEAR(chance.comparisons[0].a->mean, .3, .01);
}

TEST(PositionArms, AreApartFromRunsWithPlainPositions) {
  const Rows rows = rows_from(
      small_runs("[task]\nnumber = 2\n[eval]\ngaps = [10, 20, 50, 100]\n[grid]\nmodel.name = [\"transformer\"]\n"
                 "train.position_stretch = [10, 1]\nrun.seed = [1, 2, 3]\n",
                 [](Result& r) {
                   for (auto& m : r.grid)
                     m.accuracy = (r.config.contains("train.position_stretch") ? .6 : .4) + wobble(r);
                 }));
  const ScaleVerdict v = judged(rows, "random_positions");
  EXPECT_EQ(v.verdict, Verdict::supported);
  EXPECT_NEAR(v.comparisons[0].effect.mean, .2, .01);
  EXPECT_EQ(v.comparisons[0].comparison->name(),
            "task 4, gap 20, 50, 100: Transformer, position_stretch 10 − Transformer, position_stretch 1");
  // All other claims see only plain positions.
  const ComparisonVerdict chance = judged(rows, "attention_falls_to_chance").comparisons[0];
  EXPECT_NEAR(chance.a->mean, .4, .01);
  EXPECT_EQ(chance.figures.other_strata, 0U);
}

TEST(Chance, IsReachedIfAccuracyIsWithinDelta) {
  const auto at = [](double far) {
    return judged(rows_from(gap_runs([&](const Result&, int gap) { return gap == 100 ? far : .8; })),
                  "attention_falls_to_chance");
  };
  EXPECT_EQ(at(.007 + .03).verdict, Verdict::contradicted);
  EXPECT_EQ(at(.007 + .01).verdict, Verdict::supported);
}

TEST(Drop, IsDifferenceBetweenTwoTasksOfModel) {
  const Rows rows = rows_from(table_runs(as_in_the_paper));
  const ScaleVerdict v = judged(rows, "failure_signatures");
  // DeltaNet .50, .41, .35; Gated DeltaNet .87, .76, .57.
  EXPECT_NEAR(v.comparisons[0].effect.mean, .09 - .11, .006);
  EXPECT_NEAR(v.comparisons[1].effect.mean, .15 - .30, .006);
  EXPECT_NEAR(v.comparisons[0].a->mean, .09, .006);
  EXPECT_EQ(v.comparisons[1].verdict, Verdict::contradicted);
  // GLA .68 to .50, Mamba .71 to .63.
  EXPECT_NEAR(v.comparisons[2].effect.mean, .18 - .08, .006);
  EXPECT_EQ(v.comparisons[2].verdict, Verdict::supported);
  const auto paper = paper_effect(*v.comparisons[0].comparison);
  ASSERT_TRUE(paper.has_value());
  EXPECT_NEAR(paper->effect, -.02, 1e-12);
  EXPECT_NEAR(paper->spread, .02, 1e-12);
  Comparison part = *judged(rows, "gates").comparisons[0].comparison;
  EXPECT_TRUE(paper_effect(part).has_value());
  part.first = 50;
  EXPECT_FALSE(paper_effect(part).has_value()) << "the paper has no numbers of the first elements";
  // Without the runs of one task there is none.
  auto runs = table_runs(as_in_the_paper);
  std::erase_if(runs, [](const TableRun& run) { return run.result.model == "gla" && run.result.task == 2; });
  EXPECT_EQ(judged(rows_from(runs), "failure_signatures").comparisons[2].decides,
            std::vector<std::string>{"GLA on task 2 at scale small, corrected protocol"});
}

TEST(SlopeComparison, MeasuresCostOverLongestGap) {
  const auto runs = small_runs(
      "[task]\nnumber = 2\n[grid]\nmodel.name = [\"gated_delta_net\"]\ntask.gap_max = [10, 50]\nmodel.a_min = "
      "[0.0, 0.99]\nrun.seed = [1, 2, 3]\n",
      [](Result& r) {
        const double gap = std::stod(r.config.at("task.gap_max")),
                     least = std::stod(plain_value(r.config.at("model.switch a_min")));
        set_accuracy(r, .8 - (least == 0 ? 0 : .2) * std::log10(gap) + wobble(r));
      });
  const ScaleVerdict v = judged(rows_from(runs), "fast_forgetting");
  EXPECT_EQ(v.verdict, Verdict::supported);
  ASSERT_EQ(v.comparisons.size(), 3U);
  EXPECT_NEAR(v.comparisons[0].effect.mean, .2, .01);
  EXPECT_NEAR(v.comparisons[1].effect.mean, .2 * std::log10(50), .01);
  EXPECT_NEAR(v.comparisons[2].effect.mean, .2, .01);
  EXPECT_EQ(v.comparisons[2].figures.levels, 2U);
  EXPECT_EQ(v.comparisons[2].effect.n, 3U);
}

TEST(SlopeComparison, NamesMissingLevelOfGrammar) {
  auto runs = small_runs(
      "[task]\nnumber = 2\n[grid]\nmodel.name = [\"gated_delta_net\"]\ntask.gap_max = [10, 50]\nmodel.a_min = "
      "[0.0, 0.99]\nrun.seed = [1, 2, 3]\n");
  std::erase_if(runs, [](const TableRun& run) {
    return run.result.grammar_seed == 3 && run.result.config.at("task.gap_max") == "50";
  });
  const auto one = judged(rows_from(runs), "fast_forgetting").comparisons[2];
  EXPECT_EQ(one.effect.n, 2U);
  EXPECT_EQ(one.figures.missing,
            (std::vector<std::string>{"Gated DeltaNet (task 2) at task.gap_max 50 on grammar seed 3",
                                      "Gated DeltaNet, a_min 0.99 (task 2) at task.gap_max 50 on grammar seed 3"}));
}

TEST(ModelOrder, AssignsRunToOneLevelOnly) {
  const auto at = [](const std::vector<std::pair<std::string, double>>& sizes) {
    LevelValues out;
    for (const auto& [size, value] : sizes) out[{size}] = {{{"1"}, value}};
    return out;
  };
  const std::vector<LevelValues> models = {at({{"100", .1}, {"110", .2}, {"900", .5}}), at({{"104", .25}, {"890", .6}}),
                                           at({{"99", .3}, {"111", .4}, {"905", .7}})};
  const Orders orders = orders_of(models, true, 1.2);
  EXPECT_EQ(orders.levels, 2U) << "the second model has no two sizes near 100";
  EXPECT_EQ(orders.correlations.at({"1"}), 1);
}

TEST(SlopeComparison, CoversComplexityAndModelOrderOverSize) {
  auto runs = small_runs(
      "[grid]\ntask.number = [1]\nlevel = [{grammar.vocab = 21, grammar.ambiguities = 20, grammar.depth = 20}, "
      "{grammar.vocab = 31, grammar.ambiguities = 30, grammar.depth = 30}, {grammar.vocab = 41}]\nmodel.name = " +
          std::string(seven) + "\nrun.seed = [1, 2, 3]\n",
      [](Result& r) {
        r.topological_entropy = std::stod(r.config.at("grammar.vocab")) / 15;
        set_accuracy(r, as_in_the_paper(r) - .2 * *r.topological_entropy + .5 + wobble(r));
      });
  const auto sizes =
      small_runs("[grid]\ntask.number = [1]\nmodel.width = [128, 512]\nmodel.name = " + std::string(seven) +
                     "\nrun.seed = [1, 2, 3]\n",
                 [](Result& r) {
                   r.params = (r.width == 128 ? 1'200'000 : 9'400'000) + model_rank(r.model) * 1000;
                   set_accuracy(r, as_in_the_paper(r) + (r.width == 128 ? -.1 : .1) + wobble(r));
                 });
  runs.insert(runs.end(), sizes.begin(), sizes.end());
  const ScaleVerdict v = judged(rows_from(runs), "complexity_and_size");
  EXPECT_EQ(v.comparisons[0].verdict, Verdict::supported);
  EXPECT_NEAR(v.comparisons[0].effect.mean, -.2, .01);
  EXPECT_EQ(v.comparisons[0].figures.levels, 3U);
  EXPECT_EQ(v.comparisons[1].verdict, Verdict::supported);
  EXPECT_GT(v.comparisons[2].effect.mean, .85);
  EXPECT_EQ(v.comparisons[2].effect.n, 3U);
  EXPECT_GT(v.comparisons[3].effect.mean, .85);
  EXPECT_EQ(v.comparisons[3].figures.levels, 3U);
}

TEST(Slopes, NeedALevelAboveTheNGram) {
  const auto words = [](double n_gram) {
    const auto runs = small_runs(
        "[grid]\ntask.number = [1]\nmodel.width = [128, 512]\nmodel.name = [\"transformer\"]\nrun.seed = [1, 2, 3]\n",
        [&](Result& r) {
          r.params = r.width == 128 ? 10'000'000 : 50'000'000;
          r.baselines = BaselineFigures{.01, {}, {.1, n_gram}, 2, .01, 1000, 50};
          set_accuracy(r, (r.width == 128 ? .5 : .6) + wobble(r));
        });
    return judged(rows_from(runs), "capacity").comparisons[0].words();
  };
  EXPECT_EQ(words(.55), "supported");
  EXPECT_EQ(words(.65), "undecided (Transformer below the n-gram)");
}

TEST(Slopes, LeaveOutLevelsWithFewerGrammars) {
  const auto sizes = [](const char* widths, const char* seeds) {
    return small_runs("[grid]\ntask.number = [1]\nmodel.width = " + std::string(widths) +
                          "\nmodel.name = [\"transformer\"]\nrun.seed = " + seeds + "\n",
                      [](Result& r) {
                        r.params = r.width * 100'000;
                        set_accuracy(r, .2 * std::log10(static_cast<double>(r.width)) + wobble(r) / 10);
                      });
  };
  auto runs = sizes("[128, 512]", "[1, 2, 3]");
  for (auto& run : sizes("[256]", "[1]")) runs.push_back(std::move(run));
  const auto one = judged(rows_from(runs), "capacity").comparisons[0];
  EXPECT_EQ(one.effect.n, 3U);
  EXPECT_NEAR(one.effect.mean, .2, .01);
  EXPECT_EQ(evidence_text(one), "3 grammars, 1 seed each, 2 of 3 levels, learning rate 0.001");
}

TEST(ScaleKeys, AreReplacedByThoseOfTheClaim) {
  const std::string text =
      "[[scale]]\nname = 's'\nkeys = {grammar.vocab = 21}\n[[claim]]\nid = 'c'\ntitle = 't'\nsentence = 'x'\n"
      "at_scale = {s = {grammar.vocab = 31}}\ncomparisons = [{a = 'gla', b = 'mamba'}]";
  const auto found = [&](int vocab) {
    const auto rows = rows_from(small_runs(
        "[grid]\ntask.number = [1]\nlevel = [{grammar.vocab = " + std::to_string(vocab) +
        ", grammar.ambiguities = 20, grammar.depth = 20}]\nmodel.name = ['gla', 'mamba']\nrun.seed = [1, 2, 3]\n"));
    const Claims claims = parse_claims(text, "c.toml");
    return judge(rows, claims, claims.claims.front(), claims.scales.front(), corrected_protocol)
        .comparisons.front()
        .effect.n;
  };
  EXPECT_EQ(found(31), 3U);
  EXPECT_EQ(found(21), 0U) << "of the scale, but not of the claim";
}

TEST(MeansOfModels, CompareNetworksOfMatchingSize) {
  const auto sizes = [](const std::string& widths, const std::string& models) {
    return small_runs(
        "[grid]\ntask.number = [1]\nmodel.width = " + widths + "\nmodel.name = " + models + "\nrun.seed = [1, 2, 3]\n",
        [](Result& r) {
          r.params = r.width * 100'000;
          set_accuracy(r, static_cast<double>(r.width) / 1000);
        });
  };
  const auto mean = [](std::vector<TableRun> runs) {
    const std::string text =
        "[[scale]]\nname = 's'\nmatch = 3\n[[claim]]\nid = 'c'\ntitle = 't'\nsentence = 'x'\n"
        "comparisons = [{a = {mean = ['gla', 'mamba']}}]";
    const Claims claims = parse_claims(text, "c.toml");
    return judge(rows_from(std::move(runs)), claims, claims.claims.front(), claims.scales.front(), corrected_protocol)
        .comparisons.front()
        .effect.mean;
  };
  const auto with = [](std::vector<TableRun> runs, std::vector<TableRun> more) {
    for (auto& run : more) runs.push_back(std::move(run));
    return runs;
  };
  EXPECT_NEAR(mean(with(sizes("[128, 256, 512]", "['gla']"), sizes("[128]", "['mamba']"))), .128, 1e-9)
      << "a factor of 2 would do, but there are equal ones";
  EXPECT_NEAR(mean(with(sizes("[256, 512]", "['gla']"), sizes("[128]", "['mamba']"))), .192, 1e-9);
  EXPECT_NEAR(mean(sizes("[128, 512]", "['gla', 'mamba']")), .512, 1e-9) << "the largest";
}

TEST(ComparisonsOfOneScale, AreJudgedOnlyThere) {
  const std::string text =
      "[[scale]]\nname = 's'\n[[scale]]\nname = 'u'\n[[claim]]\nid = 'c'\ntitle = 't'\nsentence = 'x'\n"
      "comparisons = [{a = 'gla', b = 'mamba', scale = 's'}, {a = 'gla', b = 'transformer', scale = 's'}]";
  const auto rows = rows_from(
      small_runs("[grid]\ntask.number = [1]\nmodel.name = ['gla', 'mamba', 'transformer']\nrun.seed = [1, 2, 3]\n"));
  const Claims claims = parse_claims(text, "c.toml");
  const auto at = [&](size_t scale) {
    return judge(rows, claims, claims.claims.front(), claims.scales[scale], corrected_protocol);
  };
  EXPECT_EQ(at(0).comparisons.size(), 2U);
  EXPECT_EQ(at(0).comparisons.front().effect.n, 3U);
  EXPECT_TRUE(at(1).comparisons.empty());
  EXPECT_EQ(at(1).words(), "no runs");
  EXPECT_FALSE(at(1).is_counted());
  const ClaimVerdict all = judge(rows, claims, claims.claims.front(), "");
  ASSERT_EQ(all.scales.size(), 1U);
  EXPECT_EQ(all.scales.front().scale->name, "s");
}

TEST(GateParametersClaim, IsExactAndDependsOnCountingRule) {
  const ScaleVerdict v = judged(rows_from(table_runs(as_in_the_paper)), "gate_parameters");
  ASSERT_EQ(v.comparisons.size(), 2U);
  for (const auto& one : v.comparisons) {
    EXPECT_TRUE(one.exact);
    EXPECT_EQ(interval_text(one), "exact");
  }
  // At one width of 256: 4 heads, so 8 × 256 + 16 against 256² + 4 × 256 + 2 × 4 × 256 + 8.
  EXPECT_EQ(v.comparisons[0].figures.a.gate_parameters, 2064);
  EXPECT_EQ(v.comparisons[0].figures.b.gate_parameters, 68616);
  EXPECT_EQ(v.comparisons[0].verdict, Verdict::supported);
  EXPECT_EQ(v.comparisons[1].figures.b.gate_parameters, 2056);
  EXPECT_EQ(v.comparisons[1].verdict, Verdict::contradicted);
  EXPECT_EQ(v.words(), "supported") << "the second count is reported only";
}

TEST(Throughput, ComparesUnsharedRunsOnSameDevice) {
  auto runs = small_runs(
      "[grid]\ntask.number = [1, 3]\nmodel.name = [\"mamba2\", \"gated_delta_net\"]\nrun.seed = [1, 2, 3, 4, 5]\n",
      [](Result& r) {
        r.made.emplace();
        r.made->device = r.grammar_seed == 4 && r.model == "mamba2" ? "another GPU" : "GPU";
        r.made->shared_by = r.grammar_seed == 3 ? 2 : 1;
        r.made->host = "host";
        r.made->finished =
            formatted("2026-01-0{}T{:02}:{:02}:00Z", r.grammar_seed, 10 + r.task, r.model == "mamba2" ? 10 : 30);
        r.made->total_seconds = 600;
        r.made->tokens_per_second = (r.model == "mamba2" ? 1000 : 900) + 2 * static_cast<double>(r.grammar_seed);
      });
  const ScaleVerdict v = judged(rows_from(runs), "throughput");
  EXPECT_EQ(v.comparisons[0].effect.n, 3U) << "one shared its device, one had another";
  EXPECT_NEAR(v.comparisons[0].effect.mean, -.1, .001);
  EXPECT_EQ(v.verdict, Verdict::supported);
  for (auto& run : runs)
    if (run.result.model == "mamba2") *run.result.made->tokens_per_second *= 2;
  EXPECT_EQ(judged(rows_from(runs), "throughput").words(), "contradicted in 1 of 2, supported in 1");
  for (auto& run : runs)
    if (run.result.grammar_seed == 1) run.result.made->total_seconds = 1260;  // the second began before the first ended
  EXPECT_EQ(judged(rows_from(runs), "throughput").comparisons[0].effect.n, 2U);
  EXPECT_EQ(judged(rows_from(runs), "throughput").comparisons[0].words(), "undecided (two grammars)");
  for (auto& run : runs) run.result.made->shared_by = 2;
  EXPECT_EQ(judged(rows_from(runs), "throughput").words(), "no usable runs");
}

TEST(PublishedOrder, IsRankCorrelationOfAccuracyAndPerplexity) {
  const auto world = [](double sign) {
    return rows_from(table_runs([=](const Result& r) {
      double perplexity = 17.5;
      for (const auto& row : shipped_claims().published_figures("fineweb_1b")->rows)
        if (row.model == r.model) perplexity = row.perplexity;
      return .5 - sign * (perplexity - 17.5) / 10;
    }));
  };
  constexpr size_t five = 3;  // the comparison on task 1 without RetNet
  const auto alike = judged(world(1), "language_ranks").comparisons[five];
  EXPECT_EQ(alike.effect.mean, 1);
  EXPECT_EQ(alike.words(), "undecided (5 models)");
  EXPECT_EQ(alike.decides, std::vector<std::string>{"more models than 5: so few can agree by chance"});
  // All grammars agree, so the interval is that of five models: 1 ± 1.96 sqrt(2 · 15 / (9 · 5 · 4)).
  EXPECT_NEAR(alike.interval->low, 1 - 1.959964 * std::sqrt(30. / 180), 1e-4);
  EXPECT_EQ(judged(world(-1), "language_ranks").comparisons[five].effect.mean, -1);
}

TEST(Deviations, AreComparedByKeysWithinOneProtocol) {
  const auto runs = small_runs(
      "[grid]\ntask.number = [1]\nfault = [{run.label = \"none\"}, {run.label = \"bf16\", quirks.delta_bf16 = true}]\n"
      "model.name = [\"delta_net\", \"gated_delta_net\"]\nrun.seed = [1, 2, 3]\n",
      [](Result& r) { set_accuracy(r, (r.config.at("quirks.delta_bf16") == "true" ? .5 : .7) + wobble(r)); });
  const Rows rows = rows_from(runs);
  const auto one = judged(rows, "bf16").comparisons[0];
  EXPECT_EQ(one.effect.n, 3U);
  EXPECT_NEAR(one.effect.mean, -.2, .01);
  EXPECT_EQ(one.comparison->name(), "task 1: DeltaNet, delta_bf16 on − DeltaNet, delta_bf16 off");
  // Other claims of the corrected protocol do not see the runs with the fault.
  EXPECT_NEAR(judged(rows, "gates").comparisons[0].a->mean, .7, .01);
}

TEST(FirstElements, AreComparedWithoutTheRest) {
  auto runs = small_runs("[grid]\ntask.number = [2]\nmodel.name = [\"transformer\", \"gla\"]\nrun.seed = [1, 2, 3]\n",
                         [](Result& r) { set_accuracy(r, r.model == "gla" ? .9 : .8); });
  for (auto& run : runs) {  // the Transformer is better on the first 110 elements, and fails after them
    const bool gla = run.result.model == "gla";
    run.result.test->by_position.assign(200, gla ? .9 : .95);
    for (size_t i = 110; i < 200; ++i) run.result.test->by_position[i] = gla ? .9 : .6;
  }
  const auto told = [](const std::vector<TableRun>& all, const std::string& name) {
    for (const auto& one : judged(rows_from(all), "attention_leads").comparisons)
      if (one.comparison->name() == name) return one;
    ADD_FAILURE() << name;
    return ComparisonVerdict{};
  };
  EXPECT_NEAR(told(runs, "task 2, first 110 elements: Transformer − GLA").effect.mean, .05, 1e-9);
  EXPECT_NEAR(told(runs, "task 2: Transformer − GLA").effect.mean, -.1, .01);
  for (auto& run : runs) run.result.test->by_position.resize(100);
  EXPECT_EQ(told(runs, "task 2, first 110 elements: Transformer − GLA").effect.n, 0U) << "too few positions";
}

}  // namespace
}  // namespace sb::test
