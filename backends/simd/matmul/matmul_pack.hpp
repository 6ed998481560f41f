// Packing: brings operands of a matrix product into the layout of the SIMD kernels
// (matmul_kernel.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "backends/dispatch/calls/matmul.hpp"
#include "backends/simd/matmul/matmul_kernel.hpp"
#include "numerics/hardware/accumulate.hpp"

namespace samebits::backends {

/// Allocates memory aligned to 64 bytes, so that no vector of 16 words crosses a cache line.
template <class T>
struct cache_line_allocator {
  using value_type = T;
  static constexpr std::align_val_t border{64};

  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), border));
  }
  void deallocate(T* memory, std::size_t) { ::operator delete(memory, border); }
  friend bool operator==(const cache_line_allocator&, const cache_line_allocator&) = default;
};

using lane_vector = std::vector<std::uint32_t, cache_line_allocator<std::uint32_t>>;

/// Lanes of 32 bits (wide) or 16 bits (narrow).
enum class lane_width : std::uint8_t { wide, narrow };

/// How the products along K are divided into steps.
struct matmul_steps {
  matmul_steps(const matmul_call& call, lane_width lanes, int panel_columns);

  lane_width width;
  int columns;             ///< columns of a panel
  int group;               ///< positions of a step
  int products;            ///< products of an instruction
  std::int64_t count;      ///< number of steps, including those of a partial last instruction
  std::vector<int> order;  ///< product index at each position of an instruction
  int a_shift;             ///< left shift of A's significands
  int b_shift;

  [[nodiscard]] std::int64_t steps_per_instruction() const { return products / group; }
  /// Number of words of one step: of a row of A (a_words) and of a panel of B (b_words).
  [[nodiscard]] std::int64_t a_words() const;
  [[nodiscard]] std::int64_t b_words() const;
};

/// A decoded code in a lane. Narrow lanes use only the low halves of the words.
struct lane_words {
  std::uint32_t exponent;
  std::uint32_t significand;  ///< shifted up
  std::uint32_t sign;         ///< wide: 0 or 2^31; narrow: 0 or FFFF
  std::uint32_t special;      ///< 1 if NaN or Inf
};

/// Decodes the codes of one operand; 8-bit codes use a table.
class lane_decoder {
 public:
  lane_decoder(const format_spec& format, int subnormal_exponent, int shift, lane_width width);

  [[nodiscard]] lane_words operator()(std::uint8_t code) const { return table_[code]; }
  [[nodiscard]] lane_words operator()(std::uint16_t code) const { return decoded(code); }
  [[nodiscard]] lane_words operator()(std::uint32_t code) const { return decoded(code); }

 private:
  [[nodiscard]] lane_words decoded(std::uint32_t code) const;

  format_spec format_;
  int subnormal_exponent_;
  int shift_;
  lane_width width_;
  std::vector<lane_words> table_;
};

/// Packs rows [first, first + rows) of A to a row panel. special[r] is set if row r contains a NaN
/// or Inf.
void pack_rows(const matmul_call& call, const matmul_steps& steps, const lane_decoder& decode,
               std::int64_t first, std::int64_t rows, std::uint32_t* row_panel,
               std::uint8_t* special);

/// Packs columns [first, first + steps.columns) of B to a panel; missing columns are zeros.
/// special[c] is set if column c contains a NaN or Inf.
void pack_columns(const matmul_call& call, const matmul_steps& steps, const lane_decoder& decode,
                  std::int64_t first, std::uint32_t* panel, std::uint8_t* special);

}  // namespace samebits::backends
