// Archives of plain files in the ustar format: the same files give the same bytes, and any tar unpacks them.
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

// Relative, of printable ASCII without backslashes, no component empty, "." or "..", and short enough for a header.
bool is_tar_name(std::string_view name);

// Files by name; owners, times and modes are fixed. Throws bad_input "[tar] …" for a name that is none or stands there
// twice.
std::string tar_bytes(std::vector<TarFile> files);

// The files of an archive, in its order. Folders are passed over; anything else that is no plain file, a name that
// is_tar_name refuses or that stands there twice, a checksum that does not fit, more than `most_files` files and an
// archive without its end are refused: bad_input with one line "[tar] file: …".
std::vector<TarFile> parse_tar(std::string_view bytes, const std::string& file, size_t most_files);

}  // namespace sb
