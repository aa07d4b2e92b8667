#include "suites/suite_file.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/format.h"
#include "base/suggest.h"
#include "base/text.h"
#include "suites/suite.h"
#include "suites/suite_match.h"

namespace sb {
namespace {

namespace fs = std::filesystem;

Error fault(const std::string& where, const std::string& what, const Place& place) {
  return bad_input(where, what + ", " + place.text());
}

class SuiteFileReader {
 public:
  SuiteFileReader(const std::string& path, const ModelRules& rules)
      : path_(path), folder_(fs::path(path).parent_path().string()), first_folder_(folder_), rules_(rules) {}

  SuiteFile read(std::string_view text, const SuiteChoice& choice) {
    const TomlValue document = parse_toml(text, path_);
    const auto& members = *document.table();
    const TomlMember* of_a_run = member_of(members, "extends");
    if (of_a_run && !is_suite(text, path_))
      throw fault("suite",
                  "expected a suite with [suite], [grid] or [[override]], got the config of one run; use `train`",
                  of_a_run->place);
    sweep_ = choice.sweep;
    scale_ = choice.scale;
    read_extended(members);
    if (!scale_.empty()) attempt([&] { read_file_beneath("scales/" + scale_, "scale", {path_, 1, 1}); });
    read_own(members);
    if (out_.faults.empty()) attempt([&] { check_match(out_.match, rules_); });
    return std::move(out_);
  }

 private:
  static constexpr int deepest = 8;  // files that extend each other

  static const TomlMember* member_of(const TomlValue::Table& table, const std::string& key) {
    const auto found = std::find_if(table.begin(), table.end(), [&](const auto& member) { return member.key == key; });
    return found == table.end() ? nullptr : &*found;
  }

  // Reads the sections for all scales, then those of the requested scale.
  void read_own(const TomlValue::Table& members) {
    const TomlMember* scales = member_of(members, "scale");
    if (scales && !scales->value.table())
      attempt([&] { throw fault("scale", "expected sections [scale.NAME]", scales->value.place); });
    if (scales && scale_.empty())
      attempt(
          [&] { throw fault("scale", "a scale must be chosen; `experiments run --scale` does this", scales->place); });
    read_part(members);
    if (const auto* own = scales ? scales->value.table() : nullptr)
      for (const auto& part : *own) attempt([&] { read_scale(part); });
  }

  // Throws for an unknown scale, since its section would never be read.
  void read_scale(const TomlMember& part) {
    const std::vector<std::string> names = scale_names();
    if (std::find(names.begin(), names.end(), part.key) == names.end()) {
      const std::string hint = did_you_mean(part.key, names);
      throw fault("scale",
                  formatted("unknown scale '{}'{}", printable(part.key),
                            hint.empty() && !names.empty() ? ", expected " + join_or(names) : hint),
                  part.place);
    }
    if (!part.value.table())
      throw fault("scale", "expected sections [scale.NAME], got " + shown(part.value), part.value.place);
    if (part.key == scale_) read_part(*part.value.table());
  }

  // Scales with a file: next to this suite, next to the suite that was requested, or shipped.
  std::vector<std::string> scale_names() const {
    std::set<std::string> names;
    for (const auto& folder : {folder_, first_folder_, rules_.shipped}) {
      std::error_code failed;
      for (fs::directory_iterator at(fs::path(folder) / "scales", failed), end; !failed && at != end;
           at.increment(failed))
        if (at->path().extension() == ".toml") names.insert(at->path().stem().string());
    }
    return {names.begin(), names.end()};
  }

  // Reads the extended file first.
  void read_extended(const TomlValue::Table& members) {
    const TomlMember* suite = member_of(members, "suite");
    const TomlMember* extends = suite && suite->value.table() ? member_of(*suite->value.table(), "extends") : nullptr;
    if (!extends) return;
    attempt([&] {
      const auto* name = extends->value.text();
      if (!name) throw fault("suite.extends", "expected text, got " + shown(extends->value), extends->value.place);
      read_file_beneath(*name, "suite.extends", extends->value.place);
    });
  }

  // Reads an extended suite; its overrides need not apply to any run of this one.
  void read_file_beneath(const std::string& name, const std::string& where, const Place& place) {
    const std::string target = named_file(folder_, name, rules_.shipped);
    if (!is_file(target)) throw fault(where, "no file '" + printable(name) + "', expected one " + looked_for(), place);
    if (depth_ == deepest)
      throw fault(where, "expected at most " + std::to_string(deepest) + " files that extend each other", place);
    const std::string path = path_, folder = folder_;
    const bool inherited = inherited_;
    path_ = fs::path(target).lexically_normal().string();
    folder_ = fs::path(path_).parent_path().string();
    inherited_ = true;
    ++depth_;
    attempt([&] {
      const TomlValue document = parse_toml(read_config_text(path_), path_);
      read_extended(*document.table());
      read_own(*document.table());
    });
    --depth_;
    path_ = path;
    folder_ = folder;
    inherited_ = inherited;
  }

