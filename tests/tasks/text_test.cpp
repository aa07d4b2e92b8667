// Text with distractor spans: frames and answers, splits, formats of files, the recovery axis, and n-grams.
#include <gtest/gtest.h>

#include <map>

#include "../base/expect.h"
#include "base/error.h"
#include "kind_example.h"
#include "tasks/ceiling.h"
#include "tasks/corpus.h"
#include "tasks/ngram.h"

namespace sb {
namespace {

using test::example;
using test::sentences;

using Keys = std::map<std::string, TaskValue>;

struct Sample {
  std::string shown, truth;  // truth: without spans
  std::vector<int> gap, answer;
};

Sample sample_of(const Task& task, Split split, uint64_t index) {
  Batch batch;
  task.fill(split, index, 1, batch);
  Sample out;
  std::vector<int32_t> answers(static_cast<size_t>(batch.elements));
  task.answers(batch, 0, answers.data());
  for (size_t t = 0; t < answers.size(); ++t) {
    out.shown += static_cast<char>(batch.symbol[t]);
    if (batch.gap[t] == 0) out.truth += static_cast<char>(batch.symbol[t]);
    out.gap.push_back(batch.gap[t]);
    out.answer.push_back(answers[t]);
    EXPECT_EQ(batch.target[t], answers[t]);
  }
  return out;
}

// Lengths of the spans; the last may be cut off.
std::vector<size_t> spans_of(const Sample& sample) {
  std::vector<size_t> out;
  for (size_t t = 0; t < sample.gap.size(); ++t) {
    if (sample.gap[t] == 0) continue;
    if (t == 0 || sample.gap[t - 1] == 0) out.push_back(0);
    ++out.back();
  }
  return out;
}

TEST(Text, WithoutSpansSamplesArePiecesOfTheText) {
  const std::string text = sentences(20000);
  const auto task = example("text", 50, {{"span_probability", 0.0}}, text);
  EXPECT_EQ(task->shape().channels, 256);
  for (const Split split : {Split::train, Split::valid, Split::test}) {
    for (uint64_t i = 0; i < 20; ++i) {
      const Sample sample = sample_of(*task, split, i);
      EXPECT_NE(text.find(sample.shown), std::string::npos);
      for (size_t t = 0; t + 1 < 50; ++t) EXPECT_EQ(sample.answer[t], sample.shown[t + 1]);
      EXPECT_NE(text.find(sample.shown + static_cast<char>(sample.answer.back())), std::string::npos);
    }
  }
}

TEST(Text, SplitsShareNoPartOfTheFile) {
  std::string text(20000, 'a');
  std::fill(text.begin() + 18000, text.begin() + 19000, 'b');
  std::fill(text.begin() + 19000, text.end(), 'c');
  for (const char* distractor : {"random", "other_text", "repeated_text", "mixed"}) {
    const auto task = example("text", 100, {{"span_probability", 0.1}, {"distractor", std::string(distractor)}}, text);
    for (uint64_t i = 0; i < 30; ++i) {
      EXPECT_EQ(sample_of(*task, Split::train, i).shown, std::string(100, 'a'));
      EXPECT_EQ(sample_of(*task, Split::valid, i).shown, std::string(100, 'b'));
      EXPECT_EQ(sample_of(*task, Split::test, i).shown, std::string(100, 'c'));
    }
  }
}

TEST(Text, SpansInterruptTheTextAndOnlyTrueTokensAsk) {
  const std::string text = sentences(20000);
  for (const char* distractor : {"random", "other_text", "repeated_text", "mixed"}) {
    const auto task = example("text", 120,
                              {{"span_probability", 0.05},
                               {"span_min", int64_t{3}},
                               {"span_max", int64_t{9}},
                               {"distractor", std::string(distractor)}},
                              text);
    size_t spans = 0, truths = 0;
    for (uint64_t i = 0; i < 200; ++i) {
      const Sample sample = sample_of(*task, Split::train, i);
      EXPECT_NE(text.find(sample.truth), std::string::npos) << "the text goes on after a span";
      size_t seen = 0;
      for (size_t t = 0; t < 120; ++t) {
        if (sample.gap[t] == 1) {
          EXPECT_EQ(sample.answer[t], -1);
        } else if (++seen < sample.truth.size()) {
          EXPECT_EQ(sample.answer[t], sample.truth[seen]);
        } else {
          EXPECT_GE(sample.answer[t], 0);
        }
      }
      EXPECT_EQ(sample.gap[0], 0);
      for (const size_t length : spans_of(sample)) EXPECT_LE(length, 9U);
      spans += spans_of(sample).size();
      truths += sample.truth.size();
    }
    EXPECT_NEAR(static_cast<double>(spans) / static_cast<double>(truths), 0.05, 0.007) << distractor;
  }
}

TEST(Text, DistractorsAreWhatTheyAreCalled) {
  const std::string text = sentences(20000);
  const auto keys = [](const char* distractor) {
    return Keys{{"span_probability", 0.03},
                {"span_min", int64_t{8}},
                {"span_max", int64_t{8}},
                {"distractor", std::string(distractor)}};
  };
  const auto visit = [&](const char* distractor, const auto& with) {
    const auto task = example("text", 100, keys(distractor), text);
    int spans = 0;
    for (uint64_t i = 0; i < 60; ++i) {
      const Sample sample = sample_of(*task, Split::test, i);
      for (size_t t = 1; t + 8 < 100; ++t) {
        if (sample.gap[t] == 0 || sample.gap[t - 1] == 1 || sample.gap[t + 7] == 0) continue;
        std::string before;
        for (size_t k = 0; k < t; ++k)
          if (sample.gap[k] == 0) before += sample.shown[k];
        with(before, sample.shown.substr(t, 8));
        ++spans;
      }
    }
    EXPECT_GT(spans, 50) << distractor;
  };
  visit("repeated_text", [](const std::string& before, const std::string& span) {
    if (before.size() >= 8) {
      EXPECT_EQ(span, before.substr(before.size() - 8));
    }
  });
  int joined = 0;  // the end of the part followed by its beginning
  visit("other_text",
        [&](const std::string&, const std::string& span) { joined += text.find(span) == std::string::npos; });
  EXPECT_LE(joined, 2);
  int pieces = 0, spans = 0;
  visit("random", [&](const std::string&, const std::string& span) {
    pieces += text.find(span) != std::string::npos;
    ++spans;
  });
  EXPECT_LT(pieces, spans / 4);
}

TEST(Text, RecoveryIsATestAxis) {
  const auto task = example("text", 150, {{"span_probability", 0.05}});
  for (const int distance : {1, 2, 7}) {
    const auto point = task->at(Split::test, distance);
    int asked = 0;
    for (uint64_t i = 0; i < 20; ++i) {
      const Sample all = sample_of(*task, Split::test, i), sample = sample_of(*point, Split::test, i);
      EXPECT_EQ(sample.shown, all.shown) << "the same frames";
      int since = -1;
      for (size_t t = 0; t < 150; ++t) {
        since = sample.gap[t] == 1 ? 0 : since < 0 ? -1 : since + 1;
        EXPECT_EQ(sample.answer[t], sample.gap[t] == 0 && since == distance ? all.answer[t] : -1) << t;
        asked += sample.answer[t] >= 0;
      }
      EXPECT_EQ(sample_of(*point, Split::train, i).answer, sample_of(*task, Split::train, i).answer);
    }
    EXPECT_GT(asked, 20);
  }
  EXPECT_NE(error_line([&] { task->at(Split::test, 149); }).find("at distance 149 a sample asks for at most 0 tokens"),
            std::string::npos);
  const auto plain = example("text", 150, {{"span_probability", 0.0}});
  EXPECT_NE(error_line([&] { plain->at(Split::test, 1); }), "");
}

std::string npy(const std::string& type, const std::string& shape, const std::string& values) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(118, ' ');
  return "\x93NUMPY" + std::string("\x01\x00\x76\x00", 4) + header + values;
}

std::string little_endian(const std::vector<uint32_t>& ids, size_t width) {
  std::string out;
  for (const uint32_t id : ids)
    for (size_t k = 0; k < width; ++k) out += static_cast<char>(k < 4 ? id >> (8 * k) & 255 : 0);
  return out;
}

TEST(Text, TokenIdsOfEveryFormatGiveTheSameSamples) {
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < 4000; ++i) ids.push_back(i * 7919 % 1000);
  const std::string shape = "(4000,)";
  std::optional<Batch> first;
  for (const auto& [tokens, bytes] : {std::pair<const char*, std::string>{"uint16", little_endian(ids, 2)},
                                      {"uint32", little_endian(ids, 4)},
                                      {"npy", npy("<u2", shape, little_endian(ids, 2))},
                                      {"npy", npy("<i4", shape, little_endian(ids, 4))},
                                      {"npy", npy("<i8", shape, little_endian(ids, 8))}}) {
    const auto task = example("text", 40, {{"tokens", std::string(tokens)}}, bytes);
    EXPECT_EQ(task->shape().answers, 1000);
    Batch batch;
    task->fill(Split::train, 0, 8, batch);
    if (!first) first = batch;
    EXPECT_EQ(batch.symbol, first->symbol) << tokens;
    EXPECT_EQ(batch.state, first->state) << tokens;
  }
}

