// The page of folders that change: made anew when somebody asks and some time has passed.
#pragma once
#include <chrono>
#include <mutex>
#include <string>

#include "page/build.h"
#include "page/html.h"

namespace sb {

class LivePage {
 public:
  // `every_ms`: how long an answer is good for, and how often the page asks.
  LivePage(PageSource source, const PageParts& parts, int every_ms);

  // Reads for the first time: what is damaged, a line each. Throws bad_input "[where] …" where nothing can be read.
  std::vector<std::string> begin(const std::string& where);

  struct Data {
    std::string json, tag;  // the tag is the digest of the JSON
  };
  // Both may be called from several threads.
  Data data();
  std::string html();

 private:
  void refresh();                           // with the lock held
  void show(const SourceContent& content);  // the same

  std::mutex lock_;
  PageSource source_;
  const PageParts& parts_;
  int every_ms_;
  std::chrono::steady_clock::time_point read_at_{};
  bool read_ = false;
  Json json_;
  std::string title_;
  Data data_;
};

}  // namespace sb
