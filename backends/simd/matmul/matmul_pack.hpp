// Packing: operands of a matrix product as the SIMD kernels take them (matmul_kernel.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "backends/dispatch/matmul.hpp"
#include "backends/simd/matmul/matmul_kernel.hpp"
#include "numerics/hardware/accumulate.hpp"

namespace samebits::backends {

/// Memory from a border of 64 bytes: no vector of 16 words lies in two cache lines.
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

enum class lane_width : std::uint8_t { wide, narrow };

/// How the products of K are cut into steps.
struct matmul_steps {
  matmul_steps(const matmul_call& call, lane_width lanes, int panel_columns);

  lane_width width;
  int columns;             ///< of a panel
  int group;               ///< positions of a step
  int products;            ///< of an instruction
  std::int64_t count;      ///< steps, those of a last instruction that is not full among them
  std::vector<int> order;  ///< of an instruction: the product at each position
  int a_shift;             ///< of significands
  int b_shift;

  [[nodiscard]] std::int64_t steps_per_instruction() const { return products / group; }
  /// Words of one step: of a row of A, of a panel of B.
  [[nodiscard]] std::int64_t a_words() const;
  [[nodiscard]] std::int64_t b_words() const;
};

/// What a code becomes in a lane; in narrow lanes the low halves alone.
struct lane_words {
  std::uint32_t exponent;
  std::uint32_t significand;  ///< shifted up
  std::uint32_t sign;         ///< wide: 0 or 2^31; narrow: 0 or FFFF
  std::uint32_t special;      ///< 1: NaN or Inf
};

/// Codes of one operand; those of 8 bits by a table.
class lane_decoder {
 public:
  lane_decoder(const format_spec& format, int least_exponent, int shift, lane_width width);

  [[nodiscard]] lane_words operator()(std::uint8_t code) const { return table_[code]; }
  [[nodiscard]] lane_words operator()(std::uint16_t code) const { return decoded(code); }
  [[nodiscard]] lane_words operator()(std::uint32_t code) const { return decoded(code); }

 private:
  [[nodiscard]] lane_words decoded(std::uint32_t code) const;

  format_spec format_;
  int least_exponent_;
  int shift_;
  lane_width width_;
  std::vector<lane_words> table_;
};

/// Rows [first, first + rows) of A as a strip; special[r]: a NaN or Inf is in that row.
void pack_rows(const matmul_call& call, const matmul_steps& steps, const lane_decoder& decode,
               std::int64_t first, std::int64_t rows, std::uint32_t* strip, std::uint8_t* special);

/// Columns [first, first + steps.columns) of B as a panel, zeros behind the last one; the same.
void pack_columns(const matmul_call& call, const matmul_steps& steps, const lane_decoder& decode,
                  std::int64_t first, std::uint32_t* panel, std::uint8_t* special);

}  // namespace samebits::backends
