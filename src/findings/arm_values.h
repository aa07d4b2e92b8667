// The statistic of a comparison, per run and per grammar.
#pragma once
#include <map>

#include "findings/population.h"

namespace sb {

// The run that stands for a diverged or collapsed one: the same seeds at the next lower learning rate at which training
// did not fail.
std::optional<size_t> repeat_of(const Rows& rows, const Group& group, size_t failed);

// The learning rate with most runs in both groups, and of these the best on valid; empty if there is none. Runs on the
// grammar of the choices do not count.
std::string common_rate(const Rows& rows, const Claims& claims, const Group& x, const Group& y);

// The learning rate at which to compare the group with another one, so that neither has tried more of them: empty if
// the other was also run at the rate of the group's chosen setting, or at none of its rates; else, of those that both
// have, the one with most runs of the group, and of these the best on valid.
std::string shared_rate(const Rows& rows, const Claims& claims, const Group& group, const Group& other);

// Means per grammar over the seeds (initialisation and order) of the group's chosen setting, or of its runs with the
// learning rate `rate`. Runs on the grammar of the choices are excluded, and failed runs without a repeat. `arm`
// receives what went into the means, and the failed runs.
std::map<Unit, double> arm_values(const Rows& rows, const Claims& claims, const Comparison& comparison, size_t group,
                                  ArmFigures& arm, const std::string& rate = "");

std::string grammar_text(const Unit& grammar);  // "3"

// Why the group has no value on a grammar on which others have one, as text that follows the name of the grammar. Empty
// if there is no such run; nullopt if its runs on the grammar failed.
std::optional<std::string> how_lacking(const Rows& rows, size_t group, const Unit& grammar,
                                       const Comparison& comparison);

}  // namespace sb
