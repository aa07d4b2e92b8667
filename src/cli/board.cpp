#include "cli/board.h"

namespace sb::cli {

Board::Board(size_t total, size_t done, Console console) : total_(total), done_(done), lines_(std::move(console)) {
  heard_ = lines_.console().clock();
}

void Board::started(size_t work, const std::string& name) {
  jobs_[work] = {name, {}};
  if (!lines_.console().terminal) lines_.say("started: " + name);
}

void Board::said(size_t work, const std::string& line) {
  RunProgress progress;
  if (from_line(line, progress)) jobs_[work].pace.report(lines_.console().clock(), progress);
}

const RunProgress* Board::progress(size_t work) const {
  const auto job = jobs_.find(work);
  return job == jobs_.end() || !job->second.pace.known() ? nullptr : &job->second.pace.progress();
}

void Board::over(size_t work, const std::string& outcome, bool counts) {
  done_ += counts ? 1 : 0;
  const std::string name = jobs_[work].name;
  jobs_.erase(work);
  lines_.show({});
  lines_.say("[" + std::to_string(done_) + "/" + std::to_string(total_) + "] " + name + ": " + outcome);
  tick();
}

// On a terminal figures come first: a narrow one cuts the name.
std::string Board::text(const Job& job, double now) const {
  return lines_.console().terminal ? "  " + job.pace.text(now) + "  " + job.name
                                   : "running: " + job.name + ": " + job.pace.text(now);
}

void Board::tick() {
  const double now = lines_.console().clock();
  std::vector<std::string> lines;
  for (const auto& [work, job] : jobs_) lines.push_back(text(job, now));
  lines_.show(lines);
  if (lines_.console().terminal || jobs_.empty() || now - heard_ < kPlainLine) return;
  heard_ = now;
  for (const auto& line : lines) lines_.say(line);
}

}  // namespace sb::cli
