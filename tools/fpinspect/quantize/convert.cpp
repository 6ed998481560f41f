// `fpinspect convert`: rounds a tensor to a format and writes codes or binary32 values.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/tensors/source/source.hpp"
#include "fpinspect/tensors/tensor_output.hpp"
#include "samebits/convert.hpp"
#include "samebits/core/format.hpp"
#include "samebits/view.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;

/// The parsed request.
struct conversion {
  format_id to = format_id::fp32;
  samebits::convert_options rule;
  samebits::executor where;
  bool decode = false;
};

conversion conversion_of(const convert_arguments& arguments) {
  const format_id to = format_argument("--to", arguments.to);
  if (to == format_id::fp64) {
    throw usage_error("--to: fp64 is a source only; no array conversion into it is written");
  }
  return {to, rule_argument(arguments.rule), host_backend_argument(arguments.backend),
          arguments.decode};
}

/// The format of the elements in OUT.
format_id written_format(const conversion& task) { return task.decode ? format_id::fp32 : task.to; }

/// The elements of OUT. Converted chunk by chunk, so that only the result is held in memory as a
/// whole.
///
/// Element i in C order is element (0, i - first) of its chunk and has the random index offset + i.
/// This index is the contract's offset + row * pitch + column, with the last axis as the column.
std::vector<std::byte> converted_bytes(const source_tensor& source, const conversion& task) {
  constexpr std::uint64_t chunk = 1 << 20;  // elements; at most 8 MiB of input
  const auto in_bytes = static_cast<std::size_t>(samebits::storage_bytes(source.format()));
  const auto code_bytes = static_cast<std::size_t>(samebits::storage_bytes(task.to));
  const std::size_t out_bytes = task.decode ? sizeof(float) : code_bytes;
  const std::uint64_t count = source.info.count;
  const auto room = static_cast<std::size_t>(std::min(count, chunk));

  std::vector<std::byte> result(count * out_bytes);
  const auto direct = source.view();
  std::vector<std::byte> read(direct ? 0 : room * in_bytes);
  std::vector<std::byte> codes(task.decode ? room * code_bytes : 0);
  samebits::convert_options rule = task.rule;
  for (std::uint64_t first = 0; first < count; first += chunk) {
    const std::uint64_t size = std::min(chunk, count - first);
    const auto cols = static_cast<std::int64_t>(size);
    if (!direct) source.read(first, size, read.data());
    const std::byte* in = direct ? direct->data() + first * in_bytes : read.data();
    std::byte* out = result.data() + first * out_bytes;
    const samebits::matrix_view rounded =
        samebits::view_of_codes(task.to, task.decode ? codes.data() : out, 1, cols);
    rule.random.offset = task.rule.random.offset + first;
    samebits::convert(samebits::view_of_codes(source.format(), in, 1, cols), rounded, rule,
                      task.where);
    if (task.decode) {
      samebits::convert(rounded, samebits::view_of_codes(format_id::fp32, out, 1, cols),
                        {.nan = task.rule.nan}, task.where);
    }
  }
  return result;
}

void write_json(const convert_arguments& arguments, const source_tensor& source,
                const conversion& task, const tensor_target& target, output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.member("input", arguments.input);
  json.member("output", arguments.output);
  json.member("from", type_text(source.info, source.how));
  json.member("to", samebits::name(task.to));
  json.member("round", samebits::name(task.rule.rounding));
  json.member("overflow", samebits::name(task.rule.overflow));
  json.member("nan", samebits::name(task.rule.nan));
  if (task.rule.rounding == samebits::rounding::stochastic) {
    json.member("seed", task.rule.random.seed);
    json.member("stream", task.rule.random.stream);
    json.member("offset", task.rule.random.offset);
    json.member("random_bits", task.rule.random.bits);
  }
  json.member("decoded", task.decode);
  json.member("dtype", target.type_text(target.element_type(written_format(task))));
  json.member("count", source.info.count);
  json.member("shape", std::span<const std::uint64_t>(source.info.shape));
  json.member("backend", task.where.backend);
  json.end_object();
  out.write(json.document());
}

std::string summary(const tensor_target& target, const source_tensor& source,
                    const conversion& task) {
  return cat(target.shown(), ": ", number_of(source.info.count, "element"), " [",
             comma_separated(source.info.shape), "], ", type_text(source.info, source.how), " -> ",
             samebits::name(task.to), " (", samebits::name(task.rule.rounding), ", ",
             samebits::name(task.rule.overflow), ", ", samebits::name(task.rule.nan), ")",
             task.decode ? ", decoded to fp32" : "", ", backend ", task.where.backend, "\n");
}

}  // namespace

void run_convert(const convert_arguments& arguments, output& out) {
  const conversion task = conversion_of(arguments);
  const tensor_target target("OUT", arguments.output);
  const source_tensor source = open_source("IN", arguments.input, "--from", arguments.from);
  target.require_packable(written_format(task), source.info.count);
  const std::vector<std::byte> elements = converted_bytes(source, task);
  const std::string name = source.info.name.empty() ? "tensor" : source.info.name;
  target.write(name, written_format(task), source.info.shape, elements, out);
  if (arguments.view.json) {
    write_json(arguments, source, task, target, out);
  } else {
    static_cast<void>(std::fputs(summary(target, source, task).c_str(), stderr));
  }
}

}  // namespace fpinspect
