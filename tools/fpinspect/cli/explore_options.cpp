// The options of the subcommands that explore formats and advise, without reading files.
#include "fpinspect/cli/command_line.hpp"
#include "fpinspect/cli/named_argument.hpp"
#include "samebits/core/optimizer.hpp"

namespace fpinspect {

void command_line::add_range() {
  CLI::App* command = add("range", "Show the ranges of formats on one axis of decades");
  command->add_flag("--ascii", view_.ascii, "Draw with ASCII characters");
  command->add_option("FORMAT", range_.formats, "Formats (default: all)")->delimiter(',');
  exclude(command, "--json", {"--ascii"});
  on_chosen(command, range_, run_range);
}

void command_line::add_resolution() {
  CLI::App* command = add("resolution", "Show the values of a format in an interval [A, B)");
  command->add_option("FORMAT", resolution_.format, "Name of the format")->required();
  command->add_option("A", resolution_.from, "Start of the interval (default: 1)");
  command->add_option("B", resolution_.to, "End of the interval (default: 2)");
  add_list(command, "--at", resolution_.at, "Numbers whose neighbours and spacing are shown");
  command->add_option("--points", resolution_.points, "Number of points that are rounded")
      ->capture_default_str();
  command->add_flag("--ascii", view_.ascii, "Draw with ASCII characters");
  exclude(command, "--json", {"--ascii"});
  on_chosen(command, resolution_, run_resolution);
}

void command_line::add_memory() {
  CLI::App* command =
      add("memory", "Show the bytes a parameter of training schemes and optimizers");
  command->add_option("SCHEME", memory_.schemes, "Schemes (default: all)")->delimiter(',');
  command->add_option("--parameters", memory_.parameters, "Number of parameters, such as 7e9");
  add_list(command, "--activations", memory_.activations,
           "LAYERS,HIDDEN,HEADS,SEQUENCE,BATCH of a transformer");
  add_list(command, "--weights", memory_.weights,
           "In place of schemes: how optimizer_step() keeps weights, or all");
  add_list(command, "--states", memory_.states,
           "With --weights: formats of states (default: fp32)");
  add_list(command, "--gradients", memory_.gradients,
           "With --weights: formats of gradients (default: bf16)");
  command
      ->add_option("--rule", memory_.rule,
                   "With --weights: " + names_of<samebits::update_rule>(" or "))
      ->capture_default_str();
  command->add_option("--block", memory_.block, "With --weights: elements for each scale")
      ->capture_default_str();
  exclude(command, "--weights", {"SCHEME", "--activations"});
  const auto has_weights = [this] { return !memory_.weights.empty(); };
  need(command, {"--states", "--gradients", "--rule", "--block"}, has_weights, "--weights");
  on_chosen(command, memory_, run_memory);
}

void command_line::add_demo() {
  CLI::App* command = add("demo", "Show what formats do to a small computation");
  command
      ->add_option("NAME", demo_.name,
                   "tiny-mul, grad-once, repeated-sum, error-growth or layernorm-variance")
      ->required();
  on_chosen(command, demo_, run_demo);
}

void command_line::add_update() {
  CLI::App* command = add("update", "Show a weight under an optimizer, kept in several ways");
  const auto option = [&](const char* name, std::string& text, const std::string& description) {
    command->add_option(name, text, description)->capture_default_str();
  };
  option("--rule", update_.rule, names_of<samebits::update_rule>(" or "));
  option("--lr", update_.learning_rate, "Learning rate");
  option("--weight-decay", update_.weight_decay, "Weight decay");
  option("--beta1", update_.beta1, "Decay of the first state");
  option("--beta2", update_.beta2, "Decay of the second state");
  option("--epsilon", update_.epsilon, "Added to the root of the second state");
  option("--momentum", update_.momentum, "Momentum of sgd");
  option("--gradient", update_.gradient,
         "Gradient of every step, or a file with one gradient for each step");
  option("--start", update_.start, "Weight before the first step");
  command->add_option("--block-amax", update_.block_amax,
                      "Largest weight of its block (default: 3 times the start)");
  option("--steps", update_.steps, "Number of steps");
  command->add_option("--every", update_.every, "Show every N-th step (default: 1, 2, 5, 10, ...)");
  option("--seed", update_.seed, "Seed of stochastic rounding");
  add_list(command, "--modes", update_.modes, "Ways to keep weights, or all (the default)");
  const auto is_sgd = [this] { return update_.rule == "sgd"; };
  need(command, {"--momentum"}, is_sgd, "--rule sgd");
  const auto has_betas = [this] { return update_.rule != "sgd"; };
  need(command, {"--beta1", "--beta2", "--epsilon"}, has_betas, "another rule than sgd");
  on_chosen(command, update_, run_update);
}

void command_line::add_claims() {
  CLI::App* command = add("claims", "Refute statements of tutorials by computing them");
  command->add_option("NAME", claims_.names, "Names of statements (default: all)")->delimiter(',');
  on_chosen(command, claims_, run_claims);
}

void command_line::add_table() {
  CLI::App* command = add("table", "Compute an operation for all codes of an 8-bit format");
  command->add_option("FORMAT", table_.format, "e4m3 or e5m2")->required();
  command
      ->add_option("OP", table_.op,
                   "add, sub, mul, div, sqrt, rem, rint, min, max, min_num or max_num")
      ->required();
  command->add_flag("--csv", table_.csv, "Write the table: codes in hexadecimal");
  add_rule(command, table_.rule);
  exclude(command, "--json", {"--csv"});
  on_chosen(command, table_, run_table);
}

void command_line::add_advise() {
  CLI::App* command = add("advise", "Advise a precision for a GPU, a task and an aim");
  command
      ->add_option("--gpu", advise_.gpu,
                   "Generation (hopper), GPU (h100), compute capability (9.0) or other")
      ->required();
  const auto option = [&](const char* name, std::string& text, const std::string& description) {
    command->add_option(name, text, description)->capture_default_str();
  };
  option("--task", advise_.task, "training or inference");
  option("--aim", advise_.aim, "stable, fast or small");
  command->add_option("--parameters", advise_.parameters, "Number of parameters, such as 7e9");
  add_list(command, "--keep", advise_.keep, "Patterns of layers that stay unquantized");
  command->add_option("--map", advise_.map, "Precision map to write: FILE.json, or -");
  refuse_json_beside(command, "--map", advise_.map);
  on_chosen(command, advise_, run_advise);
}

}  // namespace fpinspect
