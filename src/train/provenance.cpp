#include "train/provenance.h"

#include <ATen/Parallel.h>
#include <link.h>
#include <sys/utsname.h>
#include <torch/version.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <set>
#include <xsimd/xsimd.hpp>

#include "base/text.h"
#include "base/version.h"

namespace sb {
namespace {

// File names of the loaded BLAS libraries. (The models' matrix products on the CPU do not use them.)
std::string loaded_blas() {
  std::set<std::string> names;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        const std::filesystem::path path = info->dlpi_name;
        const std::string name = path.filename().string();
        if (name.find("blas") != std::string::npos || name.find("mkl_") != std::string::npos) {
          std::error_code failed;
          const auto real = std::filesystem::canonical(path, failed);
          static_cast<std::set<std::string>*>(out)->insert(failed ? name : real.filename().string());
        }
        return 0;
      },
      &names);
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : " ") + name;
  return out.empty() ? "none" : out;
}

std::string processor() {
  utsname system{};
  return ::uname(&system) == 0 ? system.machine : "unknown";
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? printable(name.data(), 255) : "unknown";
}

}  // namespace

Provenance provenance() {
  Provenance out;
  out.version = program_version();
  out.commit = program_commit();
  out.compiler = compiler_name();
  out.libtorch = TORCH_VERSION;
  out.blas = loaded_blas();
  out.instructions = processor() + " " + xsimd::default_arch::name();
  out.device = "cpu";
  out.host = host_name();
  out.threads = at::get_num_threads();
  return out;
}

}  // namespace sb
