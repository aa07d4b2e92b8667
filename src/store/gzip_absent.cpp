#include "base/error.h"
#include "base/text.h"
#include "store/gzip.h"

namespace sb {
namespace {

Error absent(const std::string& file) {
  return bad_input("archive", printable(file, 400) +
                                  ": this build cannot read or write compressed archives, because it has no zlib; "
                                  "use .tar (`gunzip` unpacks a .tar.gz)");
}

}  // namespace

bool has_gzip() {
  return false;
}

bool is_gzip(std::string_view bytes) {
  return bytes.starts_with("\x1f\x8b");
}

std::string gzip(std::string_view, const std::string& file) {
  throw absent(file);
}

size_t gunzip(std::string_view, const std::string& file, size_t, const std::function<void(std::string_view)>&) {
  throw absent(file);
}

}  // namespace sb
