#include "runs/gzip.h"

#include <zlib.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace sb {
namespace {

constexpr int gzip_window = 15 + 16;  // the largest window, a header and trailer of gzip around it
constexpr size_t piece = size_t{1} << 18;

Error refused(const std::string& file, const std::string& what) {
  return bad_input("archive", printable(file, 400) + ": " + what);
}

Bytef* bytes_of(std::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

}  // namespace

bool has_gzip() {
  return true;
}

bool is_gzip(std::string_view bytes) {
  return bytes.starts_with("\x1f\x8b");
}

std::string gzip(std::string_view content, const std::string& file) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, gzip_window, 9, Z_DEFAULT_STRATEGY) != Z_OK)
    throw refused(file, "cannot be compressed");
  std::string out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = bytes_of(content);
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = bytes_of(out);
  stream.avail_out = static_cast<uInt>(out.size());
  const bool fits = content.size() <= UINT32_MAX && out.size() <= UINT32_MAX;
  const bool done = fits && deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (!done) throw refused(file, "cannot be compressed");
  return out;
}

std::string gunzip(std::string_view bytes, const std::string& file, size_t limit) {
  z_stream stream{};
  if (bytes.size() > UINT32_MAX || inflateInit2(&stream, gzip_window) != Z_OK)
    throw refused(file, "cannot be unpacked");
  stream.next_in = bytes_of(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  int state = Z_OK;
  while (state == Z_OK && out.size() <= limit) {
    const size_t before = out.size();
    out.resize(before + piece);
    stream.next_out = bytes_of(std::string_view(out).substr(before));
    stream.avail_out = static_cast<uInt>(piece);
    state = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    if (state == Z_BUF_ERROR) break;  // torn: nothing left to read
  }
  const bool rest = stream.avail_in > 0;
  inflateEnd(&stream);
  if (out.size() > limit) throw refused(file, "expected at most " + std::to_string(limit) + " bytes unpacked");
  if (state != Z_STREAM_END) throw refused(file, "damaged: it cannot be unpacked");
  if (rest) throw refused(file, "something follows the compressed archive");
  return out;
}

}  // namespace sb
