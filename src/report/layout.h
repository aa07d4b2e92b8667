// Rows as sheets that people read.
#pragma once
#include "report/labels.h"
#include "report/sheet.h"

namespace sb {

Sheet cell_sheet(const Rows& rows, const Labels& labels);
Sheet run_sheet(const Rows& rows, const Labels& labels);
// What a table says beneath itself: how cells were averaged and chosen.
// `averaged`: what a cell's figures are, where they are not those of a table.
std::vector<std::string> caption_of(const Rows& rows, const Labels& labels, const std::string& averaged = {});
// Above it: runs that are missing or damaged, and results above their ceiling.
std::vector<std::string> head_of(const Rows& rows);
void add_notes(Sheet& sheet, const Rows& rows);

// Selected axes and their value, where the chosen one is the same in all groups.
std::vector<std::pair<std::string, std::string>> shared_settings(const Rows& rows);
// "Protocol: corrected.", or each protocol with its models; empty where all runs were trained elsewhere.
std::string protocol_line(const Rows& rows);

std::string amount(double value);  // 159.1 k
bool left_aligned(const LabelAxis& axis);

}  // namespace sb
