// Reads folders and archives of runs for the page: the rows of tables, and for each run the data that tables do not
// need. Unchanged runs are not read again.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "report/folder.h"
#include "store/metrics.h"

namespace sb {

// Thinned metrics of a run: training loss as means over blocks of updates, and all measurements on valid.
struct CurvePoint {
  int64_t update = 0;
  double value = 0;
};
struct Curves {
  std::vector<CurvePoint> loss;   // at the last update of each block
  std::vector<CurvePoint> valid;  // accuracy, or squared error
  bool squared = false;           // loss and valid are squared errors
  int64_t last = 0;               // updates done at the last row
  std::string fault;              // why there are no curves
};
constexpr int64_t most_blocks = 60;
constexpr size_t most_valid_points = 200;
// `updates`: of the whole run, so that runs of one config have the same blocks, whatever their progress.
Curves thin_curves(const std::vector<MetricRow>& rows, int64_t updates);

struct SourceRun {
  std::shared_ptr<const ReadRun> read;
  Curves curves;
  std::string digest;                      // numbers_sha256 of the result, with its samples
  std::optional<double> seconds_per_step;  // of an unfinished run, from its last timing rows
  bool in_archive = false;
};

struct SourceContent {
  Rows rows;
  std::vector<std::shared_ptr<const SourceRun>> runs;  // every folder, sorted by path
  std::vector<bool> held;                              // for each run: unfinished, and a process works on it
  std::vector<DamagedArchive> archives;                // without duplicates
  std::map<std::string, size_t> by_folder;             // folders as in Rows::runs
};

class PageSource {
 public:
  // Throws bad_input "[where] …" for a root that is neither a readable folder nor a file.
  PageSource(std::vector<std::string> roots, const std::string& where, SwitchDefaults defaults = {});

  const std::vector<std::string>& roots() const { return roots_; }
  // Reads the current content; unreadable archives are listed. Runs whose files have the same sizes and times as before
  // are not read again.
  SourceContent read();
  // Throws bad_input "[where] …" if every root is an archive and none could be read.
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
