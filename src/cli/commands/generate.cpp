#include <unistd.h>

#include <algorithm>
#include <future>
#include <memory>
#include <optional>

#include "base/file.h"
#include "base/npz.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/dense.h"
#include "cli/output.h"
#include "cli/rows.h"
#include "cli/settings.h"
#include "cli/standard_error.h"
#include "cli/stop.h"
#include "jobs/progress.h"
#include "tasks/task_registry.h"

namespace sb::cli {
namespace generate_command {

struct Options {
  GrammarSettings grammar;
  SequenceSettings sequences{"train"};
  TaskSettings task;
  std::string kind = kGapsKind;
  uint64_t start = 0, count = 1000;
  std::string format = "jsonl", out;
  bool digest = false, dense = false;
  int threads = 0;
  const Arguments* arguments = nullptr;
};

constexpr size_t kBlockElements = size_t{1}
                                  << 19;  // of a block of samples: some milliseconds of work, a few MB of text
constexpr size_t kGrain = 64;             // samples a thread formats at a time
constexpr auto kAnyThread = std::launch::async | std::launch::deferred;  // deferred: if no thread can be started

// The data file and its digest, or standard output.
class Output : public ByteSink {
 public:
  explicit Output(const std::string& path) {
    if (path != "-") file_ = std::make_unique<AtomicFile>(path);
  }
  void write(const void* data, size_t size) override {
    if (file_)
      file_->write(data, size);
    else
      print({static_cast<const char*>(data), size});
    hash_.update(data, size);
    bytes_ += size;
  }
  // Writes both data and manifest, or neither. A pipe or device gets no manifest.
  void commit(const std::string& path, const std::string& manifest) {
    if (!file_) return;
    if (file_->direct()) return file_->commit();
    AtomicFile beside(path + ".manifest.json");
    beside.write(manifest);
    beside.prepare();
    file_->prepare();
    const GracefulStop both;
    file_->commit();
    try {
      beside.commit();
    } catch (...) {
      real_file_system().remove(path);
      real_file_system().remove(path + ".manifest.json");
      throw;
    }
  }
  uint64_t bytes() const { return bytes_; }
  std::string sha256() { return hash_.hex(); }

 private:
  std::unique_ptr<AtomicFile> file_;
  Sha256 hash_;
  uint64_t bytes_ = 0;
};

// Everything a sample of the request depends on.
struct Source {
  explicit Source(const Options& options)
      : split(parse_split(options.sequences.split)),
        task(options.task.config(options.sequences)),
        sampler(options.sequences.sampler(options.grammar.load(), options.grammar.config.seed)),
        gaps(*sampler, task),
        rows(sampler->automaton()),
        length(options.sequences.length),
        has_gaps(gaps.law(split).law != GapLaw::none),
        has_wrong(has_gaps && gaps.law(split).content == GapContent::forbidden_symbol) {}

