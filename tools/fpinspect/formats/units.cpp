// `fpinspect units`: lists the tensor cores that `matmul` can model, and the evidence for each
// model.
#include <string>
#include <string_view>

#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "samebits/core/tensor_unit.hpp"

namespace fpinspect {
namespace {

using samebits::tensor_arithmetic;

std::string_view path_text(const tensor_arithmetic& row) {
  return row.path == samebits::tensor_path::fused ? "fused" : "by fp16";
}

void write_units_json(output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.key("units");
  json.begin_array();
  for (int i = 0; i < samebits::tensor_row_count; ++i) {
    const tensor_arithmetic row = samebits::tensor_row(i);
    json.begin_object();
    json.member("unit", samebits::name(row.unit));
    json.member("operands", samebits::name(row.operands));
    json.member("products", row.products);
    json.member("narrow_products", row.narrow_products);
    json.member("group", row.group);
    json.member("alignment_bits", row.alignment_bits);
    json.member("fraction_bits", row.fraction_bits);
    json.member("floor_fp32", row.floor_fp32);
    json.member("floor_fp16", row.floor_fp16);
    json.member("path", path_text(row));
    json.member("evidence_fp32", samebits::name(row.fp32));
    json.member("evidence_fp16", samebits::name(row.fp16));
    json.member("source", row.source);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out.write(json.document());
}

std::string unit_row(std::string_view unit, std::string_view operands, std::string_view products,
                     std::string_view group, std::string_view kept, std::string_view bits,
                     std::string_view path) {
  return left(unit, 20) + left(operands, 10) + right(products, 8) + right(group, 7) +
         right(kept, 6) + right(bits, 6) + "  " + left(path, 9);
}

}  // namespace

void run_units(const units_arguments& arguments, output& out) {
  if (arguments.view.json) return write_units_json(out);
  const terminal term(arguments.view);
  out.write(term.painted(paint::heading,
                         unit_row("unit", "operands", "products", "group", "kept", "bits", "path") +
                             left("fp32", 12) + left("fp16", 12) + "source\n"));
  for (int i = 0; i < samebits::tensor_row_count; ++i) {
    const tensor_arithmetic row = samebits::tensor_row(i);
    std::string products = std::to_string(row.products);
    if (row.narrow_products != 0) products += cat(", ", row.narrow_products);
    const auto evidence_text = [](samebits::evidence e) {
      return e == samebits::evidence::none ? std::string_view("-") : samebits::name(e);
    };
    out.write(unit_row(samebits::name(row.unit), samebits::name(row.operands), products,
                       std::to_string(row.group), std::to_string(row.alignment_bits),
                       std::to_string(row.fraction_bits), path_text(row)) +
              left(evidence_text(row.fp32), 12) + left(evidence_text(row.fp16), 12) + row.source +
              "\n");
  }
  out.write(
      "\n"
      "hardware    equal to results that this project took from a GPU\n"
      "published   equal to results of GPUs that others have published\n"
      "literature  stated by others, not compared with a GPU by this project\n"
      "[H] this project on an H200, 2026-11-20   [K] Khattak and Mikaitis, arXiv 2512.07004\n"
      "[X] Xie et al., arXiv 2511.10909          [F] Fasi et al. 2021, PeerJ CS 7:e330\n"
      "[S] what ptxas 13.0 emits\n");
}

}  // namespace fpinspect
