// Tensor list: tensors that are described once and then worked on together, each operation in one
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
//   samebits::clip(sums, 1.0);  // by the norm of all of them together
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
#include "samebits/view.hpp"

namespace samebits {

namespace backends {
struct access;
struct plan_data;
}  // namespace backends

/// A tensor of a list: its elements as a matrix, what messages call it, and a number that the
/// caller gives those that belong together.
struct list_tensor {
  matrix_view view = {};
  std::string name = {};
  std::uint32_t group = 0;
};

/// An immutable list of tensors that lie in one memory, host or device. It does not own them: they
/// must stay where they are while the list is used. Copies share one description.
///
/// Functions that take a tensor_list also take one view, several views in braces, or a range of
/// views. Each such call describes its tensors anew. For tensors in device memory the description
/// is an allocation there, so that calls in the capture of a CUDA graph need a list that is kept.
///
/// Elements are fp32, fp16, bf16, e4m3 or e5m2, mixed as they come, in any strides that a
/// matrix_view may have; sizes are 64-bit, and 0 is one. The operations below
/// say which formats they take.
class tensor_list {
 public:
  /// No tensors.
  tensor_list();
  /// Throws invalid_argument, naming position and name of the tensor, for another format, negative
  /// sizes or strides, null data, elements of a tensor that share memory, tensors in different
  /// memory, two tensors that share an element, as tied weights do, and more than 2^32 - 1 tensors.
  /// Elements of one tensor may lie in the gaps of another. If very many tensors interleave so, the
  /// check may give up: invalid_argument then says that the check takes too long. Throws
  /// unsupported for tensors in device memory where no CUDA backend can run.
  explicit tensor_list(std::vector<list_tensor> tensors);
  // NOLINTBEGIN(google-explicit-constructor): callers write the views alone
  /// One tensor without a name, as in scaler.unscale(view_of(g)). Throws as the constructor above.
  tensor_list(const matrix_view& tensor) : tensor_list(std::span(&tensor, 1)) {}
  /// Tensors without names: scaler.unscale({view_of(weights), view_of(bias)}).
  tensor_list(std::initializer_list<matrix_view> tensors)
      : tensor_list(std::span(tensors.begin(), tensors.size())) {}
  /// Tensors without names, in a vector, span or array of views.
  template <detail::contiguous Range>
  requires std::same_as<detail::element_of<const Range>, matrix_view>
  tensor_list(const Range& tensors) : tensor_list(named(std::span(tensors))) {}
  // NOLINTEND(google-explicit-constructor)

  /// Tensors.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] const list_tensor& operator[](std::size_t position) const;
  /// The tensor's name; where it was given none, "tensors[position]".
  [[nodiscard]] std::string name(std::size_t position) const;
  /// Elements of all tensors.
  [[nodiscard]] std::uint64_t elements() const;
  /// Where the tensors lie; host where there are none.
  [[nodiscard]] memory_space space() const;

 private:
  friend struct backends::access;

  static std::vector<list_tensor> named(std::span<const matrix_view> tensors);

  std::shared_ptr<const backends::plan_data> data_;
};

// Operations: every tensor of a list in one call.
//
// Results do not depend on the executor, the thread count, the strides or the alignment. Every
// operation is thread-safe and allocates some bytes per tensor and per 4096 elements.
//
// Every operation throws before anything is written:
// - invalid_argument, naming the list and the tensor, for a format, shape or number that its
//   description does not allow; for a negative thread count, an unknown backend name, or a backend
//   of another memory.
// - unsupported for a backend that this machine lacks or that has no list operations.
//
// Each step in binary32 or binary64 is one operation rounded to nearest even, in the order written.
// NaN is the canonical one (contract §2, §6). Elements of a format other than fp32 are widened,
// which is exact. A result is rounded once more, to nearest even with overflow::ieee, into its
// tensor's own format.
//
// On device memory, calls that return a report wait for the stream and take workspace from its
// memory pool. The others enqueue and return, and can be captured into a CUDA graph, which must not
// outlive the list. No list may be destroyed during a capture.

/// What inspect() counts.
enum class inspect_counts : std::uint8_t {
  nonfinite,     ///< NaN and Inf
  distribution,  ///< and zeros, subnormals, exponents
};
inline constexpr int inspect_counts_count = 2;

struct inspect_options {
  inspect_counts counts = inspect_counts::nonfinite;
};

/// Figures of one tensor, or of all.
struct tensor_statistics {
  std::uint64_t elements = 0;
  std::uint64_t nan = 0;         ///< elements that are NaN
  std::uint64_t inf = 0;         ///< elements that are infinite
  std::uint64_t zeros = 0;       ///< of either sign; inspect_counts::distribution alone
  std::uint64_t subnormals = 0;  ///< in their own format; inspect_counts::distribution alone
  /// The largest magnitude (contract §6) as binary32 bits; 7FFFFFFF if an element is NaN.
  std::uint32_t amax_bits = 0;
  /// The sum of RN(x * x) in binary64 over the tree of contract §6, every element a leaf: Inf and
  /// NaN where elements are. In the total, the tensors' sums are the leaves, empty ones' +0 too.
  double squares = 0;

