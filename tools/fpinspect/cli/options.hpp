// The arguments of each subcommand as text: filled by the parser (command_line.hpp), interpreted by
// the subcommands.
#pragma once

#include <string>
#include <vector>

namespace fpinspect {

/// How results are displayed.
struct view_options {
  bool json = false;
  bool json_bits = false;
  bool ascii = false;
  std::string color = "auto";
};

/// A rounding rule, in the contract's terms.
struct rule_options {
  std::string rounding = "nearest_even";
  std::string overflow = "ieee";
  std::string nan = "canonical";
  std::string seed = "0";
  std::string stream = "0";
  std::string offset = "0";
  std::string random_bits = "32";
};

struct formats_arguments {
  view_options view;
};

struct show_arguments {
  view_options view;
  std::string format;
  std::string value;
  std::vector<std::string> rounding;
};

struct cast_arguments {
  view_options view;
  rule_options rule;
  std::vector<std::string> values;
  std::vector<std::string> to;
  std::string from;
};

struct convert_arguments {
  view_options view;
  rule_options rule;
  std::string input;
  std::string output;
  std::string to;
  std::string from;
  std::string backend;
  bool decode = false;
};

struct quantize_arguments {
  view_options view;
  rule_options rule{.overflow = "saturate"};
  std::string input;
  std::string output;
  std::string to;
  std::string from;
  std::string block = "1x128";
  std::string scale = "te";
  std::string eps = "0";
  std::string upper_bound;
  std::string nonfinite = "te";
  std::string backend;
  std::string recipe;
  std::vector<std::string> outputs;
  std::vector<std::string> fail_if;
  bool transposed = false;
};

struct dequantize_arguments {
  view_options view;
  std::string input;
  std::string output;
  std::string to = "fp32";
  std::string block;
  std::string backend;
};

struct scaler_arguments {
  view_options view;
  std::string policy;
  std::string trace;
  std::string generate;
  std::string steps = "40000";
  std::string seed = "0";
  std::vector<std::string> set;
  std::string out;
  bool plot = false;
};

struct arith_arguments {
  view_options view;
  rule_options rule;
  std::string op;
  std::vector<std::string> operands;
  std::string format;
  std::string rule_of_function;  ///< whose bits a function returns
  std::string dest;
  std::string from;
  std::string out;
  std::string flags;
};

struct matmul_arguments {
  view_options view;
  std::string a;
  std::string b;
  std::string format_a;
  std::string format_b;
  std::string from_a;
  std::string from_b;
  bool trans_b = false;
  std::string scale_a;
  std::string scale_b;
  std::string unit;
  std::string promote;
  std::string against;
  std::string out;
  std::string backend;
};

struct units_arguments {
  view_options view;
};

struct backends_arguments {
  view_options view;
};

struct verify_arguments {
  view_options view;
  std::string backend;
  std::string threads = "0";
  bool exhaustive = false;
  bool exact_functions = false;
  bool function_units = false;
  bool tensor_cores = false;
  // The following members are used only with tensor_cores.
  std::string unit;
  std::string instruction;
  std::string cases = "8192";
  std::string seed = "0";
  std::string record;   ///< file to write
  std::string results;  ///< file to read instead of running on a GPU
};

struct tensor_arguments {
  view_options view;
  std::vector<std::string> files;
  std::vector<std::string> tensors;
  std::vector<std::string> need;
  std::vector<std::string> roles;
  std::vector<std::string> details;
  std::vector<std::string> to;
  std::vector<std::string> fail_if;
  std::string from;
  std::string scale;
  bool all_formats = false;
  bool list = false;
  bool plain = false;
  bool stats = false;
  bool quick = false;
  bool recipes = false;
};

struct recipes_arguments {
  view_options view;
};

struct diff_arguments {
  view_options view;
  std::string first;
  std::string second;
  std::string source;
  std::string from;
};

struct range_arguments {
  view_options view;
  std::vector<std::string> formats;
};

struct resolution_arguments {
  view_options view;
  std::string format;
  std::string from;
  std::string to;
  std::vector<std::string> at;
  std::string points = "10000";
};

struct memory_arguments {
  view_options view;
  std::vector<std::string> schemes;
  std::string parameters;
  std::vector<std::string> activations;
  std::vector<std::string> weights;
  // The following members are used only with weights.
  std::vector<std::string> states = {"fp32"};
  std::vector<std::string> gradients = {"bf16"};
  std::string rule = "adamw";
  std::string block = "128";
};

struct demo_arguments {
  view_options view;
  std::string name;
};

struct update_arguments {
  view_options view;
  std::string rule = "adamw";
  std::string learning_rate = "1e-4";
  std::string weight_decay = "0";
  std::string beta1 = "0.9";
  std::string beta2 = "0.999";
  std::string epsilon = "1e-8";
  std::string momentum = "0";
  std::string gradient = "0.01";
  std::string start = "1";
  std::string block_amax;
  std::string steps = "1000";
  std::string every;
  std::string seed = "0";
  std::vector<std::string> modes;
};

struct claims_arguments {
  view_options view;
  std::vector<std::string> names;
};

struct table_arguments {
  view_options view;
  rule_options rule;
  std::string format;
  std::string op;
  bool csv = false;
};

struct advise_arguments {
  view_options view;
  std::string gpu;
  std::string task = "training";
  std::string aim = "stable";
  std::string parameters;
  std::vector<std::string> keep;
  std::string map;
};

struct compare_arguments {
  view_options view;
  std::string a;
  std::string b;
  std::string original;
  std::vector<std::string> tensors;
  std::vector<std::string> fail_if;
  std::string from_a;
  std::string from_b;
  std::string from_original;
};

struct report_arguments {
  view_options view;
  std::vector<std::string> files;
  std::vector<std::string> tensors;
  std::vector<std::string> need;
  std::vector<std::string> roles;
  std::string from;
  std::string loss_scale_trace;
  std::string out;
  std::string svg;
};

struct explorer_arguments {
  view_options view;
  std::string out;
};

}  // namespace fpinspect
