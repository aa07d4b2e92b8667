// Prepares the process before anything else: opens descriptors 0 to 2 if they are closed, and turns fatal errors into a
// message and an exit code instead of a signal. The handlers of stop.h are set even before libraries are initialised.
#pragma once

namespace sb::cli {

void settle_process();

}  // namespace sb::cli
