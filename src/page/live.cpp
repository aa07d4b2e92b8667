#include "page/live.h"

#include "base/sha256.h"

namespace sb {

LivePage::LivePage(PageSource source, const PageParts& parts, int every_ms)
    : source_(std::move(source)), parts_(parts), every_ms_(every_ms) {}

std::vector<std::string> LivePage::begin(const std::string& where) {
  const std::lock_guard held(lock_);
  const SourceContent content = source_.read();
  source_.expect_some(content, where);
  show(content);
  std::vector<std::string> out;
  for (const auto& archive : content.archives) out.push_back(archive.problem);
  return out;
}

void LivePage::refresh() {
  const auto now = std::chrono::steady_clock::now();
  if (read_ && now - read_at_ < std::chrono::milliseconds(every_ms_)) return;
  show(source_.read());
}

void LivePage::show(const SourceContent& content) {
  const PageData page = make_page(content, {source_.roots(), "", parts_.citation, true});
  PageSettings settings;
  settings.charts = parts_.charts;
  settings.live = PageSettings::Live{"data", every_ms_};
  json_ = page_json(page, settings);
  html_.clear();
  title_ = page.title;
  data_.json = json_.dump(-1, ' ', false, Json::error_handler_t::replace);
  data_.tag = "\"" + sha256_hex(data_.json).substr(0, 32) + "\"";
  read_ = true;
  read_at_ = std::chrono::steady_clock::now();  // reading itself takes a while
}

LivePage::Data LivePage::data() {
  const std::lock_guard held(lock_);
  refresh();
  return data_;
}

std::string LivePage::html() {
  const std::lock_guard held(lock_);
  refresh();
  if (html_.empty()) html_ = html_page(parts_, title_, json_, true);
  return html_;
}

}  // namespace sb
