// Compression of archives. The build compiles gzip.cpp if it has zlib, else gzip_absent.cpp.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace sb {

bool has_gzip();
bool is_gzip(std::string_view bytes);  // by its first bytes
// The same content and zlib version give the same bytes. Both functions throw bad_input "[archive] file: …" if the
// build has no zlib.
std::string gzip(std::string_view content, const std::string& file);
// Hands the unpacked bytes to `take`, a piece at a time; returns how many there are. Refuses what is torn, followed by
// something else, or longer than `limit`.
size_t gunzip(std::string_view bytes, const std::string& file, size_t limit,
              const std::function<void(std::string_view piece)>& take);

}  // namespace sb
