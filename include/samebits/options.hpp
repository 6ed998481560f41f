// Options by name: the tables of all option structs, and a function that sets an option from text.
//
//   samebits::convert_options options;
//   samebits::set_option(options, "rounding", "stochastic");
//   samebits::set_option(options, "seed", "7");
//   samebits::for_each_option(options, [](const auto& row, const auto&) {
//     std::cout << row.name << ": " << row.doc << "\n";
//   });
//
// The C interface reads its options by these tables, and the names are those of Python's arguments.
// Members that are memory, such as a workspace, are no options. No other public header includes this
// one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "samebits/array_arithmetic.hpp"
#include "samebits/convert.hpp"
#include "samebits/core/accumulator.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/loss_scaling.hpp"
#include "samebits/core/optimizer.hpp"
#include "samebits/core/option.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/core/table.hpp"
#include "samebits/delayed_scaling.hpp"
#include "samebits/distributed.hpp"
#include "samebits/evaluate.hpp"
#include "samebits/matmul.hpp"
#include "samebits/optimizer.hpp"
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
    option("seed", "seed of the random bits of stochastic rounding", &random_stream::seed),
    option("random_stream", "number of the random stream", &random_stream::stream),
    option("offset", "index of the first element in the random stream", &random_stream::offset),
    option("pitch", "elements from one row to the next in the random stream; default: the columns",
           &random_stream::pitch),
    option("random_bits", "random bits of each element, 1 to 32", &random_stream::bits));

namespace detail {
/// The options of a struct with the members of cast_rule and a random stream.
template <class Options>
inline constexpr auto rounding_options = std::tuple_cat(
    std::tuple(option("rounding", "rounding mode", &Options::rounding),
               option("overflow", "results beyond the largest finite number", &Options::overflow),
               option("nan", "code of a NaN result", &Options::nan)),
    options_in(&Options::random, option_table<random_stream>));
}  // namespace detail

template <>
inline constexpr auto option_table<convert_options> = detail::rounding_options<convert_options>;

template <>
inline constexpr auto option_table<compute_options> = detail::rounding_options<compute_options>;

template <>
inline constexpr auto option_table<evaluate_options> = std::tuple_cat(
    std::tuple(option("rule", "whose bits the call returns", &evaluate_options::rule),
               option("parameter", "exponent of pow, alpha of elu, slope of leaky_relu",
                      &evaluate_options::parameter),
               option("rounding", "rounding mode, by rule exact alone",
                      &evaluate_options::rounding),
               option("overflow", "results beyond the largest finite number, by rule exact alone",
                      &evaluate_options::overflow)),
    options_in(&evaluate_options::random, option_table<random_stream>));

namespace detail {
/// The options that a recipe and quantize_options have in common.
template <class Options>
inline constexpr auto scaling_options = std::tuple(
    option("tile", "elements that share a scale, ROWSxCOLS; 0: the whole extent", &Options::tile),
    option("scale", "scale rule", &Options::scale),
    option("eps", "lower bound of a tile's amax", &Options::eps),
    option("upper_bound", "upper bound of a tile's amax", &Options::upper_bound),
    option("nonfinite", "NaN and Inf in a tile's amax", &Options::nonfinite),
    option("scale_overflow", "replacement of an infinite inverse scale", &Options::scale_overflow));
}  // namespace detail

template <>
inline constexpr auto option_table<quantize_options> = std::tuple_cat(
    detail::scaling_options<quantize_options>, detail::rounding_options<quantize_options>);

template <>
inline constexpr auto option_table<recipe> = std::tuple_cat(
    detail::scaling_options<recipe>,
    std::tuple(option("overflow", "elements beyond the largest code", &recipe::overflow),
               option("scale_format", "format of the scales, fp32 or e8m0", &recipe::scale_format),
               option("source", "where the scales come from", &recipe::source)));

template <>
inline constexpr auto option_table<delayed_settings> =
    std::tuple(option("to", "format of the codes, e4m3 or e5m2", &delayed_settings::to),
               option("margin", "the largest code counts as 2^-margin of its value",
                      &delayed_settings::margin),
               option("choice", "which amax of the history decides", &delayed_settings::choice),
               option("zero_step", "a step whose amax is 0", &delayed_settings::zero_step));

template <>
inline constexpr auto option_table<scale_layout_options> = std::tuple(
    option("padding", "scales beyond the matrix", &scale_layout_options::padding),
    option("unpackable", "scales that a byte cannot hold", &scale_layout_options::unpackable));

