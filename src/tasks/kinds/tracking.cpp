// Tracking: a noisy signal with missing frames. At every frame the model estimates the signal behind it.
//   x_1 = u_1,  x_t = decay x_(t-1) + sqrt(1 - decay^2) u_t   the signal, of variance 1
//   y_t = x_t + noise v_t                                     what a frame shows, unless it is missing
// u and v are standard normal. Channel 0 holds y_t, or 0 if the frame is missing; channel 1 is 1 if y_t is shown.
#include <algorithm>
#include <cmath>

#include "base/number.h"
#include "random/normal.h"
#include "tasks/task_registry.h"

namespace sb {
namespace {

struct Signal {
  double decay = 0, noise = 0;
  int missing = 0;  // percent of the frames
};

// Posterior mean and variance of x_t given the frames up to t.
class KalmanFilter final : public Estimator {
 public:
  explicit KalmanFilter(const Signal& signal) : signal_(signal) {}
  void reset() override {
    mean_ = 0;
    variance_ = 1;
    first_ = true;
  }
  void frame(const float* channels) override {
    if (!first_) {
      const double a = signal_.decay;
      mean_ *= a;
      variance_ = a * a * variance_ + (1 - a * a);
    }
    first_ = false;
    if (channels[1] == 0) return;
    const double gain = variance_ / (variance_ + signal_.noise * signal_.noise);
    mean_ += gain * (channels[0] - mean_);
    variance_ *= 1 - gain;
  }
  void estimate(double* mean, double* variance) const override {
    *mean = mean_;
    *variance = variance_;
  }

 private:
  Signal signal_;
  double mean_ = 0, variance_ = 1;
  bool first_ = true;
};

class Tracking final : public Task {
 public:
  Tracking(uint64_t seed, int length, const Signal& train, const Signal& test)
      : seed_(seed), length_(length), train_(train), test_(test) {}

  TaskShape shape() const override {
    return {.channels = 2,
            .answers = 1,
            .elements = length_,
            .loss = Loss::squared_error,
            .dense = true,
            .fixed_frames = true};
  }
  std::string canonical_text() const override {
    const auto signal = [](const Signal& s) {
      return shortest(s.decay) + " " + shortest(s.noise) + " " + std::to_string(s.missing) + "\n";
    };
    return "tracking\nseed = " + std::to_string(seed_) + "\nlength = " + std::to_string(length_) +
           "\ntrain = " + signal(train_) + "test = " + signal(test_);
  }
  int max_frames(Split) const override { return length_; }
  double mean_frames(Split) const override { return length_; }

  using Task::fill;
  void fill(Split split, std::span<const uint64_t> samples, Batch& out, int pad_to) const override {
    begin_plain_batch(shape(), split, samples, pad_to, out);
    const Signal& signal = of(split);
    const double spread = std::sqrt(1 - signal.decay * signal.decay);
    const auto missing = static_cast<uint64_t>(signal.missing);
    for (size_t b = 0; b < samples.size(); ++b) {
      const PhiloxStream stream(seed_, static_cast<uint32_t>(split), samples[b], Purpose::signal);
      const size_t row = b * static_cast<size_t>(out.frames);
      double x = 0;
      for (int t = 0; t < length_; ++t) {
        const PhiloxBlock words = stream.block(static_cast<uint32_t>(t));
        const auto [u, v] = normal_pair(words[0], words[1]);
        x = t == 0 ? u : signal.decay * x + spread * u;
        const size_t at = row + static_cast<size_t>(t);
        const bool shown = uint64_t{words[2]} * 100 >> 32 >= missing;
        out.dense[2 * at] = shown ? static_cast<float>(x + signal.noise * v) : 0.0F;
        out.dense[2 * at + 1] = shown ? 1.0F : 0.0F;
        out.gap[at] = shown ? 0 : 1;
        out.value[at] = static_cast<float>(x);
        out.state[b * static_cast<size_t>(out.elements) + static_cast<size_t>(t)] = 0;
      }
    }
  }
  void answers(const Batch& batch, int, int32_t* out) const override { std::fill_n(out, batch.elements, 0); }
  std::unique_ptr<Estimator> estimator(Split split) const override { return std::make_unique<KalmanFilter>(of(split)); }
  std::shared_ptr<const Task> at(Split split, int missing) const override {
    Signal train = train_, test = test_;
    (split == Split::train ? train : test).missing = missing;
    return std::make_shared<const Tracking>(seed_, length_, train, test);
  }

 private:
  const Signal& of(Split split) const { return split == Split::train ? train_ : test_; }

  uint64_t seed_;
  int length_;
  Signal train_, test_;
};

}  // namespace

TaskRow tracking_row() {
  return {
      .name = "tracking",
      .about = {"Tracking",
                "Frames show a slowly changing signal with noise; some frames are missing. The model estimates the "
                "signal at every frame. The Kalman filter is the best estimator."},
      .keys = {{"decay", 0.9, 0, 0.9999, "correlation of the signal between frames"},
               {"sensor_noise", 0.5, 0.001, 100, "standard deviation of the noise"},
               {"missing", int64_t{30}, 0, 100, "missing frames, percent"}},
      .length = 50,
      .length_meaning = "frames per sample",
      .loss = Loss::squared_error,
      .axis = TestAxis{"missing", "missing", 0, 100, "percent of missing frames, tested without retraining",
                       "missing frames of the test, percent"},
      .make = [](const TaskSetup& setup, const Poll&) -> std::shared_ptr<const Task> {
        const Signal signal{setup.real("decay"), setup.real("sensor_noise"), static_cast<int>(setup.whole("missing"))};
        return std::make_shared<const Tracking>(setup.seed, setup.length, signal, signal);
      }};
}

}  // namespace sb
