// Matrix products on the SIMD backends: what the kernels take, and the rest by the reference.
#include "backends/matmul.hpp"

#include "backends/reference/reference.hpp"
#include "backends/simd/simd.hpp"

namespace samebits::backends {
namespace {
void multiply(const matmul_call& call, const executor& where) {
  reference_multiplier.multiply(call, where);
}
}  // namespace
const matrix_multiplier avx2_multiplier = {multiply};
const matrix_multiplier avx512_multiplier = {multiply};
}  // namespace samebits::backends
