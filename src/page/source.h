// Folders and archives of runs as the page sees them: rows as tables have them, and beside each run what tables leave
// behind. Reading again costs little where nothing changed.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "report/folder.h"
#include "runs/metrics.h"

namespace sb {

// Metrics of a run, thinned: losses of training as means over blocks of updates, everything measured on valid.
struct CurvePoint {
  int64_t update = 0;
  double value = 0;
};
struct Curves {
  std::vector<CurvePoint> loss;   // at the last update of each block
  std::vector<CurvePoint> valid;  // accuracy
  int64_t last = 0;               // updates made by the last row
  std::string fault;              // why there are none
};
constexpr int64_t most_blocks = 60;
constexpr size_t most_valid_points = 200;
// `updates` of the whole run: runs of one config have the same blocks, however far they came.
Curves thin_curves(const std::vector<MetricRow>& rows, int64_t updates);

struct SourceRun {
  std::shared_ptr<const ReadRun> read;
  Curves curves;
  std::string digest;                    // numbers_sha256 of the result
  std::optional<double> seconds_a_step;  // of a run that is not finished, by its last rows of timing
  bool in_archive = false;
};

struct SourceContent {
  Rows rows;
  std::vector<std::shared_ptr<const SourceRun>> runs;  // every folder, in order of path
  std::vector<bool> held;                              // of each: not finished, and a process works on it
  std::vector<DamagedArchive> archives;                // each once
  std::map<std::string, size_t> by_folder;             // as in Rows::runs
};

class PageSource {
 public:
  // Throws bad_input "[where] …" for what is neither a folder that can be read nor a file.
  PageSource(std::vector<std::string> roots, const std::string& where, SwitchDefaults defaults = {});

  const std::vector<std::string>& roots() const { return roots_; }
  // What there is now; archives that cannot be read are listed. Runs whose files have the sizes and times they had last
  // time are not read again.
  SourceContent read();
  // Throws bad_input "[where] …" where every root is an archive and none could be read.
  void expect_some(const SourceContent& content, const std::string& where) const;

 private:
  struct Kept {
    std::string stamp;
    std::shared_ptr<const SourceRun> run;
  };
  std::vector<std::string> roots_;
  SwitchDefaults defaults_;
  std::map<std::string, Kept> kept_;  // by folder
};

}  // namespace sb
