#pragma once

namespace sb {

// Elementary functions built only from + - * / and integer operations, so results do not depend on the C library.
namespace portable {
double log(double x);        // x > 0, normal
double exp(double x);        // |x| < 700
double cos_turns(double u);  // cos(2 pi u), 0 <= u < 1
}  // namespace portable

}  // namespace sb
