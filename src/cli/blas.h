// Name of the linear algebra library that libtorch uses, from the list of loaded libraries. The library itself is not
// called: that could hang under limits of threads or memory.
#pragma once
#include <string>

namespace sb::cli {

std::string blas_library();  // "OpenBLAS", "MKL", "BLIS", "ATLAS", "reference"; "unknown" if none is found

}  // namespace sb::cli
