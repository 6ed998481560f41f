// fpinspect: the command line, and the exit code of everything that can go wrong.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/commands.hpp"
#include "fpinspect/error.hpp"
#include "fpinspect/options.hpp"
#include "fpinspect/output.hpp"
#include "fpinspect/scaler_trace.hpp"
#include "fpinspect/value_marks.hpp"
#include "samebits/error.hpp"
#include "samebits/version.hpp"
#include "tensor_file/error.hpp"

namespace fpinspect {
namespace {

/// The parser and what it fills. Subcommands write to `out` when run() is called.
class command_line {
 public:
  command_line() {
    app_.name("fpinspect");
    app_.require_subcommand(1);
    add_view(&app_);
    app_.set_version_flag("--version", "fpinspect " SAMEBITS_VERSION);
    app_.footer(
        "Numbers may be negative, decimal of any length, hexadecimal (0x1.8p3), inf, nan.\n"
        "Exit codes: 0 ok, 1 a check failed, 2 command line, 3 file, 4 backend.");
    add_formats();
    add_show();
    add_cast();
    add_convert();
    add_quantize();
    add_dequantize();
    add_recipes();
    add_diff();
    add_tensor();
    add_scaler();
    add_arith();
    add_matmul();
    add_units();
    add_backends();
    add_verify();
  }

  void run(int argc, char** argv, output& out) {
    std::vector<std::string> arguments = marked_arguments(argc, argv);
    check_subcommand(arguments);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    try {
      app_.parse(std::move(arguments));
    } catch (const CLI::CallForHelp&) {
      return out.write(app_.help());
    } catch (const CLI::CallForVersion&) {
      return out.write(app_.version() + "\n");
    }
    chosen_(out);
  }

 private:
  /// These may stand before and after the subcommand's name.
  void add_view(CLI::App* command) {
    command->add_flag("--json", view_.json, "Write JSON");
    command->add_option("--color", view_.color, "auto, always or never")->capture_default_str();
  }

  CLI::App* add(const char* name, const char* description) {
    CLI::App* command = app_.add_subcommand(name, description);
    add_view(command);
    return command;
  }

  /// CLI11 would only say that a subcommand is missing.
  void check_subcommand(const std::vector<std::string>& arguments) const {
    std::string names;
    for (const CLI::App* command : app_.get_subcommands({})) {
      if (!arguments.empty() && arguments.front() == command->get_name()) return;
      names += (names.empty() ? "" : ", ") + command->get_name();
    }
    if (arguments.empty()) throw usage_error("a subcommand is required: " + names);
    if (arguments.front().starts_with('-')) return;
    throw usage_error(unmarked_message(arguments.front()) +
                      " is not a subcommand; there are: " + names);
  }

  template <class Arguments>
  void on_chosen(CLI::App* command, Arguments& arguments,
                 void (*run_command)(const Arguments&, output&)) {
    command->callback([this, &arguments, run_command] {
      chosen_ = [this, &arguments, run_command](output& out) {
        arguments.view = view_;
        unmark(arguments);
        run_command(arguments, out);
      };
    });
  }

  static CLI::Option* add_list(CLI::App* command, const char* name, std::vector<std::string>& list,
                               const char* description) {
    return command->add_option(name, list, description)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->take_all();
  }

  static void add_rule(CLI::App* command, rule_options& rule) {
    const auto option = [&](const char* name, std::string& text, const char* description) {
      command->add_option(name, text, description)->capture_default_str()->group("Rule");
    };
    option("--round", rule.round,
           "nearest_even, nearest_away, toward_zero, upward, downward, to_odd or stochastic");
    option("--overflow", rule.overflow, "ieee, saturate or saturate_finite");
    option("--nan", rule.nan, "canonical or preserve_sign");
    option("--seed", rule.seed, "stochastic: key of the random bits, 64 bits");
    option("--stream", rule.stream, "stochastic: second half of their counter, 64 bits");
    option("--offset", rule.offset, "stochastic: index of the first element, 64 bits");
    option("--random-bits", rule.random_bits, "stochastic: random bits per element, 1 to 32");
  }