TEST(Corpus, TokensAreDecodedOncePerFileAndLiveAsLongAsIt) {
  std::shared_ptr<const TaskFile> file = test::task_file(little_endian({3, 1, 2}, 4));
  EXPECT_EQ(Corpus(file, "uint32").size(), 3U);
  EXPECT_EQ(Corpus(file, "uint16").size(), 6U) << "another format has other tokens";
  const std::weak_ptr<const FileTokens> first = file->tokens.at("uint32");
  const Corpus again(file, "uint32");
  EXPECT_EQ(file->tokens.at("uint32"), first.lock());
  EXPECT_EQ(again.token(0), 3);
  EXPECT_EQ(again.classes(), 4);
  const std::weak_ptr<const FileTokens> other = file->tokens.at("uint16");
  file.reset();
  EXPECT_FALSE(other.expired()) << "the corpus holds the file";
}

TEST(Corpus, TokensEndWithTheirFile) {
  std::shared_ptr<const TaskFile> file = test::task_file(little_endian({3, 1, 2}, 4));
  EXPECT_EQ(Corpus(file, "uint32").size(), 3U);
  const std::weak_ptr<const FileTokens> tokens = file->tokens.at("uint32");
  EXPECT_FALSE(tokens.expired());
  file.reset();
  EXPECT_TRUE(tokens.expired());
}

