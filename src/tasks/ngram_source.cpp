#include "tasks/ngram_source.h"

#include "tasks/ngram.h"

namespace sb {
namespace {

class GapSource final : public NgramSource {
 public:
  GapSource(std::shared_ptr<const Language> language, const TaskConfig& config)
      : task_(std::move(language), symbols_only(config)) {}
  std::string canonical_text() const override { return task_.canonical_text(); }
  int classes() const override { return task_.language().classes(); }
  int answers() const override { return task_.language().states(); }
  int elements() const override { return task_.language().length(); }
  std::span<const int32_t> shown() const override { return task_.shown(); }

  void draw(Split split, uint64_t first, size_t samples, SeenFrames& out) const override {
    const Language& language = task_.language();
    const GapConfig& gap = task_.gaps().law(split);
    const bool wrong = gap.law != GapLaw::none && gap.content == GapContent::forbidden_symbol;
    const auto length = static_cast<size_t>(language.length());
    std::vector<uint16_t> states(samples * length);
    language.draw(split, first, samples, states.data());
    Gaps gaps;
    out.frames.clear();
    out.ends.clear();
    for (size_t i = 0; i < samples; ++i) {
      const uint16_t* sample = states.data() + i * length;
      if (wrong) task_.gaps().draw(split, first + i, sample, static_cast<int>(length), gaps);
      size_t gap_frames = 0;
      for (size_t e = 0; e < length; ++e) {
        out.frames.push_back({language.symbols()[sample[e]], language.ids()[sample[e]]});
        for (int32_t g = 0; wrong && g < gaps.length[e]; ++g) out.frames.push_back({gaps.wrong[gap_frames++], -1});
      }
      out.ends.push_back(out.frames.size());
    }
  }

 private:
  GapTask task_;
};

class FrameSource final : public NgramSource {
 public:
  explicit FrameSource(const Task& task) : task_(task), shape_(task.shape()) {}
  std::string canonical_text() const override { return task_.canonical_text(); }
  int classes() const override { return shape_.channels; }
  int answers() const override { return shape_.answers; }
  int elements() const override { return shape_.elements; }

  void draw(Split split, uint64_t first, size_t samples, SeenFrames& out) const override {
    Batch batch;
    task_.fill(split, first, static_cast<int>(samples), batch);
    std::vector<int32_t> answers(static_cast<size_t>(batch.elements));
    out.frames.clear();
    out.ends.clear();
    for (int b = 0; b < batch.batch; ++b) {
      task_.answers(batch, b, answers.data());
      const size_t row = static_cast<size_t>(b) * static_cast<size_t>(batch.frames);
      for (size_t t = row; t < row + static_cast<size_t>(batch.real_frames(b)); ++t)
        if (batch.symbol[t] >= 0)
          out.frames.push_back({batch.symbol[t], answers[static_cast<size_t>(batch.element[t])]});
      out.ends.push_back(out.frames.size());
    }
  }

 private:
  const Task& task_;
  TaskShape shape_;
};

}  // namespace

std::unique_ptr<NgramSource> gap_ngrams(std::shared_ptr<const Language> language, const TaskConfig& task) {
  return std::make_unique<GapSource>(std::move(language), task);
}

std::unique_ptr<NgramSource> frame_ngrams(const Task& task) {
  return std::make_unique<FrameSource>(task);
}

}  // namespace sb
