#include <algorithm>
#include <functional>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "base/version.h"
#include "page/parts.h"
#include "tasks/task_registry.h"

namespace sb {
namespace {

constexpr const char* math_begins = R"(<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">)";

MethodBlock paragraph(std::string text) {
  MethodBlock out;
  out.text = std::move(text);
  return out;
}

MethodBlock code(std::string text) {
  MethodBlock out = paragraph(std::move(text));
  out.kind = MethodBlock::Kind::code;
  return out;
}

// `inner`: presentation MathML; `text`: the same as plain text, for readers without MathML.
MethodBlock formula(const std::string& inner, std::string text) {
  MethodBlock out = paragraph(std::move(text));
  out.kind = MethodBlock::Kind::formula;
  out.mathml = math_begins + inner + "</math>";
  return out;
}

std::string gap_text(const Group& group, const std::string& prefix) {
  const auto value = [&](const char* key) { return plain_value(group.value("task." + prefix + key)); };
  const std::string law = value("gap_law"), content = value("gap_content"), least = value("gap_min"),
                    most = value("gap_max"), probability = value("gap_probability"), start = value("gap_start");
  if (law.empty()) return "–";
  std::string out = law == "constant"  ? least
                    : law == "uniform" ? least + " to " + most
                                       : law + " " + least + " to " + most;
  out += content == "forbidden_symbol" ? " wrong" : " blank";
  if (!probability.empty() && probability != "1" && probability != "1.0") out += ", p = " + probability;
  if (!start.empty() && start != "0") out += ", from element " + start;
  return out;
}

bool has_gaps(const PageColumn& column) {
  return parse_integer(column.task).has_value();
}

bool any_gaps(const Outline& outline) {
  return std::any_of(outline.columns.begin(), outline.columns.end(), has_gaps);
}

// A setting of the groups in a column: its heading, and its text for a group.
struct MethodSetting {
  std::string heading;
  std::function<std::string(const Group&)> text;
};

MethodSetting of_key(const std::string& heading, const std::string& key) {
  return {heading, [key](const Group& group) {
            const std::string text = plain_value(group.value(key));
            return text.empty() ? std::string("–") : text;
          }};
}

std::vector<MethodSetting> gap_settings() {
  return {of_key("symbols", "grammar.vocab"),
          of_key("ambiguous", "grammar.ambiguities"),
          of_key("states per ambiguous symbol", "grammar.depth"),
          of_key("elements", "task.length"),
          {"training gaps", [](const Group& group) { return gap_text(group, ""); }},
          {"test gaps", [](const Group& group) { return gap_text(group, "test_"); }},
          of_key("noise", "task.noise")};
}

// The keys of another kind, without those that name files.
std::vector<MethodSetting> kind_settings(const std::string& kind) {
  std::vector<MethodSetting> out = {of_key("length", "task.length")};
  if (const TaskRow* row = find_kind(kind))
    for (const TaskKey& key : row->keys)
      if (!key.file) out.push_back(of_key(key.name, "task." + key.name));
  return out;
}

// Settings of the columns for which `shown` is true; no rows if there are none.
MethodBlock settings_table(const Outline& outline, std::vector<MethodSetting> settings,
                           const std::function<bool(const PageColumn&)>& shown) {
  settings.push_back(of_key("updates", "train.updates"));
  settings.push_back(of_key("batch", "train.batch"));
  settings.push_back(of_key("test samples", "eval.test_samples"));
  MethodBlock out;
  out.kind = MethodBlock::Kind::table;
  out.columns = {"column"};
  for (const auto& setting : settings) out.columns.push_back(setting.heading);
  for (size_t c = 0; c < outline.columns.size(); ++c) {
    if (!outline.columns[c].own || !shown(outline.columns[c])) continue;
    std::vector<std::string> row = {outline.columns[c].name};
    for (const auto& setting : settings) {
      std::set<std::string> values;
      for (const size_t index : outline.column_cells[c])
        values.insert(setting.text(outline.rows.groups[outline.rows.cells[index].group]));
      row.push_back(joined(values, " or "));
    }
    out.rows.push_back(std::move(row));
  }
  return out;
}

MethodPart tasks_part(const Outline& outline) {
  MethodPart out{"Tasks", {}};
  const auto add_table = [&](MethodBlock table) {
    if (!table.rows.empty()) out.blocks.push_back(std::move(table));
  };
  if (any_gaps(outline)) {
    out.blocks.push_back(paragraph(
        "A random finite automaton emits symbols. Most symbols are emitted by several states, so a symbol alone does "
        "not determine the state. A sample is a walk through the automaton. Each element is shown as one frame, a "
        "one-hot row, followed by gap frames that are blank or show a symbol that cannot follow; noise may be added to "
        "every channel. At every frame the model names the hidden state of the current element. docs/benchmark.md "
        "defines tasks, metric and ceiling."));
    add_table(settings_table(outline, gap_settings(), has_gaps));
  }
  std::set<std::string> kinds;
  for (const auto& column : outline.columns)
    if (!has_gaps(column)) kinds.insert(column.task);
  for (const auto& kind : kinds) {
    const TaskText about = task_text(kind);
    out.blocks.push_back(paragraph(about.text.empty() ? about.title : about.title + ": " + about.text));
    add_table(
        settings_table(outline, kind_settings(kind), [&](const PageColumn& column) { return column.task == kind; }));
  }
  return out;
}

void add_accuracy(bool gaps, MethodPart& out) {
  out.blocks.push_back(paragraph(formatted(
      "The model's probabilities of each {} are summed over the frames of an element{}, and the {} with the largest "
      "sum is its answer. Accuracy is the share of elements answered right:",
      gaps ? "state" : "answer", gaps ? ", its data frame and its gap frames" : "", gaps ? "state" : "one")));
  out.blocks.push_back(formula(
      "<mrow><msub><mover><mi>s</mi><mo>^</mo></mover><mi>e</mi></msub><mo>=</mo><munder><mo>arg max</mo><mi>c</mi>"
      "</munder><munder><mo>∑</mo><mrow><mi>t</mi><mo>∈</mo><msub><mi>F</mi><mi>e</mi></msub></mrow></munder><msub>"
      "<mi>p</mi><mi>t</mi></msub><mo>(</mo><mi>c</mi><mo>)</mo><mo>,</mo><mspace width=\"1em\"></mspace><mi>accuracy"
      "</mi><mo>=</mo><mfrac><mrow><mo>#</mo><mo>{</mo><mi>e</mi><mo>:</mo><msub><mover><mi>s</mi><mo>^</mo></mover>"
      "<mi>e</mi></msub><mo>=</mo><msub><mi>s</mi><mi>e</mi></msub><mo>}</mo></mrow><mrow><mo>#</mo><mo>{</mo><mi>e"
      "</mi><mo>}</mo></mrow></mfrac></mrow>",
      "ŝ_e = argmax_c Σ_{t in F_e} p_t(c), accuracy = #{e : ŝ_e = s_e} / #{e}"));
}

void add_ceiling(bool gaps, bool oracles, MethodPart& out) {
  std::string text;
  if (gaps)
    text =
        "The ceiling is the accuracy of exact Bayesian filtering under the same metric: the posterior of the state "
        "given all frames so far, with the automaton and the distributions of strings and gaps known. ";
  if (oracles)
    text += formatted("The ceiling{} is the accuracy of the task's oracle under the same metric. ",
                      gaps ? " of the other tasks" : "");
  out.blocks.push_back(
      paragraph(text +
                "No causal model exceeds its upper bound in expectation. The fraction of the ceiling is accuracy over "
                "ceiling."));
}

MethodPart metric_part(const Outline& outline) {
  MethodPart out{"Metric, ceiling and n-gram", {}};
  const auto any = [&](const auto& is) { return std::any_of(outline.columns.begin(), outline.columns.end(), is); };
  const bool gaps = any_gaps(outline);
  const bool others = any([](const PageColumn& c) { return !has_gaps(c) && !c.squared; });
  const bool oracles = any([](const PageColumn& c) { return !has_gaps(c) && !c.squared && c.ceiling; });
  if (gaps || others) add_accuracy(gaps, out);
  if (any([](const PageColumn& c) { return c.squared; }))
    out.blocks.push_back(paragraph(
        "Columns named squared error are regression tasks: their number is the squared error of the outputs, averaged "
        "over the frames that have a target. Lower is better; the bound is the error of the best possible estimator."));
  if (gaps || oracles) add_ceiling(gaps, oracles, out);
  if (any([](const PageColumn& c) { return c.n_gram.has_value(); })) out.blocks.push_back(paragraph(kNgramNote));
  bool predict = false;
  for (const auto& group : outline.rows.groups) predict |= group.value("task.objective") == "\"predict\"";
  if (predict)
    out.blocks.push_back(
        paragraph("In columns of the objective `predict`, the target is the next symbol instead of the state."));
  if (gaps)
    out.blocks.push_back(paragraph(
        "Learners without a network: the table learner counts transitions of labelled samples and filters with them; "
        "an n-gram answers with the most common state after the last n symbols; chance is one over the number of "
        "answers."));
  else if (others)
    out.blocks.push_back(paragraph("Chance is one over the number of answers."));
  return out;
}

MethodPart statistics_part(const Outline& outline) {
  MethodPart out{"Statistics", {}};
  const Rows& rows = outline.rows;
  out.blocks.push_back(
      paragraph(formatted("A cell averages runs whose configs differ only in {}. {}", joined(rows.axes.average, ", "),
                          "Among several settings of " + joined(rows.axes.select, ", ") +
                              ", the one with the best mean on valid is shown. Test results are not used for this "
                              "choice unless a note says so.")));
  out.blocks.push_back(paragraph(
      "The statistical unit is the grammar: runs that share a grammar are averaged first. With mean x̄ and standard "
      "deviation s of these averages over n grammars, the 95 % interval is"));
  out.blocks.push_back(formula(
      "<mrow><mover><mi>x</mi><mo>¯</mo></mover><mo>±</mo><msub><mi>t</mi><mrow><mn>0.975</mn><mo>,</mo><mi>n</mi>"
      "<mo>−</mo><mn>1</mn></mrow></msub><mfrac><mi>s</mi><msqrt><mi>n</mi></msqrt></mfrac></mrow>",
      "x̄ ± t(0.975, n−1) · s / √n"));
  out.blocks.push_back(paragraph(
      "Two rows are compared by their differences on common grammars, with the same interval and Student's two-sided "
      "test. In the summary each row is tested against the best mean of its column, among rows with the most grammars. "
      "Holm's step-down procedure keeps the chance of any false mark in a column at 5 %; intervals and p of the "
      "differences are not corrected. Intervals of accuracies are clipped to 0 to 1. With one grammar there is neither "
      "interval nor test. The paper's numbers are shown only for runs with the paper's settings."));
  return out;
}

MethodPart training_part(const Outline& outline) {
  MethodPart out{"Training", {}};
  std::map<std::string, std::set<std::string>> values;
  std::set<std::string> precisions, devices, versions, quirks;
  for (const auto& run : outline.rows.runs) {
    const Result& r = run.result;
    for (const char* key : {"model.layers", "model.width", "model.dropout", "train.lr", "train.warmup", "train.clip",
                            "train.batch", "train.updates", "train.weight_decay"})
      if (const auto at = r.config.find(key); at != r.config.end()) values[key].insert(plain_value(at->second));
    precisions.insert(plain_value(r.precision));
    devices.insert(plain_value(r.device));
    if (r.made) versions.insert(plain_value(r.made->version));
    for (const auto& quirk : r.quirks) quirks.insert(plain_value(quirk));
  }
  const auto list = [&](const char* key) {
    std::vector<std::string> sorted(values[key].begin(), values[key].end());
    std::sort(sorted.begin(), sorted.end(), [](const std::string& a, const std::string& b) {
      const auto x = parse_finite(a), y = parse_finite(b);
      return x && y && *x != *y ? *x < *y : a < b;
    });
    if (sorted.size() > 6) return formatted("{} to {} ({} values)", sorted.front(), sorted.back(), sorted.size());
    return sorted.empty() ? std::string("–") : joined(sorted, ", ");
  };
  out.blocks.push_back(paragraph(formatted(
      "Networks of {} layers, width {}, dropout {}; Adam with clipping at norm {}, weight decay {}, peak learning rate "
      "{}, warm-up {} updates, then a cosine to 0; {} updates in batches of {} samples, each seen once.",
      list("model.layers"), list("model.width"), list("model.dropout"), list("train.clip"), list("train.weight_decay"),
      list("train.lr"), list("train.warmup"), list("train.updates"), list("train.batch"))));
  out.blocks.push_back(
      paragraph(formatted("Precision: {}; device: {}; made by version{} {} of selectivbench.", joined(precisions, ", "),
                          joined(devices, ", "), versions.size() == 1 ? "" : "s", joined(versions, ", "))));
  if (!quirks.empty())
    out.blocks.push_back(
        paragraph("Faults of the published code that some runs switched on: " + joined(quirks, ", ") + "."));
  return out;
}

}  // namespace

void add_method(const Outline& outline, const std::string& citation, PageData& data) {
  if (!outline.columns.empty()) data.method.push_back(tasks_part(outline));
  if (!outline.columns.empty()) data.method.push_back(metric_part(outline));
  data.method.push_back(statistics_part(outline));
  if (!outline.rows.runs.empty()) data.method.push_back(training_part(outline));
  MethodPart cite{"How to cite", {}};
  cite.blocks.push_back(paragraph(formatted(
      "Please cite the paper that proposed the benchmark (Bouhadjar, Fabre, Schmidt and Neftci, arXiv:2601.12598) and "
      "this program, version {}, commit {}. With a number, state: task, grammar and seeds, samples, {}precision, how "
      "the learning rate was chosen, and the ceiling.",
      program_version(), program_commit(),
      any_gaps(outline) ? "distribution of gap lengths if it is not the task's, noise, "
                        : "settings that are not the task's defaults, ")));
  if (!citation.empty()) cite.blocks.push_back(code(citation));
  data.method.push_back(std::move(cite));
}

}  // namespace sb
