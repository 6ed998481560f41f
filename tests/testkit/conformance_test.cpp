// Runs the conformance suite over a user's executor, and over an executor with a planted error,
// which must fail (run by testkit.conformance_catches).
#include "samebits/testkit/conformance.hpp"

#include <cstddef>
#include <cstdint>

#include "samebits/convert.hpp"

namespace samebits::testkit {
namespace {

/// An executor as a user might write one: row by row.
void my_convert(const const_matrix_view& in, const matrix_view& out,
                const convert_options& options) {
  for (std::int64_t row = 0; row < in.rows; ++row) {
    const auto row_of = [row](auto view) {
      auto* bytes = static_cast<std::byte*>(const_cast<void*>(view.data));
      view.data = bytes + row * view.row_stride * storage_bytes(view.format);
      view.rows = 1;
      return view;
    };
    convert_options of_row = options;
    const auto columns = static_cast<std::uint64_t>(in.cols);
    of_row.random.offset +=
        static_cast<std::uint64_t>(row) * options.random.pitch.value_or(columns);
    if (in.cols != 0) convert(row_of(in), row_of(out), of_row);
  }
}

/// The executor above with a planted error: ties away from zero.
void planted_convert(const const_matrix_view& in, const matrix_view& out, convert_options options) {
  if (options.rounding == rounding::nearest_even) options.rounding = rounding::nearest_away;
  my_convert(in, out, options);
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Mine, ConvertSuite,
                         ::testing::Values(convert_target{
                             "mine", true,
                             [](const const_matrix_view& in, const matrix_view& out,
                                const convert_options& options,
                                int) { my_convert(in, out, options); }}),
                         name_of_target);

INSTANTIATE_TEST_SUITE_P(Planted, ConvertSuite,
                         ::testing::Values(convert_target{
                             "ties_away", true,
                             [](const const_matrix_view& in, const matrix_view& out,
                                const convert_options& options,
                                int) { planted_convert(in, out, options); }}),
                         name_of_target);

}  // namespace samebits::testkit
