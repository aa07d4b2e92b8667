#include "cli/blas.h"

#include <link.h>

#include <array>
#include <filesystem>
#include <utility>

namespace sb::cli {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 6> kKinds = {{{"openblas", "OpenBLAS"},
                                                                        {"mkl", "MKL"},
                                                                        {"blis", "BLIS"},
                                                                        {"atlas", "ATLAS"},
                                                                        {"armpl", "Arm PL"},
                                                                        {"libblas.so", "reference"}}};

// Distributions install every kind as libblas.so.3; the folder behind the links tells them apart.
int look(dl_phdr_info* info, size_t, void* out) {
  std::error_code failed;
  const std::string path = std::filesystem::canonical(info->dlpi_name, failed).string();
  if (failed) return 0;
  auto& best = *static_cast<size_t*>(out);
  for (size_t kind = 0; kind < best; ++kind)
    if (path.find(kKinds[kind].first) != std::string::npos) best = kind;
  return 0;
}

}  // namespace

std::string blas_library() {
  size_t best = kKinds.size();
  dl_iterate_phdr(look, &best);
  return best == kKinds.size() ? "unknown" : kKinds[best].second;
}

}  // namespace sb::cli