template <>
inline constexpr auto option_table<accumulator> = std::tuple(
    option("sum", "kind of accumulation", &accumulator::kind),
    option("order", "order of the sums of ieee_fp32", &accumulator::order),
    option("unit", "tensor core", &accumulator::unit),
    option("promotion", "elements of K between promotions into fp32; 0: none",
           &accumulator::promotion),
    option("unit_result", "format of the tensor core's sums, fp32 or fp16", &accumulator::result),
    option("products", "products per instruction; 0: the widest instruction",
           &accumulator::products));

template <>
inline constexpr auto option_table<matmul_options> =
    std::tuple(option("a_tile", "elements of A that share a scale", &matmul_options::a_scales,
                      &operand_scales::tile),
               option("b_tile", "elements of B that share a scale", &matmul_options::b_scales,
                      &operand_scales::tile),
               option("scale_order", "order in which scales are applied; default: that of cuBLASLt",
                      &matmul_options::scale_order),
               option("c_enters", "step at which C is added", &matmul_options::c_enters));

template <>
inline constexpr auto option_table<dot_options> = std::tuple(
    option("precision", "format that products and sums are rounded to", &dot_options::precision),
    option("order", "order of the sums", &dot_options::order));

template <>
inline constexpr auto option_table<rotary_options> = std::tuple(
    option("base", "column i of n has the frequency base^(-i / n)", &rotary_options::base),
    option("angle", "the exact angle, or the angle rounded to fp32", &rotary_options::angle));

template <>
inline constexpr auto option_table<softmax_options> = std::tuple(
    option("rule", "whose bits the call returns", &softmax_options::rule),
    option("offset", "elements from a 16-byte boundary to the first one", &softmax_options::offset),
    option("num_warps", "warps of Triton's kernel", &softmax_options::num_warps),
    option("elements_per_thread", "elements that a thread of Triton's kernel loads; 0: 16 bytes",
           &softmax_options::elements_per_thread));

template <>
inline constexpr auto option_table<layer_norm_options> =
    std::tuple(option("rule", "whose bits the call returns", &layer_norm_options::rule),
               option("epsilon", "added to the variance", &layer_norm_options::epsilon),
               option("offset", "elements from a 16-byte boundary to the first one",
                      &layer_norm_options::offset));

template <>
inline constexpr auto option_table<gradient_reduction> = std::tuple_cat(
    std::tuple(option("communication", "format in which gradients are sent",
                      &gradient_reduction::communication),
               option("factor", "factor of the sum over all ranks", &gradient_reduction::factor),
               option("scale", "scale rule of e4m3 and e5m2", &gradient_reduction::scale),
               option("rounding", "rounding mode into the communication format",
                      &gradient_reduction::rounding)),
    options_in(&gradient_reduction::random, option_table<random_stream>),
    std::tuple(option("elements_at_once", "largest number of elements in one message",
                      &gradient_reduction::elements_at_once)));

namespace detail {
/// The options of optimizer_settings except the learning rate, which schedules change.
inline constexpr auto update_options =
    std::tuple(option("rule", "formula of a step", &optimizer_settings::rule),
               option("profile", "operations of the formula: whose bits a step returns",
                      &optimizer_settings::profile),
               option("beta1", "decay of the first state", &optimizer_settings::beta1),
               option("beta2", "decay of the second state", &optimizer_settings::beta2),
               option("eps", "added to the denominator", &optimizer_settings::eps),
               option("weight_decay", "weight decay", &optimizer_settings::weight_decay),
               option("momentum", "momentum of sgd", &optimizer_settings::momentum),
               option("dampening", "dampening of sgd's momentum", &optimizer_settings::dampening),
               option("nesterov", "Nesterov's momentum of sgd", &optimizer_settings::nesterov));
}  // namespace detail

template <>
inline constexpr auto option_table<optimizer_settings> =
    std::tuple_cat(std::tuple(option("lr", "learning rate", &optimizer_settings::learning_rate)),
                   detail::update_options);

template <>
inline constexpr auto option_table<store_options> = std::tuple(
    option("block", "elements that share a scale, 128 or 256", &store_options::block),
    option("first_index", "index of element 0 in the unsharded parameter",
           &store_options::first_index),
    option("seed", "seed of the stochastic formats", &store_options::seed),
    option("random_stream", "random stream of the stochastic formats", &store_options::stream),
    option("low_kind", "meaning of the 16 bits beside bf16 codes", &store_options::low_kind));

