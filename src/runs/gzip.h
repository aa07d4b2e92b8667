// Compressed archives. gzip.cpp or gzip_absent.cpp is compiled, as the build has zlib or not.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace sb {

bool has_gzip();
bool is_gzip(std::string_view bytes);  // begins as such a file does
// The same bytes for the same content and zlib. Both throw bad_input "[archive] file: …" where the build has no zlib.
std::string gzip(std::string_view content, const std::string& file);
// Hands the unpacked bytes to `take`, a piece at a time; returns how many there are. Refuses what is torn, followed by
// something else, or longer than `limit`.
size_t gunzip(std::string_view bytes, const std::string& file, size_t limit,
              const std::function<void(std::string_view piece)>& take);

}  // namespace sb