  // Sections override earlier ones, axes replace those of the same name, overrides are appended.
  void read_part(const TomlValue::Table& members) {
    TomlValue::Table sections;
    for (const auto& member : members) {
      attempt([&] {
        if (member.key == "suite") {
          suite_section(member.value);
        } else if (member.key == "grid") {
          grid_section(member.value);
        } else if (member.key == "sweep") {
          if (sweep_) grid_section(member.value);
        } else if (member.key == "override") {
          override_blocks(member.value);
        } else if (member.key != "scale" && member.key != "experiment") {
          check_section_name(member);
          sections.push_back(member);
        }
      });
    }
    add_settings(out_.base, sections, folder_);
    take_faults(out_.base);
  }

  template <class Act>
  void attempt(const Act& act) {
    try {
      act();
    } catch (const Error& error) {
      if (error.code() != Exit::bad_input) throw;
      out_.faults.push_back(error.what());
    }
  }

  void take_faults(Settings& settings) {
    out_.faults.insert(out_.faults.end(), settings.faults.begin(), settings.faults.end());
    settings.faults.clear();
  }

  Settings settings_of(const TomlValue& sections) {
    Settings settings;
    if (!sections.table()) throw fault("suite", "expected a table of section.key = value", sections.place);
    add_settings(settings, *sections.table(), folder_);
    take_faults(settings);
    return settings;
  }

  void check_section_name(const TomlMember& member) const {
    std::vector<std::string> names = section_names();
    if (std::find(names.begin(), names.end(), member.key) != names.end()) return;
    names.insert(names.end(), {"suite", "grid", "override", "sweep", "scale"});
    if (member.key == "extends")
      throw fault("suite", "a suite has no 'extends', expected the file it builds on as base or extends in [suite]",
                  member.place);
    throw fault("suite", formatted("unknown section '{}'{}", printable(member.key), did_you_mean(member.key, names)),
                member.place);
  }

  void suite_section(const TomlValue& value) {
    if (!value.table()) throw fault("suite", "expected a section [suite]", value.place);
    for (const auto& member : *value.table()) attempt([&] { suite_key(member); });
  }

  void suite_key(const TomlMember& member) {
    static const std::vector<std::string> names = {"name",    "base",  "extends",      "select",
                                                   "average", "match", "match_target", "match_step"};
    if (member.key == "extends") return;  // read before the rest
    if (member.key == "select" || member.key == "average") return axis_keys(member);
    if (take_match_key(out_.match, member)) return;
    if (member.key != "name" && member.key != "base")
      throw fault("suite", formatted("unknown key '{}'{}", printable(member.key), did_you_mean(member.key, names)),
                  member.place);
    const auto* text = member.value.text();
    if (!text) throw fault("suite." + member.key, "expected text, got " + shown(member.value), member.value.place);
    if (member.key == "name") out_.name = *text;
    if (member.key == "base") read_base(*text, member.value.place);
  }

  void axis_keys(const TomlMember& member) {
    const bool select = member.key == "select";
    const auto* items = member.value.list();
    if (!items)
      throw fault("suite." + member.key, "expected a list of keys, got " + shown(member.value), member.value.place);
    for (const auto& item : *items) {
      attempt([&] {
        const auto* key = item.text();
        if (!key) throw fault("suite." + member.key, "expected a key, got " + shown(item), item.place);
        const std::string wrong = axis_fault(*key, rules_.switches, select);
        if (!wrong.empty()) throw fault("suite." + member.key, wrong, item.place);
        auto& keys = select ? out_.select : out_.average;
        if (std::find(keys.begin(), keys.end(), *key) == keys.end()) keys.push_back(*key);
      });
    }
    for (const auto& key : out_.select)
      if (std::find(out_.average.begin(), out_.average.end(), key) != out_.average.end())
        throw fault("suite." + member.key, "expected a key once, got " + printable(key) + " in select and average",
                    member.place);
  }

  void read_base(const std::string& name, const Place& place) {
    const bool whole = std::exchange(out_.base.whole, false);
    const std::string target = named_file(folder_, name, rules_.shipped);
    if (!is_file(target))
      throw fault("suite.base", "no file '" + printable(name) + "', expected one " + looked_for(), place);
    Settings base = read_settings(fs::path(target).lexically_normal().string(), rules_.shipped);
    take_faults(base);
    for (auto& [key, setting] : base) out_.base.insert_or_assign(key, setting);
    out_.base.whole = whole && base.whole;
  }

  // Where a relative name is looked for, in words.
  std::string looked_for() const {
    const std::string shipped = rules_.shipped.empty() ? "" : " or among the shipped configs";
    if (is_there(path_) && !is_file(path_)) return "by its full path" + shipped + ": a suite from a pipe has no folder";
    return "in the suite's folder" + shipped;
  }

