// A call that backends are compared by: its results, and how a backend makes it on given memory.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backends/dispatch/backend.hpp"
#include "samebits/quantize.hpp"

namespace samebits::backends::verification {

/// The layout of a matrix in a buffer.
struct placement {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t row_stride = 0;  ///< elements
  std::int64_t col_stride = 0;  ///< elements
  std::size_t shift = 0;        ///< bytes before the first element

  [[nodiscard]] static placement dense(std::int64_t rows, std::int64_t cols) {
    return {rows, cols, cols, 1};
  }
  [[nodiscard]] bool is_dense() const {
    return col_stride == 1 && row_stride == cols && shift == 0;
  }
  /// Bytes from the start of the buffer to an element of `width` bytes.
  [[nodiscard]] std::size_t offset(std::size_t width, std::int64_t row, std::int64_t col) const {
    return shift + static_cast<std::size_t>(row * row_stride + col * col_stride) * width;
  }
  /// Bytes from the start of the buffer to the end of the last element.
  [[nodiscard]] std::size_t bytes(std::size_t width) const {
    return rows == 0 ? 0 : offset(width, rows - 1, cols - 1) + width;
  }
};

inline constexpr std::size_t max_inputs = 2, max_results = 5;

/// The memory of a call: where each input and each result begins.
struct call_memory {
  memory_space space = memory_space::host;
  std::array<const std::byte*, max_inputs> in = {};
  std::array<std::byte*, max_results> out = {};
};

/// A view of memory; without data if the layout has no rows.
template <class View, class Byte>
View view_at(Byte* memory, format_id format, const placement& p, memory_space space) {
  if (p.rows == 0) return {};
  return {memory + p.shift, format, p.rows, p.cols, p.row_stride, p.col_stride, space};
}

/// A result of a call. Without rows, it is not wanted.
struct result_layout {
  const char* name;
  std::size_t width;  ///< bytes of an element
  placement at;
};

inline constexpr int rule_count =
    enum_count<rounding> * enum_count<overflow> * enum_count<nan_policy>;
inline constexpr int tile_count = 18;

/// What calls have, as headings count it.
struct coverage {
  std::bitset<format_count> sources;
  std::bitset<format_count> targets;
  std::bitset<rule_count> rules;
  std::bitset<tile_count> tiles;
  std::bitset<enum_count<scale_rule>> scale_rules;

  void add(const coverage& other);
};

/// A wrong element of a result.
struct difference {
  std::size_t result;
  std::int64_t row;
  std::int64_t col;
  std::string got;
  std::string expected;
};

using call_function =
    std::function<void(const backend& b, const call_memory& memory, const executor& where)>;

/// A call without memory.
struct checked_call {
  std::function<bool(const backend&)> supported_by;
  /// Ways to make the call that must leave the same results. The oracle takes the first.
  std::vector<call_function> runs;
  std::vector<result_layout> results;
  coverage covers;
  std::string rule;  ///< in texts
  std::function<std::string(const difference&)> text;
};

/// The call that make(memory) returns, by an operation of a backend.
template <class Call, class Make>
checked_call make_checked_call(operation_entry<Call> backend::*operation, const Make& make) {
  checked_call call;
  call.supported_by = [=](const backend& b) {
    alignas(16) std::byte somewhere[16] = {};  // supports() reads whether a view has data
    call_memory memory;
    memory.in.fill(somewhere);
    memory.out.fill(somewhere);
    return (b.*operation).has(make(memory));
  };
  call.runs = {[=](const backend& b, const call_memory& memory, const executor& where) {
    (b.*operation).run(make(memory), where);
  }};
  return call;
}

}  // namespace samebits::backends::verification
