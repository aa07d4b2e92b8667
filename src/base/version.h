// What program this is.
#pragma once

namespace sb {

const char* program_version();  // as 0.2.0
const char* program_commit();   // as git describes the sources it was built from, "unknown" without git
const char* compiler_name();    // "GNU 12.2.0"

}  // namespace sb
