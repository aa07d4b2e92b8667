// S4D, M = N/2 complex modes per channel, A = -e^{log_A_real} + i A_imag, dt = e^{log_dt}, z = e^{dt A}:
//   g_t = z g_{t-1} + x_t;  y_t = 2 Re sum_n C_n (z_n - 1)/A_n g_t[n] + Dskip x_t        (zero-order hold)
//   [a, b] = out(Dropout(GELU(y))), result a sigma(b); the dropout mask is shared over time.
// Works in chunks of 64 frames: a Toeplitz product within a chunk, and products with powers of z for the chunk's
// initial and final state. On a GPU, many small operations are slow, so whole sequences without a carried state use
// Fourier transforms. Powers are always computed in double: in float, an angle dt A t would be off by 1e-4.
#include "base/torch_pch.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"
#include "models/ops.h"
#include "models/recorded.h"
#include "models/registry.h"

namespace sb {
namespace {

constexpr int64_t longest_chunk = 64;
constexpr IntegerSwitch even_states{
    "d_state", 128, 2, 4096, "state size per channel, two per mode", "an even integer in 2..4096", [](int64_t v) {
      return v % 2 == 0;
    }};
// Time constants have a lower learning rate and no weight decay.
constexpr LearningGroup slow{1e-3, false};

struct Complex {
  at::Tensor re, im;
  Complex operator*(const Complex& o) const { return {re * o.re - im * o.im, re * o.im + im * o.re}; }
  Complex slice(int64_t begin, int64_t length) const {
    return {re.narrow(-1, begin, length), im.narrow(-1, begin, length)};
  }
};

// z^0 .. z^{count-1} along a new last axis, by doubling.
Complex powers(const Complex& z, int64_t count) {
  Complex out{at::ones_like(z.re).unsqueeze(-1), at::zeros_like(z.im).unsqueeze(-1)};
  Complex step{z.re.unsqueeze(-1), z.im.unsqueeze(-1)};
  while (out.re.size(-1) < count) {
    const Complex more = out * step;
    out = {at::cat({out.re, more.re}, -1), at::cat({out.im, more.im}, -1)};
    step = step * step;
  }
  return out.slice(0, count);
}

// The smallest even number >= `least` without prime factors above 5.
int64_t transform_length(int64_t least) {
  const auto smooth = [](int64_t n) {
    for (const int64_t factor : {2, 3, 5})
      while (n % factor == 0) n /= factor;
    return n == 1;
  };
  int64_t n = least + least % 2;
  while (!smooth(n)) n += 2;
  return n;
}

class S4d final : public Mixer {
 public:
  S4d(const MixerOptions& options, ParameterList& p) : o_(options), modes_(o_[even_states] / 2) {
    const int64_t d = o_.width;
    skip_ = p.add("D", {d}, Init::normal(1));
    C_ = p.add("kernel.C", {d, modes_, 2}, Init::normal(0.70710678118654752440));
    log_dt_ = p.add("kernel.log_dt", {d}, Init::uniform(portable::log(0.001), portable::log(0.1)), 0, slow);
    log_A_real_ = p.add("kernel.log_A_real", {d, modes_}, Init::constant(portable::log(0.5)), 0, slow);
    A_imag_ = p.add("kernel.A_imag", {d, modes_}, Init::pi_position(), 0, slow);
    out_ = p.add("output_linear.0.weight", {2 * d, d, 1}, Init::fan_in(d), 1);
    out_bias_ = p.bias("output_linear.0.bias", 2 * d, d);
  }

  at::Tensor forward(const at::Tensor& frames, const Context& context) const override {
    const auto x = wide(frames);
    const auto y = (convolve(x, context) + skip_->value * x).to(frames.scalar_type());
    const auto mixed = dropout(sb::in_pieces(y, [](const at::Tensor& part) { return at::gelu(part); }), o_.dropout,
                               context.dropout.at(LayerDropout::own), true);
    return sb::glu(project(mixed, out_, out_bias_));
  }

  Taxonomy taxonomy() const override {
    return {Taxonomy::Action::elementwise, false, false, false, false, o_.width * o_[even_states]};
  }

  bool complex_state() const override { return true; }

