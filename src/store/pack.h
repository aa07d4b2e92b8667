// Packs a folder of runs into one archive: configs, results, saved evaluations and thinned metrics. Weights,
// checkpoints, timings and recorded samples are not packed.
#pragma once
#include <string>
#include <vector>

#include "base/file_system.h"
#include "store/run_tree.h"

namespace sb {

struct Packed {
  std::vector<TarFile> files;  // including the packing list
  size_t runs = 0;
  size_t unfinished = 0;
  std::vector<std::string> notes;  // what was left out and why, one line each
  bool damaged = false;            // something was left out because it is damaged
};

// Intact runs below `root`, a folder or an archive, and the suite records next to them, under their relative paths.
// `except`: an archive to ignore, e.g. the one to be written. Throws bad_input if there are no runs.
Packed pack_runs(const std::string& root, const std::string& except = "");
// Writes atomically; compressed if the name ends in .gz or .tgz. Returns the SHA-256 of the file.
std::string write_archive(const std::string& path, const std::vector<TarFile>& files,
                          FileSystem& system = real_file_system());

}  // namespace sb
