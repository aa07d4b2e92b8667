// Live page of folders that change: rebuilt on request if the last build is old enough.
#pragma once
#include <chrono>
#include <mutex>
#include <string>

#include "page/build.h"
#include "page/html.h"

namespace sb {

class LivePage {
 public:
  // `every_ms`: how long data stays valid, and how often the page polls.
  LivePage(PageSource source, const PageParts& parts, int every_ms);

  // Reads the sources for the first time and returns one line per damaged item. Throws bad_input "[where] …" if nothing
  // can be read.
  std::vector<std::string> begin(const std::string& where);

  struct Data {
    std::string json, tag;  // the tag is the digest of the JSON
  };
  // Thread-safe.
  Data data();
  std::string html();

 private:
  void refresh();                           // requires the lock
  void show(const SourceContent& content);  // requires the lock

  std::mutex lock_;
  PageSource source_;
  const PageParts& parts_;
  int every_ms_;
  std::chrono::steady_clock::time_point read_at_{};
  bool read_ = false;
  Json json_;
  std::string title_;
  Data data_;
  std::string html_;  // of json_; empty: not built yet
};

}  // namespace sb
