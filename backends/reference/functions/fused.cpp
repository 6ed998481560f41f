// Fused elements on host backends: loads and stores chunks of codes around a kernel. The reference
// kernel applies the definition to one element after another.
#include "backends/dispatch/calls/fused.hpp"

#include <cstdint>

#include "backends/reference/cells.hpp"
#include "backends/reference/functions/function_range.hpp"
#include "backends/reference/reference.hpp"
#include "backends/threads/parts.hpp"
#include "numerics/bits/random.hpp"

namespace samebits::backends {
namespace {

namespace torch = numerics::torch_2_11;

void reference_codes(const fused_call& call, fused_chunk& chunk, int count) {
  const torch::tensor_numbers<std::uint32_t> numbers{call.plan.f.format};
  for (int i = 0; i < count; ++i) {
    std::uint32_t x[max_fused_operands] = {}, y[max_fused_results] = {};
    for (int k = 0; k < call.operands(); ++k) x[k] = numbers.value(chunk.in[k][i]);
    torch::evaluate_fused(call.plan, numbers, x, chunk.random[i], y);
    for (int k = 0; k < call.results(); ++k) chunk.out[k][i] = numbers.code(y[k]);
  }
}

/// Loads the operands of `count` elements, and their random bits.
void load_chunk(const fused_call& call, std::int64_t row, std::int64_t col, std::int64_t count,
                random_sequence& random, fused_chunk& chunk) {
  for (int k = 0; k < call.operands(); ++k) {
    load_words(call.in[k].view, call.in[k].row_of(row), col, count, chunk.in[k]);
  }
  if (call.plan.of != torch::fused::dropout) return;
  const std::uint64_t first = random_index(call.random, call.pitch, row, col);
  for (std::int64_t i = 0; i < count; ++i) {
    chunk.random[i] = random.dither<std::uint32_t>(first + static_cast<std::uint64_t>(i)) >>
                      (32 - torch::dropout_bits);
  }
}

}  // namespace

void fused_on_threads(const fused_call& call, const executor& where, fused_codes codes,
                      kernel_scope scope) {
  const matrix_view& shape = call.out[0];
  for_each_part(shape.rows * shape.cols, where.threads, [&](element_range range) {
    random_sequence random(call.random);
    fused_chunk chunk;
    for_each_row_part(shape.cols, range, fused_chunk::size,
                      [&](std::int64_t row, std::int64_t col, std::int64_t count) {
                        load_chunk(call, row, col, count, random, chunk);
                        run_in(scope, [&] { codes(call, chunk, static_cast<int>(count)); });
                        for (int k = 0; k < call.results(); ++k)
                          store_words(call.out[k], row, col, count, chunk.out[k]);
                      });
  });
}

void reference_fused(const fused_call& call, const executor& where) {
  fused_on_threads(call, where, reference_codes, in_any_state);
}

}  // namespace samebits::backends
