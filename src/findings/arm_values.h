// The statistic of a comparison, per run and per grammar.
#pragma once
#include <map>

#include "findings/population.h"

namespace sb {

// Means per grammar over the seeds (initialisation and order) of the group's chosen setting. Runs on the grammar of the
// choices and failed runs are excluded. `arm` receives what went into the means, and the failed runs.
std::map<Unit, double> arm_values(const Rows& rows, const Claims& claims, const Comparison& comparison, size_t group,
                                  ArmFigures& arm);

// Why the group has no value on a grammar on which others have one, as text that follows the name of the grammar. Empty
// if there is no such run; nullopt if its runs on the grammar failed.
std::optional<std::string> how_lacking(const Rows& rows, size_t group, const Unit& grammar,
                                       const Comparison& comparison);

}  // namespace sb
