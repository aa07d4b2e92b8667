#include "findings/comparison_reader.h"

#include <algorithm>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "config/config_file.h"
#include "findings/toml_fields.h"

namespace sb {
namespace {

constexpr size_t most_comparisons = 200;  // of a claim

const std::vector<std::string> statistic_names = {
    "accuracy",         "gap_accuracy",      "retention",  "drop",         "seen_gain",    "slope",
    "rank_correlation", "published_order",   "task_order", "excess_error", "excess_ratio", "throughput",
    "gate_parameters",  "gates_without_keys"};
const std::vector<std::string> asks_names = {"above", "below", "at_least", "at_most"};
const std::vector<std::string> comparison_keys = {"statistic", "asks",     "delta", "in_distribution",
                                                  "reference", "reported", "best",  "first",
                                                  "a",         "b",        "task",  "from",
                                                  "gaps",      "at",       "over",  "published",
                                                  "with",      "keys",     "free",  "match",
                                                  "scale"};

// The key of this name that runs of this kind of task have.
std::optional<ConfigKey> key_named(const std::string& name, const std::string& kind) {
  const ConfigKey* common = find_config_key(name);
  if (common && (common->task_kind.empty() || common->task_kind == kind)) return *common;
  return find_own_key(find_task(kind), name);
}

template <class Choice>
Choice choice_of(const TomlMember& member, const std::vector<std::string>& names) {
  return static_cast<Choice>(std::find(names.begin(), names.end(), toml_choice(member, names)) - names.begin());
}

void check_key(const std::string& name, const std::string& kind, const Place& place) {
  if (!key_named(name, kind))
    throw toml_fault(formatted("no key of a config of kind {}, got '{}'", kind, printable(name)), place);
}

std::string switch_value(const TomlMember& member) {
  if (const bool* truth = std::get_if<bool>(&member.value.content)) return *truth ? "on" : "off";
  return switch_text(member.key, member.value);
}

ArmModel model_of(const TomlValue& value, const std::string& kind) {
  ArmModel out;
  if (const auto* name = value.text()) {
    out.model = *name;
  } else if (const auto* table = value.table()) {
    for (const auto& member : *table) {
      if (member.key == "model") {
        out.model = toml_string(member, 1, 64);
      } else if (member.key == "keys") {
        out.keys = config_keys_of(member.value, kind);
      } else {
        out.switches[member.key] = switch_value(member);
      }
    }
  }
  if (out.model.empty()) throw toml_fault("expected a model or a table with one, got " + shown(value), value.place);
  return out;
}

Arm arm_of(const TomlValue& value, const std::string& kind) {
  const auto* table = value.table();
  if (!table || table->size() != 1 || table->front().key != "mean") return {model_of(value, kind)};
  Arm out;
  const auto* list = table->front().value.list();
  if (!list || list->size() < 2 || list->size() > 32)
    throw toml_fault("expected 2 to 32 models, got " + shown(table->front().value), value.place);
  for (const auto& item : *list) out.push_back(model_of(item, kind));
  return out;
}

const TomlValue::List& listed(const TomlValue& value, TomlValue::List& one) {
  if (value.list()) return *value.list();
  one = {value};
  return one;
}

class Reader {
 public:
  Reader(const ComparisonDefaults& defaults, const TomlValue& row) : defaults_(defaults), row_(row) {}

  void read(std::vector<Comparison>& out) {
    if (!row_.table()) throw toml_fault("expected a table {a = …, b = …, task = …}, got " + shown(row_), row_.place);
    // Keys, points and arms are those of the kind, wherever the row names it.
    for (const auto& member : *row_.table())
      if (member.key == "task") take_task(member);
    for (const auto& member : *row_.table()) take(member);
    take_keys_of_claim();
    if (a_.empty()) throw toml_fault("a comparison without a", row_.place);
    if (b_.empty()) b_.push_back({});
    common_.statistic = defaults_.statistic;
    common_.asks = defaults_.asks;
    common_.delta = defaults_.delta;
    common_.in_distribution = defaults_.in_distribution;
    check();
    for (const auto& a : a_)
      for (const auto& b : b_)
        for (const int task : tasks_) {
          Comparison one = common_;
          one.a = a;
          one.b = b;
          one.task = task;
          if (a == b) throw toml_fault("the same arm as a and as b", row_.place);
          out.push_back(std::move(one));
        }
    if (out.size() > most_comparisons) throw toml_fault("more than 200 comparisons of one claim", row_.place);
  }

