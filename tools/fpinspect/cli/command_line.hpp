// The parser and the arguments that it fills. Only the files of this folder that define
// its members include this header, because it includes CLI11.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/options.hpp"
#include "fpinspect/cli/text/value_marks.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/output.hpp"

namespace fpinspect {

/// Parses the command line and checks its options.
class command_line {
 public:
  command_line();

  void run(int argc, char** argv, output& out);

 private:
  /// A refused combination of options.
  struct option_rule {
    const CLI::App* command;
    std::function<bool()> broken;
    std::string message;
  };

  // command_line.cpp
  CLI::App* add(const char* name, const char* description);
  /// Adds the view options, which may stand before or after the subcommand's name.
  void add_view(CLI::App* command);
  /// Adds an option whose value is a comma-separated list; the option may be repeated.
  static CLI::Option* add_list(CLI::App* command, const char* name, std::vector<std::string>& list,
                               const char* description);
  void add_rule(CLI::App* command, rule_options& rule);
  void add_shell_files();

  /// Refuses a command line if `broken` returns true.
  void refuse(const CLI::App* command, std::function<bool()> broken, std::string message);
  /// Refuses the option together with any of the others.
  void exclude(const CLI::App* command, const std::string& option,
               std::initializer_list<std::string> others);
  /// Refuses the options unless `holds` returns true. `what` describes the condition: "--round
  /// stochastic".
  void need(const CLI::App* command, std::initializer_list<std::string> options,
            const std::function<bool()>& holds, const std::string& what);
  /// Refuses --json together with an output called "-": standard output takes only one of them.
  void refuse_json_beside(const CLI::App* command, const std::string& output,
                          const std::string& path);

  /// Whether an option was given, before or after the subcommand's name.
  [[nodiscard]] bool given(const CLI::App* command, const std::string& option) const;
  void parse(std::vector<std::string> arguments);
  [[nodiscard]] std::string subcommand_names() const;
  /// Checks for a subcommand. CLI11's own message would only say that one is missing.
  void check_subcommand(const std::vector<std::string>& arguments) const;
  void check_rules() const;
  /// Throws for the first argument that the parser did not use, if there is one.
  void refuse_unexpected() const;

  template <class Arguments>
  void on_chosen(CLI::App* command, Arguments& arguments,
                 void (*run_command)(const Arguments&, output&)) {
    command->callback([this, &arguments, run_command] {
      unmark(arguments);
      chosen_ = [this, &arguments, run_command](output& out) {
        arguments.view = view_;
        json_writer::write_bits(view_.json_bits);
        run_command(arguments, out);
      };
    });
  }

  // command_options.cpp
  void add_formats();
  void add_show();
  void add_cast();
  void add_convert();
  void add_quantize();
  void add_dequantize();
  void add_recipes();
  void add_diff();
  void add_compare();  // report_options.cpp
  void add_tensor();
  void add_report();    // report_options.cpp
  void add_explorer();  // report_options.cpp
  void add_scaler();
  void add_arith();
  void add_matmul();
  void add_units();
  void add_backends();
  void add_verify();

  // explore_options.cpp
  void add_range();
  void add_resolution();
  void add_memory();
  void add_demo();
  void add_update();
  void add_claims();
  void add_table();
  void add_advise();

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
  compare_arguments compare_;
  tensor_arguments tensor_;
  report_arguments report_;
  explorer_arguments explorer_;
  scaler_arguments scaler_;
  arith_arguments arith_;
  matmul_arguments matmul_;
  units_arguments units_;
  backends_arguments backends_;
  verify_arguments verify_;
  range_arguments range_;
  resolution_arguments resolution_;
  memory_arguments memory_;
  demo_arguments demo_;
  update_arguments update_;
  claims_arguments claims_;
  table_arguments table_;
  advise_arguments advise_;
  std::string shell_;
  std::vector<option_rule> rules_;
  std::function<void(output&)> chosen_;
};

}  // namespace fpinspect
