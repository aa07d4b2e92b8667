// What the process needs before anything else: descriptors 0 to 2 taken, and no signal where an error code will do.
#pragma once

namespace sb::cli {

void settle_process();

}  // namespace sb::cli
