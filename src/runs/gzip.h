// Compressed archives. gzip.cpp or gzip_absent.cpp is compiled, as the build has zlib or not.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace sb {

bool has_gzip();
bool is_gzip(std::string_view bytes);  // begins as such a file does
// The same bytes for the same content and zlib. Both throw bad_input "[archive] file: …" where the build has no zlib.
std::string gzip(std::string_view content, const std::string& file);
// Refuses what is torn, followed by something else, or longer than `limit`.
std::string gunzip(std::string_view bytes, const std::string& file, size_t limit);

}  // namespace sb