  void add_formats() {
    CLI::App* command = add("formats", "List the formats and their limits");
    on_chosen(command, formats_, run_formats);
  }

  void add_show() {
    CLI::App* command = add("show", "Show one value of a format");
    command->add_option("FORMAT", show_.format, "Name of the format")->required();
    command->add_option("VALUE|0xCODE", show_.value, "A number, or a code in hexadecimal")
        ->required();
    on_chosen(command, show_, run_show);
  }

  void add_cast() {
    CLI::App* command = add("cast", "Round numbers into formats");
    command->add_option("VALUE", cast_.values, "Numbers, or codes with --from")->required();
    add_list(command, "--to", cast_.to, "Formats, separated by commas (default: all)");
    command->add_option("--from", cast_.from, "VALUEs are codes (0x...) of this format");
    add_rule(command, cast_.rule);
    on_chosen(command, cast_, run_cast);
  }

  void add_convert() {
    CLI::App* command = add("convert", "Round a tensor into a format");
    command->add_option("IN", convert_.input, "FILE.npy or FILE.safetensors#TENSOR")->required();
    command->add_option("OUT", convert_.output, "The .npy file to write")->required();
    command->add_option("--to", convert_.to, "Format to round into")->required();
    command->add_option("--from", convert_.from, "Format of codes in unsigned integers");
    command->add_flag("--decode", convert_.decode, "Write binary32 values instead of codes");
    command->add_option("--backend", convert_.backend, "Where to compute (default: the best here)");
    add_rule(command, convert_.rule);
    on_chosen(command, convert_, run_convert);
  }

  void add_quantize() {
    CLI::App* command = add("quantize", "Write a tensor as 8-bit codes with a scale per tile");
    command->add_option("IN", quantize_.input, "FILE.npy or FILE.safetensors#TENSOR")->required();
    command->add_option("OUT", quantize_.output, "The .safetensors file to write")->required();
    command->add_option("--to", quantize_.to, "e4m3 or e5m2 (with --recipe: e4m3)");
    const auto option = [&](const char* name, std::string& text, const char* description) {
      command->add_option(name, text, description)->capture_default_str();
    };
    option("--block", quantize_.block, "Tile: 1xG, Gx1, GxG (G 16 to 256), row, column or tensor");
    option("--scale", quantize_.scale, "Maths of scales: te, div, rcp, pow2, ...");
    option("--eps", quantize_.eps, "Least amax of a tile");
    option("--upper-bound", quantize_.upper_bound, "Largest amax of a tile (default: none)");
    option("--nonfinite", quantize_.nonfinite, "te, skip_nonfinite, skip_nan or propagate");
    command->add_option("--recipe", quantize_.recipe, "A preset of `recipes` in their place");
    add_list(command, "--outputs", quantize_.outputs, "row, col, transposed (default: row)");
    command->add_flag("--transposed", quantize_.transposed, "Write codes_t and scales_t as well");
    command->add_option("--from", quantize_.from, "Format of codes in unsigned integers");
    command->add_option("--backend", quantize_.backend,
                        "Where to compute (default: the best here)");
    add_rule(command, quantize_.rule);
    on_chosen(command, quantize_, run_quantize);
  }

  void add_dequantize() {
    CLI::App* command = add("dequantize", "Write the values of a quantized tensor");
    command->add_option("IN", dequantize_.input, "A file that quantize wrote")->required();
    command->add_option("OUT", dequantize_.output, "The .npy file to write")->required();
    command->add_option("--to", dequantize_.to, "fp32, fp16 or bf16")->capture_default_str();
    command->add_option("--block", dequantize_.block, "Tile (default: what IN says)");
    command->add_option("--backend", dequantize_.backend,
                        "Where to compute (default: the best here)");
    on_chosen(command, dequantize_, run_dequantize);
  }

  void add_recipes() {
    CLI::App* command = add("recipes", "List the quantization recipes that have a name");
    on_chosen(command, recipes_, run_recipes);
  }

