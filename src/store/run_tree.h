// Reads files of runs from folders on disk and from opened archives of `pack`. An archive reads like a folder of the
// same name ("results/small.tar.gz/0123456789abcdef/result.json").
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/tar.h"

namespace sb {

constexpr size_t kMaxArchiveBytes = size_t{1} << 30;  // bytes, before and after compression
constexpr size_t most_archived = 200000;              // files

// packed.json of an archive: sealed, with the digest of every other file.
constexpr const char* packing_list_name = "packed.json";
std::string packing_list(const std::vector<TarFile>& files);

// Files of an archive by name, of bounded size. Every file must match its digest in packed.json, and no file may be
// missing or unlisted. Throws bad_input with one line that names the archive.
using ArchivedFiles = std::map<std::string, std::string>;
ArchivedFiles parse_archive(std::string_view bytes, const std::string& file);

class RunTree {
 public:
  static const RunTree& disk();  // without archives

  static bool is_archive_name(std::string_view path);  // ends in .tar, .tar.gz or .tgz
  static bool is_archive(const std::string& file);     // by its name or first bytes, even if damaged
  void open(const std::string& archive);               // makes it readable like a folder; throws like parse_archive

  bool exists(const std::string& path) const;  // also true for any link
  bool is_folder(const std::string& path) const;
  bool is_link(const std::string& path) const;
  std::string read(const std::string& path, size_t limit) const;  // like read_file
  // Sorted names in a folder; `failed` is set on error.
  std::vector<std::string> names(const std::string& folder, std::error_code& failed) const;

 private:
  struct Archive {
    ArchivedFiles files;
    std::set<std::string> folders;  // "" is the archive itself
  };
  struct Found {
    const Archive* archive = nullptr;
    std::string name;
  };
  Found find(const std::string& path) const;

  std::map<std::string, Archive> archives_;  // by path
};

}  // namespace sb
