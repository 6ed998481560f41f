// Options by name: the tables of all option structs, and a function that sets an option from text.
//
//   samebits::convert_options options;
//   samebits::set_option(options, "rounding", "stochastic");
//   samebits::set_option(options, "seed", "7");
//   samebits::for_each_option(options, [](const auto& row, const auto&) {
//     std::cout << row.name << "\n";
//   });
//
// The C interface reads its options by these tables, and the names are those of Python's arguments.
// Members that are memory, such as a workspace, are no options. No other public header includes this
// one.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "samebits/array_arithmetic.hpp"
#include "samebits/attention.hpp"
#include "samebits/axis_reductions.hpp"
#include "samebits/convert.hpp"
#include "samebits/core/accumulator.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/loss_scaling.hpp"
#include "samebits/core/optimizer.hpp"
#include "samebits/core/option.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/core/table.hpp"
#include "samebits/cross_entropy.hpp"
#include "samebits/delayed_scaling.hpp"
#include "samebits/distributed.hpp"
#include "samebits/evaluate.hpp"
#include "samebits/matmul.hpp"
#include "samebits/optimizer.hpp"
#include "samebits/parameter_gradients.hpp"
#include "samebits/product_rule.hpp"
#include "samebits/quantize.hpp"
#include "samebits/recipe.hpp"
#include "samebits/reductions.hpp"
#include "samebits/rotary.hpp"
#include "samebits/row_functions.hpp"
#include "samebits/scale_layout.hpp"

