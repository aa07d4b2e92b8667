#include "cli/kind_settings.h"

#include "base/error.h"
#include "base/format.h"
#include "base/text.h"

namespace sb::cli {

void KindSettings::add_to(Arguments& arguments) {
  arguments.heading("Other kinds of tasks");
  arguments.choice(
      "--kind", name_, task_kinds(),
      "Kind of task; kinds other than gaps take only --length, --seed, --split and the options of this group");
  arguments.texts("--set", overrides_, "task.KEY=VALUE", "Set a key of the kind; can be repeated");
  arguments.integer("--at", at_, 0, 100'000, "Point of the kind's test axis, for valid and test samples");
  arguments_ = &arguments;
}

bool KindSettings::asked() const {
  if (name_ != kGapsKind) return true;
  for (const char* flag : {"--set", "--at"})
    if (arguments_->given(flag))
      throw bad_input(arguments_->where(flag), "requires --kind with a kind other than gaps");
  return false;
}

void KindSettings::refuse_options_of_gaps(const SequenceSettings& sequences, const TaskSettings& gaps) const {
  std::string idle = gaps.first_given();
  for (const char* flag :
       {"--vocab", "--ambiguities", "--depth", "--density", "--start-states", "--automaton", "--stream"})
    if (idle.empty() && arguments_->given(flag)) idle = flag;
  if (!idle.empty())
    throw bad_input(arguments_->where(idle), "has no effect with --kind " + name_ + "; its keys are set with --set");
  if (sequences.split == "reference")
    throw bad_input(arguments_->where("--split"),
                    "expected train, valid or test with --kind " + name_ + ", got reference");
}

RunConfig KindSettings::resolved(const GrammarSettings& grammar, const SequenceSettings& sequences) const {
  std::vector<std::string> assigned = {"task.kind=" + name_, formatted("grammar.seed={}", grammar.config.seed)};
  if (arguments_->given("--length")) assigned.push_back(formatted("task.length={}", sequences.length));
  for (const std::string& one : overrides_) {
    const std::string key = one.substr(0, one.find_first_of(" \t="));
    if (!key.starts_with("task.") || key == "task.kind")
      throw bad_input(arguments_->where("--set"), "expected task.KEY=VALUE, a key of the kind, got " + printable(one));
    if (key == "task.length" && arguments_->given("--length"))
      throw bad_input(arguments_->where("--set"), "task.length and --length were both given");
    assigned.push_back(one);
  }
  Settings settings;
  add_overrides(settings, assigned);
  return resolve(settings, {}, "--kind " + name_).values;
}

std::shared_ptr<const Task> KindSettings::task(const GrammarSettings& grammar, const SequenceSettings& sequences,
                                               const TaskSettings& gaps) const {
  refuse_options_of_gaps(sequences, gaps);
  const std::shared_ptr<const Task> task = make_data(resolved(grammar, sequences)).task;
  if (!at_) return task;
  const auto& axis = find_task(name_).axis;
  const std::string where = arguments_->where("--at");
  if (sequences.split == "train") throw bad_input(where, "has no effect on --split train; expected valid or test");
  if (!axis) throw bad_input(where, "the kind of task " + name_ + " has no test axis");
  if (*at_ < axis->least || *at_ > axis->most)
    throw bad_input(where, formatted("expected {}..{}, got {}", axis->least, axis->most, *at_));
  return task->at(parse_split(sequences.split), *at_);
}

bool KindSettings::shows_bytes(const GrammarSettings& grammar, const SequenceSettings& sequences) const {
  const auto& keys = resolved(grammar, sequences).task.keys;
  const auto tokens = keys.find("tokens");
  return tokens != keys.end() && std::get<std::string>(tokens->second) == "bytes";
}

Json KindSettings::description(const GrammarSettings& grammar, const Task& task) const {
  Json out = {{"kind", name_}, {"seed", grammar.config.seed}, {"canonical", task.canonical_text()}};
  if (at_) out["at"] = {{find_task(name_).axis->name, *at_}};
  return out;
}

}  // namespace sb::cli
