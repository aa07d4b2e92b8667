// Which linear algebra libtorch found, told from the loaded libraries: calling it could hang where threads or memory
// are limited.
#pragma once
#include <string>

namespace sb::cli {

std::string blas_library();  // "OpenBLAS", "MKL", "BLIS", "ATLAS", "reference"; "unknown" where none is seen

}  // namespace sb::cli
