#pragma once
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/tar.h"

namespace sb {

// parse_tar() for an archive of `size` bytes that arrives in pieces. Keeps the files, never the whole archive.
class TarReader {
 public:
  TarReader(std::string file, size_t size, size_t most_files);
  void take(std::string_view piece);
  std::vector<TarFile> finish();

 private:
  void take_header();
  std::string file_;
  size_t left_;  // bytes not received yet
  size_t most_files_;
  std::string header_;  // header of the next file, as far as received
  size_t content_left_ = 0, padding_left_ = 0;
  size_t zeros_ = 0;  // zero bytes after the last file
  std::vector<TarFile> out_;
  std::set<std::string> seen_;
};

}  // namespace sb
