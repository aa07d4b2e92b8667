#include "config/gaps_keys.h"

#include <algorithm>

#include "base/format.h"
#include "config/schema_section.h"

namespace sb {
namespace {

template <class Gap>
void add_gap(SchemaSection s, Gap) {
  s.choice<4>("law", "distribution of gap lengths", [](auto& c) { return &Gap{}(c)->law; });
  s.whole("min", 0, kMaxGap, "shortest gap, frames", [](auto& c) { return &Gap{}(c)->min; });
  s.whole("max", 0, kMaxGap, "longest gap, frames", [](auto& c) { return &Gap{}(c)->max; });
  s.real("probability", 0, 1, Ends::closed, "probability that an element has a gap",
         [](auto& c) { return &Gap{}(c)->probability; });
  s.whole("start", 0, 1000000000, "first element that may have a gap", [](auto& c) { return &Gap{}(c)->start; });
  s.choice<2>("content", "content of gap frames", [](auto& c) { return &Gap{}(c)->content; });
  s.real("mu", -20, 20, Ends::closed, "mean of the log gap length (lognormal)", [](auto& c) { return &Gap{}(c)->mu; });
  s.real("sigma", 1e-3, 20, Ends::closed, "deviation of the log gap length (lognormal)",
         [](auto& c) { return &Gap{}(c)->sigma; });
}

void at_longest_gap(ConfigDraft& draft, const std::string& test) {
  for (const char* cause : {"task.gap_max", "task.gap_min", "task.gap_law"}) {
    if (!draft.given(cause)) continue;
    find_config_key(test)->set(draft.values(), int64_t{longest_gap(draft.values().task.task.train)});
    draft.derived(test, cause);
    return;
  }
}

void check_gap(ConfigDraft& draft, const std::string& prefix, const GapConfig& gap) {
  const std::string name = "task." + prefix;
  const bool ranged = gap.law == GapLaw::uniform || gap.law == GapLaw::lognormal;
  draft.refuse_unless(
      !ranged || gap.min <= gap.max, name + "min",
      formatted("{}min ({}) > {}max ({})", prefix, gap.min, prefix, gap.max),
      {name + "min", name + "max", "task.gap_min", "task.gap_max", name + "law", "task.gap_law", "task.number"});
  draft.refuse_unless(gap.law == GapLaw::none || gap.start <= draft.values().task.length, name + "start",
                      formatted("expected at most length ({}), got {}", draft.values().task.length, gap.start),
                      {name + "start", "task.gap_start", "task.length", name + "law", "task.gap_law", "task.number"});
}

}  // namespace

void add_gap_keys(std::vector<ConfigKey>& all) {
  add_gap({all, "task", "gap_", ", training"}, [](auto& c) { return &c.task.task.train; });
  add_gap({all, "task", "test_gap_", ", valid and test"}, [](auto& c) { return &c.task.task.test; });
}

void take_task_number(ConfigDraft& draft) {
  if (draft.values().task.kind != kGapsKind) return;
  draft.apply("task.number");
  if (!draft.given("task.number")) return;
  draft.values().task.task = paper_task(draft.values().task.task.number);
  for (const auto& p : config_keys())
    if (p.section == "task" && (p.key == "noise" || p.key.find("gap_") != std::string::npos))
      draft.derived(p.name(), "task.number");
}

void derive_test_gaps(ConfigDraft& draft) {
  const int number = draft.values().task.task.number;
  const bool at_longest = number == 2 || number == 4;
  for (const char* key : {"law", "min", "max", "probability", "start", "content", "mu", "sigma"}) {
    const std::string part = key, test = "task.test_gap_" + part, train = "task.gap_" + part;
    if (draft.given(test)) continue;
    const GapLaw law = draft.values().task.task.test.law;
    const GapConfig& train_law = draft.values().task.task.train;
    if (at_longest && part == "min" && (law == GapLaw::uniform || law == GapLaw::lognormal)) {
      find_config_key(test)->set(draft.values(), int64_t{std::min(train_law.min, longest_gap(train_law))});
      draft.derived(test, train);
    } else if (at_longest && (part == "min" || part == "max")) {
      at_longest_gap(draft, test);
    } else if (draft.given(train) && !(at_longest && part == "law")) {
      find_config_key(test)->set(draft.values(), find_config_key(train)->get(draft.values()));
      draft.derived(test, train);
    }
  }
}

void check_gaps(ConfigDraft& draft) {
  const size_t before = draft.faults.size();
  check_gap(draft, "gap_", draft.values().task.task.train);
  const bool follows = std::none_of(draft.settings.begin(), draft.settings.end(),
                                    [](const auto& each) { return each.first.starts_with("task.test_gap_"); });
  if (draft.faults.size() == before || !follows) check_gap(draft, "test_gap_", draft.values().task.task.test);
  if (draft.faults.size() == before && draft.good("task."))
    draft.attempt([&] { check(draft.values().task.task); }, false);
}

bool is_silenced_gap_key(const TaskConfig& task, const ConfigKey& key) {
  const bool test = key.key.starts_with("test_gap_");
  if (key.section != "task" || !(test || key.key.starts_with("gap_"))) return false;
  const GapConfig& gap = test ? task.test : task.train;
  const std::string part = key.key.substr(test ? 9 : 4);
  if (part == "law") return false;
  if (gap.law == GapLaw::none) return true;
  if (part == "max") return gap.law == GapLaw::constant;
  return (part == "mu" || part == "sigma") && gap.law != GapLaw::lognormal;
}

std::set<std::string> idle_gap_keys(const TaskConfig& task) {
  std::set<std::string> out;
  if (task.train.probability == 0) out.insert("task.gap_content");
  if (task.test.probability == 0) out.insert("task.test_gap_content");
  return out;
}

}  // namespace sb
