// Prints a message, instead of an illegal-instruction crash, on a CPU that the program was not compiled for.
#include <unistd.h>

namespace {

// Runs before the program's other constructors, which may already use newer instructions.
__attribute__((constructor(101))) void refuse_older_processor() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) return;
  constexpr char line[] =
      "[processor] this program requires a processor with AVX2, FMA and BMI2 (x86-64-v3); "
      "`make install` compiles it for this one\n";
  (void)!::write(STDERR_FILENO, line, sizeof line - 1);
  ::_exit(2);
}

}  // namespace
