#include "page/figure.h"

#include <gtest/gtest.h>

#include <set>

#include "../base/faulty_file_system.h"
#include "made_up.h"

namespace sb::test {
namespace {

TEST(Figure, RoundsNumbersOnceAndFormatsThemLikeJavaScript) {
  EXPECT_EQ(plain_number(1), "1");
  EXPECT_EQ(plain_number(.858), "0.858");
  EXPECT_EQ(plain_number(-.25), "-0.25");
  EXPECT_EQ(plain_number(1e-7), "0");
  EXPECT_EQ(plain_number(-1e-9), "0");
  EXPECT_EQ(plain_number(123456.5), "123456.5");
  EXPECT_EQ(FigureValue(1.0 / 3).text(), "0.333333");
  EXPECT_EQ(FigureValue(1.0 / 3).json().dump(), "0.333333");
  EXPECT_EQ(FigureValue(2.0).json().dump(), "2");
  EXPECT_EQ(FigureValue(5e-5).text(), "0.00005");
  EXPECT_EQ(FigureValue(std::numeric_limits<double>::quiet_NaN()).json(), Json(nullptr));
  EXPECT_EQ(FigureValue(std::optional<double>()).text(), "");
  EXPECT_EQ(FigureValue(std::optional<double>(.5)).text(), "0.5");
}

TEST(Figure, CsvQuotesSpecialCharacters) {
  Figure figure;
  figure.columns = {{"series", "model", "nominal"}, {"x", "x", "quantitative"}};
  figure.rows = {{"a, \"b\"", 1.5}, {"line\nbreak", FigureValue()}};
  EXPECT_EQ(figure_csv(figure), "series,x\n\"a, \"\"b\"\"\",1.5\n\"line\nbreak\",\n");
}

TEST(Figure, CsvEscapesSpreadsheetFormulas) {
  Figure figure;
  figure.columns = {{"series", "model", "nominal"}, {"x", "x", "quantitative"}};
  figure.rows = {{"=HYPERLINK(\"a\")", -1.5}, {"@a", -2}};
  EXPECT_EQ(figure_csv(figure), "series,x\n\"'=HYPERLINK(\"\"a\"\")\",-1.5\n'@a,-2\n");
}

// Fields of a line, without line breaks in them.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      out.back() += line[i++];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      out.emplace_back();
    } else {
      out.back() += line[i];
    }
  }
  return out;
}

TEST(Figure, CsvDataAndSpecificationHaveSameNumbers) {
  TemporaryFolder root;
  for (const int seed : {1, 2}) finish_small(root.file(""), "gla", seed, 2, "[eval]\ngaps = [10, 20]\n");
  const PageData data = page_of(root.file(""));
  const Json page = page_json(data, {});
  ASSERT_EQ(page["figures"].size(), data.figures.size());
  ASSERT_GT(data.figures.size(), 8U);
  for (size_t f = 0; f < data.figures.size(); ++f) {
    const Figure& figure = data.figures[f];
    EXPECT_EQ(std::set<std::string>(figure.runs.begin(), figure.runs.end()).size(), figure.runs.size()) << figure.id;
    const Json spec = standalone_spec(figure);
    const Json& values = spec["data"]["values"];
    ASSERT_EQ(values.size(), figure.rows.size());
    EXPECT_FALSE(spec["data"].contains("name"));
    std::istringstream lines(figure_csv(figure));
    std::string line;
    std::getline(lines, line);
    const auto keys = fields_of(line);
    for (size_t r = 0; r < values.size(); ++r) {
      ASSERT_TRUE(std::getline(lines, line));
      const auto fields = fields_of(line);
      ASSERT_EQ(fields.size(), keys.size());
      for (size_t k = 0; k < keys.size(); ++k) {
        const Json& value = values[r][keys[k]];
        EXPECT_EQ(value, page["figures"][f]["rows"][r][k]);
        if (value.is_null()) {
          EXPECT_EQ(fields[k], "");
        }
        if (value.is_string()) {
          EXPECT_EQ(fields[k], value.get<std::string>());
        }
        if (value.is_number()) {
          EXPECT_EQ(std::stod(fields[k]), value.get<double>());
        }
      }
    }
  }
}

// What base64 stands for.
std::string decoded(const std::string& text) {
  static const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(letters.find(c));
    if ((held += 6) >= 8) out += static_cast<char>(bits >> (held -= 8) & 0xFF);
  }
  return out;
}

