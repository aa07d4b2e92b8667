#include "base/replace_file.h"

#include <filesystem>

#include "base/file.h"

namespace sb {

void replace_file(const std::string& path, std::string_view content, FileSystem& files) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::file_type there = fs::symlink_status(path, failed).type();
  if (there != fs::file_type::not_found && there != fs::file_type::regular && there != fs::file_type::directory)
    files.remove(path);  // if this fails, the next call reports it
  write_file_atomically(path, content, files);
}

}  // namespace sb
