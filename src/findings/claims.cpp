#include "findings/claims.h"

#include <algorithm>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/suggest.h"
#include "base/text.h"
#include "config/config_file.h"
#include "findings/comparison_reader.h"
#include "findings/protocol.h"
#include "findings/toml_fields.h"

namespace sb {
namespace {

// The taker of a text of up to `most` bytes.
auto text_into(std::string& out, size_t most) {
  return [&out, most](const TomlMember& member) { out = toml_string(member, 1, most); };
}

auto id_into(std::string& out) {
  return [&out](const TomlMember& member) {
    out = toml_string(member, 1, 40);
    const bool plain = std::all_of(out.begin(), out.end(),
                                   [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
    if (!plain) throw toml_fault("expected up to 40 of a-z, 0-9 and _, got " + shown(member.value), member.value.place);
  };
}

auto real_into(double& out, double low, double high) {
  return [&out, low, high](const TomlMember& member) { out = toml_real(member, low, high); };
}

auto keys_into(ConfigMap& out) {
  return [&out](const TomlMember& member) { out = config_keys_of(member.value); };
}

// [least, most]
auto ends_into(double& least, double& most) {
  return [&](const TomlMember& member) {
    const auto* ends = member.value.list();
    if (!ends || ends->size() != 2)
      throw toml_fault(member.key + ": expected [least, most], got " + shown(member.value), member.value.place);
    least = toml_real({member.key, member.place, (*ends)[0]}, 0, 1e15);
    most = toml_real({member.key, member.place, (*ends)[1]}, least, 1e15);
  };
}

// Marks the arms of which another comparison of the claim asks a low accuracy: they need not be trained.
void mark_arms_that_may_fail(std::vector<Comparison>& all) {
  for (const auto& low : all) {
    if (low.asks != Asks::at_most || low.statistic != Statistic::accuracy || !low.b.empty()) continue;
    for (auto& one : all) {
      if (one.kind != low.kind || one.keys != low.keys) continue;
      one.a_may_fail |= one.a == low.a;
      one.b_may_fail |= one.b == low.a;
    }
  }
}

// A deviation may be only described.
Claim claim_of(const TomlValue& block, bool deviation) {
  Claim out;
  ComparisonDefaults defaults;
  const TomlMember* rows = nullptr;
  const auto by_default = [&](const TomlMember& member) { defaults.take(member); };
  read_members(block, {{"id", id_into(out.id)},
                       {"number", [&](auto& member) { out.number = static_cast<int>(toml_whole(member, 0, 1000)); }},
                       {"title", text_into(out.title, 100)},
                       {"sentence", text_into(out.sentence, 2000)},
                       {"section", text_into(out.section, 100)},
                       {"paper", text_into(out.paper, 4000)},
                       {"untested", text_into(out.untested, 4000)},
                       {"caveat", text_into(out.caveat, 300)},
                       {"exploratory", [&](auto& member) { out.exploratory = toml_strings(member); }},
                       {"in_code", [&](auto& member) { out.in_code = toml_truth(member); }},
                       {"statistic", by_default},
                       {"asks", by_default},
                       {"delta", by_default},
                       {"in_distribution", by_default},
                       {"keys", [&](auto& member) { defaults.keys = &member.value; }},
                       {"at_scale", [&](auto& member) { defaults.at_scale = &member.value; }},
                       {"comparisons", [&](auto& member) { rows = &member; }}});
  if (out.id.empty() || out.title.empty() || out.sentence.empty())
    throw toml_fault("expected id, title and sentence", block.place);
  if (rows && rows->value.list())
    for (const auto& row : *rows->value.list()) read_comparisons(defaults, row, out.comparisons);
  mark_arms_that_may_fail(out.comparisons);
  for (auto& one : out.comparisons) one.beyond_paper = out.number == 0 && !deviation;
  if (deviation && !out.exploratory.empty()) throw toml_fault("a deviation cannot be exploratory", block.place);
  if (out.comparisons.empty() && !(deviation && !rows)) throw toml_fault("expected a list of comparisons", block.place);
  return out;
}

Scale scale_of(const TomlValue& block) {
  Scale out;
  read_members(block, {{"name", id_into(out.name)},
                       {"title", text_into(out.title, 400)},
                       {"keys", keys_into(out.keys)},
                       {"results", keys_into(out.results)},
                       {"params", ends_into(out.least_params, out.most_params)},
                       {"sizes", ends_into(out.least_size, out.most_size)},
                       {"match", real_into(out.match, 1, 1e6)},
                       {"untuned", [&](auto& member) { out.untuned = toml_truth(member); }}});
  if (out.name.empty()) throw toml_fault("a scale without a name", block.place);
  return out;
}

void add_task(Claims& out, const TomlValue& block) {
  int number = 0;
  ConfigMap keys;
  read_members(block, {{"number", [&](auto& member) { number = static_cast<int>(toml_whole(member, 1, 4)); }},
                       {"keys", keys_into(keys)}});
  if (number == 0 || !out.task_keys.emplace(number, keys).second)
    throw toml_fault("expected the number of a task, each once", block.place);
}

PublishedFigures::Row published_row(const TomlValue& value) {
  PublishedFigures::Row out;
  read_members(value, {{"model", text_into(out.model, 64)},
                       {"perplexity", real_into(out.perplexity, 1, 1e6)},
                       {"accuracy", real_into(out.accuracy, 0, 100)}});
  if (out.model.empty() || out.perplexity == 0 || out.accuracy == 0)
    throw toml_fault("expected model, perplexity and accuracy", value.place);
  return out;
}

PublishedFigures published_of(const TomlValue& block) {
  PublishedFigures out;
  const auto figures = [&](const TomlMember& member) {
    if (const auto* list = member.value.list())
      for (const auto& row : *list) out.rows.push_back(published_row(row));
  };
  read_members(block, {{"id", id_into(out.id)}, {"source", text_into(out.source, 1000)}, {"figures", figures}});
  if (out.id.empty() || out.source.empty() || out.rows.empty())
    throw toml_fault("expected id, source and a list of figures", block.place);
  return out;
}

Question question_of(const TomlValue& block) {
  Question out;
  const auto answers = [&](const TomlMember& member) {
    if (const auto* list = member.value.list())
      for (const auto& row : *list) {
        auto& answer = out.answers.emplace_back();
        answer.place = row.place.text();
        read_members(row, {{"claim", id_into(answer.claim)}, {"comparison", text_into(answer.comparison, 1000)}});
      }
  };
  read_members(block, {{"title", text_into(out.title, 100)},
                       {"note", text_into(out.note, 1000)},
                       {"caveat", text_into(out.caveat, 300)},
                       {"answers", answers}});
  if (out.title.empty() || out.answers.empty()) throw toml_fault("expected title and a list of answers", block.place);
  return out;
}

void add_block(Claims& out, const std::string& key, const TomlValue& block) {
  if (key == "scale") {
    const Scale scale = scale_of(block);
    if (out.scale(scale.name)) throw toml_fault("a second scale " + scale.name, block.place);
    out.scales.push_back(scale);
  } else if (key == "task") {
    add_task(out, block);
  } else if (key == "missing") {
    read_members(block, {{"text", text_into(out.missing.emplace_back(), 2000)}});
    if (out.missing.back().empty()) throw toml_fault("expected text", block.place);
  } else if (key == "question") {
    out.questions.push_back(question_of(block));
  } else if (key == "published") {
    PublishedFigures figures = published_of(block);
    if (out.published_figures(figures.id)) throw toml_fault("a second table " + figures.id, block.place);
    out.published.push_back(std::move(figures));
  } else {
    Claim claim = claim_of(block, key == "deviation");
    if (out.find(claim.id)) throw toml_fault("a second claim " + claim.id, block.place);
    (key == "claim" ? out.claims : out.deviations).push_back(std::move(claim));
  }
}

void check_scales(const Claims& claims, const std::string& path) {
  const auto check = [&](const Claim& claim, const char* key, const std::string& scale) {
    if (!claims.scale(scale))
      throw bad_input("claims", formatted("{}: expected a [[scale]] in {}, got '{}', {}", claim.id, key,
                                          printable(scale), printable(path, 200)));
  };
  for (const auto& claim : claims.claims) {
    for (const auto& scale : claim.exploratory) check(claim, "exploratory", scale);
    for (const auto& one : claim.comparisons) {
      for (const auto& [scale, keys] : one.claim_keys_at) check(claim, "at_scale", scale);
      if (!one.only_scale.empty()) check(claim, "scale", one.only_scale);
    }
  }
}

void check_questions(const Claims& claims) {
  for (const auto& question : claims.questions)
    for (const auto& answer : question.answers) {
      std::vector<std::string> names;
      const Claim* claim = claims.find(answer.claim);
      if (!claim) {
        for (const auto& each : claims.claims) names.push_back(each.id);
        throw bad_input("claims", formatted("no claim '{}'{}, {}", printable(answer.claim),
                                            did_you_mean(answer.claim, names), answer.place));
      }
      for (const auto& one : claim->comparisons) names.push_back(one.name());
      if (std::find(names.begin(), names.end(), answer.comparison) == names.end())
        throw bad_input("claims", formatted("claim '{}' has no comparison '{}', the nearest is '{}', {}", claim->id,
                                            one_line(answer.comparison),
                                            nearest_first(answer.comparison, names).front(), answer.place));
    }
}

void check_published(const Claims& claims, const std::string& path) {
  for (const auto& claim : claims.claims)
    for (const auto& one : claim.comparisons) {
      if (one.published.empty()) continue;
      const PublishedFigures* figures = claims.published_figures(one.published);
      if (!figures)
        throw bad_input("claims", formatted("{}: expected a table of [[published]], got '{}', {}", claim.id,
                                            printable(one.published), printable(path, 200)));
      for (const auto& model : one.a)
        if (std::none_of(figures->rows.begin(), figures->rows.end(),
                         [&](const auto& row) { return row.model == model.model; }))
          throw bad_input("claims", formatted("{}: no figure of {} in {}, {}", claim.id, printable(model.model),
                                              one.published, printable(path, 200)));
    }
}

}  // namespace

std::string last_part(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

bool is_order(Statistic statistic) {
  return statistic == Statistic::rank_correlation || statistic == Statistic::published_order ||
         statistic == Statistic::task_order;
}

bool is_excess(Statistic statistic) {
  return statistic == Statistic::excess_error || statistic == Statistic::excess_ratio;
}

bool counted(Statistic statistic) {
  return statistic == Statistic::gate_parameters || statistic == Statistic::gates_without_keys;
}

namespace {

// "gap_max from 10 over 0.5" of "{task.gap_max = {from = 10, over = 0.5}}"
std::string schedule_text(const std::string& value) {
  std::string out;
  for (const char c : plain_value(value))
    if (c == ' ' ? !out.empty() && out.back() != ' ' : c != '{' && c != '}' && c != '=') out += c;
  for (const char* section : {"task.", "train.", ","})
    for (size_t at = out.find(section); at != std::string::npos; at = out.find(section))
      out.erase(at, std::string(section).size());
  return out;
}

// "dropout 0.2", "delta_bf16 on"
std::string key_text(const std::string& key, const std::string& value) {
  if (key == "train.schedule" && value == kNoSchedule) return "no schedule";
  if (key == "train.schedule") return "schedule " + schedule_text(value);
  return last_part(key) + " " + (value == "true" ? "on" : value == "false" ? "off" : plain_value(value));
}

}  // namespace

std::string ArmModel::text() const {
  std::string out = model_title(model);
  for (const auto& [key, value] : switches) out += ", " + printable(key) + " " + printable(value);
  for (const auto& [key, value] : keys) out += ", " + key_text(key, value);
  return out;
}

std::string arm_text(const Arm& arm) {
  if (arm.size() == 1) return arm.front().text();
  std::vector<std::string> parts;
  for (const auto& model : arm) parts.push_back(model.text());
  return formatted("mean of {}", joined(parts, "; "));
}

ConfigMap Comparison::keys_at(const std::string& scale) const {
  ConfigMap out = keys;
  if (const auto here = claim_keys_at.find(scale); here != claim_keys_at.end())
    out.insert(here->second.begin(), here->second.end());
  out.insert(claim_keys.begin(), claim_keys.end());
  return out;
}

std::string Comparison::task_text() const {
  return kind.empty() ? formatted("task {}", task) : kind;
}

std::string Comparison::unit() const {
  return kind.empty() || find_task(kind).has_grammars ? "grammar" : "seed";
}

std::string Comparison::place_text() const {
  std::string out = from > 0 ? formatted("task {} to {}", from, task) : task_text();
  for (const auto& [key, value] : keys) out += ", " + key_text(key, value);
  if (!gaps.empty()) out += formatted(", {} ", kind.empty() ? "gap" : find_task(kind).axis->name);
  if (from_point) out += formatted("{} to ", *from_point);
  out += joined(gaps, ", ");
  if (first > 0) out += formatted(", first {} elements", first);
  if (!over.empty()) out += ", over " + over;
  if (best > 0) out += formatted(", best of {} {}s", best, unit() == "seed" ? "run" : "seed");
  if (statistic != Statistic::accuracy && statistic != Statistic::gap_accuracy && statistic != Statistic::slope &&
      !is_order(statistic))
    out += formatted(", {}", to_string(statistic));
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

std::string Comparison::name() const {
  std::string out = place_text();
  const bool order = is_order(statistic);
  out += ": " + (order ? formatted("order of {} models", a.size()) : arm_text(a));
  if (!published.empty()) out += " and " + printable(published);
  for (const auto& other : with) out += " and " + other.place_text();
  if (against_chance) return out + " − chance";
  return b.empty() ? out : out + " − " + arm_text(b);
}

const Claim* Claims::find(const std::string& id) const {
  for (const auto* all : {&claims, &deviations}) {
    const auto it = std::find_if(all->begin(), all->end(), [&](const Claim& claim) { return claim.id == id; });
    if (it != all->end()) return &*it;
  }
  return nullptr;
}

const Scale* Claims::scale(const std::string& name) const {
  const auto it = std::find_if(scales.begin(), scales.end(), [&](const Scale& scale) { return scale.name == name; });
  return it == scales.end() ? nullptr : &*it;
}

const PublishedFigures* Claims::published_figures(const std::string& id) const {
  const auto it = std::find_if(published.begin(), published.end(), [&](const auto& table) { return table.id == id; });
  return it == published.end() ? nullptr : &*it;
}

Claims parse_claims(std::string_view text, const std::string& path) {
  if (text.size() > kMaxClaimsBytes) throw bad_input("claims", "longer than 1 MiB, " + printable(path, 200));
  const TomlValue document = parse_toml(text, path);
  const std::vector<std::string> blocks = {"scale", "task", "published", "missing", "claim", "deviation", "question"};
  Claims out;
  for (const auto& member : *document.table()) {
    if (member.key == "choices") {
      const auto seed = [&](const TomlMember& choice) {
        out.choice_seed = static_cast<uint64_t>(toml_whole(choice, 1, 0xFFFFFFFF));
      };
      read_members(member.value, {{"grammar_seed", seed}, {"scale", text_into(out.choice_scale, 40)}});
      continue;
    }
    if (std::find(blocks.begin(), blocks.end(), member.key) == blocks.end())
      throw unknown_toml_key(member,
                             {"choices", "scale", "task", "published", "missing", "claim", "deviation", "question"});
    if (!member.value.list()) throw toml_fault("expected blocks [[" + member.key + "]]", member.value.place);
    for (const auto& block : *member.value.list()) add_block(out, member.key, block);
  }
  if (out.claims.empty() || out.scales.empty())
    throw bad_input("claims", "expected [[scale]] and [[claim]], " + printable(path, 200));
  check_scales(out, path);
  check_published(out, path);
  check_questions(out);
  return out;
}

Claims read_claims(const std::string& path) {
  return parse_claims(read_text(path, kMaxClaimsBytes, "claims", {path}), path);
}

}  // namespace sb