  double mixing_flops(int64_t length) const override {
    const double chunk = static_cast<double>(std::min(length, longest_chunk));
    return 2 * static_cast<double>(o_.width) * (chunk + 2 * static_cast<double>(o_[even_states]));
  }

 private:
  struct Modes {
    Complex z;     // [d,M], double
    Complex read;  // 2 C (z - 1) / A
  };

  Modes modes() const {
    const auto dt = log_dt_->value.to(at::kDouble).exp().unsqueeze(-1);
    const auto A_re = -log_A_real_->value.to(at::kDouble).exp();
    const auto A_im = A_imag_->value.to(at::kDouble);
    const auto a = A_re * dt, b = A_im * dt;
    const auto growth = a.exp();
    const Complex z{growth * b.cos(), growth * b.sin()};
    const auto half = (b / 2).sin();
    const Complex less_one{at::expm1(a) * b.cos() - 2 * half * half, z.im};
    const auto square = A_re * A_re + A_im * A_im;
    const Complex held = less_one * Complex{A_re / square, -A_im / square};
    const auto C = C_->value.to(at::kDouble);
    return {z, Complex{2 * C.select(-1, 0), 2 * C.select(-1, 1)} * held};
  }

  // Toeplitz matrix [d,chunk,chunk]: row = frame of the input, column = frame of the output.
  static at::Tensor toeplitz(const at::Tensor& kernel) {
    const int64_t chunk = kernel.size(1);
    const auto padded = at::cat({at::zeros({kernel.size(0), chunk - 1}, kernel.options()), kernel}, 1);
    return padded.unfold(1, chunk, 1).flip(1);
  }

  at::Tensor convolve(const at::Tensor& x, const Context& context) const {
    const int64_t batch = x.size(0), length = x.size(1), d = o_.width;
    const Modes m = modes();
    if (context.gates) context.record("fixed_decay", (m.z.re * m.z.re + m.z.im * m.z.im).sqrt());
    if (x.is_cuda() && !context.state) return by_transforms(x, taps(m, length).to(x.scalar_type()));
    const int64_t chunk = std::min(length, longest_chunk), chunks = (length + chunk - 1) / chunk;
    const auto type = x.scalar_type();
    const Complex pw = powers(m.z, chunk + 1);
    const Complex reads = Complex{m.read.re.unsqueeze(-1), m.read.im.unsqueeze(-1)} * pw;  // [d,M,chunk+1]
    const auto kernel = reads.re.sum(1).narrow(-1, 0, chunk).to(type);
    const auto leaving = reads.slice(1, chunk);
    const auto read = at::cat({leaving.re, -leaving.im}, 1).to(type);  // [d,2M,chunk]

    auto frames = x.permute({2, 0, 1});
    if (chunks * chunk > length) frames = at::constant_pad_nd(frames, {0, chunks * chunk - length});
    const auto rows = frames.reshape({d, batch * chunks, chunk});
    const auto entering = enter(rows, pw, batch, chunks, context, type);  // [d,B chunks,2M]
    const auto y = batched_product(rows, toeplitz(kernel)) + batched_product(entering, read);
    if (context.state) leave(rows, entering, pw, batch, chunks, length - (chunks - 1) * chunk, context, type);
    return y.view({d, batch, chunks * chunk}).narrow(2, 0, length).permute({1, 2, 0});
  }

  // x [B,T,d] convolved with a kernel [d,T]: a product of spectra.
  static at::Tensor by_transforms(const at::Tensor& x, const at::Tensor& kernel) {
    const int64_t length = x.size(1);
    const int64_t span = transform_length(2 * length - 1);
    const auto spectrum = at::fft_rfft(x.permute({2, 0, 1}), span) * at::fft_rfft(kernel, span).unsqueeze(1);
    return at::fft_irfft(spectrum, span).narrow(2, 0, length).permute({1, 2, 0});
  }

