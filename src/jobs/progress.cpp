#include "jobs/progress.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/number.h"
#include "base/text.h"

namespace sb {
namespace {

constexpr double kRedraw = 0.1;   // seconds between updates of a terminal line
constexpr double kMark = 0.1;     // seconds between two marks of a pace
constexpr double kWindow = 20.0;  // seconds of work a rate is taken over
constexpr double kSlow = 5.0;     // seconds without news after which a line says how long
constexpr int kBar = 12;

std::string share_text(int64_t done, int64_t total) {
  return fixed(total <= 0 ? 100.0 : 100.0 * static_cast<double>(done) / static_cast<double>(total), 0) + " %";
}

std::string bar(double share) {
  std::string out;
  const int filled = static_cast<int>(std::lround(share * kBar));
  for (int i = 0; i < kBar; ++i) out += i < filled ? "█" : "░";
  return out;
}

std::string left_text(double seconds) {
  return seconds < 0 ? "" : ", " + duration_text(seconds) + " left";
}

}  // namespace

void Pace::reach(double now, int64_t done) {
  if (marks_.empty()) {
    marks_.push_back({0, done});
    now_ = marks_.front();
    first_ = done;
  } else if (!running_) {
    // The end of the pause was not reported: work done meanwhile is not counted in the window.
    const int64_t skipped = done - now_.done;
    paused_ += now - last_;
    for (Mark& mark : marks_) mark.done += skipped;
    now_.done = done;
  } else {
    now_ = {now_.worked + (now - last_), done};
    if (now_.worked - marks_.back().worked >= kMark) marks_.push_back(now_);
    while (marks_.size() > 2 && now_.worked - marks_[1].worked >= kWindow) marks_.pop_front();
  }
  last_ = now;
  running_ = true;
}

void Pace::pause(double now) {
  if (!running_) return;
  now_.worked += now - last_;
  last_ = now;
  running_ = false;
}

void Pace::resume(double now) {
  if (running_ || marks_.empty()) return;
  paused_ += now - last_;
  last_ = now;
  running_ = true;
}

double Pace::rate() const {
  if (marks_.empty()) return 0;
  const double seconds = now_.worked - marks_.front().worked;
  return seconds > 0 ? static_cast<double>(now_.done - marks_.front().done) / seconds : 0;
}

double Pace::left(int64_t remaining) const {
  const double speed = rate();
  if (speed <= 0) return remaining == 0 ? 0 : -1;
  const auto done = static_cast<double>(now_.done - first_);
  return static_cast<double>(remaining) * (1 / speed + (done > 0 ? paused_ / done : 0));
}

std::string rate_text(double rate) {
  if (rate >= 100) return grouped(static_cast<uint64_t>(std::llround(rate))) + "/s";
  if (rate >= 10) return fixed(rate, 1) + "/s";
  if (rate >= 0.1) return fixed(rate, 2) + "/s";
  return rate > 0 ? duration_text(1 / rate) + " each" : "?/s";
}

Progress::Progress(std::string what, uint64_t total, Console console)
    : what_(std::move(what)), total_(total), lines_(std::move(console)) {
  shown_ = lines_.console().clock();
  pace_.reach(shown_, 0);
}

std::string Progress::line(uint64_t done) const {
  const double share = total_ == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total_);
  const std::string figures = fixed(100 * share, 0) + " %, " + grouped(done) + " of " + grouped(total_) + ", " +
                              rate_text(pace_.rate()) + left_text(pace_.left(static_cast<int64_t>(total_ - done)));
  return lines_.console().terminal ? bar(share) + " " + what_ + " " + figures : what_ + " " + figures;
}

void Progress::update(uint64_t done) {
  const double now = lines_.console().clock();
  pace_.reach(now, static_cast<int64_t>(done));
  if (now - shown_ < (lines_.console().terminal ? kRedraw : kPlainLine)) return;
  shown_ = now;
  lines_.console().terminal ? lines_.show({line(done)}) : lines_.say(line(done));
}

std::string to_line(const RunProgress& p) {
  const nlohmann::ordered_json line = {
      {"phase", p.phase}, {"update", p.update}, {"updates", p.updates}, {"loss", p.loss}, {"valid", p.valid}};
  return line.dump() + "\n";
}

