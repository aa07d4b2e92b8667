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

std::optional<size_t> candidate_at(const Rows& rows, const Group& group, const std::string& rate);

// The group's setting (learning rate, warm-up) to be compared with another group, so that neither has tried more of
// them, on the grammars of both chosen settings: of those with which both were run on all of these, diverged or not,
// the best on valid. nullopt if the chosen one is among them, or there is none.
std::optional<size_t> shared_candidate(const Rows& rows, const Claims& claims, const Group& group, const Group& other);

// Means per grammar over the seeds (initialisation and order) of the group's chosen setting, or of this candidate. Runs
// on the grammar of the choices are excluded, and failed runs without a repeat. `arm` receives what went into the
// means, and the failed runs.
std::map<Unit, double> arm_values(const Rows& rows, const Claims& claims, const Comparison& comparison, size_t group,
                                  ArmFigures& arm, std::optional<size_t> candidate = {});

std::string grammar_text(const Unit& grammar);  // "3"

// Why the group has no value on a grammar on which others have one, as text that follows the name of the grammar. Empty
// if there is no such run; nullopt if its runs on the grammar failed. `candidate`: as in arm_values().
std::optional<std::string> how_lacking(const Rows& rows, size_t group, const Unit& grammar,
                                       const Comparison& comparison, std::optional<size_t> candidate = {});

}  // namespace sb
