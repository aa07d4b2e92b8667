#pragma once

namespace sb {

// Elementary functions out of + - * / and integer operations alone: no dependence on the C library's rounding.
namespace portable {
double log(double x);        // x > 0, normal
double exp(double x);        // |x| < 700
double cos_turns(double u);  // cos(2 pi u), 0 <= u < 1
}  // namespace portable

}  // namespace sb
