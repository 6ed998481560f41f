// Quantization of a list of tensors by one rule: on a GPU all of them in one launch.
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

/// A tensor of a list, what becomes of it, and what messages call it.
struct quantize_item {
  const_matrix_view in = {};
  quantize_outputs outputs = {};       ///< without statistics
  const_matrix_view multipliers = {};  ///< as quantize_options::multipliers, of this tensor
  std::string name = {};
};

/// An immutable list of tensors in one memory, host or device, with the one rule by which they are
/// quantized. It owns none of them: they must stay where they are while the list is used. Copies
/// share one description; that of tensors in device memory has a copy there, of some hundred bytes
/// a tensor and four bytes per 16384 elements.
///
/// Shapes and strides are mixed as they come, sizes of 0 too; the inputs have one format, so have
/// the codes, and so have the scales. Inputs may be shared or overlap.
class quantize_list {
 public:
  /// No tensors.
  quantize_list();
  /// With stochastic rounding tensor i draws from stream options.random.stream + i (mod 2^64), and
  /// has the pitch of its own columns unless one is given.
  ///
  /// Throws invalid_argument, naming position and name of the tensor, for what quantize() refuses;
  /// for statistics; for mixed formats or memory; for outputs that overlap another tensor; and for
  /// a workspace or multipliers among the options. unsupported for tensors in device memory where
  /// no CUDA backend can run.
  quantize_list(std::vector<quantize_item> items, const quantize_options& options);
  /// By a recipe. A delayed one needs the multipliers of every item, others take none; the scales
  /// are in its format. Throws invalid_argument besides where that is not so.
  /// A template, so that {.tile = ...} can only mean options.
  template <std::same_as<recipe> Rules>
  quantize_list(std::vector<quantize_item> items, const Rules& rules)
      : quantize_list(by_recipe(std::move(items), rules)) {}

  [[nodiscard]] std::size_t size() const;  ///< tensors
  [[nodiscard]] const quantize_item& operator[](std::size_t position) const;
  /// The tensor's name; where it was given none, "items[position]".
  [[nodiscard]] std::string name(std::size_t position) const;
  [[nodiscard]] std::uint64_t elements() const;  ///< of all tensors
  [[nodiscard]] memory_space space() const;      ///< host where there are none

 private:
  friend struct backends::access;

  static quantize_list by_recipe(std::vector<quantize_item> items, const recipe& rules);

  std::shared_ptr<const backends::quantize_list_data> data_;
};

/// Quantizes every tensor of the list: the bits of one quantize() a tensor, by any executor.
///
/// Host backends share the tensors among threads. Device backends enqueue one kernel, whatever the
/// number of tensors; up to three, and a workspace of 12 bytes a tile from the stream's memory
/// pool, for a scale per tensor or column and some others (docs/quantization.md). Such calls can be
/// captured into a CUDA graph, which must not outlive the list.
///
/// Thread-safe. Throws invalid_argument for a backend of another memory, an unknown backend name
/// and a negative thread count; unsupported for a backend that this machine lacks or that cannot
/// quantize.
void quantize(const quantize_list& list, const executor& where = {});

}  // namespace samebits
