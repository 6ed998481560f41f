// Optimizer steps: one call updates the weights and states of a list of tensors.
//
//   // bf16 weights and gradients, fp32 master weights and states
//   using samebits::stored_format;
//   const samebits::optimizer_list list({{
//       .weights = {w.data(), stored_format::bf16_nearest},
//       .gradient = {g.data(), stored_format::bf16_nearest},
//       .master = {p.data(), stored_format::fp32},
//       .states = {{{m.data(), stored_format::fp32}, {v.data(), stored_format::fp32}}},
//       .count = std::int64_t(w.size()),
//       .name = "fc1.weight",
//   }});
//   const samebits::optimizer_settings adamw = {.learning_rate = 3e-4, .weight_decay = 0.1};
//   std::uint64_t applied_steps = 0;
//   for (const batch& part : parts) {
//     model.backward(model.forward(part));  // writes g
//     optimizer_step(list, {&adamw, 1}, {.applied_steps = ++applied_steps});
//   }
//
// With a loss scaler in device memory nothing waits for the host:
//
//   scaler.step(stream);
//   optimizer_step(list, groups, {.decision = scaler.decision()}, samebits::on_stream(stream));
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "samebits/backend.hpp"
#include "samebits/core/optimizer.hpp"
#include "samebits/core/step_report.hpp"
#include "samebits/view.hpp"

namespace samebits {

namespace backends {
struct access;
struct optimizer_data;
}  // namespace backends

/// A contiguous array of codes that a step reads and writes.
struct stored_array {
  void* codes = nullptr;
  stored_format format = stored_format::none;
  /// Formats with scales: one scale for each block; otherwise null. The scales of a new state are 1.
  float* scales = nullptr;
};

/// A contiguous array of codes that a step reads.
struct gradient_array {
  const void* codes = nullptr;
  /// fp32, bf16_nearest, fp16_nearest, e4m3_tensor or e5m2_tensor.
  stored_format format = stored_format::none;
  /// One factor of all elements, in the memory of the tensors; null: 1.
  const float* scale = nullptr;
};

/// One tensor of an optimizer: arrays of `count` elements each, in any order that is the same for
/// all arrays.
///
/// The step computes with the first of these weights that the tensor has:
/// - `master`, if there is one. The step then only writes `weights`.
/// - `weights` and `low` together, if there is a `low`. `weights` are bf16.
/// - `weights`.
///
/// Usual combinations:
///
///   weights          master       low    what it is
///   fp32                                 plain training
///   bf16_nearest                         small updates are lost
///   bf16_stochastic                      small updates are kept on average
///   bf16_nearest     fp32                master weights
///   bf16_nearest                  split  master weights, whose upper half are the weights
///   bf16_nearest                  kahan  weights with their rounding error
///   e4m3_scaled      fp32                FP8 weights of fp32 master weights
///   e4m3_scaled      fp16_scaled         FP8 weights of 16-bit master weights with scales
///
/// fp16 may stand for bf16 except beside `low`, e5m2 for e4m3, and a 16-bit format for e4m3_scaled.
struct optimizer_tensor {
  stored_array weights = {};
  gradient_array gradient = {};
  stored_array master = {};
  void* low = nullptr;  ///< 16-bit codes; see low_part
  low_part low_kind = low_part::none;
  /// First and second moments. The second are not fp16_nearest or fp16_stochastic, in which those of
  /// small gradients become 0.
  std::array<stored_array, 2> states = {};
  std::int64_t count = 0;         ///< in [0, 2^48]
  std::uint64_t first_index = 0;  ///< index of element 0 in the unsharded parameter, for shards
  std::uint32_t stream = 0;       ///< the parameter's number in random streams, below 2^24
  std::uint32_t group = 0;        ///< index of its settings
  std::uint32_t block = 128;      ///< elements per scale: 128 or 256
  std::string name = {};          ///< in messages
};

/// An immutable list of the tensors of an optimizer. All arrays lie in one memory, host or device.
///
/// The list does not own its arrays: they must stay where they are while the list is used. Copies
/// share one description. For tensors in device memory the description is an allocation there, so a
/// call that is captured into a CUDA graph needs a list that outlives the graph.
class optimizer_list {
 public:
  /// Constructs a list without tensors.
  optimizer_list();
  /// Constructs a list of tensors.
  ///
  /// @param tensors  arrays, sizes, groups
  /// @param space  the memory of all arrays
  /// @throws invalid_argument, naming position and name of the tensor, if:
  ///   - count is negative or above 2^48;
  ///   - an array that the tensor needs is null or misaligned for its codes;
  ///   - an array is given, and its format or low_kind is none;
  ///   - a format is not one that this array may have;
  ///   - the combination of weights, master and low is not one of the table above;
  ///   - block is neither 128 nor 256;
  ///   - first_index is not a multiple of `block`, and an array has scales;
  ///   - stream is not below 2^24;
  ///   - arrays overlap, within a tensor or between tensors. Gradients may overlap each other;
  ///   - an array lies in other memory than the first one.
  /// @throws unsupported for tensors in device memory if no CUDA backend can run.
  explicit optimizer_list(std::vector<optimizer_tensor> tensors,
                          memory_space space = memory_space::host);