  void add_diff() {
    CLI::App* command = add("diff", "Say why two quantizations of a tensor differ");
    command->add_option("A", diff_.first, "A file that quantize wrote")->required();
    command->add_option("B", diff_.second, "Another one of the same tensor")->required();
    command->add_option("--source", diff_.source, "The tensor: FILE.npy or FILE#TENSOR");
    on_chosen(command, diff_, run_diff);
  }

  void add_tensor() {
    CLI::App* command = add("tensor", "Show what formats would do to the tensors of a file");
    command->add_flag("--ascii", view_.ascii, "Draw with ASCII characters");
    command->add_option("FILE", tensor_.file, "A .safetensors or .npy file")->required();
    command->add_option("--tensor", tensor_.tensors, "Only this tensor (may be repeated)")
        ->allow_extra_args(false)
        ->take_all();
    add_list(command, "--to", tensor_.to,
             "Formats, separated by commas (default: fp16,bf16,e4m3,e5m2; all with --json)");
    command->add_flag("--all-formats", tensor_.all_formats, "All formats");
    command->add_flag("--recipes", tensor_.recipes, "What recipes would do instead of formats");
    on_chosen(command, tensor_, run_tensor);
  }

  void add_scaler() {
    CLI::App* command = add("scaler", "Show what a loss-scaling policy makes of a trace");
    command->add_flag("--ascii", view_.ascii, "Draw with ASCII characters");
    command->add_option("--policy", scaler_.policy,
                        "native, torch, apex, apex_amp, megatron or deepspeed");
    command->add_option("--trace", scaler_.trace,
                        "CSV: step, nonfinite or amax, optional loss_nonfinite; - reads stdin");
    command->add_option("--generate", scaler_.generate, "A trace: " + scenario_help());
    command->add_option("--steps", scaler_.steps, "Steps to generate")->capture_default_str();
    command->add_option("--seed", scaler_.seed, "Of their random bits")->capture_default_str();
    command->add_option("--set", scaler_.set, "Settings of the policy, name=value")
        ->delimiter(',')
        ->take_all();
    command->add_flag("--plot", scaler_.plot, "Draw instead of writing CSV");
    command->add_option("--out", scaler_.out, "The CSV file to write (default: standard output)");
    on_chosen(command, scaler_, run_scaler);
  }

  void add_arith() {
    CLI::App* command = add("arith", "Compute with numbers of a format");
    command
        ->add_option("OP", arith_.op,
                     "add, sub, mul, div, sqrt, fma, rem, rint, min, max, min_num or max_num")
        ->required();
    command->add_option("A", arith_.operands, "Operands: numbers, or .npy files")->required();
    command->add_option("--format", arith_.format, "Format of the operands")->required();
    command->add_option("--dest", arith_.dest, "Format of the result (default: that of --format)");
    command->add_option("--out", arith_.out, "The .npy file to write results to, as codes");
    command->add_option("--flags", arith_.flags, "The .npy file to write a byte of flags each to");
    add_rule(command, arith_.rule);
    on_chosen(command, arith_, run_arith);
  }

  void add_matmul() {
    CLI::App* command = add("matmul", "Multiply matrices as a tensor core does");
    command->add_option("A", matmul_.a, "[M, K]: codes or values, FILE.npy or FILE#TENSOR")
        ->required();
    command->add_option("B", matmul_.b, "[K, N], the same")->required();
    command->add_option("--format-a", matmul_.format_a, "Format of A's codes")->required();
    command->add_option("--format-b", matmul_.format_b, "Format of B's codes")->required();
    command->add_flag("--trans-b", matmul_.trans_b, "B is [N, K]");
    command->add_option("--scale-a", matmul_.scale_a,
                        "Dequantization scales of A: a number or FILE");
    command->add_option("--scale-b", matmul_.scale_b, "The same of B");
    command->add_option("--unit", matmul_.unit, "Tensor core, see `fpinspect units`")->required();
    command
        ->add_option("--promote", matmul_.promote,
                     "Elements of K between promotions into fp32; 0: none")
        ->required();
    command->add_option("--against", matmul_.against, "exact: report the error");
    command->add_option("--out", matmul_.out, "The .npy file to write, <f4")->required();
    command->add_option("--backend", matmul_.backend, "Where to compute (default: the best here)");
    on_chosen(command, matmul_, run_matmul);
  }

