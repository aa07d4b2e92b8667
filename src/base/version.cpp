#include "base/version.h"

#include "commit.h"

#define SB_TEXT_(x) #x
#define SB_TEXT(x) SB_TEXT_(x)

namespace sb {

const char* program_version() {
  return SELECTIVBENCH_VERSION;
}

const char* program_commit() {
  return SELECTIVBENCH_COMMIT;
}

const char* compiler_name() {
#if defined(__clang__)
  return "Clang " SB_TEXT(__clang_major__) "." SB_TEXT(__clang_minor__) "." SB_TEXT(__clang_patchlevel__);
#else
  return "GNU " SB_TEXT(__GNUC__) "." SB_TEXT(__GNUC_MINOR__) "." SB_TEXT(__GNUC_PATCHLEVEL__);
#endif
}

}  // namespace sb
