#include "cli/progress.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "base/number.h"
#include "base/text.h"

namespace sb::cli {
namespace {

constexpr double kRedraw = 0.1;      // seconds between updates of a terminal line
constexpr double kPlainLine = 10.0;  // and between plain lines
constexpr int kBar = 24;

double seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace

Progress::Progress(std::string what, uint64_t total, bool quiet)
    : what_(std::move(what)), total_(total), quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

std::string Progress::line(uint64_t done) const {
  const double elapsed = seconds(Clock::now() - began_);
  const double rate = elapsed > 0 ? static_cast<double>(done) / elapsed : 0;
  const double share = total_ == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total_);
  std::string bar;
  const int filled = static_cast<int>(std::lround(share * kBar));
  for (int i = 0; i < kBar; ++i) bar += i < filled ? "█" : "░";
  return (terminal_ ? bar + " " : what_ + " ") + fixed(100 * share, 0) + " %  " + grouped(done) + " of " +
         grouped(total_) + (terminal_ ? " " + what_ : "") + "  " + grouped(static_cast<uint64_t>(rate)) + "/s  " +
         (rate > 0 ? duration_text(static_cast<double>(total_ - done) / rate) : std::string("?")) + " left";
}

void Progress::update(uint64_t done) {
  if (quiet_) return;
  const auto now = Clock::now();
  if (seconds(now - shown_) < (terminal_ ? kRedraw : kPlainLine)) return;
  shown_ = now;
  std::fputs(((terminal_ ? "\r\x1b[K" : "") + line(done) + (terminal_ ? "" : "\n")).c_str(), stderr);
  std::fflush(stderr);
  drawn_ = terminal_;
}

}  // namespace sb::cli
