// Functions of base/portable.h for arrays: the same bits, several numbers at a time.
#pragma once
#include <span>

namespace sb::portable {

void log(std::span<double> x);  // in place
// cos(2 pi u) in place of u, and sin(2 pi u), which is cos_turns(u - 1/4) or cos_turns(u + 3/4). u: multiples of 2^-32.
void cos_sin_turns(std::span<double> u, double* sin);

}  // namespace sb::portable
