// Arguments of the C interface as C++ values.
#include "backends/c_api/arguments/arguments.hpp"

#include <cstring>
#include <optional>
#include <string>

#include "backends/c_api/arguments/options.hpp"
#include "samebits/error.hpp"

namespace samebits::c_api {
namespace {

matrix_view checked(const samebits_view& v, const char* which) {
  return {.data = v.data,
          .format = enumerator<format_id>(v.format, which, ".format"),
          .rows = v.rows,
          .cols = v.cols,
          .row_stride = v.row_stride,
          .col_stride = v.col_stride,
          .space = enumerator<memory_space>(v.memory, which, ".memory")};
}

cast_rule rule_of(std::int32_t round, std::int32_t on_overflow, std::int32_t on_nan) {
  return {.round = enumerator<rounding>(round, "rounding"),
          .on_overflow = enumerator<overflow>(on_overflow, "overflow"),
          .on_nan = enumerator<nan_policy>(on_nan, "nan_policy")};
}

/// Returns `To`, convert_options or compute_options, from the C struct with the same fields.
template <class To, class From>
To array_options(const From& o) {
  const cast_rule rule = rule_of(o.rounding, o.overflow, o.nan_policy);
  return {.round = rule.round,
          .on_overflow = rule.on_overflow,
          .on_nan = rule.on_nan,
          .random = random(o.random)};
}

}  // namespace

void refuse_null(const char* which) {
  throw invalid_argument(std::string(which) + ": must not be null");
}

std::string_view text(const char* text) { return text == nullptr ? std::string_view() : text; }

void write_text(std::string_view text, char* buffer, std::size_t size, std::size_t* length) {
  write(length, text.size());
  if (buffer == nullptr) return;
  if (size <= text.size()) {
    throw invalid_argument("buffer: needs " + std::to_string(text.size() + 1) + " bytes, got " +
                           std::to_string(size));
  }
  std::memcpy(buffer, text.data(), text.size());
  buffer[text.size()] = '\0';
}

matrix_view view(const samebits_view* view, const char* which) {
  return checked(required(view, which), which);
}

matrix_view optional_view(const samebits_view* view, const char* which) {
  return view == nullptr ? matrix_view{} : checked(*view, which);
}

tile_shape tile(const samebits_tile& tile) { return {.rows = tile.rows, .cols = tile.cols}; }

random_stream random(const samebits_random_stream& random) {
  return {.seed = random.seed,
          .stream = random.stream,
          .offset = random.offset,
          .pitch = random.has_pitch != 0 ? std::optional(random.pitch) : std::nullopt,
          .bits = random.bits};
}

executor where(const samebits_executor* executor) {
  const samebits_executor e = read(executor, "where");
  return {.backend = text(e.backend), .threads = e.threads, .stream = e.stream};
}

value_rule rule(const samebits_cast_rule* rule) {
  const samebits_cast_rule r = read(rule, "rule");
  if (r.random_bits < 1 || r.random_bits > 32) {
    throw invalid_argument("rule.random_bits must be in 1..32, got " +
                           std::to_string(r.random_bits));
  }
  if ((std::uint64_t{r.random_value} >> r.random_bits) != 0) {
    throw invalid_argument("rule.random_value must be below 2^random_bits, got " +
                           std::to_string(r.random_value));
  }
  return {.rule = rule_of(r.rounding, r.overflow, r.nan_policy),
          .random = {.value = r.random_value, .count = r.random_bits}};
}

convert_options options(const samebits_convert_options* options) {
  return array_options<convert_options>(read(options, "options"));
}

compute_options options(const samebits_compute_options* options) {
  return array_options<compute_options>(read(options, "options"));
}

}  // namespace samebits::c_api
