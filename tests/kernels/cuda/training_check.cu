// Frames from symbols, decoder with cross-entropy, and Adam on the device against loops in double, then their times.
// Exit code 1 where a bound is missed.
//   training_check [--time]
#include <cublas_v2.h>

#include <cstring>

#include "fused.cuh"
#include "kernels/cuda/adam.h"
#include "kernels/cuda/decoder_loss.h"
#include "kernels/cuda/frames.h"
#include "random/philox.h"

using namespace sb::cuda;
using namespace check;

namespace {

// Symbols with blanks, and padding at the ends of sequences
std::vector<int16_t> symbols(size_t B, size_t T, size_t vocab, std::mt19937_64& engine) {
  std::vector<int16_t> s(B * T);
  for (size_t i = 0; i < s.size(); ++i)
    s[i] = i % T >= T - engine() % 3 ? -2 : static_cast<int16_t>(engine() % 4 == 0 ? -1 : int(engine() % vocab));
  return s;
}

void check_frames(Verdict& verdict, std::mt19937_64& engine, bool low, size_t B, size_t T, size_t vocab, float noise) {
  const auto symbol = symbols(B, T, vocab, engine);
  std::vector<int64_t> samples(B);
  for (int64_t& s : samples) s = int64_t(engine() % (uint64_t{1} << 50));
  const uint64_t seed = engine();
  const uint32_t split = 2;
  std::vector<float> expected(B * T * vocab);
  for (size_t i = 0; i < expected.size(); ++i) {
    const size_t frame = i / vocab, b = frame / T;
    const sb::PhiloxStream stream(seed, split, uint64_t(samples[b]), sb::Purpose::noise);
    volatile float v = 0;
    if (noise > 0 && symbol[frame] != -2)
      v = noise * sb::unit_float(stream.word(uint32_t((frame % T) * vocab + i % vocab)));
    if (symbol[frame] == int16_t(i % vocab)) v = v + 1.f;
    expected[i] = v;
  }
  const Memory device_symbol = upload(symbol), device_samples = upload(samples);
  Rows out(1, 1, expected.size(), low);
  const FrameRows p{int(B),
                    int(T),
                    int(vocab),
                    element(low),
                    static_cast<int16_t*>(device_symbol.data),
                    noise,
                    seed,
                    split,
                    device_samples.integers()};
  expect(expand_frames(p, out.memory.data, nullptr), "expand_frames");
  expect(cudaDeviceSynchronize(), "frames");
  const Doubles found = out.get();
  size_t wrong = 0;
  for (size_t i = 0; i < expected.size(); ++i) wrong += found[i] != rounded(expected[i], low);
  verdict.judge("frames, wrong bits", double(wrong), 0.5, shape(low, {B, T, vocab}));
}

void check_decoder(Verdict& verdict, std::mt19937_64& engine, cublasHandle_t handle, bool low, size_t rows,
                   size_t width, size_t classes, size_t padded, int group) {
  const Doubles h = normals(rows * width, engine, low), b = normals(classes, engine, false);
  Doubles W = normals(classes * width, engine, low, 2 / std::sqrt(double(width)));
  std::vector<int64_t> target(rows);
  for (int64_t& t : target) t = engine() % 5 == 0 ? -1 : int64_t(engine() % classes);
  target[0] = 0;
  if (rows > 2) target[1] = int64_t(classes) - 1;
  double real = 0, loss = 0;
  for (int64_t t : target) real += t >= 0;
  W.resize(padded * width, 0.);
  Doubles dh(h.size(), 0.), dW(W.size(), 0.), db(classes, 0.), logit(classes);
  for (size_t r = 0; r < rows; ++r) {
    if (target[r] < 0) continue;
    double most = -1e300, sum = 0;
    for (size_t c = 0; c < classes; ++c) {
      logit[c] = b[c];
      for (size_t i = 0; i < width; ++i) logit[c] += h[r * width + i] * W[c * width + i];
      most = std::max(most, logit[c]);
    }
    for (double l : logit) sum += std::exp(l - most);
    loss += std::log(sum) + most - logit[size_t(target[r])];
    for (size_t c = 0; c < classes; ++c) {
      const double g = (std::exp(logit[c] - most) / sum - (int64_t(c) == target[r])) / real;
      db[c] += g;
      for (size_t i = 0; i < width; ++i) {
        dh[r * width + i] += g * W[c * width + i];
        dW[c * width + i] += g * h[r * width + i];
      }
    }
  }
  loss /= real;
  const Memory targets = upload(target);
  const Rows hs(rows, 1, width, low, 0, 0, h), Ws(padded, 1, width, low, 0, 0, W), bs(1, 1, classes, false, 0, 0, b);
  Rows dhs(rows, 1, width, low), dWs(padded, 1, width, false), dbs(1, 1, classes, false);
  Memory normaliser(8), found(8);
  DecoderLoss p;
  p.rows = int64_t(rows), p.width = int(width), p.classes = int(classes), p.padded_classes = int(padded),
  p.element = element(low), p.group = group;
  p.h = hs.memory.data, p.weight = Ws.memory.data, p.bias = bs.memory.floats(), p.target = targets.integers();
  p.normaliser = normaliser.doubles();
  Memory scratch(decoder_loss_scratch_bytes(p));
  expect(count_targets(targets.integers(), int64_t(rows), normaliser.doubles(), nullptr), "count_targets");
  expect(decoder_loss(p, found.doubles(), {dhs.memory.data, dWs.memory.floats(), dbs.memory.floats()}, scratch.data,
                      handle, nullptr),
         "decoder_loss");
  expect(cudaDeviceSynchronize(), "decoder");
  const std::string where = shape(low, {rows, width, classes});
  verdict.judge("decoder loss", std::abs(download<double>(found.data, 1)[0] - loss) / std::max(loss, 1.), 1e-5, where);
  verdict.judge("decoder back", error(dhs, dh), bound(low), where + " dh");
  verdict.judge("decoder back", error(dWs, dW), bound(low), where + " dW");
  verdict.judge("decoder back", error(dbs, db), 1e-5, where + " db");
  found.poison();
  expect(decoder_loss(p, found.doubles(), {}, scratch.data, handle, nullptr), "decoder_loss alone");
  expect(cudaDeviceSynchronize(), "decoder");
  verdict.judge("decoder loss", std::abs(download<double>(found.data, 1)[0] - loss) / std::max(loss, 1.), 1e-5, where);
}

// Groups with a cap and without decay
void check_adam(Verdict& verdict, std::mt19937_64& engine, int64_t count, double clip, bool bf16_state) {
  const auto low = [&](Doubles x) {
    for (double& e : x) e = rounded(e, bf16_state);
    return x;
  };
  Doubles p = low(normals(count, engine, false)), m(count, 0.), v(count, 0.);
  std::vector<AdamGroup> groups = {
      {0, count / 3, 0, 1}, {count / 3, 7, 2e-4, 0}, {count / 3 + 7, count - count / 3 - 7, 0, 1}};
  Rows ps(1, 1, count, false, 0, 0, p), ms(1, 1, count, false, 0, 0, m), vs(1, 1, count, false, 0, 0, v),
      gs(1, 1, count, false), copy(1, 1, count, true);
  const Memory group_memory = upload(groups);
  Memory lr = upload(Doubles{1e-3}), limit = upload(Doubles{clip}), updates = upload(std::vector<int64_t>{4}),
         sound = upload(std::vector<int64_t>{1}), report(16);
  FlatAdam a;
  a.count = count, a.parameters = ps.memory.floats(), a.first_moment = ms.memory.floats(),
  a.second_moment = vs.memory.floats();
  a.gradients = gs.memory.floats(), a.copy = copy.memory.data;
  a.groups = static_cast<AdamGroup*>(group_memory.data), a.group_count = int(groups.size());
  a.weight_decay = 0.1, a.bf16_state = bf16_state;
  a.lr = lr.doubles(), a.clip = limit.doubles(), a.updates = updates.integers();
  a.sound = sound.integers();
  Memory workspace(adam_workspace_bytes(a));
  double norm = 0;
  for (int step = 0; step < 3; ++step) {
    const Doubles g = normals(count, engine, false, 0.1);
    norm = 0;
    for (const double x : g) norm += x * x;
    norm = std::sqrt(norm);
    gs.put(g);
    expect(adam_update(a, static_cast<AdamReport*>(report.data), workspace.data, nullptr), "adam_update");
    const double t = 5 + step, scale = clip > 0 ? std::min(1., clip / (norm + 1e-6)) : 1;
    const auto r = [&](double x) { return bf16_state ? rounded(x, true) : x; };
    for (int64_t i = 0; i < count; ++i) {
      const AdamGroup& group = groups[i < groups[1].offset ? 0 : i < groups[2].offset ? 1 : 2];
      const double rate = group.max_lr > 0 ? std::min(1e-3, group.max_lr) : 1e-3, grad = r(r(g[i]) * scale);
      m[i] = r(m[i] + (grad - m[i]) * (1 - .9));
      v[i] = r(r(v[i] * .999) + (1 - .999) * grad * grad);
      const double root = r(r(r(std::sqrt(v[i])) / std::sqrt(1 - std::pow(.999, t))) + 1e-8);
      p[i] = r(r(p[i] * (group.decay ? 1 - rate * .1 : 1)) - rate / (1 - std::pow(.9, t)) * m[i] / root);
    }
  }
  expect(cudaDeviceSynchronize(), "adam");
  const std::string where = shape(bf16_state, {size_t(count)});
  const double most = bf16_state ? 1e-3 : 1e-5;  // a float on the edge between two bf16 may round the other way
  verdict.judge("adam", error(ps, p), most, where + " p");
  verdict.judge("adam", error(ms, m), most, where + " m");
  verdict.judge("adam", error(vs, v), most, where + " v");
  const AdamReport said = download<AdamReport>(report.data, 1)[0];
  verdict.judge("adam's norm", std::abs(said.norm - norm) / norm, 1e-12, where);
  const Doubles low_copy = copy.all(), weights = ps.get();
  bool same = said.made == 1 && download<int64_t>(updates.data, 1)[0] == 7;
  for (int64_t i = 0; i < count; ++i) same = same && low_copy[i] == rounded(weights[i], true);
  verdict.judge("adam's bf16 copy", same ? 0 : 1, 0.5, where);
  // a gradient that is not finite changes nothing, and no later one does
  Doubles bad(count, 0.);
  bool kept = true;
  for (const double last : {double(INFINITY), 1.}) {
    bad[count - 1] = last;
    gs.put(bad);
    expect(adam_update(a, static_cast<AdamReport*>(report.data), workspace.data, nullptr), "adam_update");
    expect(cudaDeviceSynchronize(), "adam");
    kept = kept && ps.get() == weights && download<AdamReport>(report.data, 1)[0].made == 0 &&
           download<int64_t>(updates.data, 1)[0] == 7;
  }
  verdict.judge("adam, not finite", kept ? 0 : 1, 0.5, where);
}

int check_all(cublasHandle_t handle) {
  std::mt19937_64 engine(std::random_device{}());
  Verdict verdict;
  for (bool low : {true, false}) {
    for (float noise : {0.f, 0.3f}) {
      check_frames(verdict, engine, low, 5, 33, 41, noise);
      check_frames(verdict, engine, low, 3, 17, 6, noise);
      check_frames(verdict, engine, low, 2, 9, 300, noise);
    }
    check_decoder(verdict, engine, handle, low, 300, 72, 41, 41, 128);
    check_decoder(verdict, engine, handle, low, 200, 256, 1601, 1608, 96);
    check_decoder(verdict, engine, handle, low, 130, 96, 2000, 2000, 0);
    check_decoder(verdict, engine, handle, low, 60, 64, 5000, 5001, 32);
    check_decoder(verdict, engine, handle, low, 1, 8, 3, 3, 0);
  }
  for (int64_t count : {2003, 100000, 3000001})
    for (double clip : {0., 1.})
      for (bool bf16_state : {false, true}) check_adam(verdict, engine, count, clip, bf16_state);
  return verdict.finish();
}

// ---- time ----

void time_width(cublasHandle_t handle, const Timer& timer, int width, int64_t parameters) {
  const size_t rows = 64 * 400;
  const int classes = 1601, padded = 1608, vocab = 41;
  std::mt19937_64 engine(3);
  {
    Sets h(rows * width, true, 4, 1), W(size_t(padded) * width, true, 1, 2), dh(rows * width, true, 4),
        dW(size_t(padded) * width, false, 1), b(classes, false, 1, 3), db(classes, false, 1);
    std::vector<int64_t> target(rows);
    for (int64_t& t : target) t = int64_t(engine() % classes);
    const Memory targets = upload(target), normaliser = upload(Doubles{double(rows)}), loss(8);
    for (int group : {-6400, 1600, 3200, 6400, 12800}) {
      DecoderLoss p;
      p.rows = rows, p.width = width, p.classes = classes, p.group = std::abs(group);
      p.padded_classes = group > 0 ? padded : classes;
      p.weight = W.at(0), p.bias = static_cast<float*>(b.at(0)), p.target = targets.integers();
      p.normaliser = normaliser.doubles();
      Memory scratch(decoder_loss_scratch_bytes(p));
      const DecoderLossGradients none;
      const auto both = [&](int i) {
        p.h = h.at(i);
        DecoderLossGradients d;
        d.dh = dh.at(i), d.d_weight = static_cast<float*>(dW.at(0)), d.d_bias = static_cast<float*>(db.at(0));
        return decoder_loss(p, loss.doubles(), d, scratch.data, handle, nullptr);
      };
      const auto alone = [&](int i) {
        p.h = h.at(i);
        return decoder_loss(p, loss.doubles(), none, scratch.data, handle, nullptr);
      };
      const double ms = median_ms(both), forward = median_ms(alone), flops = 6. * rows * width * classes;
      std::printf(
          "decoder %d, %d rows of weight, groups of %d: loss and gradients %.3f ms (%.0f TFLOP/s), loss alone %.3f ms, "
          "scratch %.0f MB\n",
          width, p.padded_classes, p.group, ms, flops / ms / 1e9, forward, double(scratch.bytes) / 1e6);
    }
  }
  {
    std::vector<int16_t> symbol(rows);
    for (int16_t& s : symbol) s = int16_t(engine() % vocab);
    const Memory ids = upload(symbol), samples = upload(std::vector<int64_t>(64, 3));
    Sets x(rows * vocab, true, 8);
    const FrameRows f{64, 400, vocab, Element::bf16, static_cast<int16_t*>(ids.data), 0.3f, 7, 1, samples.integers()};
    timer.row("frames with noise", width, 2. * rows * vocab,
              median_ms([&](int i) { return expand_frames(f, x.at(i), nullptr); }));
  }
  {
    Sets p(parameters, false, 1, 1), m(parameters, false, 1, 2), v(parameters, false, 1), g(parameters, false, 1, 4);
    Sets copy(parameters, true, 1);
    expect(cudaMemset(v.at(0), 0, v.each), "memset");
    const Memory groups = upload(std::vector<AdamGroup>{{0, parameters, 0, 1}}), lr = upload(Doubles{1e-3}),
                 clip = upload(Doubles{1}), updates = upload(std::vector<int64_t>{4}), report(16);
    FlatAdam a;
    a.count = parameters, a.parameters = static_cast<float*>(p.at(0));
    a.first_moment = static_cast<float*>(m.at(0)), a.second_moment = static_cast<float*>(v.at(0));
    a.gradients = static_cast<float*>(g.at(0)), a.copy = copy.at(0);
    a.groups = static_cast<AdamGroup*>(groups.data), a.group_count = 1;
    a.lr = lr.doubles(), a.clip = clip.doubles(), a.updates = updates.integers();
    Memory workspace(adam_workspace_bytes(a));
    timer.row("norm, clip, Adam, bf16 copy", width, 34. * double(parameters), median_ms([&](int) {
                return adam_update(a, static_cast<AdamReport*>(report.data), workspace.data, nullptr);
              }));
  }
}

}  // namespace

int main(int argc, char** argv) {
  cublasHandle_t handle = nullptr;
  if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) {
    std::printf("[cublas] no handle\n");
    return 2;
  }
  if (argc < 2 || std::strcmp(argv[1], "--time") != 0) return check_all(handle);
  const Timer timer;
  time_width(handle, timer, 256, 4'700'000);
  time_width(handle, timer, 1152, 87'300'000);
  time_width(handle, timer, 1296, 83'100'000);
  return 0;
}
