// Eigen adapter: the value types as scalars of Eigen matrices and Maps.
//
// Eigen stores, slices, maps, compares and casts value types, and computes with them coefficient by
// coefficient. Each operation is rounded once to nearest even. In Eigen's own sums and products
// each step is rounded too, but Eigen determines the order, which may change with its version. For
// an accumulation of your choice use cast<float>() first, or write the loop.
#pragma once

#include <Eigen/Core>
#include <concepts>
#include <limits>
#include <type_traits>

#include "samebits/arithmetic.hpp"
#include "samebits/types.hpp"
#include "samebits/view.hpp"

namespace Eigen {

template <samebits::format_id F>
struct NumTraits<samebits::float_value<F>> {
  using Real = samebits::float_value<F>;
  using NonInteger = Real;
  using Literal = Real;
  using Nested = Real;
  using limits = std::numeric_limits<Real>;
  enum {
    IsComplex = 0,
    IsInteger = 0,
    IsSigned = 1,
    RequireInitialization = 0,
    ReadCost = 1,
    AddCost = 20,  // in software: several times the cost of a hardware addition
    MulCost = 20
  };
  static constexpr Real epsilon() { return limits::epsilon(); }
  static constexpr Real dummy_precision() { return limits::epsilon(); }
  static constexpr Real highest() { return limits::max(); }
  static constexpr Real lowest() { return limits::lowest(); }
  static constexpr Real infinity() { return limits::infinity(); }
  static constexpr Real quiet_NaN() { return limits::quiet_NaN(); }
  static constexpr int digits10() { return limits::digits10; }
  static constexpr int max_digits10() { return limits::max_digits10; }
};

}  // namespace Eigen

namespace samebits {

namespace detail {
// A matrix, Map or block whose elements lie in memory.
template <class M>
concept eigen_in_memory = std::derived_from<M, Eigen::DenseBase<M>> &&
    static_cast<bool>(M::Flags& Eigen::DirectAccessBit);

template <class M>
inline constexpr bool is_const_ref = false;
template <class M, int Options, class Strides>
inline constexpr bool is_const_ref<Eigen::Ref<const M, Options, Strides>> = true;

// Matrices and arrays own their elements. Maps, blocks and transposes refer to elements of another
// object. A Ref of const elements may hold the result of an expression.
template <class M>
concept owns_elements = std::derived_from<M, Eigen::PlainObjectBase<M>> || is_const_ref<M>;
}  // namespace detail

/// Returns a view of an Eigen matrix, Map or block with direct access, in either storage order.
///
/// The view is read-only for a const object and for a Map or block of const elements, else
/// writable. Temporary Maps and blocks are accepted. A temporary matrix does not compile, because
/// its elements would be destroyed before the view is used.
template <class M>
requires(detail::eigen_in_memory<std::remove_cvref_t<M>> &&
         (std::is_lvalue_reference_v<M> ||
          !detail::owns_elements<std::remove_cvref_t<M>>)) auto view_of(M&& m) {
  using matrix = std::remove_cvref_t<M>;
  using element_type = std::remove_pointer_t<decltype(m.data())>;
  // Rows and columns as Eigen counts them; strides follow the storage order.
  constexpr bool row_major = matrix::IsRowMajor;
  return detail::view_for<element_type>{m.data(),
                                        format_of<typename matrix::Scalar>::value,
                                        m.rows(),
                                        m.cols(),
                                        row_major ? m.outerStride() : m.innerStride(),
                                        row_major ? m.innerStride() : m.outerStride(),
                                        memory_space::host};
}

}  // namespace samebits
