// train.schedule: how it is written, its faults, its part in the run id, and its values by update.
#include <gtest/gtest.h>

#include "config/data.h"
#include "config/task_schedule.h"
#include "model_rules.h"

namespace sb::test {
namespace {

const std::string noisy = "[task]\nnumber = 2\ngap_max = 50\n[train]\nupdates = 100\n";

ResolvedConfig scheduled(const std::string& schedule) {
  return resolve_text(noisy, {"train.schedule=" + schedule});
}

std::string fault(const std::string& schedule) {
  const std::string place = ", --set train.schedule=" + schedule,
                    line = fault_of(noisy, {"train.schedule=" + schedule});
  return line.ends_with(place) ? line.substr(0, line.size() - place.size()) : "not placed: " + line;
}

TEST(Schedule, TableInlineTableAndTextAreOneRun) {
  const auto table = resolve_text(noisy + "[train.schedule]\ntask.gap_max = {from = 10, over = 0.5}\n");
  EXPECT_EQ(table.values.train.schedule, (TaskSchedule{{"gap_max", 10, 0.5}}));
  EXPECT_EQ(table.run_id, scheduled("{task.gap_max = {over = 0.5, from = 10.0}}").run_id);
  EXPECT_EQ(table.run_id, scheduled("{task = {gap_max = {over = 0.50, from = 10}}}").run_id);
  EXPECT_EQ(table.run_id, scheduled("'{task.gap_max = {from = 10, over = 0.5}}'").run_id);
  EXPECT_EQ(resolve_text(config_toml(table, false)).run_id, table.run_id);
  EXPECT_NE(config_json(table).find(R"("schedule": "{task.gap_max = {from = 10, over = 0.5}}")"), std::string::npos);
}

// So that runs from before there were schedules are found again, and new ones have the same files.
TEST(Schedule, RunsWithoutOneAreAsBefore) {
  const auto plain = resolve_text(noisy);
  EXPECT_EQ(plain.run_id, scheduled("{}").run_id);
  EXPECT_EQ(plain.run_id, scheduled("{task.gap_max = {from = 50, over = 1}}").run_id) << "starts at its last value";
  EXPECT_NE(plain.run_id, scheduled("{task.gap_max = {from = 49, over = 1}}").run_id);
  for (const auto& text : {plain.canonical, config_toml(plain, false), config_json(plain)})
    EXPECT_EQ(text.find("schedule"), std::string::npos) << text;
  EXPECT_NE(config_toml(plain, true).find("\nschedule = {} "), std::string::npos);
}

TEST(PositionStretch, RunsWithoutItAreAsBefore) {
  const auto plain = resolve_text(noisy), one = resolve_text(noisy, {"train.position_stretch=1"}),
             ten = resolve_text(noisy, {"train.position_stretch=10"});
  EXPECT_EQ(plain.run_id, one.run_id);
  EXPECT_NE(plain.run_id, ten.run_id);
  for (const auto& text : {one.canonical, config_toml(one, false), config_json(one)})
    EXPECT_EQ(text.find("position_stretch"), std::string::npos) << text;
  for (const auto& text : {ten.canonical, config_toml(ten, false), config_json(ten)})
    EXPECT_NE(text.find("position_stretch"), std::string::npos) << text;
  EXPECT_NE(config_toml(plain, true).find("\nposition_stretch = 1 "), std::string::npos);
}

TEST(Schedule, FaultsAreOneLine) {
  EXPECT_EQ(fault("3"), "[train.schedule] expected {task.KEY = {from = NUMBER, over = SHARE}}, got 3");
  EXPECT_EQ(fault("'x'"), "[train.schedule] expected {task.KEY = {from = NUMBER, over = SHARE}}, got 'x'");
  EXPECT_EQ(fault("{train.lr = {from = 1, over = 1}}"),
            "[train.schedule] expected {task.KEY = {from = NUMBER, over = SHARE}}, got train");
  EXPECT_EQ(fault("{task.gap_max = 3}"),
            "[train.schedule] task.gap_max, expected {from = NUMBER, over = SHARE}, got 3");
  EXPECT_EQ(fault("{task.gap_max = {from = 3}}"), "[train.schedule] task.gap_max lacks over");
  EXPECT_EQ(fault("{task.gap_max = {from = 3, to = 4, over = 1}}"),
            "[train.schedule] task.gap_max, unknown key 'to', expected from and over");
  EXPECT_EQ(fault("{task.gap_max = {from = 'a', over = 1}}"),
            "[train.schedule] task.gap_max.from, expected a number, got 'a'");
  EXPECT_EQ(fault("{task.gap_max = {from = 3, over = 1.5}}"),
            "[train.schedule] task.gap_max.over, expected a share of the updates in (0, 1], got 1.5");
  EXPECT_EQ(fault("{task.gap_max = {from = -3, over = 1}}"),
            "[train.schedule] task.gap_max.from, expected 0..100000, got -3");
  EXPECT_EQ(fault("{task.gap_max = {from = 3.5, over = 1}}"),
            "[train.schedule] task.gap_max.from, expected 0..100000, got 3.5");
  EXPECT_EQ(fault("{task.gap_mx = {from = 3, over = 1}}"),
            "[train.schedule] task.gap_mx is not a key of this task, did you mean task.gap_max?");
  EXPECT_TRUE(fault("{task.'a \"b' = {from = 3, over = 1}}")
                  .starts_with("[train.schedule] task.a \"b is not a key of this task, expected task.length, "));
  for (const char* key : {"gap_law", "number", "test_gap_min", "gap_mu"})
    EXPECT_TRUE(fault(std::string("{task.") + key + " = {from = 1, over = 1}}")
                    .starts_with(std::string("[train.schedule] task.") + key +
                                 " cannot be scheduled for this task, "
                                 "expected task.length, "))
        << key;
  EXPECT_EQ(fault("{task.gap_min = {from = 60, over = 1}}"),
            "[train.schedule] update 0: task.gap_min (60) > task.gap_max (50)");
  EXPECT_EQ(fault_of("[task]\nkind = 'dyck'\n", {"train.schedule={task.noise = {from = 0, over = 1}}"}).substr(0, 57),
            "[train.schedule] task.noise is not a key of this task, ex");
}

TEST(Schedule, MovesLinearlyInStepsAndEndsAtTheConfiguredValue) {
  const ScheduledKey key{"gap_max", 10, 0.5};
  EXPECT_EQ(scheduled_value(key, 42, 0, 128), 10);
  EXPECT_EQ(scheduled_value(key, 42, 1, 128), 10);
  EXPECT_EQ(scheduled_value(key, 42, 2, 128), 11);
  EXPECT_EQ(scheduled_value(key, 42, 63, 128), 41);
  for (const int64_t update : {64, 100, 127}) EXPECT_EQ(scheduled_value(key, 42, update, 128), 42);
  EXPECT_EQ(scheduled_value({"noise", 0.4, 1}, 0.2, 64, 128), 0.4 + (0.2 - 0.4) * 16 / 32) << "may fall";
}

TEST(Schedule, StagesHaveTheValuesOfTheirUpdates) {
  RunConfig config = scheduled("{task.gap_max = {from = 10, over = 0.5}, task.noise = {from = 0, over = 0.8}}").values;
  for (const int64_t updates : {3, 100, 977}) {
    config.train.updates = updates;
    const auto stages = config_stages(config);
    ASSERT_LE(stages.size(), 2U * kScheduleSteps + 1);
    size_t at = 0;
    for (int64_t update = 0; update < updates; ++update) {
      while (at + 1 < stages.size() && stages[at + 1].first <= update) ++at;
      const TaskConfig& task = stages[at].config.task.task;
      EXPECT_EQ(task.train.max, std::round(scheduled_value({"gap_max", 10, 0.5}, 50, update, updates))) << update;
      EXPECT_EQ(task.noise, scheduled_value({"noise", 0, 0.8}, 0.2, update, updates)) << update;
      EXPECT_EQ(task.test.min, 50) << "tests use the configured task";
      EXPECT_TRUE(stages[at].config.train.schedule.empty());
    }
  }
}

TEST(Schedule, SamplesAreThoseOfATaskWithTheValuesOfTheUpdate) {
  const std::string small =
      "[grammar]\nvocab = 6\nambiguities = 2\ndepth = 3\n[task]\nnumber = 2\nlength = 12\ngap_max = 30\n"
      "[train]\nupdates = 100\n";
  const auto config = resolve_text(
      small, {"train.schedule={task.gap_max = {from = 2, over = 1}, task.length = {from = 4, over = 0.5}}"});
  const RunData data = make_data(config.values);
  EXPECT_EQ(data.task->shape().elements, 12);
  EXPECT_EQ(data.max_train_frames(), 12 * 31);
  double frames = 0;
  for (int64_t update = 0; update < 100; ++update) {
    const double gap = std::round(scheduled_value({"gap_max", 2, 1}, 30, update, 100)),
                 length = std::round(scheduled_value({"length", 4, 0.5}, 12, update, 100));
    const auto plain = resolve_text(small, {"task.gap_max=" + std::to_string(static_cast<int>(gap)),
                                            "task.length=" + std::to_string(static_cast<int>(length))});
    frames += size_of_task(plain.values).train_frames / 100;
    if (update % 23 != 0) continue;
    Batch a, b;
    data.train_task(update)->fill(Split::train, 7, 5, a);
    make_data(plain.values).task->fill(Split::train, 7, 5, b);
    EXPECT_EQ(a.symbol, b.symbol) << update;
    EXPECT_EQ(a.target, b.target) << update;
    EXPECT_EQ(a.elements, static_cast<int>(length)) << update;
  }
  EXPECT_NEAR(size_of_task(config.values).train_frames, frames, 1e-9 * frames);
}

TEST(Schedule, KindsMoveTheirOwnKeys) {
  const auto config = resolve_text("[task]\nkind = 'dyck'\ndepth = 6\n[train]\nupdates = 64\n",
                                   {"train.schedule={task.depth = {from = 2, over = 1}}"});
  const auto stages = config_stages(config.values);
  EXPECT_EQ(std::get<int64_t>(stages.front().config.task.keys.at("depth")), 2);
  EXPECT_EQ(std::get<int64_t>(stages.back().config.task.keys.at("depth")), 6);
  EXPECT_EQ(stages.size(), 5U) << "one stage per depth";
  const auto types = resolve_text("[task]\nkind = 'dyck'\n", {"train.schedule={task.types = {from = 2, over = 1}}"});
  EXPECT_EQ(error_line([&] { make_data(types.values); }),
            "[train.schedule] update 0: expected the task's 4 channels and 5 answers, got 2 and 3");
}

TEST(Schedule, FaultsOfAStageNameTheScheduleAndTheUpdate) {
  const auto deep = resolve_text("[task]\nkind = 'dyck'\n", {"train.schedule={task.depth = {from = 30, over = 1}}"});
  EXPECT_TRUE(error_line([&] { make_data(deep.values); }).starts_with("[train.schedule] update 0: task.depth "));
}

}  // namespace
}  // namespace sb::test
