// Attention plan: the constants of a call, and in which tiles and blocks FlashAttention 2 and cuDNN's
// attention visit queries and keys, as PyTorch 2.11 calls them on Hopper.
//
// A tile is the queries that one block of threads computes. The keys come in blocks, which kernels
// may divide into parts, one for each block of threads.
//
// Source: FlashAttention's flash_api.cpp, whose kernels have their tiles in their names,
// flash_fwd_kernel.h and flash_bwd_kernel.h. cuDNN's were found by comparison with a GPU.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/binary64.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/torch_operators/attention.hpp"
#include "numerics/hardware/torch_operators/row_order.hpp"
#include "samebits/core/attention.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::numerics::torch_2_11 {

/// A call: its tensors, its mask and the GPU.
struct attention_problem {
  attention_kernel kernel;
  format_id format;  ///< fp16 or bf16
  bool causal;
  std::int64_t batch, heads, queries, keys;
  int dimension;        ///< of a head: 64 or 128
  std::uint32_t scale;  ///< of the scores, binary32 bits; a zero: 1 / sqrt(dimension)
  int multiprocessors;
  int splits;  ///< parts of the keys; 0: as many as PyTorch chooses
};

/// A call with its launch.
struct attention_plan : attention_problem {
  attention_rule rule = {};     ///< of `math` its scale is the root of the scale
  int rows = 128;               ///< queries of a tile
  int block = 128;              ///< keys of a block
  std::int64_t dq_buffers = 1;  ///< sums of dQ; key block i is added to sum i mod dq_buffers
};

/// Blocks begin to end - 1 in the order in which a kernel visits them.
struct block_visits {
  std::int64_t begin, end;
  bool last_first;

  [[nodiscard]] SAMEBITS_HD constexpr bool is_empty() const { return begin >= end; }
  /// Visit number i.
  [[nodiscard]] SAMEBITS_HD constexpr std::int64_t at(std::int64_t i) const {
    return last_first ? end - 1 - i : begin + i;
  }
};

/// The blocks of keys that one part of the keys adds to a query.
SAMEBITS_HD constexpr block_visits key_blocks(const attention_plan& p, std::int64_t query,
                                              std::int64_t part) {
  const std::int64_t blocks = divide_up(p.keys, p.block), of_part = divide_up(blocks, p.splits);
  std::int64_t end = smaller(blocks, (part + 1) * of_part);
  if (p.causal) end = smaller(end, divide_up((query / p.rows + 1) * p.rows, p.block));
  return {part * of_part, end, p.rule.is_flash()};
}

/// The tiles of queries that add to the gradients of a block of keys.
SAMEBITS_HD constexpr block_visits query_tiles(const attention_plan& p, std::int64_t block) {
  return {p.causal ? block * p.block / p.rows : 0, divide_up(p.queries, p.rows), p.rule.is_flash()};
}

/// The number of keys that a query sees: keys 0 to this one.
SAMEBITS_HD constexpr std::int64_t visible_keys(const attention_plan& p, std::int64_t query) {
  return p.causal ? query + 1 : p.keys;
}

/// PyTorch's num_splits_heuristic(): the fewest parts of the keys with which `tiles` blocks of
/// threads keep the GPU at least 85 % as busy as with the best number.
/// @param places  blocks of threads that run at once
/// @param blocks  of keys
SAMEBITS_HD constexpr int chosen_splits(std::int64_t tiles, std::int64_t places,
                                        std::int64_t blocks) {
  constexpr std::uint32_t four_fifths = 0x3F4CCCCDu;          // 0.8f
  constexpr std::uint64_t almost_best = 0x3FEB333333333333u;  // 0.85
  const auto number = [](std::int64_t n) {
    return binary32::round(false, static_cast<std::uint64_t>(n), 0);
  };
  const std::uint32_t all = number(places);
  if (number(tiles) >= mul(four_fifths, all)) return 1;  // of numbers above zero as of their bits
  const auto most = static_cast<int>(smaller(max_splits, smaller(places, blocks)));
  const auto busy = [&](int splits) {
    // As many keys in a part as with one part less: a part would be empty.
    if (splits > 1 && divide_up(blocks, splits) == divide_up(blocks, splits - 1)) return 0u;
    const std::uint32_t waves = div(number(tiles * splits), all);
    return div(waves, neg(whole_down(neg(waves))));
  };
  std::uint32_t best = 0;
  for (int i = 1; i <= most; ++i) best = busy(i) > best ? busy(i) : best;
  const std::uint64_t enough = binary64::multiply(almost_best, binary64::widen(best));
  int splits = 1;
  while (busy(splits) == 0 || binary64::widen(busy(splits)) < enough) ++splits;
  return splits;
}

/// The scale of the scores and its product with log2(e), as the kernel's caller computes them.
SAMEBITS_HD constexpr attention_rule rule_of(const attention_problem& of) {
  constexpr std::uint64_t log2_e = 0x3FF71547652B82FEu;
  const std::uint64_t root =
      binary64::square_root(binary64::widen(from_int(static_cast<std::uint32_t>(of.dimension))));
  const std::uint64_t exact = binary32::is_zero(of.scale) ? binary64::divide(binary64::one, root)
                                                          : binary64::widen(of.scale);
  const std::uint32_t scale =
      binary64::narrow(of.kernel == attention_kernel::math ? binary64::square_root(exact) : exact);
  return {of.kernel, scale, binary64::narrow(binary64::multiply(binary64::widen(scale), log2_e))};
}

/// The plan of attention, or of its gradients.
SAMEBITS_HD constexpr attention_plan plan_of(const attention_problem& of, bool backward) {
  attention_plan p{of, rule_of(of)};
  const bool narrow_head = of.dimension == 64;
  if (of.kernel != attention_kernel::flash || backward) p.splits = 1;
  if (of.kernel != attention_kernel::flash) return p;
  if (backward) {
    p.rows = narrow_head ? 128 : 64;
    p.dq_buffers = divide_up(of.multiprocessors, of.batch * of.heads);
    return p;
  }
  constexpr int split_rows = 64, blocks_of_multiprocessor = 2;
  const int split_block = narrow_head ? 256 : 128;
  if (p.splits == 0) {
    p.splits = chosen_splits(of.batch * of.heads * divide_up(of.queries, split_rows),
                             std::int64_t{blocks_of_multiprocessor} * of.multiprocessors,
                             divide_up(of.keys, split_block));
  }
  p.rows = p.splits > 1 ? split_rows : 128;
  p.block = p.splits > 1 ? split_block : narrow_head ? 128 : 64;
  return p;
}

}  // namespace samebits::numerics::torch_2_11
