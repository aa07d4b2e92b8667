#include <chrono>
#include <numeric>

#include "base/text.h"
#include "native/batch_stream.h"
#include "native/memory.h"

namespace sb::python {
namespace {

using BatchPointer = std::shared_ptr<FrameBatch>;
const std::string kFewer = "ask for fewer samples",
                  kFewerOrSymbols = kFewer + ", or for symbols alone with dense=False";

BatchPointer make_batch(const PyTask& task, const std::string& split, const std::vector<uint64_t>& samples, bool dense,
                        int pad_to) {
  const Split of = parse_split(split);
  expect_memory("batch", counted(samples.size(), "sample"), batch_bytes(task.task(), of, samples.size(), dense, pad_to),
                dense ? kFewerOrSymbols : kFewer);
  const Unlocked here;
  auto out = std::make_shared<FrameBatch>();
  out->fill(task.task(), of, samples, dense, pad_to, &end_if_interrupted);
  return out;
}

// An array over a member of the batch, shaped by its rows.
template <class T, class Get>
auto cells(Get get) {
  return [get](const py::object& self) {
    const auto& b = self.cast<const FrameBatch&>();
    return view(reinterpret_cast<const T*>(get(b)), {b.batch.batch, b.batch.frames}, self);
  };
}

py::object frames_of(const py::object& self) {
  const auto& b = self.cast<const FrameBatch&>();
  if (!b.dense) return py::none();
  return view(b.frames.data(), {b.batch.batch, b.batch.frames, b.batch.channels}, self);
}

// Seconds that one thread takes to fill one buffer with so many dense batches: what iteration is measured against.
double fill_seconds(const PyTask& task, const std::string& split, int batch, int batches) {
  const Split of = parse_split(split);
  const Unlocked here;
  FrameBatch buffer;
  std::vector<uint64_t> samples(static_cast<size_t>(batch));
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < batches; ++i) {
    std::iota(samples.begin(), samples.end(), static_cast<uint64_t>(i) * static_cast<uint64_t>(batch));
    buffer.fill(task.task(), of, samples, true, 0);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// The arrays are the caller's to write to; what dense frames are made of must still be symbols.
void expect_symbols(const Batch& b) {
  for (const int16_t symbol : b.symbol) {
    if (symbol < kPaddingFrame || symbol >= b.channels)
      throw bad_input("batch",
                      "symbols, expected -2.." + std::to_string(b.channels - 1) + ", got " + std::to_string(symbol));
  }
  for (int row = 0; row < b.batch; ++row) {
    if (b.real_frames(row) < 0 || b.real_frames(row) > b.frames)
      throw bad_input(
          "batch", "starts, expected 0.." + std::to_string(b.frames) + ", got " + std::to_string(b.real_frames(row)));
  }
}

// Frames [from, to) as dense ones, in memory of their own.
py::array_t<float> expand(const FrameBatch& b, int from, int to) {
  const Batch own = b.batch;  // which nobody writes to between the check and the walk
  expect_symbols(own);
  expect_memory("batch", "dense frames", 4.0 * own.batch * (to - from) * own.channels,
                "ask for a part of them, dense_frames()");
  py::array_t<float> out(Shape{own.batch, to - from, own.channels});
  float* rows = out.mutable_data();
  const Unlocked here;
  const auto width = static_cast<size_t>(to - from) * static_cast<size_t>(own.channels);
  for (int row = 0; row < own.batch; ++row) {
    if (row % 256 == 255) end_if_interrupted();
    expand_row(own, row, from, to, rows + width * row);
  }
  return out;
}

// Threads, which never need the interpreter lock, are joined without it where that can be.
void close(BatchStream& stream) {
  std::optional<Unlocked> here;
  if (!Unlocked::refused()) here.emplace();
  stream.close();
}

struct CloseUnlocked {
  void operator()(BatchStream* stream) const {
    close(*stream);
    delete stream;
  }
};
using StreamPointer = std::unique_ptr<BatchStream, CloseUnlocked>;

}  // namespace

void bind_batches(py::module_& m) {
  py::class_<FrameBatch, BatchPointer>(m, "Batch")
      .def_property_readonly("frames", &frames_of)
      .def_property_readonly("targets", cells<int64_t>([](const FrameBatch& b) { return b.targets.data(); }))
      .def_property_readonly("values",
                             [](const py::object& self) -> py::object {
                               const auto& b = self.cast<const FrameBatch&>().batch;
                               if (b.value.empty()) return py::none();
                               const auto answers =
                                   static_cast<py::ssize_t>(b.value.size()) / (py::ssize_t{b.batch} * b.frames);
                               return view(b.value.data(), {b.batch, b.frames, answers}, self);
                             })
      .def_property_readonly("mask", cells<bool>([](const FrameBatch& b) { return b.mask.data(); }))
      .def_property_readonly("symbols", cells<int16_t>([](const FrameBatch& b) { return b.batch.symbol.data(); }))
      .def_property_readonly("gaps", cells<bool>([](const FrameBatch& b) { return b.batch.gap.data(); }))
      .def_property_readonly("elements", cells<int32_t>([](const FrameBatch& b) { return b.batch.element.data(); }))
      .def_property_readonly("starts",
                             [](const py::object& self) {
                               const auto& b = self.cast<const FrameBatch&>();
                               return view(b.batch.start.data(), {b.batch.batch, b.batch.elements + 1}, self);
                             })
      .def_property_readonly("states",
                             [](const py::object& self) {
                               const auto& b = self.cast<const FrameBatch&>();
                               return view(b.batch.state.data(), {b.batch.batch, b.batch.elements}, self);
                             })
      .def_property_readonly("indices",
                             [](const py::object& self) {
                               const auto& b = self.cast<const FrameBatch&>();
                               return view(b.indices.data(), {b.batch.batch}, self);
                             })
      .def_property_readonly("samples", [](const FrameBatch& b) { return b.batch.samples; })  // nobody's to write to
      .def_property_readonly(
          "shape", [](const FrameBatch& b) { return py::make_tuple(b.batch.batch, b.batch.frames, b.batch.channels); })
      .def_property_readonly("split", [](const FrameBatch& b) { return to_string(b.batch.split); })
      .def_readonly("dense", &FrameBatch::dense)
      .def("expand", &expand);
  m.def("make_batch", &make_batch);
  m.def("fill_seconds", &fill_seconds);

  py::class_<StreamRequest>(m, "StreamRequest")
      .def(py::init<>())
      .def_property(
          "split", [](const StreamRequest& r) { return to_string(r.split); },
          [](StreamRequest& r, const std::string& split) { r.split = parse_split(split); })
      .def_property(
          "order", [](const StreamRequest& r) { return std::pair(r.order.seed, r.order.count); },
          [](StreamRequest& r, std::pair<uint64_t, uint64_t> order) {
            r.order = {order.first, order.second};
          })
      .def_readwrite("batch", &StreamRequest::batch)
      .def_readwrite("start", &StreamRequest::start)
      .def_readwrite("count", &StreamRequest::count)
      .def_readwrite("shard", &StreamRequest::shard)
      .def_readwrite("shards", &StreamRequest::shards)
      .def_readwrite("dense", &StreamRequest::dense)
      .def_readwrite("pad_to", &StreamRequest::pad_to)
      .def_readwrite("threads", &StreamRequest::threads)
      .def_readwrite("ahead", &StreamRequest::ahead);
  py::class_<BatchStream, StreamPointer>(m, "BatchStream")
      .def(py::init([](std::shared_ptr<PyTask> task, const StreamRequest& request) {
        return StreamPointer(new BatchStream(std::move(task), request));
      }))
      .def_property_readonly("batches", &BatchStream::batches)
      .def("next",
           [](BatchStream& stream) -> py::object {
             const BatchPointer batch = stream.next();
             return batch ? py::cast(batch) : py::none();
           })
      .def("close", &close);
  m.def("order_at", [](uint64_t seed, uint64_t count, uint64_t position) {
    return SampleOrder{seed, count}.at(position);
  });
}

}  // namespace sb::python
