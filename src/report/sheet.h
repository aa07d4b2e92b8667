// A table ready to be written. Cells are text that is safe to print; each format escapes it here.
#pragma once
#include <string>
#include <vector>

namespace sb {

struct Sheet {
  struct Column {
    std::vector<std::string> header;  // lines
    bool left = false;
    int block = 0;  // 0: row labels, repeated if a wide table is split; columns of one block stay together
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows, foot;  // foot: below a rule
  std::vector<std::string> head;                     // lines above the table
  std::vector<std::string> beneath;                  // notes directly below the table, before the caption
  std::vector<std::string> caption, notes;
};

std::string text_sheet(const Sheet& sheet);
std::string markdown_sheet(const Sheet& sheet);
std::string latex_sheet(const Sheet& sheet);

}  // namespace sb
