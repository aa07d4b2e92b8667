#include <ctime>
#include <filesystem>
#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "page/build.h"
#include "page/figure.h"
#include "page/html.h"

namespace sb::cli {
namespace report_command {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> folders;
  std::string out = "report.html", figures, data;
  bool dated = false;
};

// Folder of the page; links from standard output lead nowhere.
std::string folder_of(const std::string& out) {
  if (out == "-") return {};
  const std::string folder = fs::path(out).parent_path().string();
  return folder.empty() ? "." : folder;
}

Exit run(const Options& options, const SwitchDefaults& defaults) {
  if (!options.figures.empty()) make_folder("report --figures", options.figures);
  PageSource source(options.folders, "report DIR", defaults);
  const SourceContent content = source.read();
  source.expect_some(content, "report DIR");
  if (content.runs.empty())
    throw bad_input("report DIR",
                    "expected runs below the folder, got none, " + printable(options.folders.front(), 400) +
                        (content.archives.empty() ? "" : "; damaged: " + one_line(content.archives.front().problem)));
  const PageParts& parts = built_in_parts();
  const PageData data = make_page(content, {options.folders, folder_of(options.out), parts.citation, false});
  PageSettings settings;
  settings.charts = parts.charts;
  if (options.dated) settings.dated = utc_minutes(std::time(nullptr));
  const Json json = page_json(data, settings);
  const std::string page = html_page(parts, data.title, json, false);
  if (!options.figures.empty())
    if (const size_t removed = write_figures(options.figures, data.figures); removed > 0)
      complain("note: removed " + counted(removed, "file") + " of an earlier report");
  if (!options.data.empty()) deliver(options.data, json_document(json, 2));
  deliver(options.out, page);
  for (const auto& line : data.warnings) complain("note: " + line);
  if (!parts.charts)
    complain(
        "note: the page draws its main figures only; `make charts` in a checkout installs Vega, which draws all of "
        "them");
  if (options.out != "-" && options.data != "-")
    print(grouped(content.runs.size()) + (content.runs.size() == 1 ? " run, " : " runs, ") +
          bytes_text(static_cast<double>(page.size())) + ": " + one_line(options.out) + "\n");
  return Exit::done;
}

}  // namespace report_command

void write_report(const std::string& folder, const std::string& out, const SwitchDefaults& defaults) {
  using namespace report_command;
  Options options;
  options.folders = {folder};
  options.out = out;
  run(options, defaults);
}

void add_report(Program& program, SwitchDefaults defaults) {
  using namespace report_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments = program.command(
      "report", "Write one self-contained HTML page: tables, charts, comparisons, samples, every run with its config",
      {"selectivbench report runs/quick",
       "selectivbench report runs/quick results/small.tar.gz --out report.html --figures figures"},
      [options, defaults] { return run(*options, defaults); });
  arguments.positionals("DIR", options->folders, true, "Folders or archives of runs, or folders that contain them");
  arguments.text("--out", options->out, "FILE", "Page to write, - for standard output");
  arguments.text(
      "--figures", options->figures, "DIR",
      "Also write each chart as ID.vl.json (Vega-Lite) and ID.csv; charts that only an earlier report wrote there are "
      "removed");
  arguments.text("--data", options->data, "FILE", "Also write the page's data as JSON, - for standard output");
  arguments.flag("--dated", options->dated,
                 "Put the date into the page; without it, the same runs give the same bytes");
}

}  // namespace sb::cli
