// Batches ready for a model: contiguous buffers of symbol ids and gap flags, a few bytes a frame. Dense frames are a
// function of them, made where they are consumed.
#pragma once
#include <cstdint>
#include <vector>

#include "grammar/language.h"

namespace sb {

constexpr int16_t kBlankFrame = -1;    // a zero row
constexpr int16_t kPaddingFrame = -2;  // a zero row without noise, target or weight

// All arrays are row-major [batch][frames] unless said; `frames` is the longest sample of the batch, or what it was
// padded to.
struct Batch {
  int batch = 0;
  int frames = 0;
  int elements = 0;  // elements a sample
  int channels = 0;  // of a dense frame: symbol classes
  Split split = Split::train;
  double noise = 0;               // each channel of a real frame + noise * U(0,1)
  uint64_t seed = 0;              // of the noise
  std::vector<uint64_t> samples;  // [batch]: index of each row's sample
  std::vector<int16_t> symbol;    // class, kBlankFrame or kPaddingFrame
  std::vector<uint8_t> gap;       // 1 on gap frames
  std::vector<int32_t> target;    // state id of the frame's element, -1 on padding
  std::vector<int32_t> element;   // element the frame belongs to, -1 on padding
  std::vector<int32_t> start;     // [batch][elements + 1]: element e owns frames [start[e], start[e+1])
  std::vector<int32_t> state;     // [batch][elements]: state id of each element

  int real_frames(int row) const { return start[static_cast<size_t>(row + 1) * (elements + 1) - 1]; }
  const int32_t* starts(int row) const { return start.data() + static_cast<size_t>(row) * (elements + 1); }
};

// Frames [from, to) of a row as dense ones, [to - from][channels]: one-hot, zero in gaps and padding, plus noise on
// real frames: channel c of frame t of sample i adds float(noise) * unit_float(w), w word t*channels + c of its stream
// (seed, split, i, noise). The product is rounded to float before the sum (no FMA), so every device gives the same
// bits.
void expand_row(const Batch& batch, int row, int from, int to, float* out);
void expand_frames(const Batch& batch, float* out);  // all of them, [batch][frames][channels]

}  // namespace sb
