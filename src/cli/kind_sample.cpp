#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/kind_settings.h"
#include "cli/output.h"

namespace sb::cli {
namespace {

constexpr int kShownFrames = 8, kShownChannels = 4;

std::string numbers_text(const float* values, int count) {
  std::string out;
  for (int c = 0; c < std::min(count, kShownChannels); ++c) out += (c == 0 ? "" : " ") + fixed(values[c], 3);
  return out + (count > kShownChannels ? " …" : "");
}

// A printable character as it is, a space as "·", any other byte in hexadecimal digits.
std::string byte_name(int byte) {
  if (byte == ' ') return "·";
  return byte > ' ' && byte < 0x7F ? std::string(1, static_cast<char>(byte)) : formatted("\\x{:02x}", byte);
}

std::string named(std::string (*name)(int), int id) {
  if (name == byte_name) return byte_name(id);
  return name != nullptr ? printable(name(id), 12) : std::to_string(id);
}

// One row of the table for each element; `batch` holds one sample.
class SampleView {
 public:
  SampleView(const Task& task, const TaskRow& row, bool bytes, const Batch& batch)
      : symbol_name_(bytes ? byte_name : row.symbol_name),
        answer_name_(bytes ? byte_name : row.answer_name),
        spans_(bytes),
        batch_(batch),
        shape_(task.shape()),
        answers_(static_cast<size_t>(batch.elements)) {
    task.answers(batch, 0, answers_.data());
    if (shape_.loss == Loss::squared_error)
      follow_estimator(task);
    else if (const std::unique_ptr<Oracle> oracle = task.oracle(batch.split))
      beliefs_ = follow(*oracle, batch, 0);
  }

  std::vector<std::string> header() const {
    std::vector<std::string> out = {"element", "frames", shape_.loss == Loss::squared_error ? "wanted" : "answer"};
    if (!means_.empty()) out.insert(out.end(), {"estimate", "s.d."});
    if (!beliefs_.empty()) out.insert(out.end(), {"oracle", "p", "entropy"});
    return out;
  }

  // "=" marks a right answer of the oracle, "x" a wrong one.
  std::vector<std::string> cells(int element) const {
    const auto e = static_cast<size_t>(element);
    std::vector<std::string> out = {std::to_string(element), frames_text(element), answer_text(element)};
    const bool asked = answers_[e] >= 0;
    if (!means_.empty()) {
      const auto last = static_cast<size_t>(std::max(0, batch_.start[e + 1] - 1));
      out.push_back(asked ? numbers_text(means_.data() + last * answers(), shape_.answers) : "–");
      out.push_back(asked ? numbers_text(deviations_.data() + last * answers(), shape_.answers) : "–");
    }
    if (!beliefs_.empty()) {
      const Belief& belief = beliefs_[e].given_segment;
      const std::string best = named(answer_name_, belief.best);
      out.push_back(!asked ? "–" : (belief.best == answers_[e] ? "= " : "x ") + best);
      out.push_back(asked ? fixed(belief.probability, 3) : "–");
      out.push_back(asked ? fixed(std::max(0.0, belief.entropy), 3) : "–");
    }
    return out;
  }

 private:
  size_t answers() const { return static_cast<size_t>(shape_.answers); }

  void follow_estimator(const Task& task) {
    const std::unique_ptr<Estimator> estimator = task.estimator(batch_.split);
    if (!estimator) return;
    std::vector<float> frame(static_cast<size_t>(batch_.channels));
    std::vector<double> mean(answers()), variance(answers());
    estimator->reset();
    for (int t = 0; t < batch_.real_frames(0); ++t) {
      expand_row(batch_, 0, t, t + 1, frame.data());
      estimator->frame(frame.data());
      estimator->estimate(mean.data(), variance.data());
      for (size_t c = 0; c < answers(); ++c) {
        means_.push_back(static_cast<float>(mean[c]));
        deviations_.push_back(static_cast<float>(std::sqrt(variance[c])));
      }
    }
  }

  std::string frames_text(int element) const {
    const auto e = static_cast<size_t>(element);
    const int begin = batch_.start[e], end = batch_.start[e + 1];
    std::vector<std::string> parts;
    for (int t = begin; t < std::min(end, begin + kShownFrames); ++t) {
      const auto at = static_cast<size_t>(t);
      const int16_t symbol = batch_.symbol[at];
      parts.push_back(
          !batch_.dense.empty()
              ? numbers_text(batch_.dense.data() + at * static_cast<size_t>(batch_.channels), batch_.channels)
          : symbol < 0 ? "·"
                       : in_span(at, named(symbol_name_, symbol)));
    }
    return joined(parts, batch_.dense.empty() ? " " : ", ") +
           (end - begin > kShownFrames ? formatted(" x{}", end - begin) : "");
  }

  // "[x]" in a span of a text, which nothing marks for the model.
  std::string in_span(size_t frame, const std::string& name) const {
    return spans_ && batch_.gap[frame] != 0 ? "[" + name + "]" : name;
  }

  std::string answer_text(int element) const {
    const auto e = static_cast<size_t>(element);
    if (answers_[e] < 0) return "–";
    if (shape_.loss == Loss::cross_entropy) return named(answer_name_, answers_[e]);
    return numbers_text(batch_.value.data() + static_cast<size_t>(std::max(0, batch_.start[e + 1] - 1)) * answers(),
                        shape_.answers);
  }

  std::string (*symbol_name_)(int);
  std::string (*answer_name_)(int);
  bool spans_;
  const Batch& batch_;
  TaskShape shape_;
  std::vector<int32_t> answers_;
  std::vector<ElementBelief> beliefs_;
  std::vector<float> means_, deviations_;  // [frames][answers]
};

}  // namespace

std::string sample_text(const Task& task, const std::string& kind, bool bytes, Split split, uint64_t index, int from,
                        int elements, const std::string& color) {
  Batch batch;
  task.fill(split, index, 1, batch);
  if (from >= batch.elements)
    throw bad_input("show --from",
                    formatted("expected an element below the {} of the sample, got {}", batch.elements, from));
  const Palette palette(color);
  const SampleView view(task, find_task(kind), bytes, batch);
  TextTable table(view.header());
  const int end = static_cast<int>(std::min<int64_t>(batch.elements, int64_t{from} + elements));
  for (int e = from; e < end; ++e) table.row(view.cells(e));
  std::string out = palette.bold(formatted("sample {} of split {}, task {}, {} frames", index, to_string(split), kind,
                                           batch.real_frames(0))) +
                    "\n" + table.text();
  if (end < batch.elements) out += palette.dim(formatted("… {} more (--from {})", batch.elements - end, end)) + "\n";
  return out;
}

}  // namespace sb::cli
