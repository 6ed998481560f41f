// Quantizes a list of tensors by one rule; on a GPU in one launch.
//
//   std::vector<samebits::quantize_item> items;
//   for (layer& l : model.layers) {
//     items.push_back({.in = l.weight, .outputs = {.codes = l.codes, .scales = l.scales}});
//   }
//   const samebits::quantize_list weights(std::move(items),
//                                         samebits::find_recipe("MXFP8_TE")->rules);
//   ...
//   samebits::quantize(weights, samebits::on_stream(stream));  // after each step
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "samebits/backend.hpp"
#include "samebits/quantize.hpp"
#include "samebits/view.hpp"

namespace samebits {

struct recipe;  // samebits/recipe.hpp

namespace backends {
struct access;
struct quantize_list_data;
}  // namespace backends

/// A tensor of a list, its outputs, and its name in messages.
struct quantize_item {
  const_matrix_view in = {};
  quantize_outputs outputs = {};  ///< without statistics
  const_matrix_view inverse_scales =
      {};  ///< given inverse scales, as quantize_options::inverse_scales
  std::string name = {};
};

/// An immutable list of tensors in one memory, host or device, with the rule that quantizes all of
/// them.
///
/// The list does not own its tensors: they must stay where they are while the list is used. Copies
/// of a list share one description. For tensors in device memory a copy of the description lies
/// there: some hundred bytes per tensor, and four bytes per 16384 elements.
///
/// Shapes and strides may differ from tensor to tensor; sizes may be 0. All inputs have one format,
/// all codes have one format, and all scales have one format. Inputs may be shared or overlap.
class quantize_list {
 public:
  /// Constructs a list without tensors.
  quantize_list();
  /// Constructs a list with options. With stochastic rounding, tensor i uses the random stream
  /// options.random.stream + i (mod 2^64). Its pitch is its own column count unless the options set
  /// a pitch.
  ///
  /// @param items  tensors, outputs and names; all in one memory
  /// @param options  the rule, without workspace and inverse_scales
  /// @throws invalid_argument, naming position and name of the tensor, if:
  ///   - quantize() would refuse the tensor;
  ///   - statistics are requested;
  ///   - formats or memory are mixed;
  ///   - outputs overlap another tensor;
  ///   - the options have a workspace or inverse_scales.
  /// @throws unsupported for tensors in device memory if no CUDA backend can run.
  quantize_list(std::vector<quantize_item> items, const quantize_options& options);
  /// Constructs a list with a recipe. This constructor is a template so that {.tile = ...} can only
  /// mean options.
  ///
  /// @param items  tensors, outputs and names. A delayed recipe requires inverse_scales for every
  ///   item; other recipes allow none. The scales are in the recipe's format.
  /// @throws invalid_argument for items with other inverse_scales or scales.
  /// @throws as the constructor above does.
  template <std::same_as<recipe> Rules>
  quantize_list(std::vector<quantize_item> items, const Rules& rules)
      : quantize_list(by_recipe(std::move(items), rules)) {}

  [[nodiscard]] std::size_t size() const;  ///< number of tensors
  [[nodiscard]] const quantize_item& operator[](std::size_t position) const;
  /// Returns the tensor's name; for a tensor without a name, "items[position]".
  [[nodiscard]] std::string name(std::size_t position) const;
  [[nodiscard]] std::uint64_t elements() const;  ///< of all tensors
  [[nodiscard]] memory_space space() const;      ///< host for an empty list

 private:
  friend struct backends::access;

  static quantize_list by_recipe(std::vector<quantize_item> items, const recipe& rules);

  std::shared_ptr<const backends::quantize_list_data> data_;
};

/// Quantizes every tensor of the list: the bits of one quantize() per tensor, on any executor.
///
/// @param list  the tensors and their rule
/// @param where  backend, threads and stream
/// @throws invalid_argument for a backend of another memory, an unknown backend name or a negative
///   thread count.
/// @throws unsupported if this machine lacks the backend or if the backend cannot quantize.
/// @throws environment_error for device memory if the backend's self-test fails, or if the stream
///   is being captured and the self-test has not run on the device (samebits/self_test.hpp).
/// @note Thread-safe. Host backends share the tensors among threads.
/// @note Device backends enqueue one kernel, however many tensors the list holds. Some cases take
///   up to three kernels, and a workspace of 12 bytes per tile from the stream's memory pool: one
///   scale per tensor, one scale per column, and some others (docs/quantization.md).
/// @note The call can be captured into a CUDA graph, which must not outlive the list.
void quantize(const quantize_list& list, const executor& where = {});

}  // namespace samebits
