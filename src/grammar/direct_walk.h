// Samples the distribution of the reference's sampler without rejection: each step is drawn on condition that '#' is
// reached in time.
//
// With k steps left, state s goes to t with probability p(s,t) h_{k-1}(t) / h_k(s), where h_k(s) = P(reach '#' within k
// steps).
// The choice of '#' is drawn first. Otherwise, in a uniform row, one of the other successors is proposed and accepted
// with probability h_{k-1}(t) / max over the row. Few tries are needed, since h varies little within a row.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/reach.h"
#include "random/pcg64.h"

namespace sb {

class DirectWalk {
 public:
  DirectWalk(const Automaton& automaton, const ReachTable& reach, int length);
  void run(uint64_t first, size_t count, const std::function<Pcg64(uint64_t)>& stream, uint16_t* out) const;

 private:
  struct Row {
    uint32_t first;   // index into dst_
    uint32_t degree;  // successors other than '#'
    double end;       // probability of '#'
    bool uniform;
  };
  uint32_t draw_start(Pcg64& rng) const;
  uint32_t successor(Pcg64& rng, uint32_t state, size_t left) const;
  uint32_t by_weights(Pcg64& rng, const Row& row, const double* reach) const;

  size_t length_;
  size_t states_;
  uint32_t end_;
  const ReachTable& reach_;
  std::vector<uint16_t> start_;
  std::vector<double> start_sums_;
  std::vector<Row> rows_;
  std::vector<uint16_t> dst_;
  std::vector<double> prob_;
  std::vector<float> most_;  // [k][s]: an upper bound of h_{k-1} over the successors of s other than '#'
};

}  // namespace sb