TEST(Figure, MainFiguresAreSvgWithoutVega) {
  TemporaryFolder root;
  for (const char* model : {"gla", "mamba", "transformer"})
    for (const int seed : {1, 2}) finish_small(root.path(), model, seed, 2, "[eval]\ngaps = [10, 20]\n");
  const PageData data = page_of(root.path());
  PageSettings settings;
  settings.charts = false;
  const Json page = page_json(data, settings);
  std::set<std::string> drawn;
  for (const auto& figure : page["figures"]) {
    if (!figure.contains("svg")) continue;
    const std::string address = figure["svg"], start = "data:image/svg+xml;base64,";
    ASSERT_TRUE(address.starts_with(start));
    const std::string svg = decoded(address.substr(start.size()));
    EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n")) << svg;
    for (const auto& series : data.series) EXPECT_NE(svg.find(series.name), std::string::npos) << series.name;
    drawn.insert(figure["kind"].get<std::string>());
  }
  EXPECT_EQ(drawn, (std::set<std::string>{"overview", "learning", "gaps"}));
  settings.charts = true;
  for (const auto& figure : page_json(data, settings)["figures"]) EXPECT_FALSE(figure.contains("svg"));
}

TEST(Figure, RunsEvaluatedOnceHaveBars) {
  TemporaryFolder root;
  for (const char* model : {"gla", "mamba"}) {
    const ResolvedConfig config = small_config(model, 1);
    RunStore store(root.path(), config);
    for (int64_t u = 0; u < 100; ++u) store.add({u, "train", {{"loss", 1}, {"lr", .001}}});
    store.add({100, "valid", {{"accuracy", .5}, {"loss", 1}}});
    Result result = rich_result(config);
    result.updates = 100;
    const double weight = 2;
    store.finish(std::move(result), {{"weight", "F64", {1}, &weight}});
  }
  const PageData data = page_of(root.path());
  EXPECT_FALSE(find_figure(data, "learning"));
  const Figure* figure = find_figure(data, "learning_end");
  ASSERT_TRUE(figure);
  EXPECT_EQ(figure->spec["layer"][0]["mark"]["type"], "bar");
  size_t models = 0, references = 0;
  for (const auto& row : figure->rows) (row[1].text() == "model" ? models : references) += 1;
  EXPECT_EQ(models, 2U);
  EXPECT_EQ(references, 2U) << "ceiling and n-gram, once each";
  PageSettings settings;
  settings.charts = false;
  for (const auto& one : page_json(data, settings)["figures"])
    EXPECT_EQ(one.contains("svg"), one["kind"] == "learning_end" || one["kind"] == "overview") << one["kind"];
}

Figure figure_named(const std::string& id) {
  Figure out;
  out.id = out.title = id;
  out.columns = {{"x", "x", "quantitative"}};
  out.rows = {{1.0}};
  out.spec = Json::object();
  return out;
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) out.insert(entry.path().filename().string());
  return out;
}

constexpr const char* figure_list = "selectivbench-figures.txt";

TEST(FigureFiles, RemoveThoseOfEarlierReportOnly) {
  TemporaryFolder folder;
  write_file_atomically(folder.file("mine.csv"), "mine");
  EXPECT_EQ(write_figures(folder.path(), {figure_named("a"), figure_named("b")}), 0U);
  EXPECT_EQ(write_figures(folder.path(), {figure_named("b")}), 2U);
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"b.csv", "b.vl.json", "mine.csv", figure_list}));
}

TEST(FigureFiles, ReplaceLinksAndKeepTheirTargets) {
  TemporaryFolder folder, elsewhere;
  write_file_atomically(elsewhere.file("mine"), "mine");
  for (const char* name : {"a.csv", "a.vl.json", figure_list})
    std::filesystem::create_symlink(elsewhere.file("mine"), folder.file(name));
  write_figures(folder.path(), {figure_named("a")});
  EXPECT_EQ(read_file(elsewhere.file("mine"), 100), "mine");
  for (const auto& name : names_in(folder.path())) EXPECT_FALSE(std::filesystem::is_symlink(folder.file(name))) << name;
}

TEST(FigureFiles, OfFullDiskAreRemovedByNextReport) {
  for (int call = 0;; ++call) {
    TemporaryFolder folder;
    write_figures(folder.path(), {figure_named("old")});
    FaultyFileSystem full(call);
    try {
      write_figures(folder.path(), {figure_named("a"), figure_named("b")}, full);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::cannot_write);
    }
    write_figures(folder.path(), {});
    EXPECT_EQ(names_in(folder.path()), std::set<std::string>{figure_list}) << "call " << call;
    if (!full.failed()) break;
  }
}

}  // namespace
}  // namespace sb::test
