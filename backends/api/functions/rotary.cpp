// rotary_table(): checks arguments and computes the entries on threads.
#include "samebits/rotary.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/view_checks.hpp"
#include "backends/dispatch/refuse.hpp"
#include "backends/reference/functions/function_range.hpp"
#include "backends/threads/parts.hpp"
#include "numerics/arithmetic/by_definition.hpp"
#include "numerics/arithmetic/integral.hpp"
#include "numerics/functions/rotary.hpp"

namespace samebits {
namespace backends {
namespace {

namespace rotary = numerics::rotary;

/// An entry takes as long as hundreds of conversions.
constexpr std::int64_t entries_worth_a_thread = 256;

/// A column of a table.
struct rotary_column {
  rotary::frequency frequency;
  /// For rotary_angle::exact: the first words of the turns per position.
  numerics::fraction<rotary::few_words + rotary::guard_words> turns = {};
  std::uint32_t binary32 = 0;  ///< for rotary_angle::binary32: the rounded frequency
};

struct rotary_call {
  std::span<const std::int64_t> positions;
  std::vector<rotary_column> columns;
  rotary_angle angle;
  matrix_view cos, sin;
};

[[noreturn]] void refuse_entry() {
  refuse<unsupported>("rotary_table: 1024 bits do not decide how an entry rounds");
}

void check_table(std::span<const std::int64_t> positions, const matrix_view& cos,
                 const matrix_view& sin) {
  check_view(cos, "cos");
  check_view(sin, "sin");
  require(is_among(cos.format, number_formats), "cos: format must be fp32, fp16 or bf16, got ",
          cos.format);
  check_format_of(sin, "sin", cos, "cos");
  check_shape_of(sin, "sin", cos, "cos");
  refuse_if(positions.size() != static_cast<std::size_t>(cos.rows),
            "positions: must be as many as rows of cos, ", cos.rows, ", got ", positions.size());
  refuse_if(cos.cols > std::numeric_limits<std::uint32_t>::max(),
            "cos: must have fewer than 2^32 columns, got ", cos.cols);
  refuse_if<unsupported>(
      cos.space != memory_space::host || sin.space != memory_space::host,
      "rotary_table: cos and sin must lie in host memory; copy them to the device");
  check_distinct(cos, "cos");
  check_distinct(sin, "sin");
  check_apart(sin, "sin", cos, "cos");
}

void check_frequencies(const rotary_options& options, std::int64_t columns) {
  check_value("options.angle", options.angle, "rotary_angle");
  if (options.frequencies.empty()) {
    return require(options.base >= 1 && std::isfinite(options.base),
                   "options.base: must be at least 1 and finite");
  }
  refuse_if(options.frequencies.size() != static_cast<std::size_t>(columns),
            "options.frequencies: must be as many as columns of cos, ", columns, ", got ",
            options.frequencies.size());
  for (std::size_t i = 0; i < options.frequencies.size(); ++i) {
    require(std::isfinite(options.frequencies[i]), "options.frequencies[", i, "]: must be finite");
  }
}

/// The column's frequency as binary32 bits.
std::uint32_t binary32_of(const rotary::frequency& f, std::size_t column) {
  if (f.n != 0) {
    const auto code = rotary::rounded_power(f);
    if (!code) refuse_entry();
    return *code;
  }
  const auto r = numerics::encode<std::uint64_t>(spec_of(format_id::fp32), cast_rule{}, f.bits, 0);
  refuse_if(r.overflow, "options.frequencies[", column,
            "]: must be finite in fp32 for angles in binary32");
  return static_cast<std::uint32_t>(r.code);
}

std::vector<rotary_column> columns_of(const rotary_options& options, std::int64_t count) {
  std::vector<rotary_column> columns(static_cast<std::size_t>(count));
  const auto n = static_cast<std::uint32_t>(count);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    rotary_column& column = columns[i];
    column.frequency =
        options.frequencies.empty()
            ? rotary::frequency{std::bit_cast<std::uint64_t>(options.base),
                                static_cast<std::uint32_t>(i), n}
            : rotary::frequency{std::bit_cast<std::uint64_t>(options.frequencies[i])};
    if (options.angle == rotary_angle::binary32) {
      column.binary32 = binary32_of(column.frequency, i);
    } else {
      column.turns = rotary::turns_of<rotary::few_words + rotary::guard_words>(column.frequency);
    }
  }
  return columns;
}

/// RN32(RN32(position) * frequency).
std::uint32_t binary32_angle(std::int64_t position, std::uint32_t frequency) {
  constexpr numerics::integer_spec int64{64, true};
  const auto rounded =
      static_cast<std::uint32_t>(numerics::from_integer(int64, static_cast<std::uint64_t>(position),
                                                        spec_of(format_id::fp32), cast_rule{}, 0)
                                     .code);
  return numerics::by_definition::product(rounded, frequency);
}

rotary::rotary_codes entry_of(const rotary_call& call, std::int64_t position,
                              const rotary_column& column) {
  const format_id to = call.cos.format;
  std::optional<rotary::rotary_codes> codes;
  if (call.angle == rotary_angle::binary32) {
    const std::uint32_t angle = binary32_angle(position, column.binary32);
    if ((angle & 0x7FFFFFFFu) >= 0x7F800000u) {
      const auto nan = static_cast<std::uint32_t>(numerics::magnitude_mask(spec_of(to)));
      return {nan, nan};
    }
    codes = rotary::codes_of_angle(numerics::binary64::widen(angle), to);
  } else {
    const bool zero = column.frequency.n == 0 && column.frequency.bits << 1 == 0;
    if (position == 0 || zero) return rotary::codes_at_zero(false, to);
    const bool backward = position < 0;
    const auto steps = static_cast<std::uint64_t>(position);
    const bool negative_frequency = column.frequency.n == 0 && column.frequency.bits >> 63 != 0;
    codes = rotary::codes_of_product(column.frequency, column.turns, backward ? 0 - steps : steps,
                                     backward != negative_frequency, to);
  }
  if (!codes) refuse_entry();
  return *codes;
}

void write_entries(const rotary_call& call, element_range range) {
  for (std::int64_t at = range.begin; at < range.end; ++at) {
    const std::int64_t row = at / call.cos.cols;
    const std::int64_t col = at % call.cos.cols;
    const rotary::rotary_codes codes = entry_of(call, call.positions[static_cast<std::size_t>(row)],
                                                call.columns[static_cast<std::size_t>(col)]);
    store_words(call.cos, row, col, 1, &codes.cos);
    store_words(call.sin, row, col, 1, &codes.sin);
  }
}

}  // namespace
}  // namespace backends

void rotary_table(std::span<const std::int64_t> positions, const matrix_view& cos,
                  const matrix_view& sin, const rotary_options& options, const executor& where) {
  namespace b = backends;
  b::check_frequencies(options, cos.cols);
  b::check_table(positions, cos, sin);
  b::check_threads(where);
  b::check_memory(b::resolve(where, cos.space, [](const b::backend&) { return true; }), cos.space);
  if (b::is_empty(cos)) return;
  const b::rotary_call call{positions, b::columns_of(options, cos.cols), options.angle, cos, sin};
  b::for_each_part(
      cos.rows * cos.cols, where.threads,
      [&](b::element_range range) { b::write_entries(call, range); }, b::entries_worth_a_thread);
}

}  // namespace samebits
