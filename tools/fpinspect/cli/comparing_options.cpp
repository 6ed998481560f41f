// Options of the subcommand that compares two files.
#include "fpinspect/cli/command_line.hpp"

namespace fpinspect {

void command_line::add_compare() {
  CLI::App* command = add("compare", "Measure how the values of two files differ");
  command
      ->add_option("A", compare_.a,
                   "The reference: FILE.npy, FILE.safetensors, an index or FILE#TENSOR")
      ->required();
  command->add_option("B", compare_.b, "The other one")->required();
  command->add_option("--original", compare_.original,
                      "Say whether A or B is closer to this file, the reference of both");
  command->add_option("--tensor", compare_.tensors, "Only this tensor, or those of a pattern")
      ->allow_extra_args(false)
      ->take_all();
  add_list(command, "--fail-if", compare_.fail_if,
           "Exit code 1 if a tensor has: 'max-ulp>1', 'sqnr<30dB', 'new-nan>0', ...");
  command->add_option("--from-a", compare_.from_a, "A's integers are codes of this format");
  command->add_option("--from-b", compare_.from_b, "The same of B");
  command->add_option("--from-original", compare_.from_original, "The same of the original");
  need(
      command, {"--from-original"}, [this] { return !compare_.original.empty(); }, "--original");
  on_chosen(command, compare_, run_compare);
}

}  // namespace fpinspect