  void add_units() {
    CLI::App* command = add("units", "List the tensor cores that matmul computes like");
    on_chosen(command, units_, run_units);
  }

  void add_backends() {
    CLI::App* command = add("backends", "List the backends and what this machine can run");
    on_chosen(command, backends_, run_backends);
  }

  void add_verify() {
    CLI::App* command = add("verify", "Compare the backends with the reference, bit for bit");
    command->add_option("--backend", verify_.backend, "Only this one");
    command->add_flag("--exhaustive", verify_.exhaustive, "All 2^32 fp32 inputs by every rule");
    command->add_option("--threads", verify_.threads, "CPU threads (0: one per hardware thread)")
        ->capture_default_str();
    command->add_flag("--tensor-cores", verify_.tensor_cores,
                      "The GPU's tensor cores with their model instead");
    const auto option = [&](const char* name, std::string& text, const char* description) {
      command->add_option(name, text, description)->capture_default_str()->group("Tensor cores");
    };
    option("--unit", verify_.unit, "Only this unit's instructions, see `fpinspect units`");
    option("--instruction", verify_.instruction, "Only this one, such as wgmma_e4m3");
    option("--cases", verify_.cases, "Of each of 20 families; a case makes 128 results");
    option("--seed", verify_.seed, "Of the operands");
    option("--record", verify_.record, "Write some of the results to this file");
    option("--results", verify_.results, "Judge a file that --record wrote, without a GPU");
    on_chosen(command, verify_, run_verify);
  }

  CLI::App app_{"What low-precision floating-point formats do to numbers and tensors"};
  view_options view_;
  formats_arguments formats_;
  show_arguments show_;
  cast_arguments cast_;
  convert_arguments convert_;
  quantize_arguments quantize_;
  dequantize_arguments dequantize_;
  recipes_arguments recipes_;
  diff_arguments diff_;
  tensor_arguments tensor_;
  scaler_arguments scaler_;
  arith_arguments arith_;
  matmul_arguments matmul_;
  units_arguments units_;
  backends_arguments backends_;
  verify_arguments verify_;
  std::function<void(output&)> chosen_;
};

int fail(exit_code code, const std::string& message) {
  static_cast<void>(std::fputs(("fpinspect: " + message + "\n").c_str(), stderr));
  return static_cast<int>(code);
}

int run(int argc, char** argv) {
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
  output out;
  try {
    command_line().run(argc, argv, out);
    out.flush();
    return static_cast<int>(exit_code::ok);
  } catch (const CLI::Error& error) {
    return fail(exit_code::command_line, unmarked_message(error.what()));
  } catch (const check_failed& error) {
    return fail(exit_code::check_failed, error.what());
  } catch (const usage_error& error) {
    return fail(exit_code::command_line, error.what());
  } catch (const samebits::tensor_file::file_error& error) {
    return fail(exit_code::file, error.what());
  } catch (const closed_pipe&) {
    return static_cast<int>(exit_code::file);
  } catch (const output_error& error) {
    return fail(exit_code::file, error.what());
  } catch (const backend_error& error) {
    return fail(exit_code::backend, error.what());
  } catch (const samebits::unsupported& error) {
    return fail(exit_code::backend, unmarked_message(error.what()));
  } catch (const samebits::cuda_error& error) {
    return fail(exit_code::backend, unmarked_message(error.what()));
  } catch (const std::bad_alloc&) {
    return fail(exit_code::file, "not enough memory");
  } catch (const std::exception& error) {
    return fail(exit_code::file, unmarked_message(error.what()));
  }
}

}  // namespace
}  // namespace fpinspect

int main(int argc, char** argv) { return fpinspect::run(argc, argv); }
