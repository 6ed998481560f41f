// Codebooks, packed codes and layouts of scales: functions on NumPy arrays of bytes and numbers.
#include "samebits/codebook.hpp"

#include "call.hpp"
#include "samebits/hadamard.hpp"
#include "samebits/packing.hpp"
#include "samebits/scale_layout.hpp"

namespace samebits::python {
namespace {

// The memory of a C-contiguous array of bytes, or of fp32 numbers. `stream` is that of a call on
// `space`.
template <class T>
std::span<T> span_of(nb::handle object, const char* name, access needs = access::read,
                     memory_space space = memory_space::host, void* stream = nullptr) {
  constexpr format_id format = sizeof(T) == 1 ? format_id::e8m0 : format_id::fp32;
  const array a =
      array_of(object, {.name = name, .needs = needs, .format = format, .stream = stream});
  if (a.dims != 1 || (a.shape[0] > 1 && a.strides[0] != 1) || a.memory != space) {
    raise_invalid(std::string(name) + (space == memory_space::host
                                           ? ": a contiguous host array with one axis is expected"
                                           : ": a contiguous array with one axis on the device is "
                                             "expected"));
  }
  return {reinterpret_cast<T*>(a.data), static_cast<std::size_t>(a.shape[0])};
}

// `packed` and the codes of pack_codes() and unpack_codes().
void move_codes(nb::handle codes, nb::handle format, nb::handle order, nb::handle packed,
                nb::handle unpacks) {
  const auto by = enumerator_of<packing>(order, "order");
  const bool back = flag_of(unpacks, "unpacks");
  const viewed v(
      codes,
      {.name = "codes", .needs = back ? access::write : access::read, .format = format_of(format)});
  if (back) {
    const auto in = span_of<const std::byte>(packed, "packed");
    run(v.a.size(), [&] { unpack_codes(in, by, v.view); }, {{"in", "packed"}});
  } else {
    const auto out = span_of<std::byte>(packed, "packed", access::write);
    run(v.a.size(), [&] { pack_codes(v.view, by, out); });
  }
}

std::int64_t packed_row_bytes_of(nb::handle format, std::int64_t cols) {
  return packed_row_bytes(format_named(format, "format"), cols);
}

// `arranged` and the scales of arrange_scales() and restore_scales().
void move_scales(nb::handle scales, nb::handle format, nb::handle layout, nb::handle arranged,
                 nb::handle padding, nb::handle restores) {
  const auto by = enumerator_of<scale_layout>(layout, "layout");
  const scale_layout_options options = {.padding =
                                            enumerator_of<scale_padding>(padding, "padding")};
  const bool back = flag_of(restores, "restores");
  const viewed v(scales, {.name = "scales",
                          .needs = back ? access::write : access::read,
                          .format = format_of(format)});
  if (back) {
    const auto in = span_of<const std::byte>(arranged, "arranged");
    run(v.a.size(), [&] { restore_scales(in, by, v.view, options); }, {{"in", "arranged"}});
  } else {
    const auto out = span_of<std::byte>(arranged, "arranged", access::write);
    run(v.a.size(), [&] { arrange_scales(v.view, by, out, options); });
  }
}

std::int64_t layout_bytes_of(nb::handle layout, std::int64_t rows, std::int64_t cols) {
  return layout_bytes(enumerator_of<scale_layout>(layout, "layout"), rows, cols);
}

codebook_options options_of_book(nb::handle book, std::int64_t block, nb::handle steps) {
  return {enumerator_of<codebook>(book, "book"), block,
          enumerator_of<codebook_steps>(steps, "steps")};
}

void quantize_blocks_of(nb::handle x, nb::handle format, nb::handle book, std::int64_t block,
                        nb::handle steps, nb::handle codes, nb::handle absmax, nb::handle where) {
  void* const s = stream_in(where);
  const viewed in(x, {.name = "x", .format = format_of(format), .stream = s});
  const codebook_options options = options_of_book(book, block, steps);
  const auto to = span_of<std::uint8_t>(codes, "codes", access::write, in.a.memory, s);
  const auto scales = span_of<float>(absmax, "absmax", access::write, in.a.memory, s);
  const executor on = executor_of(where, in.a, in.a.size());
  run(in.a.size(), [&] { quantize_blocks(in.view, options, to, scales, on); });
}

// `nested` is None, or the codes of the absmaxes, their block and the offset.
void dequantize_blocks_of(nb::handle codes, nb::handle absmax, nb::handle nested, nb::handle book,
                          std::int64_t block, nb::handle steps, nb::handle out, nb::handle format,
                          nb::handle where) {
  void* const s = stream_in(where);
  const viewed to(
      out, {.name = "out", .needs = access::write, .format = format_of(format), .stream = s});
  const codebook_options options = options_of_book(book, block, steps);
  const auto bytes = [&](nb::handle object, const char* name) {
    return span_of<const std::uint8_t>(object, name, access::read, to.a.memory, s);
  };
  const auto from = bytes(codes, "codes");
  quantized_absmax scales;
  scales.absmax = span_of<const float>(absmax, "absmax", access::read, to.a.memory, s);
  if (!nested.is_none()) {
    scales.codes = bytes(item(nested, 0), "absmax.codes");
    scales.block = integer_of<std::int64_t>(item(nested, 1), "absmax.block", 1);
    scales.offset = static_cast<float>(number_of(item(nested, 2), "offset"));
  }
  const executor on = executor_of(where, to.a, to.a.size());
  run(to.a.size(), [&] {
    if (nested.is_none()) return dequantize_blocks(from, scales.absmax, options, to.view, on);
    dequantize_blocks(from, scales, options, to.view, on);
  });
}

void quantize_int8_of(nb::handle x, nb::handle format, nb::handle steps, nb::handle codes,
                      nb::handle absmax, nb::handle threads) {
  const viewed in(x, {.name = "x", .format = format_of(format)});
  const auto by = enumerator_of<codebook_steps>(steps, "steps");
  const auto to = span_of<std::int8_t>(codes, "codes", access::write);
  const auto scales = span_of<float>(absmax, "absmax", access::write);
  const executor where = executor_of(threads, nb::none(), nb::none(), in.a, in.a.size());
  run(in.a.size(), [&] { quantize_int8_rows(in.view, by, to, scales, where); });
}

void dequantize_int8_of(nb::handle codes, nb::handle absmax, nb::handle out, nb::handle format,
                        nb::handle threads) {
  const viewed to(out, {.name = "out", .needs = access::write, .format = format_of(format)});
  const auto from = span_of<const std::int8_t>(codes, "codes");
  const auto scales = span_of<const float>(absmax, "absmax");
  const executor where = executor_of(threads, nb::none(), nb::none(), to.a, to.a.size());
  run(to.a.size(), [&] { dequantize_int8_rows(from, scales, to.view, where); });
}

void random_hadamard_of(nb::handle x, nb::handle format, std::uint16_t signs, nb::handle unit,
                        nb::handle out, nb::handle to, nb::handle threads) {
  const viewed in(x, {.name = "x", .format = format_of(format)});
  const viewed target(out, {.name = "out", .needs = access::write, .format = format_of(to)});
  const accumulator sum = accumulator::tensor_core(enumerator_of<tensor_unit>(unit, "unit"), 0);
  const std::int64_t work = 16 * in.a.size();
  const executor where = executor_of(threads, nb::none(), nb::none(), in.a, work);
  run(work, [&] { random_hadamard(in.view, target.view, signs, sum, where); });
}

}  // namespace

void bind_codebook(nb::module_& m) {
  def(m, "move_codes", &move_codes, "Packs codes of 4 and 6 bits, or unpacks them.");
  def(m, "packed_row_bytes", &packed_row_bytes_of, "Returns the bytes of a packed row.");
  def(m, "move_scales", &move_scales, "Arranges scales in a layout, or restores them.");
  def(m, "layout_bytes", &layout_bytes_of, "Returns the bytes of scales in a layout.");
  def(m, "random_hadamard", &random_hadamard_of, "Writes the transform of groups of 16.");
  def(m, "quantize_blocks", &quantize_blocks_of, "Writes codes and absmaxes of blocks.");
  def(m, "dequantize_blocks", &dequantize_blocks_of, "Writes the numbers of blocks.");
  def(m, "quantize_int8", &quantize_int8_of, "Writes int8 codes and absmaxes of rows.");
  def(m, "dequantize_int8", &dequantize_int8_of, "Writes the numbers of int8 rows.");
}

}  // namespace samebits::python
