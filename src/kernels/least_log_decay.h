// The smallest log-decay in sums of log-decays.
#pragma once

namespace sb {

// Smaller log-decays are replaced by this one, so that sums and their differences stay finite. Its factor, 1e-87, is 0 in
// float32. Sums in float32 lose the digits of weak decays beside it, so it is not smaller.
inline constexpr double kLeastLogDecay = -200;

}  // namespace sb