  // A comparison without arms: the figure by which `with` of another comparison ranks its models.
  Comparison read_with() {
    if (!row_.table()) throw toml_fault("with: expected a table {task = …}, got " + shown(row_), row_.place);
    for (const auto& member : *row_.table())
      if (member.key == "task") take_task(member);
    for (const auto& member : *row_.table()) take(member);
    common_.statistic = defaults_.statistic;
    common_.in_distribution = defaults_.in_distribution;
    const Statistic s = common_.statistic;
    if (!a_.empty() || !b_.empty() || !common_.with.empty() || common_.against_chance || tasks_.size() != 1 ||
        (s != Statistic::accuracy && s != Statistic::gap_accuracy && s != Statistic::retention))
      throw toml_fault("with: expected one task and its accuracy, gap_accuracy or retention, without arms", row_.place);
    common_.task = tasks_.front();
    check();
    return common_;
  }

 private:
  static int whole(const TomlMember& member, const TomlValue& item, int64_t least, int64_t most) {
    return static_cast<int>(toml_whole({member.key, member.place, item}, least, most));
  }

  std::string kind() const { return common_.kind.empty() ? kGapsKind : common_.kind; }

  void take_task(const TomlMember& member) {
    if (member.value.text()) {
      common_.kind = toml_choice(member, task_kinds());
      if (common_.kind == kGapsKind) throw toml_fault("expected the number of a task of gaps", member.value.place);
      return;
    }
    TomlValue::List one;
    tasks_.clear();
    for (const auto& item : listed(member.value, one)) tasks_.push_back(whole(member, item, 1, 4));
  }

  // Gap lengths, or points within the range of the kind's test axis.
  void take_points(const TomlMember& member) {
    const auto* axis = member.key == "at" && find_task(kind()).axis ? &*find_task(kind()).axis : nullptr;
    TomlValue::List one;
    for (const auto& item : listed(member.value, one))
      common_.gaps.push_back(whole(member, item, axis ? axis->least : 1, axis ? axis->most : 1 << 20));
    if (common_.gaps.empty()) throw toml_fault("expected at least one value", member.value.place);
    (member.key == "at" ? at_ : gaps_) = true;
  }

  void take_keys_of_claim() {
    if (defaults_.keys) common_.claim_keys = config_keys_of(*defaults_.keys, kind());
    if (!defaults_.at_scale) return;
    if (!defaults_.at_scale->table())
      throw toml_fault("at_scale: expected {SCALE = {section.key = value}}, got " + shown(*defaults_.at_scale),
                       defaults_.at_scale->place);
    for (const auto& scale : *defaults_.at_scale->table())
      common_.claim_keys_at[scale.key] = config_keys_of(scale.value, kind());
  }

