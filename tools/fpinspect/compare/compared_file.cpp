// The tensors of one side of a comparison: implementation.
#include "fpinspect/compare/compared_file.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/quantize/quantize_arguments.hpp"
#include "fpinspect/quantize/quantize_source.hpp"
#include "samebits/error.hpp"
#include "samebits/quantize.hpp"
#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::tensor_file::tensor_info;
using reader = samebits::tensor_file::tensor_file;

compared_tensor tensor_of(shown_tensor shown, std::string_view option, const std::string& from) {
  compared_tensor result;
  if (!from.empty() && holds_integers(shown.info)) {
    shown.how = reading_of(shown.info, option, from, from_scope::integers);
    shown.note.clear();
  }
  result.name = shown.info.name;
  result.shape = shown.info.shape;
  result.count = shown.info.count;
  result.note = shown.note;
  if (shown.how) {
    result.format = shown.how->format;
    result.type = type_text(shown.info, *shown.how);
  }
  result.stored = std::move(shown);
  return result;
}

/// The tile that `quantize` wrote into the metadata; nothing for other files.
std::optional<samebits::tile_shape> quantized_tile(const std::string& input, const reader& file) {
  for (const auto& [key, text] : file.metadata()) {
    if (key == "samebits.block") return stored_tile(input, text);
  }
  return std::nullopt;
}

/// codes * scales, as `dequantize` writes them.
compared_tensor dequantized(const std::string& input, const reader& file,
                            const samebits::tile_shape& tile) {
  const auto load = [&](const char* name) {
    const tensor_info& info = file.find(name);
    const auto how = reading_of(info, "--from", "");
    if (!how) {
      throw samebits::tensor_file::file_error(
          samebits::tensor_file::error_kind::malformed,
          cat(samebits::tensor_file::escape_path(input), ": ", name, " are no numbers"));
    }
    return std::pair(matrix_of(file, info, *how), info.shape);
  };
  const auto [codes, shape] = load("codes");
  const auto [scales, unused] = load("scales");
  compared_tensor result = {.name = "values", .shape = shape, .type = "codes x scales"};
  result.count = file.find("codes").count;
  result.made = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(result.count) *
                                                         sizeof(float));
  try {
    samebits::dequantize(codes.view, scales.view,
                         samebits::view_of_codes(format_id::fp32, result.made->data(),
                                                 codes.view.rows, codes.view.cols),
                         tile);
  } catch (const samebits::invalid_argument& error) {  // the shapes in the file do not fit together
    throw samebits::tensor_file::file_error(
        samebits::tensor_file::error_kind::malformed,
        cat(samebits::tensor_file::escape_path(input), ": ", error.what()));
  }
  return result;
}

}  // namespace

std::optional<std::span<const std::byte>> compared_tensor::in_place() const {
  if (stored) return view_elements(*stored->file, stored->info, *stored->how);
  return *made;
}

void compared_tensor::read(std::uint64_t first, std::uint64_t elements, std::byte* out) const {
  if (stored) return read_elements(*stored->file, stored->info, *stored->how, first, elements, out);
  std::memcpy(out, made->data() + first * sizeof(float),
              static_cast<std::size_t>(elements) * sizeof(float));
}

const compared_tensor* compared_file::find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const compared_tensor& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

compared_file open_compared(const std::string& input, const std::vector<std::string>& names,
                            std::string_view option, const std::string& from) {
  tensor_arguments selection;
  selection.files = {input};
  const bool whole = !locate(input).tensor;
  std::vector<shown_tensor> shown = tensors_to_show(selection);
  compared_file result = {.input = input};
  if (whole && !shown.empty()) {
    if (const auto tile = quantized_tile(input, *shown.front().file)) {
      if (!names.empty() || !from.empty()) {
        throw usage_error(cat(names.empty() ? option : "--tensor", ": ",
                              samebits::tensor_file::escape_path(input),
                              " holds one quantized tensor; leave it out"));
      }
      result.tensors.push_back(dequantized(input, *shown.front().file, *tile));
      return result;
    }
  }
  if (!names.empty()) {
    selection.tensors = names;
    shown = tensors_to_show(selection);
  }
  const bool any_integers = std::any_of(
      shown.begin(), shown.end(), [](const shown_tensor& one) { return holds_integers(one.info); });
  if (!from.empty() && !any_integers) {
    throw usage_error(cat(option, ": none of the tensors of ",
                          samebits::tensor_file::escape_path(input),
                          " holds integers; leave it out"));
  }
  for (shown_tensor& one : shown) {
    result.tensors.push_back(tensor_of(std::move(one), option, from));
  }
  return result;
}

}  // namespace fpinspect
