// score_file FILE: the metric on predictions made elsewhere, as JSON. int32 batch, frames, elements, classes, then
// starts [batch][elements + 1] and targets [batch][frames]; float32 logits [batch][frames][classes]. Little-endian.
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "given_task.h"

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
    std::vector<int32_t> start(static_cast<size_t>(sizes[0]) * (sizes[2] + 1));
    std::vector<int32_t> target(static_cast<size_t>(sizes[0]) * sizes[1]), named;
    std::vector<float> logits(target.size() * static_cast<size_t>(sizes[3]));
    take(start.data(), 4 * start.size());
    take(target.data(), 4 * target.size());
    take(logits.data(), 4 * logits.size());
    const sb::Batch batch = sb::test::given_batch(sizes[0], sizes[1], sizes[2], std::move(start), std::move(target));
    const sb::Evaluation found = sb::test::scored(batch, logits, sizes[3], false, &named);
    const sb::Json json = {{"accuracy", found.elements.value()}, {"loss", found.loss}, {"predicted", named}};
    std::puts(sb::json_line(json).c_str());
    return 0;
  } catch (const sb::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