  void take(const TomlMember& member) {
    if (member.key == "task" || defaults_.take(member)) return;
    TomlValue::List one;
    if (member.key == "a" || member.key == "b") {
      if (member.key == "b" && member.value.text() && *member.value.text() == "chance") {
        common_.against_chance = true;
        return;
      }
      for (const auto& item : listed(member.value, one)) (member.key == "a" ? a_ : b_).push_back(arm_of(item, kind()));
    } else if (member.key == "from") {
      if (const auto& axis = find_task(kind()).axis; !common_.kind.empty() && axis)
        common_.from_point = whole(member, member.value, axis->least, axis->most);
      else
        common_.from = whole(member, member.value, 1, 3);
    } else if (member.key == "gaps" || member.key == "at") {
      take_points(member);
    } else if (member.key == "over") {
      common_.over = toml_string(member, 1, 64);
      if (common_.over != "topological_entropy" && common_.over != "params")
        check_key(common_.over, kind(), member.value.place);
    } else if (member.key == "published") {
      common_.published = toml_string(member, 1, 40);
    } else if (member.key == "with") {
      common_.with = {Reader({}, member.value).read_with()};
    } else if (member.key == "keys") {
      common_.keys = config_keys_of(member.value, kind());
    } else if (member.key == "free") {
      common_.free = toml_strings(member);
      for (const auto& key : common_.free) check_key(key, kind(), member.value.place);
    } else if (member.key == "match") {
      common_.match = toml_real(member, 1, 1e6);
    } else if (member.key == "scale") {
      common_.only_scale = toml_string(member, 1, 40);
    } else if (member.key == "reference") {
      common_.reference = toml_real(member, -1e6, 1e6);
    } else if (member.key == "reported") {
      common_.reported = toml_truth(member);
    } else if (member.key == "first") {
      common_.first = static_cast<int>(toml_whole(member, 1, 1000000));
    } else if (member.key == "best") {
      common_.best = static_cast<int>(toml_whole(member, 2, 100));
    } else {
      throw unknown_toml_key(member, comparison_keys);
    }
  }

  // A field that this statistic needs, and others do not have.
  void check_field(bool needed, bool given, const char* field) const {
    if (needed != given)
      throw toml_fault(formatted("{} {} {}", to_string(common_.statistic), needed ? "needs" : "has no", field),
                       row_.place);
  }

  void check_kind() const {
    const Statistic s = common_.statistic;
    const TaskRow& row = find_task(common_.kind);
    const bool squared = row.loss == Loss::squared_error;
    if (s != Statistic::accuracy && s != Statistic::retention && s != Statistic::drop && !is_excess(s) &&
        s != Statistic::throughput)
      throw toml_fault(formatted("{} is a statistic of gaps, got {}", to_string(s), common_.kind), row_.place);
    if (s != Statistic::throughput && squared != is_excess(s))
      throw toml_fault(
          formatted("{} has {}", common_.kind, squared ? "squared errors, no accuracy" : "no squared error"),
          row_.place);
    check_field(false, gaps_, "gaps of a kind of task");
    if (s == Statistic::retention || s == Statistic::drop) check_field(true, at_, "at");
    if (at_ && (s == Statistic::throughput || !row.axis))
      throw toml_fault("at needs a kind of task with a test axis, and its accuracy or error", row_.place);
  }

