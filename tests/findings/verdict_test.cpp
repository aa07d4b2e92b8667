#include "findings/verdict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "worlds.h"

namespace sb::test {
namespace {

// Tasks 1, 2 and 3 with the gap grid, accuracies by model and task.
std::vector<TableRun> table_runs(const std::function<double(const Result&)>& truth,
                                 const std::string& seeds = "[1, 2, 3, 4]", const std::string& models = seven) {
  return small_runs("[grid]\ntask.number = [1, 2, 3]\nmodel.name = " + models + "\nrun.seed = " + seeds + "\n",
                    [&](Result& r) { set_accuracy(r, truth(r) + wobble(r)); });
}

double as_in_the_paper(const Result& r) {
  return paper_table(r.model, r.task)->accuracy;
}

TEST(AClaim, HoldsWhereEveryIntervalLiesBeyondTheMargin) {
  const Rows rows = rows_from(table_runs(as_in_the_paper));
  const ScaleVerdict v = judged(rows, "gated_delta_rule");
  EXPECT_EQ(v.verdict, Verdict::holds);
  ASSERT_EQ(v.comparisons.size(), 3U);
  for (const auto& one : v.comparisons) {
    EXPECT_EQ(one.verdict, Verdict::holds) << one.comparison->name();
    EXPECT_EQ(one.effect.n, 4U);
    EXPECT_GT(one.interval->low, .01);
    EXPECT_NEAR(one.effect.mean, *one.paper, .006);
    EXPECT_TRUE(one.decides.empty());
  }
}

TEST(AClaim, DoesNotHoldWhereOneIntervalLiesOnTheOtherSide) {
  const Rows rows = rows_from(
      table_runs([](const Result& r) { return r.model == "delta_net" && r.task == 2 ? .9 : as_in_the_paper(r); }));
  const ScaleVerdict v = judged(rows, "gated_delta_rule");
  EXPECT_EQ(v.verdict, Verdict::does_not_hold);
  EXPECT_EQ(v.comparisons[0].verdict, Verdict::holds);
  EXPECT_EQ(v.comparisons[1].verdict, Verdict::does_not_hold);
}

TEST(AClaim, IsUndecidedAtTheMarginAndSaysHowManyGrammarsItWouldTake) {
  const Rows rows = rows_from(table_runs([](const Result& r) { return r.model == "gated_delta_net" ? .512 : .5; }));
  const ScaleVerdict v = judged(rows, "gated_delta_rule");
  EXPECT_EQ(v.verdict, Verdict::undecided);
  for (const auto& one : v.comparisons) {
    if (one.verdict != Verdict::undecided) continue;
    EXPECT_TRUE(one.interval->low <= .01 && .01 <= one.interval->high);
    ASSERT_EQ(one.decides.size(), 1U);
    EXPECT_NE(one.decides[0].find("grammars"), std::string::npos) << one.decides[0];
  }
}

TEST(AClaim, OfOneGrammarIsUndecided) {
  const ScaleVerdict v = judged(rows_from(table_runs(as_in_the_paper, "[1]")), "gated_delta_rule");
  EXPECT_EQ(v.verdict, Verdict::undecided);
  EXPECT_FALSE(v.comparisons[0].interval.has_value());
  EXPECT_NEAR(v.comparisons[0].effect.mean, .37, .01);
  EXPECT_EQ(v.comparisons[0].decides,
            std::vector<std::string>{"1 more grammar that every model compared has run: an interval needs two"});
}

TEST(AClaim, WithoutRunsNamesWhatIsMissing) {
  const ScaleVerdict v =
      judged(rows_from(table_runs(as_in_the_paper, "[1, 2, 3]", "[\"delta_net\", \"gla\"]")), "gated_delta_rule");
  EXPECT_EQ(v.verdict, Verdict::undecided);
  EXPECT_EQ(v.comparisons[0].decides, std::vector<std::string>{"gated_delta_net on task 1 at scale small"});
  EXPECT_TRUE(judge(rows_from({}), shipped_claims(), *shipped_claims().find("gated_delta_rule")).scales.empty());
}

TEST(AComparison, IsPairedAndNamesGrammarsThatOneArmLacks) {
  auto runs = table_runs(as_in_the_paper);
  std::erase_if(runs, [](const TableRun& run) {
    return run.result.model == "delta_net" && run.result.task == 1 && run.result.grammar_seed == 3;
  });
  const ScaleVerdict v = judged(rows_from(runs), "gated_delta_rule");
  EXPECT_EQ(v.comparisons[0].effect.n, 3U);
  EXPECT_EQ(v.comparisons[0].figures.missing, std::vector<std::string>{"delta_net (task 1) on grammar seed 3"});
}

TEST(AComparison, AveragesSeedsWithinAGrammar) {
  const auto runs = small_runs(
      "[grid]\ntask.number = [1]\nmodel.name = [\"delta_net\", \"gated_delta_net\"]\ngrammar.seed = [1, 2, "
      "3]\ntrain.seed = [1, 2]\n"
      "train.order_seed = [0, 5]\n",
      [](Result& r) {
        set_accuracy(r, as_in_the_paper(r) + .05 * static_cast<double>(r.train_seed) + .01 * double(r.grammar_seed));
      });
  const auto one = judged(rows_from(runs), "gated_delta_rule").comparisons[0];
  EXPECT_EQ(one.effect.n, 3U);
  EXPECT_EQ(one.figures.a.runs, 12U);
  EXPECT_EQ(one.figures.a.fewest, 4U);
  EXPECT_NEAR(one.effect.mean, .37, 1e-12);
  EXPECT_NEAR(*one.a->sd, .01, 1e-12);
  EXPECT_EQ(evidence_text(one), "3 grammars, 4 seeds each");
}

TEST(AComparison, CountsDivergedRuns) {
  auto runs = table_runs(as_in_the_paper);
  for (auto& run : runs)
    if (run.result.model == "delta_net" && run.result.task == 1 && run.result.grammar_seed == 2) {
      run.result.status = "diverged";
      run.result.test.reset();
      run.result.valid.reset();
    }
  const Rows rows = rows_from(runs);
  const auto one = judged(rows, "gated_delta_rule").comparisons[0];
  EXPECT_EQ(one.effect.n, 3U);
  ASSERT_EQ(one.figures.b.diverged.size(), 1U);
  EXPECT_NE(evidence_text(one).find("1 diverged"), std::string::npos);
  EXPECT_NE(counts_of(rows)[0].find("1 of them diverged"), std::string::npos);
}

std::string text_of(const Rows& rows, const std::string& claim) {
  const Claims& claims = shipped_claims();
  return verdict_text({"test", "Test", "", {claim}}, {judge(rows, claims, *claims.find(claim))}, rows);
}

// What a run that is not finished leaves.
MissingRun unfinished(const TableRun& run) {
  return {run.result.run_id, run.result.config, MissingRun::Why::unfinished};
}

TEST(RunsWithoutAFigure, AreToldApartByWhatBecameOfThem) {
  auto runs = table_runs(as_in_the_paper);
  std::vector<MissingRun> missing;
  std::string diverged;
  std::erase_if(runs, [&](TableRun& run) {
    if (run.result.model != "delta_net" || run.result.task != 1) return false;
    if (run.result.grammar_seed == 2) {
      diverged = run.result.run_id;
      run.result.status = "diverged";
      run.result.test.reset();
      run.result.valid.reset();
    }
    if (run.result.grammar_seed == 3) missing.push_back(unfinished(run));
    return run.result.grammar_seed >= 3;
  });
  const std::string begun = missing.at(0).name;
  const Rows rows = make_rows(runs, Axes{}, {}, missing);
  const auto one = judged(rows, "gated_delta_rule").comparisons[0];
  EXPECT_EQ(one.figures.missing,
            (std::vector<std::string>{"delta_net (task 1) on grammar seed 4",
                                      "delta_net (task 1) on grammar seed 3, there and not finished (" + begun + ")"}))
      << "a diverged run is not missing";
  ASSERT_EQ(one.figures.lost.size(), 2U);
  const std::string text = text_of(rows, "gated_delta_rule");
  for (const auto& line :
       {"1 run of this claim is diverged and in no mean: " + diverged + " (delta_net, task 1, seed 2)",
        "1 run of this claim is not finished and in no mean: " + begun + " (delta_net, task 1, "})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  const auto json = verdict_json({"test", "", "", {}},
                                 {judge(rows, shipped_claims(), *shipped_claims().find("gated_delta_rule"))}, rows);
  EXPECT_EQ(json["claims"][0]["scales"][0]["without_figure"].size(), 2U);
  // Runs of other claims are none of it.
  EXPECT_TRUE(judged(rows, "attention_falls_to_chance").comparisons[0].figures.lost.empty());
}

TEST(RunsWithoutAFigure, AreNamedWhereThereAreNoOthers) {
  std::vector<MissingRun> missing;
  for (const auto& run : table_runs(as_in_the_paper, "[1, 2, 3, 4, 5]")) missing.push_back(unfinished(run));
  const Rows rows = make_rows({}, Axes{}, {}, missing);
  const std::string text = text_of(rows, "gated_delta_rule");
  EXPECT_NE(text.find("UNDECIDED: no finished runs of it at any scale"), std::string::npos) << text;
  EXPECT_NE(text.find("30 runs of this claim are not finished and in no mean: "), std::string::npos) << text;
  EXPECT_NE(text.find("; and 20 more\n"), std::string::npos) << text;
  EXPECT_NE(text.find("not finished: 85 more, 105 in all"), std::string::npos) << text;
  const auto one = judged(rows, "gated_delta_rule").comparisons[0];
  EXPECT_EQ(one.decides,
            (std::vector<std::string>{"gated_delta_net on task 1 at scale small, of which 5 are begun and not finished",
                                      "delta_net on task 1 at scale small, of which 5 are begun and not finished"}));
}

// Takes one of the Transformer's runs of task 2 away.
TableRun take_transformer(std::vector<TableRun>& runs) {
  const auto it = std::find_if(runs.begin(), runs.end(), [](const TableRun& run) {
    return run.result.model == "transformer" && run.result.task == 2;
  });
  const TableRun out = *it;
  runs.erase(it);
  return out;
}

TEST(RunsWithoutAFigure, AreOfTheScaleOfTheirNetwork) {
  auto runs = table_runs(as_in_the_paper);
  const TableRun taken = take_transformer(runs);
  const Rows rows = make_rows(runs, Axes{}, {}, {unfinished(taken)});
  EXPECT_EQ(judged(rows, "attention_falls_to_chance", "small").comparisons.back().figures.lost.size(), 1U);
  EXPECT_TRUE(judged(rows, "attention_falls_to_chance", "paper").comparisons.back().figures.lost.empty())
      << "others of its network have 4.7 M parameters";
}

TEST(RunsWithoutAFigure, OfAQuirkThatIsASwitchAreNotThePlainModels) {
  auto runs = table_runs(as_in_the_paper);
  MissingRun quirky = unfinished(take_transformer(runs));
  quirky.config["model.switch double_residual"] = "\"on\"";
  const Rows rows = make_rows(runs, Axes{}, {}, {quirky});
  EXPECT_TRUE(judged(rows, "attention_falls_to_chance", "small").comparisons.back().figures.lost.empty());
}

TEST(RunsWithoutAFigure, OfWhichAnotherCopyIsWholeAreNone) {
  const auto runs = table_runs(as_in_the_paper);
  const Rows rows = make_rows(runs, Axes{}, {}, {unfinished(runs.front())});
  EXPECT_TRUE(rows.absent.empty());
  EXPECT_TRUE(rows.missing.empty());
}

TEST(AComparison, NamesRunsThatWereNotTestedAtItsGaps) {
  auto runs = small_runs(
      "[task]\nnumber = 2\n[eval]\ngaps = [10, 20, 50, 100]\n[grid]\nmodel.name = "
      "[\"gated_delta_net\", \"gla\"]\nrun.seed = [1, 2, 3]\n");
  for (auto& run : runs)
    if (run.result.model == "gla" && run.result.grammar_seed == 2) run.result.grid.pop_back();
  size_t compared = 0;
  for (const auto& one : judged(rows_from(runs), "mixing_generalises").comparisons) {
    if (one.comparison->a.front().model != "gated_delta_net" || one.comparison->b.front().model != "gla") continue;
    ++compared;
    EXPECT_EQ(
        one.figures.missing,
        std::vector<std::string>{"gla (task 4) on grammar seed 2: `eval RUN --save` with gaps of 20, 50, 100 frames"});
  }
  EXPECT_EQ(compared, 1U);
}

TEST(AComparison, TakesTheLearningRateThatIsBestOnValid) {
  const auto runs = small_runs(
      "[grid]\ntask.number = [1]\nmodel.name = [\"delta_net\", \"gated_delta_net\"]\nrun.seed = [1, 2, 3]\ntrain.lr = "
      "[1e-3, 2e-3]\n",
      [](Result& r) {
        const bool first = r.lr < 1.5e-3;
        r.test->accuracy = (r.model == "delta_net" ? .5 : first ? .8 : .9) + wobble(r);  // test likes the second
        r.valid->accuracy = first ? .7 : .6;                                             // valid the first
      });
  const auto one = judged(rows_from(runs), "gated_delta_rule").comparisons[0];
  EXPECT_NEAR(one.effect.mean, .3, .01);
  EXPECT_TRUE(one.figures.a.swept);
}

TEST(Retention, IsTheShareOfTheAccuracyAtTheTrainedGap) {
  const auto runs =
      small_runs("[task]\nnumber = 2\n[eval]\ngaps = [10, 20, 50, 100]\n[grid]\nmodel.name = " + std::string(seven) +
                     "\nrun.seed = [1, 2, 3]\n",
                 [](Result& r) {
                   const bool keeps = r.model.starts_with("gated_delta");
                   for (auto& m : r.grid)
                     m.accuracy = *m.gap == 10 ? .8 : (keeps ? .6 : r.model == "transformer" ? .001 : .2) + wobble(r);
                 });
  const Rows rows = rows_from(runs);
  const ScaleVerdict v = judged(rows, "mixing_generalises");
  for (size_t i = 0; i < 10; ++i)
    EXPECT_EQ(v.comparisons[i].verdict, Verdict::holds) << v.comparisons[i].comparison->name();
  EXPECT_NEAR(v.comparisons[0].a->mean, .75, .01);
  EXPECT_EQ(v.comparisons[10].decides, std::vector<std::string>{"mamba2, mlp 1 on task 4 at scale small"});
  EXPECT_EQ(v.verdict, Verdict::undecided);
  EXPECT_EQ(judged(rows, "attention_falls_to_chance").verdict, Verdict::holds);
}

TEST(TheSlope, OfACostOverTheLongestGap) {
  const auto runs = small_runs(
      "[task]\nnumber = 2\n[grid]\nmodel.name = [\"gated_delta_net\"]\ntask.gap_max = [10, 50, 100]\nmodel.a_min = "
      "[0.0, 0.9, 0.99]\n"
      "run.seed = [1, 2, 3]\n",
      [](Result& r) {
        const double gap = std::stod(r.config.at("task.gap_max")),
                     least = std::stod(plain_value(r.config.at("model.switch a_min")));
        set_accuracy(r, .8 - (least == 0 ? 0 : least == .9 ? .1 : .2) * std::log10(gap) + wobble(r));
      });
  const ScaleVerdict v = judged(rows_from(runs), "fast_forgetting");
  EXPECT_EQ(v.verdict, Verdict::holds);
  EXPECT_NEAR(v.comparisons[0].effect.mean, .1, .01);
  EXPECT_NEAR(v.comparisons[1].effect.mean, .2, .01);
  EXPECT_EQ(v.comparisons[1].figures.levels, 3U);
  EXPECT_EQ(v.comparisons[1].effect.n, 3U);
}

TEST(TheSlope, NamesTheLevelThatAGrammarLacks) {
  auto runs = small_runs(
      "[task]\nnumber = 2\n[grid]\nmodel.name = [\"gated_delta_net\"]\ntask.gap_max = [10, 50]\nmodel.a_min = "
      "[0.0, 0.9, 0.99]\nrun.seed = [1, 2, 3]\n");
  std::erase_if(runs, [](const TableRun& run) {
    return run.result.grammar_seed == 3 && run.result.config.at("task.gap_max") == "50";
  });
  const auto one = judged(rows_from(runs), "fast_forgetting").comparisons[0];
  EXPECT_EQ(one.effect.n, 2U);
  EXPECT_EQ(one.figures.missing,
            (std::vector<std::string>{"gated_delta_net (task 2) at task.gap_max 50 on grammar seed 3",
                                      "gated_delta_net, a_min 0.9 (task 2) at task.gap_max 50 on grammar seed 3"}));
}

TEST(TheOrder, OfModelsTakesNoRunIntoTwoLevels) {
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

TEST(TheSlope, AndTheOrderOfModelsOverComplexityAndSize) {
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
  EXPECT_EQ(v.comparisons[0].verdict, Verdict::holds);
  EXPECT_NEAR(v.comparisons[0].effect.mean, -.2, .01);
  EXPECT_EQ(v.comparisons[0].figures.levels, 3U);
  EXPECT_EQ(v.comparisons[1].verdict, Verdict::holds);
  EXPECT_GT(v.comparisons[2].effect.mean, .85);
  EXPECT_EQ(v.comparisons[2].effect.n, 3U);
  EXPECT_GT(v.comparisons[3].effect.mean, .85);
  EXPECT_EQ(v.comparisons[3].figures.levels, 3U);
}

TEST(Faults, AreArmsByTheirQuirks) {
  const auto runs = small_runs(
      "[grid]\ntask.number = [1]\nfault = [{run.label = \"none\"}, {run.label = \"bf16\", quirks.delta_bf16 = true}]\n"
      "model.name = [\"delta_net\", \"gated_delta_net\"]\nrun.seed = [1, 2, 3]\n",
      [](Result& r) { set_accuracy(r, (r.config.at("quirks.delta_bf16") == "true" ? .5 : .7) + wobble(r)); });
  EXPECT_EQ(judged(rows_from(runs), "bf16_fault").verdict, Verdict::holds);
}

TEST(ARun, AboveItsCeilingIsNamed) {
  auto runs = table_runs(as_in_the_paper, "[1]");
  EXPECT_TRUE(above_ceiling(rows_from(runs)).empty());
  runs[0].result.test->accuracy = .99 + 4.1 * std::hypot(.001, .001);
  runs[0].result.test->ceiling->upper_bound = .992;
  EXPECT_TRUE(above_ceiling(rows_from(runs)).empty()) << "a causal model may lie there";
  runs[0].result.test->ceiling->upper_bound = .99;
  const auto wrong = above_ceiling(rows_from(runs));
  ASSERT_EQ(wrong.size(), 1U);
  EXPECT_NE(wrong[0].find(runs[0].result.run_id), std::string::npos);
  runs[0].result.test->samples = 1;
  EXPECT_TRUE(above_ceiling(rows_from(runs)).empty()) << "one sample has no spread to be beyond";
  runs[0].result.test->samples = 100;
  runs[0].result.test->accuracy = .99 + 3.9 * std::hypot(.001, .001);
  EXPECT_TRUE(above_ceiling(rows_from(runs)).empty());
}

TEST(VerdictText, AndJsonTellTheSame) {
  const Rows rows = rows_from(table_runs(as_in_the_paper));
  const Claims& claims = shipped_claims();
  const ExperimentClaims experiment{"main_table", "Main table", "Which is best?", {"gated_delta_rule"}};
  const std::vector<ClaimVerdict> verdicts = {judge(rows, claims, *claims.find("gated_delta_rule"))};
  const std::string text = verdict_text(experiment, verdicts, rows);
  EXPECT_NE(text.find("small: HOLDS"), std::string::npos) << text;
  EXPECT_NE(text.find("4 grammars, 1 seed each"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(json_document(verdict_json(experiment, verdicts, rows), 6));
  const auto& one = json["claims"][0]["scales"][0];
  EXPECT_EQ(one["verdict"], "holds");
  EXPECT_EQ(one["comparisons"][0]["grammars"], 4);
  EXPECT_GT(one["comparisons"][0]["interval"][0].get<double>(), .01);
  EXPECT_EQ(json["diverged"], 0);
}

// What the statistics promise, through files' worth of results: no claim about equal models is decided too often.
TEST(Judging, IsWrongAboutEqualModelsInAtMostSixOfAHundred) {
  auto runs = table_runs([](const Result&) { return .5; }, "[1, 2, 3, 4]", "[\"delta_net\", \"gated_delta_net\"]");
  std::mt19937_64 engine(11);
  std::normal_distribution<double> normal;
  Claims claims = shipped_claims();
  for (auto& c : claims.claims.front().comparisons) c.margin = 0;
  constexpr int worlds = 200;
  int wrong = 0;
  for (int w = 0; w < worlds; ++w) {
    std::map<std::pair<int, uint64_t>, double> grammar;
    for (auto& run : runs) {
      const auto [at, fresh] = grammar.emplace(std::pair(run.result.task, run.result.grammar_seed), 0);
      if (fresh) at->second = .05 * normal(engine);
      run.result.test->accuracy = .5 + at->second + .01 * normal(engine);
    }
    wrong +=
        judge(rows_from(runs), claims, claims.claims.front(), *claims.scale("small")).verdict != Verdict::undecided;
  }
  EXPECT_LE(wrong / double(worlds), .06);
}

}  // namespace
}  // namespace sb::test
