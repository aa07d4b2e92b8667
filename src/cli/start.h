// What the process needs before anything else: descriptors 0 to 2 taken, and a line and a code where it would else end
// by a signal. The handlers of stop.h are set even before libraries are initialised.
#pragma once

namespace sb::cli {

void settle_process();

}  // namespace sb::cli
