// The subcommands. Each writes its result to `out` and throws on every error.
#pragma once

#include "fpinspect/cli/options.hpp"
#include "fpinspect/output/output.hpp"

namespace fpinspect {

void run_formats(const formats_arguments& arguments, output& out);
void run_show(const show_arguments& arguments, output& out);
void run_cast(const cast_arguments& arguments, output& out);
void run_convert(const convert_arguments& arguments, output& out);
void run_quantize(const quantize_arguments& arguments, output& out);
void run_recipes(const recipes_arguments& arguments, output& out);
void run_compare(const compare_arguments& arguments, output& out);
void run_diff(const diff_arguments& arguments, output& out);
void run_dequantize(const dequantize_arguments& arguments, output& out);
void run_explorer(const explorer_arguments& arguments, output& out);
void run_report(const report_arguments& arguments, output& out);
void run_tensor(const tensor_arguments& arguments, output& out);
void run_scaler(const scaler_arguments& arguments, output& out);
void run_arith(const arith_arguments& arguments, output& out);
void run_matmul(const matmul_arguments& arguments, output& out);
void run_units(const units_arguments& arguments, output& out);
void run_backends(const backends_arguments& arguments, output& out);
void run_verify(const verify_arguments& arguments, output& out);
/// Runs `verify --exact-functions`.
void run_verify_exact_functions(const verify_arguments& arguments, output& out);
/// Runs `verify --function-units`.
void run_verify_function_units(const verify_arguments& arguments, output& out);
/// Runs `verify --tensor-cores`.
void run_verify_tensor_cores(const verify_arguments& arguments, output& out);
void run_range(const range_arguments& arguments, output& out);
void run_resolution(const resolution_arguments& arguments, output& out);
void run_memory(const memory_arguments& arguments, output& out);
void run_demo(const demo_arguments& arguments, output& out);
void run_update(const update_arguments& arguments, output& out);
void run_claims(const claims_arguments& arguments, output& out);
void run_table(const table_arguments& arguments, output& out);
void run_advise(const advise_arguments& arguments, output& out);

}  // namespace fpinspect
