// Builds all data of the page from runs.
#pragma once
#include <string>

#include "page/data.h"
#include "page/source.h"

namespace sb {

struct PageRequest {
  std::vector<std::string> sources;  // as named by the user
  std::string page_folder;           // links to runs are relative to it; empty: no links
  std::string citation;              // text of CITATION.cff
  bool live = false;                 // include a board of unfinished runs
};
PageData make_page(const SourceContent& content, const PageRequest& request);

}  // namespace sb
