// Tensor lists: a list describes its tensors once, and each operation works on all of them in one
// call.
//
//   const samebits::tensor_list gradients({{samebits::view_of(g.embedding), "embedding.weight"},
//                                          {samebits::view_of(g.scale), "norm.weight"}});  // fp16
//   const samebits::tensor_list sums({{samebits::view_of(s.embedding), "embedding.weight"},
//                                     {samebits::view_of(s.scale), "norm.weight"}});       // fp32
//   samebits::loss_scaler scaler;
//   ...
//   for (const batch& part : parts) {
//     model.backward(scaler.scale(model.forward(part)));
//     samebits::accumulate(sums, gradients);
//   }
//   const samebits::unscale_report seen = scaler.unscale(sums);
//   if (seen.first_bad >= 0) log(sums.name(seen.first_bad));
//   samebits::clip(sums, 1.0);  // by the norm of all tensors together
//   scaler.step([&] { optimizer.step(); });
//   scaler.update();
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "numerics/tensor_list/inspect.hpp"
#include "samebits/backend.hpp"
#include "samebits/convert.hpp"
#include "samebits/core/loss_scaling.hpp"
#include "samebits/core/table.hpp"
#include "samebits/view.hpp"

namespace samebits {

namespace backends {
struct access;
struct list_data;
}  // namespace backends

/// A tensor of a list: its elements as a matrix, its name in messages, and a group number. The
/// caller gives tensors that belong together the same group number.
struct list_tensor {
  matrix_view view = {};
  std::string name = {};
  std::uint32_t group = 0;
};

/// An immutable list of tensors that lie in one memory, host or device.
///
/// The list does not own its tensors: they must stay where they are while the list is used. Copies
/// of a list share one description.
///
/// Elements are fp32, fp16, bf16, e4m3 or e5m2. The formats of a list may differ from tensor to
/// tensor. A tensor may have any strides that a matrix_view may have, and any 64-bit size, 0
/// included. Each operation below states its formats.
///
/// A function with a tensor_list parameter also accepts one view, several views in braces, or a
/// range of views. Each such call describes its tensors anew. The description of tensors in device
/// memory is an allocation there. Therefore a call that is captured into a CUDA graph needs a list
/// that outlives the call.
class tensor_list {
 public:
  /// Constructs a list without tensors.
  tensor_list();
  /// Constructs a list of tensors.
  ///
  /// @param tensors  views, names and groups; all views in one memory
  /// @throws invalid_argument, naming position and name of the tensor, if:
  ///   - the format is not one of the five above;
  ///   - a size or stride is negative, or data is null;
  ///   - elements of a tensor share memory;
  ///   - tensors lie in different memory;
  ///   - two tensors share an element, as tied weights do;
  ///   - there are more than 2^32 - 1 tensors;
  ///   - the check for shared elements takes too long. Elements of one tensor may lie in the gaps
  ///     of another; if very many tensors interleave like this, the check may give up.
  /// @throws unsupported for tensors in device memory if no CUDA backend can run.
  explicit tensor_list(std::vector<list_tensor> tensors);
  // NOLINTBEGIN(google-explicit-constructor): callers write the views alone
  /// Constructs a list of one tensor without a name, as in scaler.unscale(view_of(g)). Throws as
  /// the constructor above.
  tensor_list(const matrix_view& tensor) : data_(describe(std::span(&tensor, 1))) {}
  /// Constructs a list of tensors without names: scaler.unscale({view_of(weights), view_of(bias)}).
  tensor_list(std::initializer_list<matrix_view> tensors)
      : data_(describe(std::span(tensors.begin(), tensors.size()))) {}
  /// Constructs a list of tensors without names from a vector, span or array of views.
  template <detail::contiguous Range>
  requires std::same_as<detail::element_of<const Range>, matrix_view> tensor_list(
      const Range& tensors)
      : data_(describe(std::span(tensors))) {}
  // NOLINTEND(google-explicit-constructor)

  /// Returns the number of tensors.
  [[nodiscard]] std::size_t size() const;
  /// Returns the tensor at a position.
  [[nodiscard]] const list_tensor& operator[](std::size_t position) const;
  /// Returns the tensor's name; for a tensor without a name, "tensors[position]".
  [[nodiscard]] std::string name(std::size_t position) const;
  /// Returns the number of elements of all tensors.
  [[nodiscard]] std::uint64_t elements() const;
  /// Returns the memory of the tensors; host for an empty list.
  [[nodiscard]] memory_space space() const;

 private:
  friend struct backends::access;

