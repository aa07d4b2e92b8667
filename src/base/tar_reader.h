#pragma once
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/tar.h"

namespace sb {

// parse_tar() from pieces of an archive of `size` bytes: holds the files, never the archive.
class TarReader {
 public:
  TarReader(std::string file, size_t size, size_t most_files);
  void take(std::string_view piece);
  std::vector<TarFile> finish();

 private:
  void take_header();
  std::string file_;
  size_t left_;  // bytes that were not taken yet
  size_t most_files_;
  std::string header_;  // of the next file, as far as it came
  size_t content_left_ = 0, padding_left_ = 0;
  size_t zeros_ = 0;  // behind the last file
  std::vector<TarFile> out_;
  std::set<std::string> seen_;
};

}  // namespace sb
