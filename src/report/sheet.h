// A table ready to be written: cells as text, safe to print, escaped here for each format.
#pragma once
#include <string>
#include <vector>

namespace sb {

struct Sheet {
  struct Column {
    std::vector<std::string> header;  // lines
    bool left = false;
    int block = 0;  // 0: labels of the row, repeated where a wide table is cut; columns of one block stay together
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows, foot;  // foot: below a rule
  std::vector<std::string> head;                     // lines above the table
  std::vector<std::string> beneath;                  // notes directly beneath it, before the caption
  std::vector<std::string> caption, notes;
};

std::string text_sheet(const Sheet& sheet);
std::string markdown_sheet(const Sheet& sheet);
std::string latex_sheet(const Sheet& sheet);

}  // namespace sb
