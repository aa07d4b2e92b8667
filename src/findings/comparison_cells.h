// Cells of tables of comparisons, and the lines below such tables.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "findings/verdict.h"

namespace sb {

std::string where_text(const ScaleVerdict& stratum);  // "corrected, small"
// The number of states of another grammar, and of layers and updates if they are not those of the scale: "2 layers, 900
// updates". Empty if nothing differs.
std::string unusual_training(const ScaleVerdict& stratum, const ComparisonVerdict& one);
// "corrected, small, 2 layers, 900 updates"
std::string where_text(const ScaleVerdict& stratum, const ComparisonVerdict& one);
// "2 layers" if the runs have another number than the scale.
std::string other_layers(const ScaleVerdict& stratum, const ComparisonVerdict& one);
std::string first_figure(const ComparisonVerdict& one);   // of a: ".874", or "–"
std::string second_figure(const ComparisonVerdict& one);  // of b, or the chance level
std::string verdict_words(const ComparisonVerdict& one);  // its words; "reported", and what withholds a verdict
std::string verdict_cell(const ComparisonVerdict& one);   // the same in a table of Markdown
std::string in_brackets(const std::string& marks);        // " (exploratory)" of ScaleVerdict::marks, or ""

// The mean over the values of these grammars; NaN if there are none.
double mean_over(const std::map<Unit, double>& values, const std::map<Unit, double>& units);

// "Ceiling (n-gram), corrected, small: task 1 .999 (.967); task 3 .998 (.834)." of the comparisons of accuracies; empty
// if there are none.
std::string ceilings_text(const ScaleVerdict& stratum);

void say(std::vector<std::string>& lines, const std::string& line);  // adds the line unless it is there
// Adds models below the n-gram, failed runs and repeated ones.
void add_notes(const ScaleVerdict& stratum, const ComparisonVerdict& one, std::vector<std::string>& lines);

// The comparisons that answer a question under the corrected protocol, at every scale with runs.
struct Answered {
  const ScaleVerdict* stratum = nullptr;
  const ComparisonVerdict* one = nullptr;
};
std::vector<Answered> answers_to(const Question& question, const std::vector<ClaimVerdict>& verdicts);

}  // namespace sb