  // The convolution kernel [d,count]: tap i inner + j = sum_n Re(read z^{i inner} z^j). As a product over modes, it
  // never needs the powers of all taps at once.
  static at::Tensor taps(const Modes& m, int64_t count) {
    int64_t inner = 1;
    while (inner * inner < count) inner *= 2;
    const int64_t outer = (count + inner - 1) / inner;
    const Complex within = powers(m.z, inner + 1);
    const Complex stride{within.re.select(-1, inner), within.im.select(-1, inner)};
    const Complex starts = Complex{m.read.re.unsqueeze(-1), m.read.im.unsqueeze(-1)} * powers(stride, outer);
    const auto weights = at::cat({starts.re, -starts.im}, 1).transpose(1, 2);  // [d,outer,2M]
    const Complex first = within.slice(0, inner);
    const auto all = batched_product(weights, at::cat({first.re, first.im}, 1));  // [d,outer,inner]
    return all.flatten(1).narrow(1, 0, count);
  }

  // The state before every chunk.
  at::Tensor enter(const at::Tensor& rows, const Complex& pw, int64_t batch, int64_t chunks, const Context& context,
                   at::ScalarType type) const {
    const int64_t d = o_.width, chunk = rows.size(2);
    auto state = context.carried("state");  // [B,d,M,2]
    Complex g{at::zeros({d, batch, modes_}, rows.options()), at::zeros({d, batch, modes_}, rows.options())};
    if (state.defined()) g = {state.select(-1, 0).transpose(0, 1), state.select(-1, 1).transpose(0, 1)};
    std::vector<at::Tensor> before{at::cat({g.re, g.im}, -1)};
    if (chunks > 1) {
      const auto added = bring(rows, pw, chunk, type).view({d, batch, chunks, 2 * modes_});
      const Complex whole{pw.re.select(-1, chunk).unsqueeze(1).to(type), pw.im.select(-1, chunk).unsqueeze(1).to(type)};
      for (int64_t c = 0; c + 1 < chunks; ++c) {
        const auto sum = added.select(2, c);
        const Complex decayed = g * whole;
        g = {decayed.re + sum.narrow(-1, 0, modes_), decayed.im + sum.narrow(-1, modes_, modes_)};
        before.push_back(at::cat({g.re, g.im}, -1));
      }
    }
    return at::stack(before, 2).view({d, batch * chunks, 2 * modes_});
  }

  // sum_j z^{used-1-j} x_j over the first `used` frames of every chunk: [d,B chunks,2M]
  static at::Tensor bring(const at::Tensor& rows, const Complex& pw, int64_t used, at::ScalarType type) {
    const auto last_first = pw.slice(0, used);
    const auto weights = at::cat({last_first.re, last_first.im}, 1).flip(-1).transpose(1, 2).to(type);
    return batched_product(rows.narrow(-1, 0, used), weights);
  }

  void leave(const at::Tensor& rows, const at::Tensor& entering, const Complex& pw, int64_t batch, int64_t chunks,
             int64_t used, const Context& context, at::ScalarType type) const {
    const int64_t d = o_.width, chunk = rows.size(2);
    const auto last = rows.view({d, batch, chunks, chunk}).select(2, chunks - 1);
    const auto added = bring(last, pw, used, type);
    const auto before = entering.view({d, batch, chunks, 2 * modes_}).select(2, chunks - 1);
    const Complex z{pw.re.select(-1, used).unsqueeze(1).to(type), pw.im.select(-1, used).unsqueeze(1).to(type)};
    const Complex g = Complex{before.narrow(-1, 0, modes_), before.narrow(-1, modes_, modes_)} * z;
    context.carry(
        "state",
        at::stack({g.re + added.narrow(-1, 0, modes_), g.im + added.narrow(-1, modes_, modes_)}, -1).transpose(0, 1));
  }

  MixerOptions o_;
  int64_t modes_;
  Param skip_, C_, log_dt_, log_A_real_, A_imag_, out_, out_bias_;
};

}  // namespace

ModelRow s4_row() {
  return {.name = "s4",
          .switches = {even_states, switches::mlp},
          .make = make_mixer<S4d>,
          .equations =
              "M = d_state / 2 complex modes per channel, A = -e^a + i b, z = e^(dt A), all learned, none from data\n"
              "g_t = z g_(t-1) + x_t;  y = 2 Re sum C (z - 1) / A g + D x;  [a, b] = W GELU(y), out = a sigma(b)",
          .read_recorded = [](const RecordedLayer& layer, MixerOptions& options) {
            options.set(even_states, 2 * layer.extent("kernel.C", 1));
          }};
}

}  // namespace sb
