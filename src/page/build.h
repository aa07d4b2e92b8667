// From runs to everything the page shows.
#pragma once
#include <string>

#include "page/data.h"
#include "page/source.h"

namespace sb {

struct PageRequest {
  std::vector<std::string> sources;  // as they were named
  std::string page_folder;           // links to runs are relative to it; empty: no links
  std::string citation;              // text of CITATION.cff
  bool live = false;                 // with a board of runs that are not finished
};
PageData make_page(const SourceContent& content, const PageRequest& request);

}  // namespace sb
