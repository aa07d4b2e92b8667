#include "store/gzip.h"

#include <zlib.h>

#include <memory>

#include "base/error.h"
#include "base/text.h"

namespace sb {
namespace {

constexpr int gzip_window = 15 + 16;  // zlib's windowBits: the largest window, and 16 for the gzip format
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

size_t gunzip(std::string_view bytes, const std::string& file, size_t limit,
              const std::function<void(std::string_view)>& take) {
  z_stream stream{};
  if (bytes.size() > UINT32_MAX || inflateInit2(&stream, gzip_window) != Z_OK)
    throw refused(file, "cannot be unpacked");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ended(&stream, inflateEnd);
  stream.next_in = bytes_of(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string buffer(piece, '\0');
  size_t unpacked = 0;
  int state = Z_OK;
  while (state == Z_OK) {
    stream.next_out = bytes_of(buffer);
    stream.avail_out = static_cast<uInt>(piece);
    state = inflate(&stream, Z_NO_FLUSH);
    const size_t got = piece - stream.avail_out;
    unpacked += got;
    if (unpacked > limit) throw refused(file, "expected at most " + std::to_string(limit) + " bytes unpacked");
    take(std::string_view(buffer).substr(0, got));
  }
  if (state != Z_STREAM_END) throw refused(file, "damaged: it cannot be unpacked");
  if (stream.avail_in > 0) throw refused(file, "something follows the compressed archive");
  return unpacked;
}

}  // namespace sb
