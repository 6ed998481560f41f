// Option values of `quantize` and `dequantize`: implementation.
#include "fpinspect/quantize/quantize_arguments.hpp"

#include <bit>
#include <cstdint>
#include <limits>
#include <span>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/named_argument.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "samebits/error.hpp"
#include "samebits/text.hpp"
#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;

[[noreturn]] void refuse(std::string_view option, std::string_view text, const std::string& why) {
  throw usage_error(std::string(option) + ": " + samebits::tensor_file::quote(text) + " " + why);
}

struct named_tile {
  const char* name;
  samebits::tile_shape tile;
};
constexpr named_tile whole_tiles[] = {{"row", {1, 0}}, {"column", {0, 1}}, {"tensor", {0, 0}}};

}  // namespace

format_id code_format_argument(std::string_view option, std::string_view text) {
  constexpr format_id among[] = {format_id::e4m3, format_id::e5m2};
  return format_argument(option, text, among);
}

format_id wide_format_argument(std::string_view option, std::string_view text) {
  constexpr format_id among[] = {format_id::fp32, format_id::fp16, format_id::bf16};
  return format_argument(option, text, among);
}

samebits::scale_rule scale_rule_argument(std::string_view option, std::string_view text) {
  return enumerator_argument<samebits::scale_rule>(option, text);
}

samebits::nonfinite nonfinite_argument(std::string_view option, std::string_view text) {
  return enumerator_argument<samebits::nonfinite>(option, text);
}

samebits::tile_shape tile_argument(std::string_view option, std::string_view text) {
  for (const named_tile& whole : whole_tiles) {
    if (text == whole.name) return whole.tile;
  }
  try {
    const std::size_t split = text.find('x');
    if (split != std::string_view::npos) {
      constexpr std::uint64_t maximum = 1 << 20;  // far beyond every supported tile
      const samebits::tile_shape tile = {
          static_cast<std::int64_t>(unsigned_argument(option, text.substr(0, split), 0, maximum)),
          static_cast<std::int64_t>(unsigned_argument(option, text.substr(split + 1), 0, maximum))};
      static_cast<void>(samebits::scales_shape(0, 0, tile));
      return tile;
    }
  } catch (const usage_error&) {
  } catch (const samebits::invalid_argument&) {
  }
  refuse(option, text,
         "is not 1xG, Gx1 or GxG with G in 16, 32, 64, 128, 256, nor row, column or tensor");
}

samebits::tile_shape stored_tile(const std::string& path, std::string_view text) {
  try {
    return tile_argument("samebits.block", text);
  } catch (const usage_error& error) {
    throw samebits::tensor_file::file_error(
        samebits::tensor_file::error_kind::malformed,
        cat(samebits::tensor_file::escape_path(path), ": ", error.what()));
  }
}

std::string block_text(const samebits::tile_shape& tile) {
  for (const named_tile& whole : whole_tiles) {
    if (tile == whole.tile) return whole.name;
  }
  return std::to_string(tile.rows) + "x" + std::to_string(tile.cols);
}

const samebits::recipe_preset& recipe_argument(std::string_view option, std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  if (const samebits::recipe_preset* found = samebits::find_recipe(upper)) return *found;
  std::string names;
  for (const samebits::recipe_preset& p : samebits::recipe_presets) {
    names += cat(names.empty() ? "" : ", ", p.name);
  }
  refuse(option, text, "is not one of " + names);
}

float bound_argument(std::string_view option, std::string_view text) {
  const samebits::parse_result read = samebits::parse(format_id::fp32, text);
  constexpr std::uint64_t max_finite = 0x7F7FFFFF;
  if (!read.ok || read.code > max_finite) {
    refuse(option, text, "is not a finite number >= 0 in fp32");
  }
  return std::bit_cast<float>(static_cast<std::uint32_t>(read.code));
}

samebits::executor quantizing_backend_argument(std::string_view name) {
  // Also refuses an unsupported SAMEBITS_BACKEND.
  samebits::executor where = host_backend_argument(name);
  if (name.empty()) where.backend = {};
  return where;
}

}  // namespace fpinspect
