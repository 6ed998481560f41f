// The options of each subcommand, and the combinations that are refused as contradictory or without
// effect.
#include <string>

#include "fpinspect/cli/command_line.hpp"
#include "fpinspect/cli/named_argument.hpp"
#include "fpinspect/scaler/scaler_trace.hpp"
#include "samebits/core/loss_scaling.hpp"
#include "samebits/core/scaling.hpp"

namespace fpinspect {

void command_line::add_formats() {
  CLI::App* command = add("formats", "List the formats and their limits");
  on_chosen(command, formats_, run_formats);
}

void command_line::add_show() {
  CLI::App* command = add("show", "Show one value of a format, or a number in several formats");
  command->add_option("FORMAT", show_.format, "Name of the format, names with commas, or all")
      ->required();
  command->add_option("VALUE|0xCODE", show_.value, "A number, or a code in hexadecimal")
      ->required();
  add_list(command, "--round", show_.rounding, "Rounding modes, separated by commas, or all");
  on_chosen(command, show_, run_show);
}

void command_line::add_cast() {
  CLI::App* command = add("cast", "Round numbers into formats");
  command->add_option("VALUE", cast_.values, "Numbers, or codes with --from")->required();
  add_list(command, "--to", cast_.to, "Formats, separated by commas (default: all)");
  command->add_option("--from", cast_.from, "VALUEs are codes (0x...) of this format");
  add_rule(command, cast_.rule);
  on_chosen(command, cast_, run_cast);
}

void command_line::add_convert() {
  CLI::App* command = add("convert", "Round a tensor into a format");
  command
      ->add_option("IN", convert_.input, "FILE.npy, .npz, .safetensors or .gguf, FILE#TENSOR, or -")
      ->required();
  command
      ->add_option("OUT", convert_.output, "FILE.npy, FILE.safetensors, or - for standard output")
      ->required();
  command->add_option("--to", convert_.to, "Format to round into")->required();
  command->add_option("--from", convert_.from,
                      "Integers are codes of this format (default: values)");
  command->add_flag("--decode", convert_.decode, "Write binary32 values instead of codes");
  command->add_option("--backend", convert_.backend, "Where to compute (default: the best here)");
  add_rule(command, convert_.rule);
  refuse_json_beside(command, "OUT", convert_.output);
  on_chosen(command, convert_, run_convert);
}

void command_line::add_quantize() {
  CLI::App* command = add("quantize", "Write a tensor as 8-bit codes with a scale per tile");
  command
      ->add_option("IN", quantize_.input,
                   "FILE.npy, .npz, .safetensors or .gguf, FILE#TENSOR, or -")
      ->required();
  command->add_option("OUT", quantize_.output, "FILE.safetensors, or - for standard output")
      ->required();
  command->add_option("--to", quantize_.to, "e4m3 or e5m2 (with --recipe: e4m3)");
  const auto option = [&](const char* name, std::string& text, const std::string& description) {
    command->add_option(name, text, description)->capture_default_str();
  };
  option("--block", quantize_.block, "Tile: 1xG, Gx1, GxG (G 16 to 256), row, column or tensor");
  option("--scale-rule", quantize_.scale, "Scale rules: " + names_of<samebits::scale_rule>());
  option("--eps", quantize_.eps, "Minimum amax of a tile");
  option("--upper-bound", quantize_.upper_bound, "Largest amax of a tile (default: none)");
  option("--nonfinite", quantize_.nonfinite, names_of<samebits::nonfinite>(" or "));
  command->add_option("--recipe", quantize_.recipe, "A preset of `recipes` in their place");
  add_list(command, "--outputs", quantize_.outputs, "row, col, transposed (default: row)");
  command->add_flag("--transposed", quantize_.transposed, "Write codes_t and scales_t as well");
  add_list(command, "--fail-if", quantize_.fail_if,
           "Exit code 1 if: 'sqnr<30dB', 'underflow>1%', 'saturated>0', 'nan>0', ...");
  command->add_option("--from", quantize_.from,
                      "Integers are codes of this format (default: values)");
  command->add_option("--backend", quantize_.backend, "Where to compute (default: the best here)");
  add_rule(command, quantize_.rule);
  exclude(command, "--recipe",
          {"--block", "--scale-rule", "--eps", "--upper-bound", "--nonfinite", "--overflow"});
  exclude(command, "--transposed", {"--outputs"});
  refuse_json_beside(command, "OUT", quantize_.output);
  on_chosen(command, quantize_, run_quantize);
}

void command_line::add_dequantize() {
  CLI::App* command = add("dequantize", "Write the values of a quantized tensor");
  command
      ->add_option("IN", dequantize_.input,
                   "A file that quantize wrote, or FILE#codes_t and the like")
      ->required();
  command
      ->add_option("OUT", dequantize_.output,
                   "FILE.npy, FILE.safetensors, or - for standard output")
      ->required();
  command->add_option("--to", dequantize_.to, "fp32, fp16 or bf16")->capture_default_str();
  command->add_option("--block", dequantize_.block, "Tile (default: what IN says)");
  command->add_option("--backend", dequantize_.backend,
                      "Where to compute (default: the best here)");
  refuse_json_beside(command, "OUT", dequantize_.output);
  on_chosen(command, dequantize_, run_dequantize);
}

void command_line::add_recipes() {
  CLI::App* command = add("recipes", "List the quantization recipes that have a name");
  on_chosen(command, recipes_, run_recipes);
}

void command_line::add_diff() {
  CLI::App* command = add("diff", "Say why two quantizations of a tensor differ");
  command->add_option("A", diff_.first, "A file that quantize wrote")->required();
  command->add_option("B", diff_.second, "Another one of the same tensor")->required();
  command->add_option("--source", diff_.source,
                      "The tensor: FILE.npy, .npz, .safetensors or .gguf, FILE#TENSOR, or -");
  command->add_option("--from", diff_.from, "Its integers are codes of this format");
  need(
      command, {"--from"}, [this] { return !diff_.source.empty(); }, "--source");
  on_chosen(command, diff_, run_diff);
}

void command_line::add_tensor() {
  CLI::App* command =
      add("tensor", "Say which formats suit the tensors of files, and what is lost");
  command->add_flag("--ascii", view_.ascii, "Draw with ASCII characters");
  command
      ->add_option(
          "FILE", tensor_.files,
          "FILE.npy, .npz, .safetensors or .gguf, an index (.index.json), FILE#TENSOR, or -")
      ->required();
  const auto repeated = [&](const char* name, std::vector<std::string>& texts,
                            const char* description) {
    command->add_option(name, texts, description)->allow_extra_args(false)->take_all();
  };
  repeated("--tensor", tensor_.tensors, "Only this tensor, or those of a pattern such as '*.bias'");
  add_list(command, "--need", tensor_.need,
           "What a choice must keep: 30dB, 'underflow<1%' (both are the default)");
  repeated("--role", tensor_.roles,
           "PATTERN=ROLE: weights, activations, gradients, adam_m, adam_v or other");
  command->add_flag("--list", tensor_.list,
                    "A line for each tensor instead of the verdict, what loses most first");
  command->add_flag("--plain", tensor_.plain,
                    "--list for programs: columns separated by tabs, all digits, no heading");
  repeated("--details", tensor_.details, "Chart and formats of the tensors of this pattern");
  add_list(command, "--to", tensor_.to,
           "Formats, separated by commas (default: fp16,bf16,e4m3,e5m2; all with --json)");
  command->add_flag("--all-formats", tensor_.all_formats, "All formats");
  command->add_option("--scale", tensor_.scale,
                      "Loss scale 2^N of the elements before formats, in the detailed view");
  command->add_flag("--stats", tensor_.stats,
                    "Mean, percentiles, channels and scales instead of the verdict");
  command->add_flag("--quick", tensor_.quick,
                    "Only counts, extremes and means, as fast as the file can be read");
  add_list(command, "--fail-if", tensor_.fail_if,
           "Exit code 1 if: 'fp16.underflow>1%', 'nan>0', 'weights.bits>8', ...");
  command->add_flag("--recipes", tensor_.recipes, "What recipes would do instead of formats");
  command->add_option("--from", tensor_.from,
                      "Integers are codes of this format (default: values)");
  exclude(command, "--recipes",
          {"--to", "--all-formats", "--ascii", "--need", "--role", "--details", "--scale"});
  exclude(command, "--scale", {"--stats", "--quick", "--list", "--fail-if"});
  exclude(command, "--stats",
          {"--recipes", "--list", "--to", "--all-formats", "--ascii", "--need", "--role",
           "--details", "--fail-if"});
  exclude(command, "--quick",
          {"--stats", "--recipes", "--list", "--to", "--all-formats", "--ascii", "--need", "--role",
           "--details"});
  need(
      command, {"--plain"}, [this] { return tensor_.list; }, "--list");
  exclude(command, "--list",
          {"--json", "--recipes", "--details", "--to", "--all-formats", "--ascii"});
  exclude(command, "--to", {"--all-formats"});
  exclude(command, "--json", {"--ascii", "--details"});
  on_chosen(command, tensor_, run_tensor);
}

void command_line::add_scaler() {
  CLI::App* command = add("scaler", "Show what a loss-scaling policy makes of a trace");
  command->add_flag("--ascii", view_.ascii, "Draw with ASCII characters");
  command->add_option("--policy", scaler_.policy, names_of<samebits::scaling_policy>(" or "));
  command->add_option("--trace", scaler_.trace,
                      "CSV: step, nonfinite or amax, optional loss_nonfinite; - reads stdin");
  command->add_option("--generate", scaler_.generate, "A trace: " + scenario_help());
  command->add_option("--steps", scaler_.steps, "Steps to generate")->capture_default_str();
  command->add_option("--seed", scaler_.seed, "Of their random bits")->capture_default_str();
  command->add_option("--set", scaler_.set, "Settings of the policy, name=value")
      ->delimiter(',')
      ->take_all();
  command->add_flag("--plot", scaler_.plot, "Draw instead of writing CSV");
  command->add_option("--out", scaler_.out, "FILE.csv to write (default: standard output)");
  exclude(command, "--trace", {"--generate"});
  exclude(command, "--plot", {"--json"});
  need(
      command, {"--steps"}, [this] { return !scaler_.generate.empty(); }, "--generate");
  need(
      command, {"--seed"}, [this] { return is_random_scenario(scaler_.generate); },
      "--generate random or noisy");
  need(
      command, {"--trace", "--set", "--plot", "--json"}, [this] { return !scaler_.policy.empty(); },
      "--policy");
  need(
      command, {"--ascii"}, [this] { return scaler_.plot; }, "--plot");
  refuse(
      command, [this] { return scaler_.out == "-" && (scaler_.plot || view_.json); },
      "--out -: standard output has the drawing or the JSON already; name a file");
  on_chosen(command, scaler_, run_scaler);
}

void command_line::add_arith() {
  CLI::App* command = add("arith", "Compute with numbers of a format");
  command
      ->add_option("OP", arith_.op,
                   "add, sub, mul, div, sqrt, fma, rem, rint, min, max, min_num or max_num; or a "
                   "function, such as exp or gelu, with --rule")
      ->required();
  command
      ->add_option("A", arith_.operands,
                   "Operands: numbers; not for functions: FILE.npy, .npz, .safetensors or .gguf, "
                   "FILE#TENSOR, or -")
      ->required();
  command->add_option("--format", arith_.format,
                      "Format of the operands; required, but fp32 for functions");
  command->add_option("--rule", arith_.rule_of_function,
                      "Whose bits a function returns, such as cuda_13_0 or torch_2_11");
  command->add_option("--dest", arith_.dest, "Format of the result (default: that of --format)");
  command->add_option("--out", arith_.out, "Where results go: FILE.npy, FILE.safetensors or -");
  command->add_option("--flags", arith_.flags, "Where a byte of flags for each goes, the same");
  command->add_option("--from", arith_.from, "Integers of files are codes of this format");
  add_rule(command, arith_.rule);
  refuse(
      command, [this] { return !arith_.out.empty() && arith_.out == arith_.flags; },
      "--out and --flags contradict each other: one place for both; name another one");
  refuse_json_beside(command, "--out", arith_.out);
  refuse_json_beside(command, "--flags", arith_.flags);
  on_chosen(command, arith_, run_arith);
}

void command_line::add_matmul() {
  CLI::App* command = add("matmul", "Multiply matrices as a tensor core does");
  command
      ->add_option("A", matmul_.a,
                   "[M, K]: FILE.npy, .npz, .safetensors or .gguf, FILE#TENSOR, or -")
      ->required();
  command->add_option("B", matmul_.b, "[K, N], the same")->required();
  command->add_option("--format-a", matmul_.format_a, "Format that A is multiplied in")->required();
  command->add_option("--format-b", matmul_.format_b, "The same of B")->required();
  command->add_option("--from-a", matmul_.from_a, "A's integers are codes of this format");
  command->add_option("--from-b", matmul_.from_b, "The same of B");
  command->add_flag("--trans-b", matmul_.trans_b, "B is [N, K]");
  command->add_option("--scale-a", matmul_.scale_a, "Dequantization scales of A: a number or FILE");
  command->add_option("--scale-b", matmul_.scale_b, "The same of B");
  command->add_option("--unit", matmul_.unit, "Tensor core, see `fpinspect units`")->required();
  command
      ->add_option("--promote", matmul_.promote,
                   "Elements of K between promotions into fp32; 0: none")
      ->required();
  command->add_option("--against", matmul_.against, "exact: report the error");
  command->add_option("--out", matmul_.out, "Where D goes: FILE.npy, FILE.safetensors or -")
      ->required();
  command->add_option("--backend", matmul_.backend, "Where to compute (default: the best here)");
  refuse_json_beside(command, "--out", matmul_.out);
  on_chosen(command, matmul_, run_matmul);
}

void command_line::add_units() {
  CLI::App* command = add("units", "List the tensor cores that matmul computes like");
  on_chosen(command, units_, run_units);
}

void command_line::add_backends() {
  CLI::App* command = add("backends", "List the backends and what this machine can run");
  on_chosen(command, backends_, run_backends);
}

void command_line::add_verify() {
  CLI::App* command = add("verify", "Compare the backends with the reference, bit for bit");
  command->add_option("--backend", verify_.backend, "Only this one");
  command->add_flag("--exhaustive", verify_.exhaustive, "All 2^32 fp32 inputs by every rule");
  command->add_option("--threads", verify_.threads, "CPU threads (0: one per hardware thread)")
      ->capture_default_str();
  command->add_flag("--tensor-cores", verify_.tensor_cores,
                    "The GPU's tensor cores with their model instead");
  command->add_flag("--function-units", verify_.function_units,
                    "The GPU's function units with their model instead");
  command->add_flag("--exact-functions", verify_.exact_functions,
                    "Sums of all results of rule exact on the GPU instead");
  const auto option = [&](const char* name, std::string& text, const std::string& description) {
    command->add_option(name, text, description)->capture_default_str()->group("Tensor cores");
  };
  option("--unit", verify_.unit, "Only this unit's instructions, see `fpinspect units`");
  option("--instruction", verify_.instruction, "Only this one, such as wgmma_e4m3");
  option("--cases", verify_.cases, "Of each of 20 families; a case makes 128 results");
  option("--seed", verify_.seed, "Of the operands");
  option("--record", verify_.record, "FILE.txt to write some of the results to");
  option("--results", verify_.results, "Check a file that --record wrote, without a GPU");
  exclude(command, "--tensor-cores", {"--backend", "--exhaustive", "--threads"});
  exclude(command, "--function-units",
          {"--backend", "--exhaustive", "--threads", "--tensor-cores"});
  exclude(command, "--exact-functions",
          {"--backend", "--exhaustive", "--threads", "--tensor-cores", "--function-units"});
  need(
      command, {"--unit", "--instruction", "--cases", "--seed", "--record", "--results"},
      [this] { return verify_.tensor_cores; }, "--tensor-cores");
  exclude(command, "--results", {"--record", "--cases", "--seed"});
  refuse(
      command, [this] { return verify_.record == "-"; },
      "--record -: standard output has the report; name a file");
  on_chosen(command, verify_, run_verify);
}

}  // namespace fpinspect