  static std::shared_ptr<const backends::list_data> describe(std::span<const matrix_view> tensors);

  std::shared_ptr<const backends::list_data> data_;
};

// Operations: each call works on every tensor of a list.
//
// Results do not depend on the executor, the thread count, the strides or the alignment. Every
// operation is thread-safe. It allocates some bytes per tensor and per 4096 elements.
//
// Every operation throws before anything is written:
// - invalid_argument, naming the list and the tensor, for a format, shape or number that the
//   operation's description does not allow.
// - invalid_argument for a negative thread count, an unknown backend name, or a backend of another
//   memory.
// - unsupported for a backend that this machine lacks or that has no list operations.
// - environment_error for device memory if the backend's self-test fails, or if the stream is being
//   captured and the self-test has not run on the device (samebits/self_test.hpp).
//
// Arithmetic: each step in binary32 or binary64 is one operation rounded to nearest even, in the
// order written. A NaN is the canonical NaN (contract §2, §6). Elements of a format other than fp32
// are widened, which is exact. A result is rounded once more into its tensor's own format, to
// nearest even with overflow::ieee.
//
// Device memory: calls that return a report wait for the stream and allocate workspace from its
// memory pool. All other calls enqueue and return. They can be captured into a CUDA graph, which
// must not outlive the list. No list may be destroyed during a capture.

/// Counts of inspect().
enum class inspect_counts : std::uint8_t {
  nonfinite,     ///< NaN and Inf
  distribution,  ///< NaN, Inf, zeros, subnormals and exponents
};
template <>
inline constexpr auto table_of<inspect_counts> =
    enum_table<inspect_counts::distribution>({"nonfinite", "distribution"});

/// Options of inspect().
struct inspect_options {
  inspect_counts counts = inspect_counts::nonfinite;
};

/// Statistics of one tensor or of all tensors.
struct tensor_statistics {
  std::uint64_t elements = 0;
  std::uint64_t nan = 0;         ///< elements that are NaN
  std::uint64_t inf = 0;         ///< elements that are infinite
  std::uint64_t zeros = 0;       ///< of either sign; 0 without inspect_counts::distribution
  std::uint64_t subnormals = 0;  ///< in their own format; 0 without inspect_counts::distribution
  /// The max magnitude (contract §6) as binary32 bits; 7FFFFFFF if an element is NaN.
  std::uint32_t amax_bits = 0;
  /// The sum of RN(x * x) in binary64 over the tree of contract §6. Every element is an input, so
  /// the sum is Inf or NaN if elements are. In the total, the inputs are the sums of the tensors;
  /// an empty tensor's +0 is an input too.
  double squares = 0;

  /// Returns the L2 norm: RN(sqrt(squares)) in binary64.
  [[nodiscard]] double norm() const {
    return std::bit_cast<double>(numerics::norm_of(std::bit_cast<std::uint64_t>(squares)));
  }
  /// Compares all bits: a NaN equals itself.
  friend constexpr bool operator==(const tensor_statistics& a, const tensor_statistics& b) {
    return a.elements == b.elements && a.nan == b.nan && a.inf == b.inf && a.zeros == b.zeros &&
           a.subnormals == b.subnormals && a.amax_bits == b.amax_bits &&
           std::bit_cast<std::uint64_t>(a.squares) == std::bit_cast<std::uint64_t>(b.squares);
  }
};

/// Report of inspect().
struct inspect_report {
  tensor_statistics total = {};
  std::vector<tensor_statistics> tensors = {};  ///< by position
  std::int64_t first_bad = -1;  ///< position of the first tensor with Inf or NaN, or -1
  /// Histogram over all tensors: exponents[f] counts elements whose binary32 value has exponent
  /// field f. Zeros and binary32 subnormals are at 0, [2^(f - 127), 2^(f - 126)) at f = 1 .. 254,
  /// Inf and NaN at 255. All 0 without inspect_counts::distribution.
  std::array<std::uint64_t, numerics::exponent_buckets> exponents = {};

