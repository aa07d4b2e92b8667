#include "jobs/board.h"

#include <algorithm>

#include "base/number.h"
#include "base/text.h"

namespace sb {
namespace {

constexpr size_t kColumns = 100;      // of a line in a log
constexpr size_t kShortestName = 20;  // a name is not cut to less

std::string padded(const std::string& text, size_t width) {
  return text + std::string(width - std::min(width, display_width(text)), ' ');
}

}  // namespace

Board::Board(size_t total, size_t done, size_t name_width, Console console)
    : total_(total), done_(done), name_width_(name_width), lines_(std::move(console)) {
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

// The name, padded to name_width_ or cut so that `beside` more columns fit into the line.
std::string Board::padded_name(const std::string& name, size_t beside) const {
  const size_t line =
      lines_.console().terminal ? static_cast<size_t>(std::max(1, lines_.console().size().first - 1)) : kColumns;
  const size_t room = std::max(kShortestName, line - std::min(line, beside));
  const size_t width = std::min(name_width_, room);
  return padded(cut(name, static_cast<int>(width)), width);
}

void Board::over(size_t work, const std::string& outcome, bool counts) {
  done_ += counts ? 1 : 0;
  const std::string total = std::to_string(total_), done = std::to_string(done_);
  const std::string count =
      "[" + std::string(total.size() - std::min(total.size(), done.size()), ' ') + done + "/" + total + "] ";
  const std::string name = padded_name(jobs_[work].name, display_width(count + "  " + outcome));
  jobs_.erase(work);
  lines_.show({});
  lines_.say(count + name + "  " + outcome);
  tick();
}

std::string Board::header() const {
  return std::to_string(done_) + " of " + counted(total_, "run") + " done" +
         (left_ && *left_ > 0 ? ", about " + duration_text(*left_) + " left" : "");
}

std::vector<std::string> Board::job_lines(double now) const {
  std::vector<std::array<std::string, 5>> rows;
  std::array<size_t, 5> widths{};
  for (const auto& [work, job] : jobs_) {
    rows.push_back(job.pace.columns(now));
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], display_width(rows.back()[i]));
  }
  size_t figures = 2;
  for (const size_t width : widths) figures += width > 0 ? width + 2 : 0;
  std::vector<std::string> out;
  for (const auto& [work, job] : jobs_) {
    std::string line = "  " + padded_name(job.name, figures);
    for (size_t i = 0; i < widths.size(); ++i)
      if (widths[i] > 0) line += "  " + padded(rows[out.size()][i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    out.push_back(std::move(line));
  }
  return out;
}

void Board::tick() {
  const double now = lines_.console().clock();
  if (jobs_.empty()) return lines_.show({});
  std::vector<std::string> lines = job_lines(now);
  lines.insert(lines.begin(), header());
  lines_.show(lines);
  if (lines_.console().terminal || now - heard_ < kPlainLine) return;
  heard_ = now;
  for (const auto& line : lines) lines_.say(line);
}

}  // namespace sb
