#include "base/base64.h"
#include "base/number.h"
#include "base/version.h"
#include "page/data.h"
#include "page/figure_svg.h"
#include "report/palette.h"

namespace sb {
namespace {

template <class Value>
Json maybe(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// The JSON array of each(element) over the range.
template <class Range, class Each>
Json array_of(const Range& range, const Each& each) {
  Json out = Json::array();
  for (const auto& one : range) out.push_back(each(one));
  return out;
}

Json meta_json(const PageData& data, const PageSettings& settings) {
  const PageCounts& n = data.counts;
  Json live = nullptr;
  if (settings.live) live = {{"data", settings.live->data}, {"every_ms", settings.live->every_ms}};
  return {
      {"title", data.title},
      {"program", std::string("selectivbench ") + program_version()},
      {"commit", program_commit()},
      {"sources", data.sources},
      {"dated", maybe(settings.dated)},
      {"charts", settings.charts},
      {"charts_hint", settings.charts ? ""
                                      : "This program was built without Vega: only the main figures are drawn. In a "
                                        "checkout `make charts` gets Vega from npm; the tables below hold the same "
                                        "numbers."},
      {"live", std::move(live)},
      {"headline", data.headline},
      {"warnings", data.warnings},
      {"notes", data.notes},
      {"counts",
       {{"found", n.found},
        {"averaged", n.averaged},
        {"diverged", n.diverged},
        {"unfinished", n.unfinished},
        {"damaged", n.damaged},
        {"other_version", n.other_version},
        {"copies", n.copies},
        {"untested", n.untested},
        {"not_chosen", n.not_chosen}}}};
}

// Task numbers as JSON numbers, other names as text.
Json task_json(const std::string& task) {
  const auto number = parse_integer(task);
  return number ? Json(*number) : Json(task);
}

Json column_json(const PageColumn& c) {
  return {{"id", c.id},
          {"name", c.name},
          {"lines", c.lines},
          {"task", task_json(c.task)},
          {"gap", maybe(c.at)},
          {"squared", c.squared},
          {"own", c.own},
          {"section", c.section},
          {"n_gram", maybe(c.n_gram)},
          {"n_gram_text", c.n_gram_text},
          {"ceiling", maybe(c.ceiling)},
          {"ceiling_text", c.ceiling_text},
          {"chance", maybe(c.chance)},
          {"chance_text", c.chance_text},
          {"metric_text", c.metric_text}};
}

Json cell_json(const PageCell& c) {
  Json versus = nullptr;
  if (c.versus_best)
    versus = {{"difference", c.versus_best->difference},
              {"difference_text", c.versus_best->difference_text},
              {"interval_text", c.versus_best->interval_text},
              {"p", maybe(c.versus_best->p)},
              {"p_text", c.versus_best->p_text},
              {"significant", c.versus_best->significant},
              {"n", c.versus_best->n}};
  return {{"series", c.series},
          {"column", c.column},
          {"mean", maybe(c.mean)},
          {"mean_text", c.mean_text},
          {"low", maybe(c.low)},
          {"high", maybe(c.high)},
          {"interval_text", c.interval_text},
          {"sd_text", c.sd_text},
          {"sd_over", c.sd_over},
          {"fraction", maybe(c.fraction)},
          {"fraction_text", c.fraction_text},
          {"n_gram_text", c.n_gram_text},
          {"ceiling_text", c.ceiling_text},
          {"chance_text", c.chance_text},
          {"paper", maybe(c.paper)},
          {"paper_text", c.paper_text},
          {"difference", maybe(c.difference)},
          {"difference_text", c.difference_text},
          {"grammars", c.grammars},
          {"seeds", c.seeds},
          {"n_text", c.n_text},
          {"uneven_text", c.uneven_text},
          {"best", c.best},
          {"versus_best", std::move(versus)},
          {"marks", array_of(c.marks,
                             [](const PageMark& mark) {
                               return Json{{"kind", mark.kind}, {"text", mark.text}};
                             })},
          {"runs", c.runs}};
}

Json summary_json(const PageData& data) {
  return {{"caption", data.caption},
          {"rows", array_of(data.summary,
                            [](const SummaryRow& r) {
                              return Json{{"series", r.series},           {"params", maybe(r.params)},
                                          {"params_text", r.params_text}, {"state", maybe(r.state)},
                                          {"state_text", r.state_text},   {"precision_text", r.precision_text},
                                          {"speed", maybe(r.speed)},      {"speed_text", r.speed_text}};
                            })},
          {"cells", array_of(data.cells, cell_json)}};
}

Json figure_json(const Figure& f) {
  Json rows = Json::array();
  for (const auto& row : f.rows) rows.push_back(array_of(row, [](const FigureValue& value) { return value.json(); }));
  return {{"id", f.id},
          {"section", f.section},
          {"kind", f.kind},
          {"setting", f.setting},
          {"title", f.title},
          {"caption", f.caption},
          {"columns", array_of(f.columns,
                               [](const FigureColumn& c) {
                                 return Json{{"key", c.key}, {"title", c.title}, {"type", c.type}};
                               })},
          {"rows", std::move(rows)},
          {"spec", f.spec},
          {"height", f.height},
          {"series", f.series},
          {"palette", f.palette},
          {"summary", f.summary},
          {"runs", f.runs}};
}

Json compare_json(const PageCompare& compare) {
  const auto pair_json = [](const PairedDifference& p) {
    return Json::array({p.a, p.b, p.n, p.difference, maybe(p.low), maybe(p.high), maybe(p.p), p.difference_text,
                        p.interval_text, p.p_text});
  };
  const auto values_json = [](const GrammarValues& v) {
    return Json{{"series", v.series},
                {"mean", array_of(v.mean, [](const std::optional<double>& one) { return maybe(one); })},
                {"text", v.text}};
  };
  return {{"text", compare.text},
          {"columns", array_of(compare.columns,
                               [&](const CompareColumn& c) {
                                 return Json{{"column", c.column},
                                             {"grammars", c.grammars},
                                             {"values", array_of(c.values, values_json)},
                                             {"pairs", array_of(c.pairs, pair_json)}};
                               })},
          {"note", maybe(compare.note)}};
}

Json beliefs_json(const std::vector<Belief5>& beliefs) {
  return array_of(beliefs, [](const Belief5& belief) {
    return array_of(belief, [](const auto& share) { return Json::array({share.first, share.second}); });
  });
}

Json sample_json(const PageSample& s) {
  return {
      {"id", s.id},
      {"column", s.column},
      {"title", s.title},
      {"length", s.length},
      {"shown", s.elements.size()},
      {"elements",
       array_of(s.elements,
                [](const SampleElement& e) {
                  return Json{{"symbol", e.symbol}, {"state", e.state}, {"gap", e.gap}, {"gap_symbols", e.gap_symbols}};
                })},
      {"filter", beliefs_json(s.filter)},
      {"models", array_of(s.models, [](const SampleModel& m) {
         return Json{{"series", m.series}, {"run", m.run}, {"beliefs", beliefs_json(m.beliefs)}};
       })}};
}

Json run_json(const PageRun& r) {
  return {{"key", r.key},
          {"id", r.id},
          {"folder", r.folder},
          {"href", maybe(r.href)},
          {"state", r.state},
          {"state_text", r.state_text},
          {"problems", r.problems},
          {"standing", r.standing},
          {"standing_text", r.standing_text},
          {"series", maybe(r.series)},
          {"column", maybe(r.column)},
          {"model", r.model},
          {"task", r.task ? task_json(*r.task) : Json(nullptr)},
          {"seeds_text", r.seeds_text},
          {"label", r.label},
          {"squared", r.squared},
          {"test", maybe(r.test)},
          {"test_text", r.test_text},
          {"valid", maybe(r.valid)},
          {"valid_text", r.valid_text},
          {"ceiling_text", r.ceiling_text},
          {"points", array_of(r.points,
                              [](const auto& p) {
                                return Json::array({p.first, p.second});
                              })},
          {"config", array_of(r.config,
                              [](const ConfigDifference& d) {
                                return Json::array({d.key, d.value, d.usual});
                              })},
          {"digest", r.digest},
          {"precision_text", r.precision_text},
          {"machine_text", r.machine_text},
          {"program_text", r.program_text},
          {"wall", maybe(r.wall)},
          {"wall_text", r.wall_text},
          {"speed", maybe(r.speed)},
          {"speed_text", r.speed_text},
          {"updates_text", r.updates_text},
          {"divergence_text", r.divergence_text}};
}

Json block_json(const MethodBlock& block) {
  switch (block.kind) {
    case MethodBlock::Kind::paragraph:
      return {{"kind", "p"}, {"text", block.text}};
    case MethodBlock::Kind::formula:
      return {{"kind", "formula"}, {"mathml", block.mathml}, {"text", block.text}};
    case MethodBlock::Kind::table:
      return {{"kind", "table"}, {"columns", block.columns}, {"rows", block.rows}};
    case MethodBlock::Kind::code:
      break;
  }
  return {{"kind", "code"}, {"text", block.text}};
}

}  // namespace

Json page_json(const PageData& data, const PageSettings& settings) {
  Json out = {{"schema", page_schema}, {"meta", meta_json(data, settings)}};
  out["palette"] = {{"light", palette_light()}, {"dark", palette_dark()}};
  out["models"] = array_of(data.models, [](const PageModel& m) {
    return Json{{"name", m.name}, {"title", m.title}, {"colour", m.colour}};
  });
  out["series"] = array_of(data.series, [](const PageSeries& s) {
    return Json{{"id", s.id},           {"name", s.name},     {"model", s.model},
                {"setting", s.setting}, {"colour", s.colour}, {"dash", s.dash}};
  });
  out["columns"] = array_of(data.columns, column_json);
  out["summary"] = summary_json(data);
  out["sections"] = array_of(data.sections, [](const PageSection& s) {
    return Json{{"id", s.id}, {"title", s.title}, {"kind", s.kind}, {"text", s.text}, {"absent", s.absent}};
  });
  out["figures"] = array_of(data.figures, figure_json);
  if (!settings.charts)
    for (size_t i = 0; i < data.figures.size(); ++i)
      if (const std::string svg = figure_svg(data.figures[i], data.series); !svg.empty())
        out["figures"][i]["svg"] = "data:image/svg+xml;base64," + base64(svg);
  out["compare"] = compare_json(data.compare);
  out["samples"] = array_of(data.samples, sample_json);
  out["runs"] = array_of(data.runs, run_json);
  out["board"] = array_of(data.board, [](const BoardLine& b) {
    const double share = b.updates > 0 ? static_cast<double>(b.update) / static_cast<double>(b.updates) : 0;
    return Json{{"key", b.key},         {"name", b.name},    {"model", b.model},         {"update", b.update},
                {"updates", b.updates}, {"fraction", share}, {"rate_text", b.rate_text}, {"left_text", b.left_text},
                {"state", b.state}};
  });
  out["method"] = array_of(data.method, [](const MethodPart& part) {
    return Json{{"title", part.title}, {"blocks", array_of(part.blocks, block_json)}};
  });
  return out;
}

}  // namespace sb
