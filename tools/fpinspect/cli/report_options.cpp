// Options of the subcommands that compare files and write reports.
#include "fpinspect/cli/command_line.hpp"

namespace fpinspect {

void command_line::add_compare() {
  CLI::App* command = add("compare", "Measure how the values of two files differ");
  command
      ->add_option(
          "A", compare_.a,
          "The reference: FILE.npy, .npz, .safetensors or .gguf, an index, FILE#TENSOR, or -")
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

void command_line::add_report() {
  CLI::App* command = add("report", "Write the verdict on files as a page with pictures");
  command
      ->add_option(
          "FILE", report_.files,
          "FILE.npy, .npz, .safetensors or .gguf, an index (.index.json), FILE#TENSOR, or -")
      ->required();
  const auto repeated = [&](const char* name, std::vector<std::string>& texts,
                            const char* description) {
    command->add_option(name, texts, description)->allow_extra_args(false)->take_all();
  };
  command->add_option("-o,--out", report_.out, "FILE.html, or FILE.svg with --svg")->required();
  command->add_option(
      "--svg", report_.svg,
      "One picture: loss-scale, loss-scale-trace, resolution; of one tensor: exponents, "
      "amax, error");
  command->add_option("--loss-scale-trace", report_.loss_scale_trace,
                      "The loss scale of the training run: CSV with step, scale and applied");
  repeated("--tensor", report_.tensors, "Only this tensor, or those of a pattern such as '*.bias'");
  add_list(command, "--need", report_.need,
           "What a choice must keep: 30dB, 'underflow<1%' (both are the default)");
  repeated("--role", report_.roles,
           "PATTERN=ROLE: weights, activations, gradients, adam_m, adam_v or other");
  command->add_option("--from", report_.from,
                      "Integers are codes of this format (default: values)");
  refuse(
      command, [this] { return view_.json; },
      "--json: report writes a page; `fpinspect tensor --json` has the same figures");
  need(
      command, {"--svg"},
      [this] { return report_.svg != "loss-scale-trace" || !report_.loss_scale_trace.empty(); },
      "--loss-scale-trace");
  refuse(
      command,
      [this] {
        const bool other = !report_.svg.empty() && report_.svg != "loss-scale-trace";
        return other && !report_.loss_scale_trace.empty();
      },
      "--loss-scale-trace does nothing beside --svg of another picture; leave it out");
  on_chosen(command, report_, run_report);
}

void command_line::add_explorer() {
  CLI::App* command = add("explorer", "Write a page on which to try out numbers and their bits");
  command->add_option("-o,--out", explorer_.out, "FILE.html")->required();
  refuse(
      command, [this] { return view_.json; },
      "--json: explorer writes a page; `fpinspect show` and `cast` have JSON");
  on_chosen(command, explorer_, run_explorer);
}

}  // namespace fpinspect
