// Results of the library as specifications.
#include "engine/kit/specifications.hpp"

#include <algorithm>

#include "samebits/convert.hpp"
#include "samebits/scalar.hpp"

namespace samebits::testkit {

random_bits random_at(const conversion_under_test& c, std::uint64_t position) {
  if (c.rule.rounding != rounding::stochastic) return {};
  const random_stream& s = c.random;
  return {random_word(s.seed, s.stream, s.offset + position, s.bits), s.bits};
}

std::uint64_t converted_code(const conversion_under_test& c, std::uint64_t input,
                             std::uint64_t position) {
  return convert_code(c.from, c.to, input, c.rule, random_at(c, position)).code;
}

matrix_shape tile_extent(const trial& in, const tile_shape& tile) {
  return {tile.rows != 0 ? tile.rows : std::max<std::int64_t>(in.rows, 1),
          tile.cols != 0 ? tile.cols : std::max<std::int64_t>(in.cols, 1)};
}

specification specification_of(const conversion_under_test& conversion, const executor& where) {
  const auto reference = [c = conversion, where](const trial& in, std::span<guarded_array> arrays) {
    const void* const source = arrays[0].elements();
    convert(view_of_codes(c.from, source, in.rows, in.cols),
            view_of_codes(c.to, arrays[1].elements(), in.rows, in.cols),
            {c.rule.rounding, c.rule.overflow, c.rule.nan, c.random}, where);
  };
  return {conversion.from,
          {{"output", conversion.to, [](const trial& in) { return in.codes.size(); }}},
          conversion.nan,
          conversion.domain,
          reference};
}

specification specification_of(const quantizer_under_test& quantizer) {
  const auto scales_of = [tile = quantizer.options.tile](const trial& in) {
    return scales_shape(in.rows, in.cols, tile);
  };
  const auto reference = [q = quantizer, scales_of](const trial& in,
                                                    std::span<guarded_array> arrays) {
    const matrix_shape s = scales_of(in);
    const void* const source = arrays[0].elements();
    quantize(view_of_codes(q.from, source, in.rows, in.cols),
             {.codes = view_of_codes(q.to, arrays[2].elements(), in.rows, in.cols),
              .scales = view_of_codes(q.scale_format, arrays[1].elements(), s.rows, s.cols)},
             q.options, {"reference", 1});
  };
  const auto scale_count = [scales_of](const trial& in) {
    const matrix_shape s = scales_of(in);
    return static_cast<std::size_t>(s.rows * s.cols);
  };
  return {quantizer.from,
          {{"scales", quantizer.scale_format, scale_count},
           {"codes", quantizer.to, [](const trial& in) { return in.codes.size(); }}},
          quantizer.nan,
          quantizer.domain,
          reference};
}

}  // namespace samebits::testkit
