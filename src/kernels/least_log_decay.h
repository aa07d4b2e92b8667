// The smallest log-decays in sums of log-decays.
#pragma once

namespace sb {

// Smaller log-decays are replaced by this one, so that sums and their differences stay finite. Its factor is 0 in every
// type.
inline constexpr double kLeastLogDecay = -800;
// The same for sums that are float32, where weak decays lose digits beside strong ones. Its factor is 0 in float32.
inline constexpr float kLeastLogDecayFloat = -200;
// The same for sums over all frames of a sample that are added to scores (forgetting attention): nearer to 0, so that
// the sums keep more digits. Its weight is 0.
inline constexpr float kLeastLogForget = -100;

}  // namespace sb
