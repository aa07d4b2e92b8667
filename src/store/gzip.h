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
// Passes the unpacked bytes to `take` in pieces; returns their number. Throws bad_input if the data is truncated, is
// followed by other data, or unpacks to more than `limit` bytes.
size_t gunzip(std::string_view bytes, const std::string& file, size_t limit,
              const std::function<void(std::string_view piece)>& take);

}  // namespace sb
