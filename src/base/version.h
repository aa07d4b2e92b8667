// Version and origin of this program.
#pragma once

namespace sb {

const char* program_version();  // "0.2.0"
const char* program_commit();   // `git describe` of the sources; "unknown" without git
const char* compiler_name();    // "GNU 12.2.0"

}  // namespace sb