template <>
inline constexpr auto option_table<native_scaling> = std::tuple(
    option("init_exponent", "exponent of the first scale", &native_scaling::init_exponent),
    option("min_exponent", "lowest exponent", &native_scaling::min_exponent),
    option("max_exponent", "highest exponent", &native_scaling::max_exponent),
    option("growth_interval", "good steps before the scale grows",
           &native_scaling::growth_interval),
    option("growth_interval_max", "limit of the interval, which failed growths double",
           &native_scaling::growth_interval_max),
    option("recovery_interval", "good steps before the scale grows back",
           &native_scaling::recovery_interval),
    option("proof", "good steps after which a level is proven", &native_scaling::proof),
    option("probe_window", "steps in which a bad step undoes a growth",
           &native_scaling::probe_window),
    option("hysteresis", "bad steps that back off", &native_scaling::hysteresis),
    option("forgive_after", "good steps in a row that clear bad steps",
           &native_scaling::forgive_after),
    option("isolated_cost", "good steps that a bad step costs", &native_scaling::isolated_cost),
    option("max_skipped_run", "skipped steps in a row that end the run; 0: no limit",
           &native_scaling::max_skipped_run),
    option("on_minimum", "a bad step at the lowest exponent", &native_scaling::on_minimum),
    option("on_loss", "effect of a loss that is not finite", &native_scaling::on_loss),
    option("growth_headroom", "whether the amax of gradients decides on growth",
           &native_scaling::growth_headroom),
    option("gradient_format", "format in which scaled gradients overflow",
           &native_scaling::gradient_format),
    option("headroom_bits", "binades left free above recent gradients",
           &native_scaling::headroom_bits),
    option("headroom_window", "steps that count as recent", &native_scaling::headroom_window));

namespace detail {
/// The options that torch, apex and megatron have in common.
template <class Settings>
inline constexpr auto growth_options = std::tuple(
    option("growth_factor", "factor of the scale when it grows", &Settings::growth_factor),
    option("backoff_factor", "factor of the scale after bad steps", &Settings::backoff_factor),
    option("growth_interval", "good steps before the scale grows", &Settings::growth_interval));
template <class Settings>
inline constexpr option init_scale("init_scale", "the first scale", &Settings::init_scale);
template <class Settings>
inline constexpr option hysteresis("hysteresis", "bad steps that back off", &Settings::hysteresis);
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
    detail::init_scale<apex_amp_scaling>,
    option("scale_window", "good steps before the scale grows", &apex_amp_scaling::scale_window),
    option("min_loss_scale", "lowest scale", &apex_amp_scaling::min_loss_scale),
    option("max_loss_scale", "highest scale", &apex_amp_scaling::max_loss_scale));

template <>
inline constexpr auto option_table<megatron_scaling> = std::tuple_cat(
    std::tuple(option("initial_scale", "the first scale", &megatron_scaling::initial_scale),
               option("min_scale", "lowest scale", &megatron_scaling::min_scale)),
    detail::growth_options<megatron_scaling>, std::tuple(detail::hysteresis<megatron_scaling>));

template <>
inline constexpr auto option_table<deepspeed_scaling> = std::tuple(
    detail::init_scale<deepspeed_scaling>,
    option("scale_factor", "factor of growing and of backing off",
           &deepspeed_scaling::scale_factor),
    option("scale_window", "good steps before the scale grows", &deepspeed_scaling::scale_window),
    option("min_scale", "lowest scale", &deepspeed_scaling::min_scale),
    option("delayed_shift", "bad steps that back off", &deepspeed_scaling::delayed_shift),
    option("consecutive_hysteresis", "only bad steps in a row count",
           &deepspeed_scaling::consecutive_hysteresis),
    option("raise_error_at_min_scale", "a bad step at the lowest scale ends the run",
           &deepspeed_scaling::raise_error_at_min_scale));

// --- text ----------------------------------------------------------------------------------------

namespace detail {

// read_option() sets a value from text, or throws invalid_argument: NAME: must be ..., got 'TEXT'.

void read_option(std::string_view name, std::string_view text, bool& value);
void read_option(std::string_view name, std::string_view text, std::int32_t& value);
void read_option(std::string_view name, std::string_view text, std::uint32_t& value);
void read_option(std::string_view name, std::string_view text, std::int64_t& value);
void read_option(std::string_view name, std::string_view text, std::uint64_t& value);
void read_option(std::string_view name, std::string_view text, float& value);
void read_option(std::string_view name, std::string_view text, double& value);
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
