// Value marks: pass command line values that look like options through the parser.
#include "fpinspect/cli/text/value_marks.hpp"

#include <cstddef>
#include <string>
#include <vector>

#include "fpinspect/cli/options.hpp"
#include "samebits/core/format.hpp"
#include "samebits/text.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

// CLI11 takes "-inf", "-.5" and "-#weight" for options and fails on "--" inside a subcommand. An argument that
// is certainly a value is therefore prefixed with this character, with which no option starts.
constexpr char value_mark = '\x01';

bool is_standard_input(const std::string& text) { return text.starts_with("-#"); }

bool is_negative_number(const std::string& text) {
  return text.starts_with('-') && samebits::parse(samebits::format_id::fp64, text).ok;
}

void unmark(std::string& text) {
  if (text.starts_with(value_mark)) text.erase(0, 1);
}
void unmark(std::vector<std::string>& texts) {
  for (std::string& text : texts) unmark(text);
}
void unmark(rule_options& rule) {
  for (std::string* text : {&rule.rounding, &rule.overflow, &rule.nan, &rule.seed, &rule.stream,
                            &rule.offset, &rule.random_bits}) {
    unmark(*text);
  }
}

}  // namespace

std::vector<std::string> marked_arguments(int argc, char** argv) {
  std::vector<std::string> arguments;
  bool values_only = false;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    if (!values_only && text == "--") {
      values_only = true;
    } else if (values_only || is_negative_number(text) || is_standard_input(text) ||
               text.starts_with(value_mark)) {
      arguments.push_back(value_mark + text);
    } else {
      arguments.push_back(text);
    }
  }
  return arguments;
}

void unmark(formats_arguments&) {}
void unmark(show_arguments& arguments) {
  unmark(arguments.format);
  unmark(arguments.value);
  unmark(arguments.rounding);
}
void unmark(cast_arguments& arguments) {
  unmark(arguments.rule);
  unmark(arguments.values);
  unmark(arguments.to);
  unmark(arguments.from);
}
void unmark(convert_arguments& arguments) {
  unmark(arguments.rule);
  unmark(arguments.input);
  unmark(arguments.output);
  unmark(arguments.to);
  unmark(arguments.from);
  unmark(arguments.backend);
}
void unmark(quantize_arguments& arguments) {
  unmark(arguments.rule);
  for (std::string* text :
       {&arguments.input, &arguments.output, &arguments.to, &arguments.from, &arguments.block,
        &arguments.scale, &arguments.eps, &arguments.upper_bound, &arguments.nonfinite,
        &arguments.backend, &arguments.recipe}) {
    unmark(*text);
  }
  unmark(arguments.outputs);
  unmark(arguments.fail_if);
}
void unmark(dequantize_arguments& arguments) {
  for (std::string* text :
       {&arguments.input, &arguments.output, &arguments.to, &arguments.block, &arguments.backend}) {
    unmark(*text);
  }
}
void unmark(recipes_arguments&) {}
void unmark(diff_arguments& arguments) {
  for (std::string* text :
       {&arguments.first, &arguments.second, &arguments.source, &arguments.from}) {
    unmark(*text);
  }
}
void unmark(compare_arguments& arguments) {
  for (std::string* text : {&arguments.a, &arguments.b, &arguments.original, &arguments.from_a,
                            &arguments.from_b, &arguments.from_original}) {
    unmark(*text);
  }
  unmark(arguments.tensors);
  unmark(arguments.fail_if);
}
void unmark(scaler_arguments& arguments) {
  unmark(arguments.set);
  for (std::string* text : {&arguments.policy, &arguments.trace, &arguments.generate,
                            &arguments.steps, &arguments.seed, &arguments.out}) {
    unmark(*text);
  }
}
void unmark(arith_arguments& arguments) {
  unmark(arguments.rule);
  unmark(arguments.operands);
  for (std::string* text : {&arguments.op, &arguments.format, &arguments.dest, &arguments.from,
                            &arguments.out, &arguments.flags}) {
    unmark(*text);
  }
}
void unmark(matmul_arguments& arguments) {
  for (std::string* text :
       {&arguments.a, &arguments.b, &arguments.format_a, &arguments.format_b, &arguments.from_a,
        &arguments.from_b, &arguments.scale_a, &arguments.scale_b, &arguments.unit,
        &arguments.promote, &arguments.against, &arguments.out, &arguments.backend}) {
    unmark(*text);
  }
}
void unmark(units_arguments&) {}
void unmark(backends_arguments&) {}
void unmark(verify_arguments& arguments) {
  unmark(arguments.backend);
  unmark(arguments.threads);
  unmark(arguments.unit);
  unmark(arguments.instruction);
  unmark(arguments.cases);
  unmark(arguments.seed);
  unmark(arguments.record);
  unmark(arguments.results);
}
void unmark(tensor_arguments& arguments) {
  unmark(arguments.files);
  unmark(arguments.tensors);
  unmark(arguments.need);
  unmark(arguments.roles);
  unmark(arguments.details);
  unmark(arguments.to);
  unmark(arguments.fail_if);
  unmark(arguments.from);
  unmark(arguments.scale);
}

void unmark(range_arguments& arguments) { unmark(arguments.formats); }
void unmark(resolution_arguments& arguments) {
  unmark(arguments.format);
  unmark(arguments.from);
  unmark(arguments.to);
  unmark(arguments.at);
  unmark(arguments.points);
}
void unmark(memory_arguments& arguments) {
  unmark(arguments.schemes);
  unmark(arguments.parameters);
  unmark(arguments.activations);
  unmark(arguments.weights);
  unmark(arguments.states);
  unmark(arguments.gradients);
  unmark(arguments.rule);
  unmark(arguments.block);
}
void unmark(demo_arguments& arguments) { unmark(arguments.name); }
void unmark(update_arguments& arguments) {
  for (std::string* text :
       {&arguments.rule, &arguments.learning_rate, &arguments.weight_decay, &arguments.beta1,
        &arguments.beta2, &arguments.epsilon, &arguments.momentum, &arguments.gradient,
        &arguments.start, &arguments.block_amax, &arguments.steps, &arguments.every,
        &arguments.seed}) {
    unmark(*text);
  }
  unmark(arguments.modes);
}
void unmark(claims_arguments& arguments) { unmark(arguments.names); }
void unmark(table_arguments& arguments) {
  unmark(arguments.rule);
  unmark(arguments.format);
  unmark(arguments.op);
}
void unmark(advise_arguments& arguments) {
  for (std::string* text :
       {&arguments.gpu, &arguments.task, &arguments.aim, &arguments.parameters, &arguments.map}) {
    unmark(*text);
  }
  unmark(arguments.keep);
}
void unmark(report_arguments& arguments) {
  for (auto* texts : {&arguments.files, &arguments.tensors, &arguments.need, &arguments.roles}) {
    unmark(*texts);
  }
  for (std::string* text :
       {&arguments.from, &arguments.loss_scale_trace, &arguments.out, &arguments.svg}) {
    unmark(*text);
  }
}
void unmark(explorer_arguments& arguments) { unmark(arguments.out); }

std::string unmarked_message(std::string text) {
  std::erase(text, value_mark);
  return samebits::tensor_file::escape_message(text);
}

}  // namespace fpinspect
