// quantize_blocks(), quantize_int8_rows() and their inverses: check arguments and choose a backend.
#include "samebits/codebook.hpp"

#include <array>
#include <initializer_list>
#include <string>
#include <vector>

#include "backends/api/run_call.hpp"
#include "backends/dispatch/calls/codebook.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/refuse.hpp"
#include "backends/reference/reference.hpp"

namespace samebits {
namespace backends {
namespace {

/// Memory of a span as a view, for messages about overlaps.
template <class T>
const_matrix_view bytes_of(std::span<T> s) {
  const auto bytes = static_cast<std::int64_t>(s.size_bytes());
  return {s.data(), format_id::e8m0, 1, bytes, bytes};
}

/// An array beside the elements: its bytes and its name.
struct named_bytes {
  const_matrix_view bytes;
  const char* name;
};

/// Checks the size of an array and names it.
template <class T>
named_bytes sized(const char* name, std::span<T> s, std::int64_t needed, const char* unit) {
  if (s.size() == static_cast<std::size_t>(needed)) return {bytes_of(s), name};
  refuse(name, ": must have ", needed, unit, ", got ", s.size());
}

/// Checks the elements, and that all arrays lie apart.
void check_elements(const const_matrix_view& v, const char* which,
                    std::span<const named_bytes> arrays, const executor& where) {
  check_view(v, which);
  check_format(v, which, number_formats);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    check_apart(v, which, arrays[i].bytes, arrays[i].name);
    for (std::size_t k = 0; k < i; ++k) {
      check_apart(arrays[k].bytes, arrays[k].name, arrays[i].bytes, arrays[i].name);
    }
  }
  check_threads(where);
}

using named_arrays = std::vector<named_bytes>;

/// check_elements() of codes and absmaxes of blocks, which it returns; with double quantization the
/// absmaxes are `nested`.
named_arrays check_blocks(const const_matrix_view& v, const char* which,
                          std::span<const std::uint8_t> codes, std::span<const float> absmax,
                          const quantized_absmax* nested, const codebook_options& options,
                          const executor& where) {
  check_value("options.book", options.book, "codebook");
  check_value("options.steps", options.steps, "codebook_steps");
  check_at_least("options.block", options.block, 1);
  check_view(v, which);
  const std::int64_t elements = v.rows * v.cols;
  const std::int64_t blocks = block_count(options, elements);
  named_arrays arrays = {
      sized("codes", codes, codebook_bytes(options.book, elements), " codes in bytes")};
  if (nested == nullptr) {
    arrays.push_back(sized("absmax", absmax, blocks, " numbers"));
  } else {
    check_at_least("absmax.block", nested->block, 1);
    const codebook_options of_absmax = {.block = nested->block};
    arrays.push_back(sized("absmax.codes", nested->codes, blocks, " codes in bytes"));
    arrays.push_back(
        sized("absmax.absmax", nested->absmax, block_count(of_absmax, blocks), " numbers"));
  }
  check_elements(v, which, arrays, where);
  require(is_dense(v), which, ": the elements of blocks must have no gaps");
  return arrays;
}

/// check_elements() of codes and absmaxes of rows in host memory.
void check_rows(const const_matrix_view& v, const char* which, std::span<const std::int8_t> codes,
                std::span<const float> absmax, const executor& where) {
  check_view(v, which);
  check_host(v, which);
  const std::array arrays = {sized("codes", codes, v.rows * v.cols, " codes in bytes"),
                             sized("absmax", absmax, v.rows, " numbers")};
  check_elements(v, which, arrays, where);
}

/// Runs a call on the elements `v` and the arrays.
template <class Call>
void run(operation_entry<Call> backend::*operation, const Call& call, const const_matrix_view& v,
         const char* which, const named_arrays& arrays, const executor& where) {
  device_finder memory(v.space);
  memory.add(address_of(v), which);
  for (const named_bytes& a : arrays) memory.add(a.bytes.data, a.name);
  const device_scope on(v.space, memory.device(), where.stream);
  run_call(operation, call, v, where, "has no codebooks");
}

}  // namespace
}  // namespace backends

void quantize_blocks(const const_matrix_view& in, const codebook_options& options,
                     std::span<std::uint8_t> codes, std::span<float> absmax,
                     const executor& where) {
  using namespace backends;
  const auto arrays = check_blocks(in, "in", codes, absmax, nullptr, options, where);
  run(&backend::quantize_blocks, {in, options, codes, absmax}, in, "in", arrays, where);
}

void dequantize_blocks(std::span<const std::uint8_t> codes, std::span<const float> absmax,
                       const codebook_options& options, const matrix_view& out,
                       const executor& where) {
  using namespace backends;
  const auto arrays = check_blocks(out, "out", codes, absmax, nullptr, options, where);
  run(&backend::dequantize_blocks, {codes, {.absmax = absmax}, options, out}, out, "out", arrays,
      where);
}

void dequantize_blocks(std::span<const std::uint8_t> codes, const quantized_absmax& absmax,
                       const codebook_options& options, const matrix_view& out,
                       const executor& where) {
  using namespace backends;
  const auto arrays = check_blocks(out, "out", codes, {}, &absmax, options, where);
  run(&backend::dequantize_blocks, {codes, absmax, options, out}, out, "out", arrays, where);
}

void quantize_int8_rows(const const_matrix_view& in, codebook_steps steps,
                        std::span<std::int8_t> codes, std::span<float> absmax,
                        const executor& where) {
  using namespace backends;
  check_value("steps", steps, "codebook_steps");
  check_rows(in, "in", codes, absmax, where);
  host_quantize_int8(in, steps, codes, absmax, where);
}

void dequantize_int8_rows(std::span<const std::int8_t> codes, std::span<const float> absmax,
                          const matrix_view& out, const executor& where) {
  using namespace backends;
  check_rows(out, "out", codes, absmax, where);
  check_distinct(out, "out");
  host_dequantize_int8(codes, absmax, out, where);
}

}  // namespace samebits
