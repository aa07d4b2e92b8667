// Tar archives of plain files in the ustar format. The same files give the same bytes, and any tar program can unpack
// them.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sb {

struct TarFile {
  std::string name;  // "folder/file"
  std::string content;
};

// True for a relative path of printable ASCII that has no backslash, has no component that is empty, "." or "..", and
// is short enough for a tar header.
bool is_tar_name(std::string_view name);

// Writes the files sorted by name, with fixed owners, times and modes. Throws bad_input "[tar] …" for an invalid or
// duplicate name.
std::string tar_bytes(std::vector<TarFile> files);

// Reads the files of an archive in their order and skips folders. Throws bad_input with one line "[tar] file: …" for
// any other entry that is not a plain file, a name that is_tar_name rejects, a duplicate name, a wrong checksum, more
// than `most_files` files, or a truncated archive.
std::vector<TarFile> parse_tar(std::string_view bytes, const std::string& file, size_t most_files);

}  // namespace sb