  /// The L2 norm: RN(sqrt(squares)) in binary64.
  [[nodiscard]] double norm() const {
    return std::bit_cast<double>(numerics::norm_of(std::bit_cast<std::uint64_t>(squares)));
  }
  /// Of all bits: a NaN equals itself.
  friend constexpr bool operator==(const tensor_statistics& a, const tensor_statistics& b) {
    return a.elements == b.elements && a.nan == b.nan && a.inf == b.inf && a.zeros == b.zeros &&
           a.subnormals == b.subnormals && a.amax_bits == b.amax_bits &&
           std::bit_cast<std::uint64_t>(a.squares) == std::bit_cast<std::uint64_t>(b.squares);
  }
};

/// What inspect() saw.
struct inspect_report {
  tensor_statistics total = {};
  std::vector<tensor_statistics> tensors = {};  ///< by position
  std::int64_t first_bad = -1;  ///< position of the first tensor with Inf or NaN, or -1
  /// How many elements of all tensors have, in binary32, the exponent field f: zeros and binary32
  /// subnormals at 0, [2^(f - 127), 2^(f - 126)) at 1 .. 254, Inf and NaN at 255. All 0 without
  /// inspect_counts::distribution.
  std::array<std::uint64_t, numerics::exponent_buckets> exponents = {};

  /// What loss_scaler::observe() takes, of scaled gradients.
  [[nodiscard]] step_observation observation() const {
    return {.nonfinite = first_bad >= 0, .amax = total.amax_bits};
  }
  friend constexpr bool operator==(const inspect_report&, const inspect_report&) = default;
};

/// Looks at every element of tensors in fp32, fp16 and bf16 once; writes nothing. Waits for the
/// stream.
inspect_report inspect(const tensor_list& tensors, const inspect_options& options = {},
                       const executor& where = {});

/// L2 norms, as inspect() gives them: what l2norm() returns.
struct norm_report {
  double total = 0;
  std::vector<double> tensors = {};  ///< by position
};
/// Computes the L2 norm of each tensor and of all together. Waits for the stream.
norm_report l2norm(const tensor_list& tensors, const executor& where = {});

/// What unscale() saw.
struct unscale_report {
  std::uint64_t elements = 0;
  std::uint64_t nonfinite = 0;   ///< Inf or NaN before they were unscaled
  std::uint64_t overflowed = 0;  ///< finite before, but not after
  std::uint32_t amax_bits = 0;   ///< of the scaled elements (contract §6), binary32 bits
  std::int64_t first_bad = -1;   ///< position in the list of the first tensor with any such element

  friend constexpr bool operator==(const unscale_report&, const unscale_report&) = default;
};

/// x = RN(x * inverse_scale) for every element of tensors in fp32, fp16 and bf16, in place. Waits
/// for the stream. Elements that are not finite are multiplied too. inverse_scale is not negative
/// and not NaN.
unscale_report unscale(const tensor_list& tensors, float inverse_scale, const executor& where = {});

/// x = RN(x * factor) as unscale() does, for any factor but NaN, without a report.
void scale(const tensor_list& tensors, float factor, const executor& where = {});

/// out = RN(RN(a * x) + RN(b * y)), tensor by tensor; each list's tensors in fp32, fp16 or bf16 of
/// its own, with rows and columns in common. A tensor of out may be that of x or y at the same
/// position, and overlaps no other. a and b are not NaN.
void axpby(float a, const tensor_list& x, float b, const tensor_list& y, const tensor_list& out,
           const executor& where = {});

/// convert(), tensor by tensor, between any of a list's formats. With stochastic rounding tensor i
/// draws from stream options.random.stream + i (mod 2^64).
void cast(const tensor_list& from, const tensor_list& to, const convert_options& options = {},
          const executor& where = {});

struct accumulate_options {
  /// What each tensor of gradients is multiplied by, by position, in the memory of the lists; null:
  /// all by 1, which is exact.
  const float* scales = nullptr;
};

/// acc = RN(acc + RN(x * scale)) for every x of gradients, tensor by tensor: sums in fp32, fp16 or
/// bf16, gradients in those, e4m3 or e5m2, rows and columns in common. No tensor of acc overlaps
/// one of gradients, unless it is the same at the same position.
void accumulate(const tensor_list& acc, const tensor_list& gradients,
                const accumulate_options& options = {}, const executor& where = {});

/// What a list of this norm is multiplied by so that it does not exceed max_norm: in binary64
/// min(1, RN(max_norm / RN(norm + 1e-6))), then RN in binary32. 0 for an infinite norm and NaN for
/// a NaN. Throws invalid_argument for a negative norm and for a max_norm that is negative or NaN.
float clip_factor(double norm, double max_norm);

struct clip_report {
  double norm = 0;   ///< of all tensors together, before
  float factor = 1;  ///< clip_factor(norm, max_norm)
};

/// Scales tensors by clip_factor of their common norm. Waits for the stream. Writes nothing where
/// the factor is 1 or the norm is not finite: such a step is one to skip, and its gradients stay as
/// they are.
clip_report clip(const tensor_list& tensors, double max_norm, const executor& where = {});

}  // namespace samebits
