// How an optimizer keeps weights: the table, and bytes.
#include "fpinspect/explore/update/weight_modes.hpp"

#include "fpinspect/cli/named_argument.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::low_part;
using samebits::stored_format;

constexpr weight_mode modes[] = {
    {"fp32", stored_format::fp32},
    {"direct", stored_format::bf16_nearest},
    {"direct_fp16", stored_format::fp16_nearest},
    {"stochastic", stored_format::bf16_stochastic},
    {"kahan", stored_format::bf16_nearest, stored_format::none, low_part::kahan},
    {"split16", stored_format::bf16_nearest, stored_format::none, low_part::split},
    {"master32", stored_format::bf16_nearest, stored_format::fp32},
    {"fp8_copy", stored_format::e4m3_scaled, stored_format::fp32},
    {"master16_scaled", stored_format::e4m3_scaled, stored_format::fp16_scaled},
};

}  // namespace

std::span<const weight_mode> weight_modes() { return modes; }

std::vector<weight_mode> weight_modes_argument(std::string_view option,
                                               const std::vector<std::string>& names) {
  if (names.empty() || names == std::vector<std::string>{"all"}) {
    return {std::begin(modes), std::end(modes)};
  }
  std::vector<weight_mode> found;
  for (const std::string& name : names) {
    found.push_back(row_argument(option, name, weight_modes()));
  }
  return found;
}

format_id codes_of(stored_format stored) {
  switch (stored) {
    case stored_format::bf16_nearest:
    case stored_format::bf16_stochastic: return format_id::bf16;
    case stored_format::fp16_nearest:
    case stored_format::fp16_stochastic:
    case stored_format::fp16_scaled: return format_id::fp16;
    case stored_format::e4m3_scaled:
    case stored_format::e4m3_tensor: return format_id::e4m3;
    case stored_format::e5m2_scaled:
    case stored_format::e5m2_tensor: return format_id::e5m2;
    default: return format_id::fp32;
  }
}

double bytes_of(stored_format stored, int block) {
  const double scale = samebits::has_block_scales(stored) ? double{sizeof(float)} / block : 0;
  return samebits::code_bytes(stored) + scale;
}

double bytes_of(const weight_mode& mode, int block) {
  constexpr double low_bytes = 2;
  return bytes_of(mode.weights, block) + bytes_of(mode.master, block) +
         (mode.low == low_part::none ? 0 : low_bytes);
}

}  // namespace fpinspect
