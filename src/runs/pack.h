// A folder of runs as one archive: configs, results, saved evaluations and thinned metrics. No weights, checkpoints or
// timings.
#pragma once
#include <string>
#include <vector>

#include "base/file_system.h"
#include "runs/run_tree.h"

namespace sb {

struct Packed {
  std::vector<TarFile> files;  // with the packing list
  size_t runs = 0;
  size_t unfinished = 0;
  std::vector<std::string> notes;  // what was not taken and why, one line each
  bool damaged = false;            // one of them for being damaged
};

// Whole runs below `root`, a folder or an archive, and the records of suites beside them, under their paths there.
// `except`: an archive that is not looked into, the one to be written. Throws bad_input where there is none.
Packed pack_runs(const std::string& root, const std::string& except = "");
// Whole or not at all; compressed where the name ends in .gz or .tgz. Returns the SHA-256 of the file.
std::string write_archive(const std::string& path, const std::vector<TarFile>& files,
                          FileSystem& system = real_file_system());

}  // namespace sb