TEST(Text, FilesThatDoNotFitAreOneClearLine) {
  const auto fault = [](const char* tokens, const std::string& bytes, const Keys& more = {}) {
    Keys keys = more;
    keys["tokens"] = std::string(tokens);
    const std::string line = error_line([&] { example("text", 100, keys, bytes); });
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    return line;
  };
  EXPECT_EQ(fault("bytes", sentences(2659)),
            "[task.file] corpus.txt: tokens, expected at least 2660, 20 (length + 1 + span_max), got 2659");
  EXPECT_EQ(fault("bytes", sentences(2660)), "");
  EXPECT_EQ(fault("uint16", "abc"), "[task.file] corpus.txt: bytes, expected a multiple of 2, got 3");
  EXPECT_EQ(fault("uint16", ""), "[task.file] corpus.txt: it has no tokens");
  EXPECT_EQ(fault("uint32", little_endian({1, 32767}, 4)),
            "[task.file] corpus.txt: token 1, expected 0..32766, got 32767");
  EXPECT_EQ(fault("npy", npy("<i2", "(2,)", std::string("\x01\x00\xff\xff", 4))),
            "[task.file] corpus.txt: token 1, expected 0..32766, got a negative number");
  EXPECT_EQ(fault("npy", "text"), "[task.file] corpus.txt: not a NumPy array");
  EXPECT_EQ(fault("npy", npy("<f4", "(1,)", "1234")),
            "[task.file] corpus.txt: expected one dimension of integers, got 1 of kind f");
  EXPECT_EQ(fault("npy", npy("<u2", "(1, 1)", "12")),
            "[task.file] corpus.txt: expected one dimension of integers, got 2 of kind u");
  EXPECT_EQ(fault("bytes", npy("<u2", "(1,)", "12")), "[task.file] corpus.txt: a NumPy array; set tokens = npy");
  EXPECT_EQ(fault("bytes", sentences(9999), {{"span_min", int64_t{40}}}),
            "[task.span_min] expected at most span_max (32), got 40");
}

