// Tensor cores for a copy of fpinspect: a Hopper whose mma_f16_k16 is Ampere's.
//
// Defining this function puts them in the place of the CUDA ones.
#include <string>

#include "samebits/core/tensor_unit.hpp"
#include "tensor_core_probe/instructions.hpp"
#include "tensor_cores/simulated_tensor_cores.hpp"

namespace samebits::backends::tensor_cores {
namespace {

outcome run_planted(const job& j) {
  if (j.what != instruction::mma_f16_k16) return support::simulated_outcome(j, j.rule);
  const shape s = shape_of(j.what);
  const auto row = find_tensor_row(tensor_unit::ampere_mma, tensor_operands::binary16);
  return support::simulated_outcome(
      j, numerics::accumulate_rule_of(*row, s.a, s.b, s.result, s.products));
}

constexpr device planted = {[] { return std::string(); },
                            [] { return std::string("a planted GPU"); }, [] { return 90; },
                            run_planted};

}  // namespace
}  // namespace samebits::backends::tensor_cores

extern "C" const samebits::backends::tensor_cores::device* samebits_tensor_core_device();
const samebits::backends::tensor_cores::device* samebits_tensor_core_device() {
  return &samebits::backends::tensor_cores::planted;
}
