// Tensor plan: a list of tensors, described once, that is then worked on as a whole.
//
//   const samebits::tensor_plan gradients({{samebits::view_of(g.embedding), "embedding.weight"},
//                                          {samebits::view_of(g.scale), "norm.weight"}});  // fp16
//   const samebits::tensor_plan sums({{samebits::view_of(s.embedding), "embedding.weight"},
//                                     {samebits::view_of(s.scale), "norm.weight"}});       // fp32
//   samebits::loss_scaler scaler;
//   ...
//   for (const batch& part : parts) {
//     model.backward(scaler.scale(model.forward(part)));
//     samebits::accumulate(sums, gradients);  // samebits/plan_ops.hpp
//   }
//   const samebits::unscale_report seen = scaler.unscale(sums);
//   if (seen.first_bad >= 0) log(sums.name(seen.first_bad));
//   samebits::clip(sums, 1.0);  // by the norm of all of them together
//   scaler.step([&] { optimizer.step(); });
//   scaler.update();
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "samebits/backend.hpp"
#include "samebits/view.hpp"

namespace samebits {

namespace backends {
struct plan_data;
}

/// A tensor of a list: its elements as a matrix, what messages call it, and a number that the
/// caller gives those that belong together.
struct plan_tensor {
  matrix_view view = {};
  std::string name = {};
  std::uint32_t group = 0;
};

/// An immutable list of tensors that lie in one memory, host or device. It does not own them: they
/// must stay where they are while the plan is used. Copies share one description.
///
/// Elements are fp32, fp16, bf16, e4m3 or e5m2, mixed as they come, in any strides that a
/// matrix_view may have; sizes are 64-bit, and 0 is one. The operations in samebits/plan_ops.hpp
/// say which formats they take.
class tensor_plan {
 public:
  /// No tensors.
  tensor_plan();
  /// Throws invalid_argument, naming position and name of the tensor, for another format, negative
  /// sizes or strides, null data, elements of a tensor that share memory, tensors in different
  /// memory, two tensors that share an element, as tied weights do, and more than 2^32 - 1 tensors.
  /// Elements of one tensor may lie in the gaps of another. If very many tensors interleave so, the
  /// check may give up: invalid_argument then says that the check takes too long. Throws
  /// unsupported for tensors in device memory where no CUDA backend can run.
  explicit tensor_plan(std::vector<plan_tensor> tensors);
  /// The same of a vector, span or array of views, without names and groups.
  template <detail::contiguous Range>
  requires std::same_as<detail::element_of<const Range>, matrix_view>
  explicit tensor_plan(const Range& tensors) : tensor_plan(named(std::span(tensors))) {}

  /// Tensors.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] const plan_tensor& operator[](std::size_t position) const;
  /// The tensor's name; where it was given none, "tensors[position]".
  [[nodiscard]] std::string name(std::size_t position) const;
  /// Elements of all tensors.
  [[nodiscard]] std::uint64_t elements() const;
  /// Where the tensors lie; host where there are none.
  [[nodiscard]] memory_space space() const;

  /// The description as the backends read it.
  [[nodiscard]] const backends::plan_data& data() const { return *data_; }

 private:
  static std::vector<plan_tensor> named(std::span<const matrix_view> tensors);

  std::shared_ptr<const backends::plan_data> data_;
};

}  // namespace samebits