namespace samebits {

// --- tables --------------------------------------------------------------------------------------

template <>
inline constexpr auto option_table<random_stream> = std::tuple(
    option("seed", &random_stream::seed), option("random_stream", &random_stream::stream),
    option("offset", &random_stream::offset), option("pitch", &random_stream::pitch),
    option("random_bits", &random_stream::bits));

namespace detail {
/// The options of a struct with the members of cast_rule and a random stream.
template <class Options>
inline constexpr auto rounding_options =
    std::tuple_cat(std::tuple(option("rounding", &Options::rounding),
                              option("overflow", &Options::overflow), option("nan", &Options::nan)),
                   options_in(&Options::random, option_table<random_stream>));
}  // namespace detail

template <>
inline constexpr auto option_table<convert_options> = detail::rounding_options<convert_options>;

template <>
inline constexpr auto option_table<compute_options> = detail::rounding_options<compute_options>;

template <>
inline constexpr auto option_table<evaluate_options> =
    std::tuple_cat(std::tuple(option("rule", &evaluate_options::rule),
                              option("parameter", &evaluate_options::parameter),
                              option("rounding", &evaluate_options::rounding),
                              option("overflow", &evaluate_options::overflow)),
                   options_in(&evaluate_options::random, option_table<random_stream>));

namespace detail {
/// The options that a recipe and quantize_options have in common.
template <class Options>
inline constexpr auto scaling_options = std::tuple(
    option("tile", &Options::tile), option("scale", &Options::scale), option("eps", &Options::eps),
    option("upper_bound", &Options::upper_bound), option("nonfinite", &Options::nonfinite),
    option("scale_overflow", &Options::scale_overflow));
}  // namespace detail

template <>
inline constexpr auto option_table<quantize_options> = std::tuple_cat(
    detail::scaling_options<quantize_options>, detail::rounding_options<quantize_options>);

template <>
inline constexpr auto option_table<recipe> = std::tuple_cat(
    detail::scaling_options<recipe>,
    std::tuple(option("overflow", &recipe::overflow), option("scale_format", &recipe::scale_format),
               option("source", &recipe::source), option("code_format", &recipe::code_format)));

template <>
inline constexpr auto option_table<delayed_settings> = std::tuple(
    option("to", &delayed_settings::to), option("margin", &delayed_settings::margin),
    option("choice", &delayed_settings::choice), option("zero_step", &delayed_settings::zero_step));

template <>
inline constexpr auto option_table<scale_layout_options> =
    std::tuple(option("padding", &scale_layout_options::padding),
               option("unpackable", &scale_layout_options::unpackable));

template <>
inline constexpr auto option_table<accumulator> = std::tuple(
    option("sum", &accumulator::kind), option("order", &accumulator::order),
    option("unit", &accumulator::unit), option("promotion", &accumulator::promotion),
    option("unit_result", &accumulator::result), option("products", &accumulator::products),
    option("fp32_as_tf32", &accumulator::fp32_as_tf32), option("slices", &accumulator::slices),
    option("slice_order", &accumulator::slice_order),
    option("slice_tile", &accumulator::slice_tile), option("slice_sum", &accumulator::slice_sum),
    option("slice_rounding", &accumulator::slice_rounding),
    option("residue_tile", &accumulator::residue_tile));

template <>
inline constexpr auto option_table<product_rule> =
    std::tuple_cat(options_in(&product_rule::sum, option_table<accumulator>),
                   std::tuple(option("c_enters", &product_rule::c_enters)));

template <>
inline constexpr auto option_table<matmul_options> =
    std::tuple(option("a_tile", &matmul_options::a_scales, &operand_scales::tile),
               option("b_tile", &matmul_options::b_scales, &operand_scales::tile),
               option("scale_order", &matmul_options::scale_order),
               option("c_enters", &matmul_options::c_enters));

template <>
inline constexpr auto option_table<dot_options> =
    std::tuple(option("precision", &dot_options::precision), option("order", &dot_options::order));

template <>
inline constexpr auto option_table<rotary_options> =
    std::tuple(option("base", &rotary_options::base), option("angle", &rotary_options::angle));

template <>
inline constexpr auto option_table<softmax_options> =
    std::tuple(option("rule", &softmax_options::rule), option("offset", &softmax_options::offset),
               option("num_warps", &softmax_options::num_warps),
               option("elements_per_thread", &softmax_options::elements_per_thread));

template <>
inline constexpr auto option_table<axis_reduction_options> = std::tuple(
    option("of", &axis_reduction_options::of), option("rule", &axis_reduction_options::rule),
    option("offset", &axis_reduction_options::offset),
    option("multiprocessors", &axis_reduction_options::multiprocessors));

template <>
inline constexpr auto option_table<attention_options> = std::tuple(
    option("kernel", &attention_options::kernel), option("causal", &attention_options::causal),
    option("scale", &attention_options::scale),
    option("multiprocessors", &attention_options::multiprocessors),
    option("splits", &attention_options::splits), option("dropout", &attention_options::dropout));

template <>
inline constexpr auto option_table<layer_norm_options> = std::tuple(
    option("rule", &layer_norm_options::rule), option("epsilon", &layer_norm_options::epsilon),
    option("offset", &layer_norm_options::offset));

template <>
inline constexpr auto option_table<norm_parameter_options> =
    std::tuple(option("rule", &norm_parameter_options::rule),
               option("multiprocessors", &norm_parameter_options::multiprocessors));

template <>
inline constexpr auto option_table<embedding_options> = std::tuple(
    option("rule", &embedding_options::rule), option("padding", &embedding_options::padding),
    option("deterministic", &embedding_options::deterministic));

template <>
inline constexpr auto option_table<cross_entropy_options> =
    std::tuple(option("rule", &cross_entropy_options::rule),
               option("reduction", &cross_entropy_options::reduction),
               option("log_probabilities", &cross_entropy_options::log_probabilities),
               option("upcast", &cross_entropy_options::upcast),
               option("label_smoothing", &cross_entropy_options::label_smoothing),
               option("ignore_index", &cross_entropy_options::ignore_index),
               option("offset", &cross_entropy_options::offset),
               option("multiprocessors", &cross_entropy_options::multiprocessors));

template <>
inline constexpr auto option_table<gradient_reduction> =
    std::tuple_cat(std::tuple(option("communication", &gradient_reduction::communication),
                              option("factor", &gradient_reduction::factor),
                              option("scale", &gradient_reduction::scale),
                              option("rounding", &gradient_reduction::rounding)),
                   options_in(&gradient_reduction::random, option_table<random_stream>),
                   std::tuple(option("elements_at_once", &gradient_reduction::elements_at_once)));

namespace detail {
/// The options of optimizer_settings except the learning rate, which schedules change.
inline constexpr auto update_options = std::tuple(
    option("rule", &optimizer_settings::rule), option("profile", &optimizer_settings::profile),
    option("beta1", &optimizer_settings::beta1), option("beta2", &optimizer_settings::beta2),
    option("eps", &optimizer_settings::eps),
    option("weight_decay", &optimizer_settings::weight_decay),
    option("momentum", &optimizer_settings::momentum),
    option("dampening", &optimizer_settings::dampening),
    option("nesterov", &optimizer_settings::nesterov));
}  // namespace detail

template <>
inline constexpr auto option_table<optimizer_settings> = std::tuple_cat(
    std::tuple(option("lr", &optimizer_settings::learning_rate)), detail::update_options);

template <>
inline constexpr auto option_table<store_options> = std::tuple(
    option("block", &store_options::block), option("first_index", &store_options::first_index),
    option("seed", &store_options::seed), option("random_stream", &store_options::stream),
    option("low_kind", &store_options::low_kind));

template <>
inline constexpr auto option_table<native_scaling> = std::tuple(
    option("init_exponent", &native_scaling::init_exponent),
    option("min_exponent", &native_scaling::min_exponent),
    option("max_exponent", &native_scaling::max_exponent),
    option("growth_interval", &native_scaling::growth_interval),
    option("growth_interval_max", &native_scaling::growth_interval_max),
    option("recovery_interval", &native_scaling::recovery_interval),
    option("proof", &native_scaling::proof), option("probe_window", &native_scaling::probe_window),
    option("hysteresis", &native_scaling::hysteresis),
    option("forgive_after", &native_scaling::forgive_after),
    option("isolated_cost", &native_scaling::isolated_cost),
    option("max_skipped_run", &native_scaling::max_skipped_run),
    option("on_minimum", &native_scaling::on_minimum), option("on_loss", &native_scaling::on_loss),
    option("growth_headroom", &native_scaling::growth_headroom),
    option("gradient_format", &native_scaling::gradient_format),
    option("headroom_bits", &native_scaling::headroom_bits),
    option("headroom_window", &native_scaling::headroom_window));

namespace detail {
/// The options that torch, apex and megatron have in common.
template <class Settings>
inline constexpr auto growth_options =
    std::tuple(option("growth_factor", &Settings::growth_factor),
               option("backoff_factor", &Settings::backoff_factor),
               option("growth_interval", &Settings::growth_interval));
template <class Settings>
inline constexpr option init_scale("init_scale", &Settings::init_scale);
template <class Settings>
inline constexpr option hysteresis("hysteresis", &Settings::hysteresis);
}  // namespace detail

template <>
inline constexpr auto option_table<torch_scaling> = std::tuple_cat(
    std::tuple(detail::init_scale<torch_scaling>), detail::growth_options<torch_scaling>);

template <>
inline constexpr auto option_table<apex_scaling> = std::tuple_cat(
    std::tuple(detail::init_scale<apex_scaling>), detail::growth_options<apex_scaling>,
    std::tuple(detail::hysteresis<apex_scaling>));

template <>
inline constexpr auto option_table<apex_amp_scaling> = std::tuple(
    detail::init_scale<apex_amp_scaling>, option("scale_window", &apex_amp_scaling::scale_window),
    option("min_loss_scale", &apex_amp_scaling::min_loss_scale),
    option("max_loss_scale", &apex_amp_scaling::max_loss_scale));

template <>
inline constexpr auto option_table<megatron_scaling> = std::tuple_cat(
    std::tuple(option("initial_scale", &megatron_scaling::initial_scale),
               option("min_scale", &megatron_scaling::min_scale)),
    detail::growth_options<megatron_scaling>, std::tuple(detail::hysteresis<megatron_scaling>));

template <>
inline constexpr auto option_table<deepspeed_scaling> = std::tuple(
    detail::init_scale<deepspeed_scaling>, option("scale_factor", &deepspeed_scaling::scale_factor),
    option("scale_window", &deepspeed_scaling::scale_window),
    option("min_scale", &deepspeed_scaling::min_scale),
    option("delayed_shift", &deepspeed_scaling::delayed_shift),
    option("consecutive_hysteresis", &deepspeed_scaling::consecutive_hysteresis),
    option("raise_error_at_min_scale", &deepspeed_scaling::raise_error_at_min_scale));

// --- text ----------------------------------------------------------------------------------------

namespace detail {

// read_option() sets a value from text, or throws invalid_argument: NAME: must be ..., got 'TEXT'.

void read_option(std::string_view name, std::string_view text, bool& value);
template <class Number>
concept option_number = std::same_as<Number, std::int32_t> || std::same_as<Number, std::uint32_t> ||
    std::same_as<Number, std::int64_t> || std::same_as<Number, std::uint64_t> ||
    std::same_as<Number, double>;
template <option_number Number>
void read_option(std::string_view name, std::string_view text, Number& value);
void read_option(std::string_view name, std::string_view text, float& value);
void read_option(std::string_view name, std::string_view text, format_id& value);
void read_option(std::string_view name, std::string_view text, tile_shape& value);
void read_option(std::string_view name, std::string_view text, const recipe_preset*& value);

/// Throws invalid_argument: NAME: must be EXPECTED, got 'TEXT'.
[[noreturn]] void refuse_value(std::string_view name, std::string_view text,
                               const std::string& expected);
/// Throws invalid_argument: 'NAME' is not WHAT; there are: NAMES.
[[noreturn]] void refuse_option(std::string_view name, const std::string& what,
                                const std::string& names);

/// Returns the names of rows, with commas between.
std::string names_of(const auto& rows) {
  std::string names;
  const auto add = [&](const auto& row) {
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  };
  std::apply([&](const auto&... row) { (add(row), ...); }, rows);
  return names;
}

template <listed_enum Enum>
void read_option(std::string_view name, std::string_view text, Enum& value) {
  const std::optional<Enum> found = find_enumerator<Enum>(text);
  if (!found) refuse_value(name, text, "one of " + names_of(table_of<Enum>));
  value = *found;
}
template <class Value>
void read_option(std::string_view name, std::string_view text, std::optional<Value>& value) {
  read_option(name, text, value.emplace());
}

template <class Options>
void set_option(Options& options, std::string_view name, std::string_view text,
                const std::string& what) {
  bool found = false;
  for_each_option(options, [&](const auto& row, auto& value) {
    if (row.name != name) return;
    found = true;
    read_option(name, text, value);
  });
  if (!found) refuse_option(name, what, names_of(option_table<Options>));
}

}  // namespace detail

/// Sets one option from text.
///
/// @param options  a struct with a table above
/// @param name  name of the option
/// @param text  a number (decimal or hexadecimal), true, false, the name of an enumerator or a
///   format, or ROWSxCOLS
/// @throws invalid_argument, listing the allowed names.
template <has_options Options>
void set_option(Options& options, std::string_view name, std::string_view text) {
  detail::set_option(options, name, text, "an option");
}

}  // namespace samebits
