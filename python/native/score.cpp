#include <cmath>

#include "base/parallel.h"
#include "native/frame_batch.h"
#include "native/json.h"
#include "store/result_parts.h"

namespace sb::python {
namespace {

template <class T>
using Values = py::array_t<T, py::array::c_style>;  // [batch][frames][answers]

constexpr int64_t kBudget = int64_t{1} << 22;  // floats of probabilities made at a time

// The metrics of batches that the native code draws itself: changes to a batch's arrays cannot change the targets.
class Score {
 public:
  Score(std::shared_ptr<const PyTask> task, const std::string& split, bool breakdowns, int threads)
      : task_(std::move(task)),
        split_(parse_split(split)),
        breakdowns_(breakdowns),
        threads_(threads),
        metrics_(task_->task(), {false, breakdowns && !task_->task().has_law(), threads}) {}

  void begin(const FrameBatch& shown) {
    const Unlocked here;
    open_ = false;
    task_->task().fill(split_, shown.batch.samples, batch_, shown.batch.frames);
    metrics_.begin(batch_);
    seen_ = 0;
    open_ = true;
  }

  template <class T>
  int add(const Values<T>& values, bool logits) {
    if (!open_) throw check_failed("score", "values without a batch, expected begin() before them");
    const int frames = static_cast<int>(values.shape(1)), from = seen_;
    const T* data = values.data();
    open_ = false;  // what throws here leaves the batch out
    {
      const Unlocked here;
      take(from, frames, data, logits);
      seen_ = from + frames;
      if (seen_ == batch_.frames) metrics_.end();
    }
    open_ = seen_ < batch_.frames;
    return batch_.frames - seen_;
  }

  // Answers for the last batch, [batch][elements]; -1: none.
  py::array_t<int32_t> named() const {
    const std::vector<py::ssize_t> shape{batch_.batch, batch_.elements};
    return py::array_t<int32_t>(shape, metrics_.named().data());  // copies
  }

  std::string measured(int64_t ceiling_samples) {
    if (open_)
      throw check_failed("score", "a batch of which " + std::to_string(batch_.frames - seen_) +
                                      " frames are missing, expected them before the result");
    std::optional<Measurement> out;
    bool stopped = false;
    {
      const Unlocked here;
      const Evaluation found = metrics_.result();
      if (found.samples == 0) throw check_failed("score", "no predictions, expected those of at least one sample");
      out = measurement(found, split_, task_->task(), task_->test_point(), breakdowns_);
      try {
        out->ceiling = measured_ceiling(task_->task(), split_, ceiling_samples, threads_, &interrupted);
      } catch (const Stopped&) {
        stopped = true;
      }
    }
    if (stopped) raise_interruption();
    return json_of(*out);
  }

 private:
  template <class T>
  void take(int from, int frames, const T* values, bool logits) {
    const auto answers = static_cast<size_t>(task_->task().shape().answers);
    const auto rows = static_cast<size_t>(batch_.batch);
    const bool squared = task_->task().shape().loss == Loss::squared_error;
    if (squared) logits = false;  // outputs are taken as they are
    if (!logits && !squared) expect_law(from, frames, values, answers);
    if constexpr (std::is_same_v<T, float>) {
      logits ? metrics_.logits(from, from + frames, values) : metrics_.probabilities(from, from + frames, values);
    } else {
      const auto step = static_cast<int>(std::max<int64_t>(1, kBudget / static_cast<int64_t>(rows * answers)));
      std::vector<float> part;
      for (int at = 0; at < frames; at += step) {
        const int n = std::min(step, frames - at);
        part.resize(rows * static_cast<size_t>(n) * answers);
        parallel_for(rows, 1, threads_, [&](size_t first, size_t last) {
          for (size_t b = first; b < last; ++b) {
            for (int t = 0; t < n; ++t) {
              const T* in = values + (b * static_cast<size_t>(frames) + static_cast<size_t>(at + t)) * answers;
              float* out = part.data() + (b * static_cast<size_t>(n) + static_cast<size_t>(t)) * answers;
              logits ? softmax(in, answers, out) : void(std::copy(in, in + answers, out));
            }
          }
        });
        metrics_.probabilities(from + at, from + at + n, part.data());
      }
    }
  }

  // In double, each probability rounded once.
  template <class T>
  static void softmax(const T* in, size_t answers, float* out) {
    const double top = *std::max_element(in, in + answers);
    double total = 0;
    for (size_t c = 0; c < answers; ++c) total += std::exp(in[c] - top);
    for (size_t c = 0; c < answers; ++c) out[c] = static_cast<float>(std::exp(in[c] - top) / total);
  }

  // Logits taken for probabilities would be scored without a word.
  template <class T>
  void expect_law(int from, int frames, const T* values, size_t answers) const {
    constexpr double slack = 1e-2;
    for (int b = 0; b < batch_.batch; ++b) {
      const int real = std::min(frames, batch_.real_frames(b) - from);
      for (int t = 0; t < real; ++t) {
        const T* p = values + (static_cast<size_t>(b) * static_cast<size_t>(frames) + static_cast<size_t>(t)) * answers;
        double sum = 0, least = 0;
        for (size_t c = 0; c < answers; ++c) {
          sum += static_cast<double>(p[c]);
          least = std::min(least, static_cast<double>(p[c]));
        }
        if (!std::isfinite(sum)) throw NotFinite(split_, static_cast<int64_t>(batch_.samples[b]), from + t);
        if (least < 0 || std::abs(sum - 1) > slack)
          throw bad_input("score",
                          "probabilities, expected numbers from 0 on that sum to 1 (or kind=\"logits\"), got a "
                          "sum of " +
                              std::to_string(sum) + " and a least of " + std::to_string(least) + ", " +
                              to_string(split_) + " sample " + std::to_string(batch_.samples[b]) + ", frame " +
                              std::to_string(from + t));
      }
    }
  }

  std::shared_ptr<const PyTask> task_;
  Split split_;
  bool breakdowns_;
  int threads_;
  Batch batch_;
  MetricAccumulator metrics_;
  int seen_ = 0;
  bool open_ = false;
};

}  // namespace

void bind_score(py::module_& m) {
  py::class_<Score>(m, "Score")
      .def(py::init([](std::shared_ptr<PyTask> task, const std::string& split, bool breakdowns, int threads) {
        return std::make_unique<Score>(std::move(task), split, breakdowns, threads);
      }))
      .def("begin", &Score::begin)
      .def("add_floats", &Score::add<float>, py::arg("values").noconvert(), py::arg("logits"))
      .def("add_doubles", &Score::add<double>, py::arg("values").noconvert(), py::arg("logits"))
      .def("named", &Score::named)
      .def("measured", &Score::measured);
}

}  // namespace sb::python
