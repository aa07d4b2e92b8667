#include "base/base64.h"
#include "base/number.h"
#include "base/version.h"
#include "page/data.h"
#include "page/figure_svg.h"
#include "report/palette.h"

namespace sb {
namespace {

template <class Value>
Json json_of(const Value& value) {
  return value;
}
template <class Value>
Json json_of(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

void put(Json&) {}
template <class Value, class... Rest>
void put(Json& out, const char* key, const Value& value, const Rest&... rest) {
  out[key] = json_of(value);
  put(out, rest...);
}

// An object of keys and values, in this order; an absent value is null.
template <class... Members>
Json object(const Members&... members) {
  Json out = Json::object();
  put(out, members...);
  return out;
}

// Task numbers as JSON numbers, other names as text.
Json task_json(const std::string& task) {
  const auto number = parse_integer(task);
  return number ? Json(*number) : Json(task);
}

}  // namespace

// Json converts lists of these structures by to_json, which it finds in their namespace.
static void to_json(Json& out, const PageSettings::Live& l) {
  out = object("data", l.data, "every_ms", l.every_ms);
}

static void to_json(Json& out, const PageCounts& n) {
  out = object("found", n.found, "averaged", n.averaged, "diverged", n.diverged, "unfinished", n.unfinished, "damaged",
               n.damaged, "other_version", n.other_version, "copies", n.copies, "untested", n.untested, "not_chosen",
               n.not_chosen);
}

static void to_json(Json& out, const PageModel& m) {
  out = object("name", m.name, "title", m.title, "colour", m.colour);
}

static void to_json(Json& out, const PageSeries& s) {
  out = object("id", s.id, "name", s.name, "model", s.model, "setting", s.setting, "colour", s.colour, "dash", s.dash);
}

static void to_json(Json& out, const PageColumn& c) {
  out = object("id", c.id, "name", c.name, "lines", c.lines, "task", task_json(c.task), "gap", c.at, "squared",
               c.squared, "own", c.own, "section", c.section, "n_gram", c.n_gram, "n_gram_text", c.n_gram_text,
               "ceiling", c.ceiling, "ceiling_text", c.ceiling_text, "chance", c.chance, "chance_text", c.chance_text,
               "metric_text", c.metric_text);
  if (c.at && !parse_integer(c.task)) out["at"] = *c.at;  // "gap" is the name of earlier versions for any axis
}

static void to_json(Json& out, const PageMark& m) {
  out = object("kind", m.kind, "text", m.text);
}

static void to_json(Json& out, const VersusBest& v) {
  out = object("difference", v.difference, "difference_text", v.difference_text, "interval_text", v.interval_text, "p",
               v.p, "p_text", v.p_text, "significant", v.significant, "n", v.n);
}

static void to_json(Json& out, const PageCell& c) {
  out = object("series", c.series, "column", c.column, "mean", c.mean, "mean_text", c.mean_text, "low", c.low, "high",
               c.high, "interval_text", c.interval_text, "sd_text", c.sd_text, "sd_over", c.sd_over, "fraction",
               c.fraction, "fraction_text", c.fraction_text, "n_gram_text", c.n_gram_text, "ceiling_text",
               c.ceiling_text, "chance_text", c.chance_text, "paper", c.paper, "paper_text", c.paper_text, "difference",
               c.difference, "difference_text", c.difference_text, "grammars", c.grammars, "seeds", c.seeds, "n_text",
               c.n_text, "uneven_text", c.uneven_text, "best", c.best, "versus_best", c.versus_best, "marks", c.marks,
               "runs", c.runs);
}

static void to_json(Json& out, const SummaryRow& r) {
  out = object("series", r.series, "params", r.params, "params_text", r.params_text, "state", r.state, "state_text",
               r.state_text, "precision_text", r.precision_text, "speed", r.speed, "speed_text", r.speed_text);
}

static void to_json(Json& out, const PageSection& s) {
  out = object("id", s.id, "title", s.title, "kind", s.kind, "text", s.text, "absent", s.absent);
}

static void to_json(Json& out, const FigureColumn& c) {
  out = object("key", c.key, "title", c.title, "type", c.type);
}

static void to_json(Json& out, const FigureValue& value) {
  out = value.json();
}

static void to_json(Json& out, const Figure& f) {
  out = object("id", f.id, "section", f.section, "kind", f.kind, "setting", f.setting, "title", f.title, "caption",
               f.caption, "columns", f.columns, "rows", f.rows, "spec", f.spec, "height", f.height, "series", f.series,
               "palette", f.palette, "summary", f.summary, "runs", f.runs);
}

static void to_json(Json& out, const GrammarValues& v) {
  Json mean = Json::array();
  for (const auto& one : v.mean) mean.push_back(json_of(one));
  out = object("series", v.series, "mean", mean, "text", v.text);
}

static void to_json(Json& out, const PairedDifference& p) {
  out = Json::array({p.a, p.b, p.n, p.difference, json_of(p.low), json_of(p.high), json_of(p.p), p.difference_text,
                     p.interval_text, p.p_text});
}

static void to_json(Json& out, const CompareColumn& c) {
  out = object("column", c.column, "grammars", c.grammars, "values", c.values, "pairs", c.pairs);
}

static void to_json(Json& out, const PageCompare& c) {
  out = object("text", c.text, "columns", c.columns, "note", c.note);
}

static void to_json(Json& out, const SampleElement& e) {
  out = object("symbol", e.symbol, "state", e.state, "gap", e.gap, "gap_symbols", e.gap_symbols);
  if (e.paused) out["paused"] = true;
}

static void to_json(Json& out, const SampleModel& m) {
  out = object("series", m.series, "run", m.run, "beliefs", m.beliefs);
}

static void to_json(Json& out, const PageSample& s) {
  out = object("id", s.id, "column", s.column, "title", s.title, "length", s.length, "shown", s.elements.size(),
               "elements", s.elements, "filter", s.filter, "models", s.models);
  if (s.dense) out["dense"] = true;
}

static void to_json(Json& out, const ConfigDifference& d) {
  out = Json::array({d.key, d.value, d.usual});
}

static void to_json(Json& out, const PageRun& r) {
  out =
      object("key", r.key, "id", r.id, "folder", r.folder, "href", r.href, "state", r.state, "state_text", r.state_text,
             "problems", r.problems, "standing", r.standing, "standing_text", r.standing_text, "series", r.series,
             "column", r.column, "model", r.model, "task", r.task ? task_json(*r.task) : Json(nullptr), "seeds_text",
             r.seeds_text, "label", r.label, "squared", r.squared, "test", r.test, "test_text", r.test_text, "valid",
             r.valid, "valid_text", r.valid_text, "ceiling_text", r.ceiling_text, "points", r.points, "config",
             r.config, "digest", r.digest, "precision_text", r.precision_text, "machine_text", r.machine_text,
             "program_text", r.program_text, "wall", r.wall, "wall_text", r.wall_text, "speed", r.speed, "speed_text",
             r.speed_text, "updates_text", r.updates_text, "divergence_text", r.divergence_text);
}

static void to_json(Json& out, const BoardLine& b) {
  const double share = b.updates > 0 ? static_cast<double>(b.update) / static_cast<double>(b.updates) : 0;
  out = object("key", b.key, "name", b.name, "model", b.model, "update", b.update, "updates", b.updates, "fraction",
               share, "rate_text", b.rate_text, "left_text", b.left_text, "state", b.state);
}

static void to_json(Json& out, const MethodBlock& block) {
  switch (block.kind) {
    case MethodBlock::Kind::paragraph:
      out = object("kind", "p", "text", block.text);
      break;
    case MethodBlock::Kind::formula:
      out = object("kind", "formula", "mathml", block.mathml, "text", block.text);
      break;
    case MethodBlock::Kind::table:
      out = object("kind", "table", "columns", block.columns, "rows", block.rows);
      break;
    case MethodBlock::Kind::code:
      out = object("kind", "code", "text", block.text);
  }
}

static void to_json(Json& out, const MethodPart& part) {
  out = object("title", part.title, "blocks", part.blocks);
}

Json page_json(const PageData& data, const PageSettings& settings) {
  const char* hint = settings.charts ? ""
                                     : "This program was built without Vega: only the main figures are drawn. In a "
                                       "checkout `make charts` gets Vega from npm; the tables below hold the same "
                                       "numbers.";
  const Json meta = object("title", data.title, "program", std::string("selectivbench ") + program_version(), "commit",
                           program_commit(), "sources", data.sources, "dated", settings.dated, "charts",
                           settings.charts, "charts_hint", hint, "live", settings.live, "headline", data.headline,
                           "warnings", data.warnings, "notes", data.notes, "counts", data.counts);
  Json figures = data.figures;
  if (!settings.charts)
    for (size_t i = 0; i < data.figures.size(); ++i)
      if (const std::string svg = figure_svg(data.figures[i], data.series); !svg.empty())
        figures[i]["svg"] = "data:image/svg+xml;base64," + base64(svg);
  return object("schema", page_schema, "meta", meta, "palette",
                object("light", palette_light(), "dark", palette_dark()), "models", data.models, "series", data.series,
                "columns", data.columns, "summary",
                object("caption", data.caption, "rows", data.summary, "cells", data.cells), "sections", data.sections,
                "figures", figures, "compare", data.compare, "samples", data.samples, "runs", data.runs, "board",
                data.board, "method", data.method);
}

}  // namespace sb