  /// Returns the observation for loss_scaler::observe(), if the list holds scaled gradients.
  [[nodiscard]] step_observation observation() const {
    return {.nonfinite = first_bad >= 0, .amax = total.amax_bits};
  }
  friend constexpr bool operator==(const inspect_report&, const inspect_report&) = default;
};

/// Reads every element once and counts NaN, Inf and, on request, the distribution. Writes nothing.
///
/// @param tensors  in fp32, fp16 and bf16, host or device memory
/// @param options  the counts to compute
/// @param where  backend, threads and stream
/// @returns statistics per tensor and in total
/// @note Waits for the stream.
inspect_report inspect(const tensor_list& tensors, const inspect_options& options = {},
                       const executor& where = {});

/// Report of l2norm(): L2 norms, with the bits of inspect().
struct norm_report {
  double total = 0;
  std::vector<double> tensors = {};  ///< by position
};
/// Computes the L2 norm of each tensor, and of all tensors together.
///
/// @param tensors  in fp32, fp16 and bf16, host or device memory
/// @param where  backend, threads and stream
/// @note Waits for the stream.
norm_report l2norm(const tensor_list& tensors, const executor& where = {});

/// Report of unscale().
struct unscale_report {
  std::uint64_t elements = 0;
  std::uint64_t nonfinite = 0;   ///< Inf or NaN before unscaling
  std::uint64_t overflowed = 0;  ///< finite before unscaling, not after
  std::uint32_t amax_bits = 0;   ///< of the elements before unscaling (contract §6), binary32 bits
  std::int64_t first_bad = -1;   ///< position of the first tensor with such elements, or -1

  friend constexpr bool operator==(const unscale_report&, const unscale_report&) = default;
};

/// Unscales in place: x = RN(x * inverse_scale) for every element, also for Inf and NaN.
///
/// @param tensors  in fp32, fp16 and bf16, host or device memory
/// @param inverse_scale  not negative and not NaN
/// @param where  backend, threads and stream
/// @returns counts, amax and the first bad tensor
/// @note Waits for the stream.
unscale_report unscale(const tensor_list& tensors, float inverse_scale, const executor& where = {});

/// Scales in place: x = RN(x * factor) for every element, without a report.
///
/// @param tensors  in fp32, fp16 and bf16, host or device memory
/// @param factor  not NaN
/// @param where  backend, threads and stream
void scale(const tensor_list& tensors, float factor, const executor& where = {});

/// Computes out = RN(RN(a * x) + RN(b * y)), tensor by tensor.
///
/// @param a  not NaN
/// @param x  tensors in fp32, fp16 or bf16
/// @param b  not NaN
/// @param y  tensors in fp32, fp16 or bf16, with the rows and columns of x
/// @param out  tensors in fp32, fp16 or bf16, with the rows and columns of x. A tensor of out may
///   be the tensor of x or y at the same position. It overlaps no other tensor of x or y.
/// @param where  backend, threads and stream
void axpby(float a, const tensor_list& x, float b, const tensor_list& y, const tensor_list& out,
           const executor& where = {});

/// Converts tensor by tensor, as convert() does, between any formats that a list may have. With
/// stochastic rounding, tensor i uses the random stream options.random.stream + i (mod 2^64).
void cast(const tensor_list& from, const tensor_list& to, const convert_options& options = {},
          const executor& where = {});

/// Options of accumulate().
struct accumulate_options {
  /// One factor per tensor of `gradients`, by position, in the memory of the lists. Null: every
  /// factor is 1, which is exact.
  const float* scales = nullptr;
};

/// Accumulates gradients: acc = RN(acc + RN(x * scale)) for every element x, tensor by tensor.
///
/// @param acc  sums in fp32, fp16 or bf16
/// @param gradients  tensors in fp32, fp16, bf16, e4m3 or e5m2, with the rows and columns of acc. A
///   tensor of acc overlaps no tensor of gradients, unless both are the same at the same position.
/// @param options  one scale per tensor of gradients
/// @param where  backend, threads and stream
void accumulate(const tensor_list& acc, const tensor_list& gradients,
                const accumulate_options& options = {}, const executor& where = {});

/// Returns the factor that brings a list with this norm down to max_norm.
///
/// @returns min(1, RN(max_norm / RN(norm + 1e-6))) in binary64, then RN in binary32; 0 for an
///   infinite norm, NaN for a NaN
/// @throws invalid_argument if norm is negative, or if max_norm is negative or NaN.
float clip_factor(double norm, double max_norm);

/// Report of clip().
struct clip_report {
  double norm = 0;   ///< of all tensors together, before clipping
  float factor = 1;  ///< clip_factor(norm, max_norm)
};

/// Multiplies tensors by clip_factor() of their common norm.
///
/// Writes nothing if the factor is 1 or the norm is not finite. With a norm that is not finite the
/// step is one to skip, and the gradients stay as they are.
///
/// @param tensors  in fp32, fp16 and bf16, host or device memory
/// @param max_norm  not negative and not NaN
/// @param where  backend, threads and stream
/// @note Waits for the stream.
clip_report clip(const tensor_list& tensors, double max_norm, const executor& where = {});

}  // namespace samebits
