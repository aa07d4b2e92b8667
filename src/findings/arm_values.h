// The statistic of a comparison, run by run and grammar by grammar.
#pragma once
#include <map>

#include "findings/population.h"

namespace sb {

// Means by grammar over seeds of initialisation and order of the group's chosen setting. Runs on the grammar of the
// choices and failed runs are left out. `arm` gets what went into the means, and the failed runs.
std::map<Unit, double> arm_values(const Rows& rows, const Claims& claims, const Comparison& comparison, size_t group,
                                  ArmFigures& arm);

// Why the group has no value on a grammar that others have, as words behind the grammar; empty: there is no such run.
// Nothing if its runs there failed.
std::optional<std::string> how_lacking(const Rows& rows, size_t group, const Unit& grammar,
                                       const Comparison& comparison);

}  // namespace sb