TEST(Text, HasNoCeiling) {
  const auto task = example("text", 20);
  EXPECT_EQ(task->oracle(Split::test), nullptr);
  CeilingRequest request;
  request.samples = 1;
  EXPECT_EQ(error_line([&] { exact_ceiling(*task, request); }), "[ceiling] no ceiling: this task has no oracle");
}

// The n-gram by its definition: the most frequent answer after the longest known suffix of the last n symbols.
double counted_ngram(const Task& task, uint64_t train, uint64_t test, int n) {
  std::map<std::string, std::map<int, int>> seen;
  const auto contexts = [&](const Sample& sample, size_t t) {
    std::vector<std::string> out = {""};
    const std::string padded = std::string(8, '\1') + sample.shown;  // before the sample
    for (int k = 1; k <= n; ++k) out.push_back(padded.substr(t + 9 - static_cast<size_t>(k), static_cast<size_t>(k)));
    return out;
  };
  for (uint64_t i = 0; i < train; ++i) {
    const Sample sample = sample_of(task, Split::train, i);
    for (size_t t = 0; t < sample.shown.size(); ++t)
      if (sample.answer[t] >= 0)
        for (const std::string& context : contexts(sample, t)) ++seen[context][sample.answer[t]];
  }
  double right = 0, asked = 0;
  for (uint64_t i = 0; i < test; ++i) {
    const Sample sample = sample_of(task, Split::test, i);
    for (size_t t = 0; t < sample.shown.size(); ++t) {
      if (sample.answer[t] < 0) continue;
      ++asked;
      const std::vector<std::string> all = contexts(sample, t);
      for (size_t k = all.size(); k-- > 0;) {
        const auto found = seen.find(all[k]);
        if (found == seen.end()) continue;
        int best = -1, most = 0;
        for (const auto& [answer, count] : found->second)
          if (count > most) {
            most = count;
            best = answer;
          }
        right += best == sample.answer[t];
        break;
      }
    }
  }
  return right / asked;
}

TEST(Text, NgramsCountTheFramesAndTheirAnswers) {
  const auto task = example("text", 60, {{"span_probability", 0.05}, {"distractor", std::string("mixed")}});
  const std::unique_ptr<NgramSource> source = task->ngrams();
  ASSERT_NE(source, nullptr);
  NgramRequest request;
  request.train_samples = 150;
  request.valid_samples = request.test_samples = 20;
  const NgramFigures found = count_ngrams(*source, request);
  EXPECT_DOUBLE_EQ(found.majority, counted_ngram(*task, 150, 20, 0));
  for (int n = 1; n <= kMaxGram; ++n)
    EXPECT_DOUBLE_EQ(found.test[static_cast<size_t>(n - 1)], counted_ngram(*task, 150, 20, n)) << n;
  EXPECT_GT(found.accuracy(), found.majority + 0.3) << "context helps";
  EXPECT_GT(found.stderr_, 0);
  request.threads = 3;
  EXPECT_EQ(count_ngrams(*source, request).test, found.test);
}

TEST(Text, NgramsOfManyTokensSeeAsManySymbolsAsFit) {
  std::vector<uint32_t> ids;  // the next token follows from the last: n-grams of any length are right
  for (uint32_t i = 0; i < 200000; ++i) ids.push_back(i % 2000 + (i % 2000 == 0 ? 30000 : 0));
  const auto task =
      example("text", 30, {{"tokens", std::string("uint16")}, {"span_probability", 0.0}}, little_endian(ids, 2));
  EXPECT_EQ(task->shape().answers, 30001);
  NgramRequest request;
  request.train_samples = 2000;
  request.valid_samples = request.test_samples = 50;
  const NgramFigures found = count_ngrams(*task->ngrams(), request);
  EXPECT_EQ(found.test[0], 1);
  EXPECT_EQ(found.test[kMaxGram - 1], found.test[kMaxGram - 2]);
}

TEST(Text, OtherKindsHaveNoNgrams) {
  for (const char* kind : {"copying", "dyck", "signals", "tracking"})
    EXPECT_EQ(example(kind, 6)->ngrams(), nullptr) << kind;
}

}  // namespace
}  // namespace sb