  Split split;
  TaskConfig task;
  std::shared_ptr<const Sampler> sampler;
  GapProcess gaps;
  RowWriter rows;
  int length;
  bool has_gaps, has_wrong;
};

// Calls use(block) for the samples in order, a block at a time, while the next one is being drawn.
template <class Use>
void for_each_block(const Source& source, const Options& options, const Use& use) {
  const size_t per_block = std::max<size_t>(1, kBlockElements / static_cast<size_t>(source.length));
  Progress progress("samples", options.count, standard_error());
  std::future<void> consumer;
  for (uint64_t done = 0; done < options.count;) {
    const auto n = static_cast<size_t>(std::min<uint64_t>(per_block, options.count - done));
    auto block =
        std::make_shared<SampleBlock>(source.sampler->block(source.split, options.start + done, n, options.threads));
    if (consumer.valid()) consumer.get();
    progress.update(done);
    consumer = std::async(kAnyThread, [&use, block] { use(*block); });
    done += n;
  }
  if (consumer.valid()) consumer.get();
}

// Text of each chunk of a block, made on all threads and taken in order.
template <class Append>
std::vector<std::string> texts(const SampleBlock& block, int threads, const Append& append) {
  std::vector<std::string> chunks((block.count() + kGrain - 1) / kGrain);
  parallel_for(block.count(), kGrain, threads, [&](size_t begin, size_t end) {
    std::string& text = chunks[begin / kGrain];
    for (size_t i = begin; i < end; ++i) append(text, i);
  });
  return chunks;
}

void hash_canonical(const Source& source, const SampleBlock& block, int threads, Sha256& canon) {
  for (const auto& text : texts(block, threads, [&](std::string&out, size_t i) {
         source.rows.canonical(out, block.sample(i), source.length);
       })) {
    canon.update(text);
  }
}

void write_jsonl(const Source& source, const Options& options, Output& out, Sha256& canon) {
  for_each_block(source, options, [&](const SampleBlock& block) {
    auto canonical = std::async(kAnyThread, [&] { hash_canonical(source, block, options.threads, canon); });
    const auto lines = texts(block, options.threads, [&](std::string& text, size_t i) {
      thread_local Gaps gaps;
      const uint64_t index = block.first + i;
      if (source.has_gaps) source.gaps.draw(source.split, index, block.sample(i), source.length, gaps);
      source.rows.json(text, index, block.sample(i), source.length, source.has_gaps ? &gaps : nullptr,
                       source.has_wrong);
    });
    for (const auto& text : lines) out.write(text.data(), text.size());
    canonical.get();
  });
}

// Writes an array row by row; `row(i, values)` computes row i.
template <class T, class Row>
void write_rows(NpzWriter& npz, uint64_t count, const Row& row) {
  std::vector<T> values;
  for (uint64_t i = 0; i < count; ++i) {
    values.clear();
    row(i, values);
    npz.write(values.data(), values.size());
  }
}

void write_npz(const Source& source, const Options& options, Output& out, Sha256& canon) {
  const Automaton& automaton = source.sampler->automaton();
  const auto length = static_cast<uint64_t>(source.length);
  constexpr uint64_t kLargest = 0xF0000000ULL;
  std::optional<GapTask> frames;
  if (options.dense) frames.emplace(source.sampler, source.task);
  const uint64_t sample_bytes = 8 + length * (2 + 4 + (source.has_gaps ? 4 : 0) + (source.has_wrong ? 2 : 0)) +
                                (frames ? dense_sample_bytes(*frames, source.split) : 0);
  if (options.count > kLargest / sample_bytes) {
    throw bad_input("generate --format", "npz holds up to " + grouped(kLargest / sample_bytes) +
                                             " of these samples (4 GiB), got " + grouped(options.count) +
                                             "; expected jsonl or a smaller --count");
  }
  std::vector<uint16_t> states;
  states.reserve(options.count * length);
  for_each_block(source, options, [&](const SampleBlock& block) {
    states.insert(states.end(), block.states.begin(), block.states.end());
    hash_canonical(source, block, options.threads, canon);
  });
  const auto sample = [&](uint64_t i) { return states.data() + i * length; };

  NpzWriter npz(out);
  std::vector<uint64_t> index(options.count);
  for (uint64_t i = 0; i < options.count; ++i) index[i] = options.start + i;
  npz.array("index", index);
  npz.begin_array<int16_t>("classes", {options.count, length});
  write_rows<int16_t>(npz, options.count, [&](uint64_t i, std::vector<int16_t>& row) {
    for (uint64_t e = 0; e < length; ++e) row.push_back(static_cast<int16_t>(automaton.symbol[sample(i)[e]]));
  });
  npz.begin_array<int32_t>("states", {options.count, length});
  write_rows<int32_t>(npz, options.count, [&](uint64_t i, std::vector<int32_t>& row) {
    for (uint64_t e = 0; e < length; ++e) row.push_back(automaton.id[sample(i)[e]]);
  });
  if (source.has_gaps) {
    Gaps gaps;
    std::vector<int16_t> wrong;
    std::vector<int64_t> offsets = {0};
    npz.begin_array<int32_t>("gaps", {options.count, length});
    write_rows<int32_t>(npz, options.count, [&](uint64_t i, std::vector<int32_t>& row) {
      source.gaps.draw(source.split, options.start + i, sample(i), source.length, gaps);
      row = gaps.length;
      for (const int32_t symbol : gaps.wrong) wrong.push_back(static_cast<int16_t>(symbol));
      offsets.push_back(static_cast<int64_t>(wrong.size()));
    });
    if (source.has_wrong) {
      npz.array("wrong", wrong);
      npz.array("wrong_offsets", offsets);
    }
  }
  if (frames) {
    const SampleBlock block{options.start, source.length, std::move(states)};
    write_dense(npz, *frames, source.split, block);
  }
  npz.finish();
}

std::string manifest(const Source& source, const Options& options, Output& out, const std::string& canon) {
  Json json = {{"file", options.out.substr(options.out.rfind('/') + 1)},
               {"format", options.format},
               {"samples", options.count},
               {"start", options.start}};
  if (options.dense) json["dense"] = true;
  json["grammar"] = options.grammar.description();
  json["sequences"] = options.sequences.description();
  json["task"] = description_of(source.task);
  json["bytes"] = out.bytes();
  json["sha256"] = out.sha256();
  json["sha256_canon"] = canon;
  json["version"] = program_version();
  return json_document(json);
}

// Rejects options that would not change the output.
void refuse_idle(const Options& options) {
  options.task.config(options.sequences);  // reports invalid values first
  if (options.digest) {
    const std::string task = options.task.first_given();
    const std::string flag = !task.empty() ? task : options.arguments->given("--format") ? "--format" : "";
    if (flag.empty()) return;
    throw bad_input("generate " + flag, "has no effect on --digest, which covers only the sequences");
  }
  if (!options.dense) {
    for (const char* flag : {"--noise", "--objective"}) {
      if (options.arguments->given(flag))
        throw bad_input(options.arguments->where(flag), "has no effect on symbols and gaps; requires --dense");
    }
  }
}

Exit run(const Options& options) {
  if (options.kind != kGapsKind)
    throw bad_input("generate --kind", "writes samples of gaps only, got " + options.kind +
                                           "; `show` and, in Python, Task.batch() give samples of every kind");
  if (options.digest && !options.out.empty()) {
    throw bad_input("generate", "--digest writes no file and cannot be combined with --out");
  }
  if (!options.digest && options.out.empty()) {
    throw bad_input("generate --out", "expected a file (or --digest, which writes none), got nothing");
  }
  if (options.dense && (options.format != "npz" || options.digest)) {
    throw bad_input("generate --dense", "requires --format npz and a file, got " +
                                            std::string(options.digest ? "--digest" : options.format));
  }
  if (options.start > UINT64_MAX - options.count) {
    throw bad_input("generate --start", "sample indices exceed 2^64; use a smaller --start or --count");
  }
  refuse_idle(options);
  const Source source(options);
  Sha256 canon;
  if (options.digest) {
    for_each_block(source, options,
                   [&](const SampleBlock& block) { hash_canonical(source, block, options.threads, canon); });
    print(canon.hex() + "\n");
    return Exit::done;
  }
  if (options.format == "npz" && options.out == "-" && ::isatty(STDOUT_FILENO) == 1) {
    throw bad_input("generate --out", "cannot write npz to a terminal; give a file name");
  }
  Output out(options.out);
  if (options.format == "npz")
    write_npz(source, options, out, canon);
  else
    write_jsonl(source, options, out, canon);
  const uint64_t bytes = out.bytes();
  out.commit(options.out, manifest(source, options, out, canon.hex()));
  if (options.out == "-") return Exit::done;
  complain(grouped(options.count) + (options.count == 1 ? " sample, " : " samples, ") +
           bytes_text(static_cast<double>(bytes)) + ": " + options.out);
  return Exit::done;
}

}  // namespace generate_command

void add_generate(Program& program) {
  using namespace generate_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments =
      program.command("generate", "Write samples as JSONL or npz with a manifest, or print their digest",
                      {"selectivbench generate --task 1 --split test --count 1000 --out test.jsonl",
                       "selectivbench generate --stream direct --count 200000 --format npz --out train.npz",
                       "selectivbench generate --split reference --count 1000 --digest"},
                      [options] { return run(*options); });
  options->arguments = &arguments;
  options->grammar.add_to(arguments);
  options->sequences.add_to(arguments);
  options->task.add_to(arguments, 0);
  arguments.choice("--kind", options->kind, task_kinds(), "Kind of task; this command can write only gaps");
  arguments.heading("Output");
  arguments.integer("--start", options->start, 0, UINT64_MAX, "Index of the first sample");
  arguments.integer("--count", options->count, 1, uint64_t{1} << 40, "Number of samples");
  arguments.choice("--format", options->format, {"jsonl", "npz"}, "One line of JSON per sample, or numpy arrays");
  arguments.flag("--dense", options->dense,
                 "With npz: also write the frames with noise, their targets and the elements' first frames");
  arguments.text("--out", options->out, "FILE",
                 "File to write, with FILE.manifest.json next to it; - for standard output");
  arguments.flag("--digest", options->digest, "Print the SHA-256 of the samples' canonical text and write no file");
  add_threads(arguments, options->threads);
}

}  // namespace sb::cli