bool from_line(std::string_view line, RunProgress& progress) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  const auto number = [&](const char* key, double& out) {
    if (!json.contains(key)) return false;
    if (!json[key].is_number()) return json[key].is_null();  // a value that is not finite
    out = json[key].get<double>();
    return true;
  };
  if (!json.is_object() || !json.contains("phase") || !json["phase"].is_string()) return false;
  double update = 0, updates = 0;
  RunProgress out;
  out.phase = json["phase"].get<std::string>();
  if (!number("update", update) || !number("updates", updates) || !number("loss", out.loss) ||
      !number("valid", out.valid))
    return false;
  if (!(std::abs(update) < 1e15) || !(std::abs(updates) < 1e15)) return false;
  out.update = static_cast<int64_t>(update);
  out.updates = static_cast<int64_t>(updates);
  progress = std::move(out);
  return true;
}

void RunPace::report(double now, const RunProgress& progress) {
  if (progress.phase == "train") {
    pace_.reach(now, progress.update);
    since_ = now;
  } else if (progress.phase == "evaluated") {
    pace_.resume(now);
    since_ = now;
  } else {
    pace_.pause(now);
    if (!known_ || progress.phase != progress_.phase) since_ = now;
  }
  known_ = true;
  progress_ = progress;
}

std::array<std::string, 5> RunPace::columns(double now) const {
  if (!known_) return {"starting", "", "", "", ""};
  const RunProgress& p = progress_;
  std::string rate, left;
  if (p.phase == "train" || p.phase == "evaluated") {
    const double seconds = pace_.left(p.updates - p.update);
    if (pace_.rate() > 0) rate = rate_text(pace_.rate());
    if (pace_.rate() > 0 && seconds >= 0) left = duration_text(seconds) + " left";
    if (now - since_ >= kSlow) left += (left.empty() ? "" : ", ") + duration_text(now - since_) + " in this update";
  } else {
    left = p.phase == "waiting" ? "waiting for another process" : printable(p.phase, 20);
    if (now - since_ >= kSlow) left += " for " + duration_text(now - since_);
  }
  return {share_text(p.update, p.updates), rate, left, p.update > 0 ? "loss " + fixed(p.loss, 3) : "",
          p.valid >= 0 ? "valid " + fixed(p.valid, 3) : ""};
}

std::string RunPace::text(double now) const {
  std::string out;
  for (const auto& column : columns(now)) out += (out.empty() || column.empty() ? "" : ", ") + column;
  return out;
}

RunProgressReport::RunProgressReport(std::string name, Console console)
    : name_(std::move(name)), lines_(std::move(console)) {
  began_ = lines_.console().clock();
}

void RunProgressReport::report(const RunProgress& progress) {
  const std::lock_guard lock(mutex_);
  const bool same = pace_.known() && pace_.progress().phase == progress.phase;
  pace_.report(lines_.console().clock(), progress);
  if (progress.phase == "evaluated") {
    lines_.say(name_ + "  update " + std::to_string(progress.update) + " of " + std::to_string(progress.updates) +
               ": loss " + fixed(progress.loss, 4) + ", valid " + progress.metric + " " + fixed(progress.valid, 4));
  } else if (!same && progress.phase != "train" && progress.phase != "valid" && progress.phase != "waiting" &&
             !lines_.console().terminal) {  // "waiting" was already printed, with the owner
    lines_.say(name_ + (progress.phase == "saving" ? "  saving" : "  evaluating: " + progress.phase));
  }
}

void RunProgressReport::say(const std::string& line) {
  const std::lock_guard lock(mutex_);
  lines_.say(line);
}

void RunProgressReport::tick() {
  const std::lock_guard lock(mutex_);
  const double now = lines_.console().clock();
  if (lines_.console().terminal) {
    const RunProgress& p = pace_.progress();
    lines_.show({bar(p.updates > 0 ? static_cast<double>(p.update) / static_cast<double>(p.updates) : 0) + " " + name_ +
                 "  " + pace_.text(now)});
  } else if (now - std::max(began_, lines_.said_at()) >= kPlainLine) {
    lines_.say(name_ + "  update " + std::to_string(pace_.progress().update) + " of " +
               std::to_string(pace_.progress().updates) + ": " + pace_.text(now));
  }
}

}  // namespace sb