  // An axis is `section.key = [values]` or `name = [{section.key = value, …}, …]`.
  void grid_section(const TomlValue& value) {
    if (!value.table()) throw fault("grid", "expected a section [grid]", value.place);
    struct Named {
      Place place;
      std::string name;
      SuiteAxis axis;
    };
    std::vector<Named> axes;
    for (const auto& member : *value.table())
      attempt([&] {
        if (const auto* items = member.value.list()) {
          SuiteAxis axis;
          for (const auto& item : *items) attempt([&] { axis.push_back(settings_of(item)); });
          if (!axis.empty() || items->empty()) axes.push_back({member.place, member.key, std::move(axis)});
          return;
        }
        if (!member.value.table()) throw fault("grid", "expected a list of values", member.value.place);
        for (const auto& key : *member.value.table())
          attempt([&] { axes.push_back({key.place, member.key + "." + key.key, key_axis(member, key)}); });
      });
    std::stable_sort(axes.begin(), axes.end(), [](const auto& a, const auto& b) {
      return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
    });
    for (auto& [place, name, axis] : axes) {
      const Place& where = place;
      if (axis.empty())
        attempt([&] { throw fault("grid", "expected a list of at least one value", where); });
      else
        put_axis(name, std::move(axis));
    }
  }

  void put_axis(const std::string& name, SuiteAxis axis) {
    const auto known = std::find(axis_names_.begin(), axis_names_.end(), name);
    if (known != axis_names_.end()) {
      out_.axes[static_cast<size_t>(known - axis_names_.begin())] = std::move(axis);
      return;
    }
    axis_names_.push_back(name);
    out_.axes.push_back(std::move(axis));
  }

  SuiteAxis key_axis(const TomlMember& section, const TomlMember& key) {
    const auto* items = key.value.list();
    if (!items) throw fault("grid", "expected a list of values, got " + shown(key.value), key.value.place);
    SuiteAxis axis;
    for (const auto& item : *items) {
      Settings choice;
      add_settings(choice, {{section.key, section.place, {TomlValue::Table{{key.key, key.place, item}}, item.place}}},
                   folder_);
      // Reports an unknown name once, not for each of its values.
      for (const auto& line : choice.faults)
        if (std::find(out_.faults.begin(), out_.faults.end(), line) == out_.faults.end()) out_.faults.push_back(line);
      choice.faults.clear();
      axis.push_back(std::move(choice));
    }
    return axis;
  }

  void override_blocks(const TomlValue& value) {
    if (!value.list()) throw fault("override", "expected blocks [[override]]", value.place);
    for (const auto& block : *value.list()) attempt([&] { override_block(block); });
  }

  void override_block(const TomlValue& block) {
    if (!block.table()) throw fault("override", "expected blocks [[override]]", block.place);
    SuiteOverride rule;
    rule.inherited = inherited_;
    bool acts = false;
    for (const auto& member : *block.table()) {
      const size_t before = out_.faults.size();
      attempt([&] {
        if (member.key == "when") {
          conditions(member.value, rule.when);
        } else if (member.key == "set") {
          acts = !member.value.table() || !member.value.table()->empty();
          rule.set = settings_of(member.value);
        } else if (member.key == "skip" && std::holds_alternative<bool>(member.value.content)) {
          rule.skip = std::get<bool>(member.value.content);
        } else {
          throw fault("override",
                      formatted("unknown key '{}', expected when, set or skip = true", printable(member.key)),
                      member.place);
        }
      });
      rule.broken |= member.key != "set" && out_.faults.size() > before;
    }
    if (!acts && !rule.skip) attempt([&] { throw fault("override", "expected set or skip = true", block.place); });
    out_.overrides.push_back(std::move(rule));
  }

  // Each value must be one that the parameter can have, so that a misspelt condition is an error and not a no-op.
  void conditions(const TomlValue& value, std::vector<SuiteCondition>& out) {
    for (const auto& [name, setting] : settings_of(value)) {
      SuiteCondition condition{name, setting.key, {}, {}};
      const ConfigKey* parameter = find_config_key(name);
      const auto* list = setting.value.list();
      const bool any = list && !(parameter && parameter->kind == ConfigKey::Kind::wholes);
      const std::string& key = name;
      for (const auto& item : any ? *list : TomlValue::List{setting.value})
        attempt([&] { condition.any_of.push_back({condition_text(key, item), item.place}); });
      out.push_back(std::move(condition));
    }
  }

  std::string path_, folder_;
  const std::string first_folder_;  // of the file that was asked for
  const ModelRules& rules_;
  SuiteFile out_;
  std::vector<std::string> axis_names_;  // of out_.axes
  bool sweep_ = false, inherited_ = false;
  std::string scale_;
  int depth_ = 0;
};

}  // namespace

SuiteFile parse_suite_file(std::string_view text, const std::string& path, const ModelRules& rules,
                           const SuiteChoice& choice) {
  return SuiteFileReader(path, rules).read(text, choice);
}

std::string condition_text(const std::string& name, const TomlValue& value) {
  const ConfigKey* parameter = find_config_key(name);
  return parameter ? toml_text(parse_value(*parameter, value)) : switch_text(name.substr(name.find('.') + 1), value);
}

}  // namespace sb