  void check() const {
    const Statistic s = common_.statistic;
    check_field(s == Statistic::slope || s == Statistic::rank_correlation, !common_.over.empty(), "over");
    if (gaps_ && s == Statistic::accuracy)
      throw toml_fault("accuracy has no gaps, expected statistic = \"gap_accuracy\"", row_.place);
    if (common_.delta >= 1 && (s == Statistic::accuracy || s == Statistic::gap_accuracy || s == Statistic::retention))
      throw toml_fault("expected delta below 1, because 0.01 is one point, got " + shortest(common_.delta), row_.place);
    if (common_.kind.empty()) {
      if (at_ || is_excess(s))
        throw toml_fault(formatted("{} needs a kind of task", at_ ? "at" : to_string(s)), row_.place);
      if (common_.in_distribution && !gaps_)
        throw toml_fault("in_distribution needs a kind of task, or gaps", row_.place);
      if (s != Statistic::task_order)
        check_field(s == Statistic::retention || s == Statistic::gap_accuracy, gaps_, "gaps");
    } else {
      check_kind();
    }
    if (common_.best > 0 && is_excess(s)) throw toml_fault("best is of accuracies, not errors", row_.place);
    if (common_.first > 0 && (s != Statistic::accuracy || at_))
      throw toml_fault("first is of the accuracy on test", row_.place);
    check_field(s == Statistic::task_order, !common_.with.empty(), "with");
    check_field(s == Statistic::drop, common_.from > 0 || common_.from_point, "from");
    check_field(s == Statistic::published_order, !common_.published.empty(), "published");
    for (const int task : tasks_)
      if (common_.from == task) throw toml_fault("from is the task itself", row_.place);
    if (common_.against_chance && s != Statistic::gap_accuracy && s != Statistic::accuracy)
      throw toml_fault("chance is compared with accuracies only", row_.place);
    const bool beside = std::any_of(b_.begin(), b_.end(), [](const Arm& b) { return !b.empty(); });
    if (!beside && (s == Statistic::drop || s == Statistic::throughput || s == Statistic::excess_ratio || counted(s)))
      throw toml_fault(std::string(to_string(s)) + " needs b", row_.place);
    const bool order = is_order(s);
    for (const auto* arms : {&a_, &b_})
      for (const auto& arm : *arms)
        if (beside && (arm.size() > 1 || order))
          throw toml_fault("a mean or an order of several models has no second arm, expected no b", row_.place);
    const auto named = [](const Arm& arm) {
      std::vector<std::string> out;
      for (const auto& model : arm)
        for (const auto& [key, value] : model.keys) out.push_back(key);
      return out;
    };
    for (const auto& a : a_)
      for (const auto& b : b_)
        if (!b.empty() && named(a) != named(b))
          throw toml_fault("expected the same keys in a and in b, with the value of each", row_.place);
    for (const auto& a : a_)
      if (order && a.size() < 3)
        throw toml_fault(std::string(to_string(s)) + " needs three models or more", row_.place);
  }

  ComparisonDefaults defaults_;
  const TomlValue& row_;
  Comparison common_;
  std::vector<Arm> a_, b_;
  std::vector<int> tasks_ = {1};
  bool gaps_ = false, at_ = false;  // given
};

}  // namespace

const char* to_string(Statistic statistic) {
  return statistic_names[static_cast<size_t>(statistic)].c_str();
}

const char* to_string(Asks asks) {
  return asks_names[static_cast<size_t>(asks)].c_str();
}

bool ComparisonDefaults::take(const TomlMember& member) {
  if (member.key == "statistic") {
    statistic = choice_of<Statistic>(member, statistic_names);
  } else if (member.key == "asks") {
    asks = choice_of<Asks>(member, asks_names);
  } else if (member.key == "delta") {
    delta = toml_real(member, 0, 1e6);
  } else if (member.key == "in_distribution") {
    in_distribution = toml_real(member, 0, 1e3);
  } else {
    return false;
  }
  return true;
}

ConfigMap config_keys_of(const TomlValue& value, const std::string& kind) {
  Settings settings;
  if (!value.table()) throw toml_fault("expected a table of section.key = value, got " + shown(value), value.place);
  add_settings(settings, *value.table(), "");
  if (!settings.faults.empty()) throw Error(Exit::bad_input, settings.faults.front());
  ConfigMap out;
  for (const auto& [name, setting] : settings) {
    const auto key = key_named(name, kind);
    if (!key || !key->identifies || key->file)
      throw toml_fault(formatted("expected a key that tells runs of kind {} apart, got '{}'", kind, printable(name)),
                       setting.key);
    if (name == "train.lr" || name == "train.warmup" || name.ends_with("seed"))
      throw toml_fault(name +
                           (name.ends_with("seed") ? ": runs of every seed count" : ": chosen by accuracy on valid") +
                           ", so a claim cannot name it",
                       setting.key);
    out[name] = json_text(parse_value(*key, setting.value));
  }
  return out;
}

void read_comparisons(const ComparisonDefaults& defaults, const TomlValue& row, std::vector<Comparison>& out) {
  Reader(defaults, row).read(out);
}

}  // namespace sb