  /// Returns the number of tensors.
  [[nodiscard]] std::size_t size() const;
  /// Returns the tensor at a position.
  [[nodiscard]] const optimizer_tensor& operator[](std::size_t position) const;
  /// Returns the number of elements of all tensors.
  [[nodiscard]] std::uint64_t elements() const;
  /// Returns the memory of the tensors.
  [[nodiscard]] memory_space space() const;

 private:
  friend struct backends::access;

  std::shared_ptr<const backends::optimizer_data> data_;
};

/// Requires hyper-parameters in the ranges that optimizer_settings states, a profile that the rule has,
/// and beta1 above 0.5 with torch_foreach and adamw or adam. optimizer_step() calls it for each group.
///
/// @throws invalid_argument, naming the member
void check(const optimizer_settings& settings);

/// Arguments of a step other than tensors and settings. Pointers are to the memory of the tensors.
struct step_input {
  /// Steps applied so far, this step included; >= 1.
  std::uint64_t applied_steps = 1;
  /// Factor of all gradients: 1 / scale, times the clip factor.
  float grad_mul = 1;
  /// A loss scaler's decision. If not null, its applied_steps and grad_mul are used, and a step that
  /// is not `applied` changes no byte. applied_steps is at least 1 if the step is `applied`.
  const step_report* decision = nullptr;
  /// One learning rate per group, which replaces that of the settings; null: those of the settings.
  /// Rates are finite and >= 0. Rates in device memory are not checked: other rates give
  /// unspecified results.
  const float* learning_rates = nullptr;
  /// Seed of the random bits of stochastic formats.
  std::uint64_t seed = 0;
};

/// Applies one step to all tensors of a list.
///
/// Results do not depend on the executor, on the thread count, or on how parameters are cut into
/// shards. Rule lamb needs whole parameters, because it uses their norms.
///
/// @param list  tensors in host or device memory
/// @param groups  settings; a tensor's `group` is an index into them
/// @param input  step count, gradient factor, decision, seed
/// @param where  backend, threads and stream
/// @throws invalid_argument before anything is written, if:
///   - check() refuses settings;
///   - a tensor's group has no settings, or the tensor lacks a state that the rule needs;
///   - a tensor's formats do not suit a torch profile (contract §12);
///   - applied_steps is 0 or grad_mul is NaN, and there is no decision;
///   - a decision in host memory is `applied` and has applied_steps 0;
///   - a learning rate in host memory is NaN, infinite or negative;
///   - the rule is lamb, and first_index of a tensor is not 0;
///   - threads is negative, or the backend is unknown or of another memory.
/// @throws unsupported for a backend that this machine lacks or that has no optimizer steps.
/// @throws environment_error as the operations of samebits/tensor_list.hpp do.
/// @note Device memory: enqueues and returns; can be captured into a CUDA graph.
void optimizer_step(const optimizer_list& list, std::span<const optimizer_settings> groups,
                    const step_input& input = {}, const executor& where = {});

/// Options of store() and load().
struct store_options {
  std::uint32_t block = 128;      ///< elements per scale: 128 or 256
  std::uint64_t first_index = 0;  ///< index of element 0 in the unsharded parameter, for shards
  std::uint64_t seed = 0;         ///< stochastic formats: step_input::seed
  std::uint64_t stream = 0;       ///< stochastic formats: see random_stream_number()
  void* low = nullptr;            ///< 16-bit codes beside codes in bf16_nearest; see low_part
  low_part low_kind = low_part::none;
};

/// Stores values as an optimizer step stores weights and states: codes, scales and low part have the
/// bits that a step writes for the same values. For example, master weights that begin as the weights:
///
///   store(view_of(weights), {codes.data(), stored_format::fp16_scaled, scales.data()});
///
/// @param values  elements in row-major order without gaps; fp32, bf16 or fp16
/// @param to  array of as many elements, in any format but none, e4m3_tensor and e5m2_tensor
/// @throws invalid_argument before anything is written, if:
///   - a view, format, block or low_kind is not one that is described here;
///   - an array that the call needs is null or misaligned for its codes, or arrays overlap;
///   - a `low` is given without low_kind, or low_kind without codes in bf16_nearest;
///   - first_index is not a multiple of `block`, and the array has scales;
///   - threads is negative, or the backend is unknown or of another memory.
/// @throws unsupported for a backend that this machine lacks or that has no stored values.
/// @throws environment_error as the operations of samebits/tensor_list.hpp do.
/// @note Device memory: enqueues and returns; can be captured into a CUDA graph.
void store(const const_matrix_view& values, const stored_array& to,
           const store_options& options = {}, const executor& where = {});
/// Writes the values of a stored array, which an optimizer step computes with. A NaN becomes the
/// canonical NaN.
///
/// @param from  array in the memory of `out`, as for store()
/// @param out  elements in row-major order without gaps; fp32, or bf16 or fp16, to which values are
///   rounded to nearest even
/// @throws as store() does.
/// @note Device memory: as store().
void load(const stored_array& from, const matrix_view& out, const store_options& options = {},
          const executor& where = {});

/// Settings and counters that a checkpoint of an optimizer holds beside the arrays.
struct optimizer_checkpoint {
  std::vector<optimizer_settings> groups = {};
  std::uint64_t applied_steps = 0;  ///< so far
  std::uint64_t seed = 0;           ///< step_input::seed
};

/// Returns a checkpoint as bytes: settings and counters, and of each tensor name, sizes, formats,
/// master weights, low part and states with their scales. Weights and gradients are not in it.
///
/// The bytes begin with a version, and do not depend on the memory of the tensors.
///
/// @param list  tensors in host or device memory
/// @throws invalid_argument if the host is not little-endian.
/// @note Device memory: waits for all work on the device.
std::vector<std::byte> save(const optimizer_list& list, const optimizer_checkpoint& checkpoint);
/// Restores the arrays of a list from the bytes of save(), and returns the rest. Steps continue with
/// the bits of no interruption, if the weights are restored too.
///
/// @param list  tensors of the same names, sizes and formats in the same order, in any memory
/// @throws invalid_argument, before anything is written, if save() did not write the bytes, if their
///   version is unknown, or if a tensor differs from the saved one (named).
/// @note Device memory: waits for all work on the device.
optimizer_checkpoint load_optimizer(const optimizer_list& list, std::span<const std::byte> bytes);

}  // namespace samebits
