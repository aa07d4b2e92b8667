// score_file FILE: the metric on predictions made elsewhere, as JSON. int32 batch, frames, elements, classes, then
// starts [batch][elements + 1] and targets [batch][frames]; float32 logits [batch][frames][classes]. Little-endian.
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "tasks/metric.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const std::string bytes = sb::read_file(argv[1], size_t{1} << 24);
    size_t at = 0;
    const auto take = [&](void* out, size_t size) {
      if (bytes.size() - at < size) throw sb::bad_input("score_file", "the file is short");
      std::memcpy(out, bytes.data() + at, size);
      at += size;
    };
    int32_t sizes[4];
    take(sizes, sizeof sizes);
    sb::Batch batch;
    batch.batch = sizes[0];
    batch.frames = sizes[1];
    batch.elements = sizes[2];
    batch.start.resize(static_cast<size_t>(sizes[0]) * (sizes[2] + 1));
    batch.target.resize(static_cast<size_t>(sizes[0]) * sizes[1]);
    std::vector<float> logits(batch.target.size() * static_cast<size_t>(sizes[3]));
    take(batch.start.data(), 4 * batch.start.size());
    take(batch.target.data(), 4 * batch.target.size());
    take(logits.data(), 4 * logits.size());
    std::vector<int32_t> predicted;
    const sb::Score score = sb::segment_score(batch, logits.data(), sizes[3], {}, &predicted);
    const sb::Json json = {{"accuracy", score.accuracy}, {"loss", score.loss}, {"predicted", predicted}};
    std::puts(sb::json_line(json).c_str());
    return 0;
  } catch (const sb::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
