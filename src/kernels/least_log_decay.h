// The smallest log-decay in sums of log-decays.
#pragma once

namespace sb {

// Smaller log-decays are replaced by this one, whose factor is 0 in every type, so that sums and their differences stay
// finite.
inline constexpr double kLeastLogDecay = -800;

}  // namespace sb
