// Conversions as compared calls: implementation.
#include "backends/verify/conversion.hpp"

#include "backends/verify/codes.hpp"
#include "samebits/core/cat.hpp"

namespace samebits::backends::verification {
namespace {

std::size_t width_of(format_id format) { return static_cast<std::size_t>(storage_bytes(format)); }

std::uint64_t pitch_of(const conversion& c) {
  return c.random.pitch.value_or(static_cast<std::uint64_t>(c.in.cols));
}

/// A block of a call. It has the offset of its first element and the pitch of the whole matrix.
convert_call part_of(const convert_call& whole, const block& b) {
  convert_call part = whole;
  part.in.data = static_cast<const std::byte*>(whole.in.data) + byte_offset(whole.in, b.row, b.col);
  part.out.data = static_cast<std::byte*>(whole.out.data) + byte_offset(whole.out, b.row, b.col);
  part.in.rows = part.out.rows = b.rows;
  part.in.cols = part.out.cols = b.cols;
  part.random.offset +=
      static_cast<std::uint64_t>(b.row) * whole.pitch + static_cast<std::uint64_t>(b.col);
  part.random.pitch = whole.pitch;
  return part;
}

std::string text_of(const conversion& c, const code_buffer& input, const std::string& rule,
                    const difference& d) {
  const format_id from = input.format();
  const std::size_t width = width_of(from);
  const std::byte* const element = input.bytes().data() + c.in.offset(width, d.row, d.col);
  const std::string text = detail::cat(from, " ", hex(load(element, width), width), " to ", c.to,
                                       " ", d.got, ", expected ", d.expected, "; ", rule);
  if (c.rule.rounding != rounding::stochastic) return text;
  const std::uint64_t index = c.random.offset + static_cast<std::uint64_t>(d.row) * pitch_of(c) +
                              static_cast<std::uint64_t>(d.col);
  return detail::cat(text, ", seed ", c.random.seed, ", stream ", c.random.stream, ", index ",
                     index, ", K = ", c.random.bits);
}

}  // namespace

checked_call call_of(const conversion& c, const code_buffer& input) {
  const auto make = [c, from = input.format()](const call_memory& m) {
    return convert_call{view_at<const_matrix_view>(m.in[0], from, c.in, m.space),
                        view_at<matrix_view>(m.out[0], c.to, c.out, m.space), c.rule, c.random,
                        pitch_of(c)};
  };
  checked_call call = make_checked_call(&backend::convert, make);
  if (!c.blocks.empty()) {
    call.runs.push_back(
        [c, make](const backend& b, const call_memory& memory, const executor& where) {
          const convert_call whole = make(memory);
          for (const block& part : c.blocks) b.convert.run(part_of(whole, part), where);
        });
  }
  call.results = {{"code", width_of(c.to), c.out}};
  call.covers.sources.set(static_cast<std::size_t>(input.format()));
  call.covers.targets.set(static_cast<std::size_t>(c.to));
  call.covers.rules.set((static_cast<std::size_t>(c.rule.rounding) * enum_count<overflow> +
                         static_cast<std::size_t>(c.rule.overflow)) *
                            enum_count<nan_policy> +
                        static_cast<std::size_t>(c.rule.nan));
  call.rule = detail::cat(c.rule.rounding, " ", c.rule.overflow, " ", c.rule.nan);
  call.text = [c, &input, rule = call.rule](const difference& d) {
    return text_of(c, input, rule, d);
  };
  return call;
}

}  // namespace samebits::backends::verification
