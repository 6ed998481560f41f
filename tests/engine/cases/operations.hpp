// The array operations of the library, each as a property that holds on every executor.
//
// Everywhere the generators are those of the host's properties; they add what the kernels of a GPU
// ask for: dense and aligned memory, and shapes of several tiles.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "engine/core/problem.hpp"
#include "engine/core/target.hpp"
#include "samebits/core/format.hpp"
#include "samebits/recipe.hpp"

namespace samebits::support {

/// convert() between any formats, by any rule; of cuda-native what it has.
array_operation convert_operation(std::string_view backend);

/// compute(), and compute_with_flags() with the flags of all elements together and of each one. On
/// cuda-native only cases that it supports.
array_operation compute_operation(std::string_view backend);

/// amax(), counts(), sum(), sum_of_squares() and dot() in every precision and order.
array_operation reduction_operation();
/// Of so many elements that sums are joined on several levels; every step-th of 12 cases.
array_operation large_reductions(std::size_t step = 1);

/// Whether shapes occur that take the kernels of a GPU several tiles.
enum class matrix_sizes : std::uint8_t { any, small };

/// quantize(): any tiles, scale rules, policies, rounding, inverse_scales and subset of outputs.
array_operation quantize_operation(matrix_sizes sizes = matrix_sizes::any);

/// All presets but those whose scales come from earlier steps.
std::vector<const recipe_preset*> presets_of_current_scales();
/// quantize() by one of them.
array_operation recipe_operation(const recipe_preset& preset,
                                 matrix_sizes sizes = matrix_sizes::any);

/// dequantize() of any codes and scales.
array_operation dequantize_operation();

/// quantize_blocks(), and dequantize_blocks() of any codes and absmaxes.
array_operation codebook_operation();

/// quantize() of a list.
array_operation quantize_list_operation(matrix_sizes sizes = matrix_sizes::any);
/// Of no, one and 3000 small tensors.
array_operation long_quantize_lists();

/// An operation over tensor lists.
enum class list_call : std::uint8_t {
  inspect,
  l2norm,
  unscale,
  scale,
  clip,
  accumulate,
  axpby,
  cast
};
inline constexpr int list_call_count = 8;
std::string_view name(list_call which);
array_operation list_operation(list_call which);
/// On up to 10 000 tensors and on large ones. `many`: instead of 10 000.
array_operation large_lists(list_call which, std::size_t many = 10'000);
/// cast() of all codes of 16 and 8 bits, and of fp32 all upper halves, by every rule; every step-th
/// pair of formats and rule.
array_operation casts_of_every_code(std::size_t step = 1);

/// evaluate() and evaluate_gradient() by every rule, on matrices and on lists.
array_operation evaluate_operation();
/// Every function, rule, gradient, parameter and pair of formats that there is, on one matrix.
array_operation every_evaluation();
/// Every call that operands of a format have, by rule `exact` or by the others, on codes first,
/// first + step, ... `in_place`: over operands of the result's format.
array_operation evaluations_of_codes(format_id from, bool exact, std::int64_t count,
                                     std::uint32_t first, std::uint32_t step,
                                     bool in_place = false);

/// softmax, also of scores, log_softmax, and their gradients.
array_operation row_operation();
/// LayerNorm and RMSNorm, also behind a residual connection, and their gradients.
array_operation norm_operation();
/// The same of every width to 40, and of widths at which the order of the sums changes.
array_operation rows_of_every_width();
array_operation norms_of_every_width();

/// Gated and biased functions, rotary embeddings, embeddings, dropout, clipping to fake-quantized
/// numbers.
array_operation fused_operation();
/// Fused operators that quantize their result: gated functions, and norms.
array_operation gated_quantize_operation();
array_operation norm_quantize_operation();

/// Sums, means and norms over axes.
array_operation axis_operation();
/// Losses, gradients of parameters, and norms of lists; those that device memory has.
array_operation training_operation();
array_operation training_operation_on_device();
/// Attention forward and backward.
array_operation attention_operation();

/// rotary_table() of any positions, frequencies and layouts.
array_operation rotary_operation();
/// Each row by itself, at the opposite position, from which the row follows: cos is even, sin is odd.
std::unique_ptr<array_target> opposite_rows();

/// optimizer_step() of every rule, profile and format, with a decision, with learning rates.
array_operation optimizer_operation();
/// lamb of a tensor of 257 chunks, whose norms are sums over them.
array_operation large_optimizer_steps();

/// load() and then store() of an array of an optimizer.
array_operation store_operation();

/// reduce_gradients() over 1 to 8 ranks.
array_operation gradient_reduction_operation();

/// A scenario of a loss scaler: steps with gradients of their own.
struct scaler_scenario;
/// Takes the steps of a scenario on the site's memory; the fields of every report.
using scenario_runner =
    std::function<returned_values(const scaler_scenario& scenario, const call_site& site)>;

/// Steps of a device_loss_scaler: losses, decisions, clipping, and gradients multiplied. On host
/// memory inspect() and decide(); the runner takes them on device memory.
array_operation scaler_operation(scenario_runner on_device = {});

/// 400 steps by each policy.
array_operation long_scaler_operation(scenario_runner on_device = {});

/// Steps of a device_loss_scaler whose gradients are spread over 1 to 8 ranks. On host memory
/// sum_shards(), agree() and decide().
array_operation sharded_scaler_operation(scenario_runner on_device = {});
/// The same of long tensors, of 3000 tensors and of ranks without elements.
array_operation large_shards_operation(scenario_runner on_device = {});

}  // namespace samebits::support
