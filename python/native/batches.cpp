#include <chrono>
#include <numeric>

#include "native/batch_stream.h"

namespace sb::python {
namespace {

using BatchPointer = std::shared_ptr<FrameBatch>;

std::vector<uint64_t> as_samples(const py::array_t<int64_t, py::array::c_style | py::array::forcecast>& indices) {
  return {indices.data(), indices.data() + indices.size()};
}

BatchPointer make_batch(const PyTask& task, const std::string& split,
                        const py::array_t<int64_t, py::array::c_style | py::array::forcecast>& indices, bool dense,
                        int pad_to) {
  const Split of = parse_split(split);
  const std::vector<uint64_t> samples = as_samples(indices);
  const py::gil_scoped_release unlocked;
  auto out = std::make_shared<FrameBatch>();
  out->fill(task.task(), of, samples, dense, pad_to);
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
  const py::gil_scoped_release unlocked;
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
  expect_symbols(b.batch);
  py::array_t<float> out(Shape{b.batch.batch, to - from, b.batch.channels});
  float* rows = out.mutable_data();
  const py::gil_scoped_release unlocked;
  const auto width = static_cast<size_t>(to - from) * static_cast<size_t>(b.batch.channels);
  for (int row = 0; row < b.batch.batch; ++row) expand_row(b.batch, row, from, to, rows + width * row);
  return out;
}

// Threads are joined without the lock.
void close(BatchStream& stream) {
  const py::gil_scoped_release unlocked;
  stream.close();
}

struct CloseUnlocked {
  void operator()(BatchStream* stream) const {
    close(*stream);
    delete stream;
  }
};
using StreamPointer = std::unique_ptr<BatchStream, CloseUnlocked>;

StreamPointer make_stream(std::shared_ptr<PyTask> task, const std::string& split, int batch, uint64_t start,
                          uint64_t count, uint64_t order_seed, uint64_t order_count, uint64_t shard, uint64_t shards,
                          bool dense, int pad_to, int threads, int ahead) {
  StreamRequest request;
  request.split = parse_split(split);
  request.batch = batch;
  request.start = start;
  request.count = count;
  request.order = {order_seed, order_count};
  request.shard = shard;
  request.shards = shards;
  request.dense = dense;
  request.pad_to = pad_to;
  request.threads = threads;
  request.ahead = ahead;
  return StreamPointer(new BatchStream(std::move(task), request));
}

}  // namespace

void bind_batches(py::module_& m) {
  py::class_<FrameBatch, BatchPointer>(m, "Batch")
      .def_property_readonly("frames", &frames_of)
      .def_property_readonly("targets", cells<int64_t>([](const FrameBatch& b) { return b.targets.data(); }))
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
      .def_property_readonly(
          "shape", [](const FrameBatch& b) { return py::make_tuple(b.batch.batch, b.batch.frames, b.batch.channels); })
      .def_property_readonly("split", [](const FrameBatch& b) { return to_string(b.batch.split); })
      .def_readonly("dense", &FrameBatch::dense)
      .def("expand", &expand, py::arg("first"), py::arg("last"));
  m.def("make_batch", &make_batch, py::arg("task"), py::arg("split"), py::arg("indices"), py::arg("dense"),
        py::arg("pad_to"));

  m.def("fill_seconds", &fill_seconds, py::arg("task"), py::arg("split"), py::arg("batch"), py::arg("batches"));

  py::class_<BatchStream, StreamPointer>(m, "BatchStream")
      .def(py::init(&make_stream), py::arg("task"), py::arg("split"), py::arg("batch"), py::arg("start"),
           py::arg("count"), py::arg("order_seed"), py::arg("order_count"), py::arg("shard"), py::arg("shards"),
           py::arg("dense"), py::arg("pad_to"), py::arg("threads"), py::arg("ahead"))
      .def_property_readonly("batches", &BatchStream::batches)
      .def("next",
           [](BatchStream& stream) -> py::object {
             const BatchPointer batch = stream.next();
             return batch ? py::cast(batch) : py::none();
           })
      .def("close", &close);
  m.def(
      "order_at",
      [](uint64_t seed, uint64_t count, uint64_t position) {
        return SampleOrder{seed, count}.at(position);
      },
      py::arg("seed"), py::arg("count"), py::arg("position"));
}

}  // namespace sb::python
