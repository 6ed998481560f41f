// Eigen adapter: the value types as scalars of Eigen matrices and Maps.
//
// Eigen stores, slices, maps, compares and casts them, and computes with them coefficient by
// coefficient: each operation is rounded once to nearest even. In its own sums and products every
// step is, too, but their order is Eigen's and may change with its version: cast<float>() first, or
// write the loop, where the accumulation is to be one you chose.
#pragma once

#include <Eigen/Core>
#include <limits>

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
    AddCost = 20,  // through software, several times a hardware addition
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
// Rows and columns as Eigen counts them; strides follow the storage order.
template <class View, class Derived, class Data>
View eigen_view(const Eigen::DenseBase<Derived>& m, Data* data) {
  const Derived& d = m.derived();
  const bool row_major = Derived::IsRowMajor;
  return {data,
          format_of<typename Derived::Scalar>::value,
          d.rows(),
          d.cols(),
          row_major ? d.outerStride() : d.innerStride(),
          row_major ? d.innerStride() : d.outerStride(),
          memory_space::host};
}
}  // namespace detail

/// A view of an Eigen matrix, Map or block with direct access, in either storage order.
template <class Derived>
requires(static_cast<bool>(Derived::Flags& Eigen::DirectAccessBit)) const_matrix_view
    view_of(const Eigen::DenseBase<Derived>& m) {
  return detail::eigen_view<const_matrix_view>(m, m.derived().data());
}

/// The same, to be written. Takes Maps and blocks by value as Eigen's own functions do.
template <class Derived>
requires(static_cast<bool>(Derived::Flags& Eigen::DirectAccessBit) &&
         static_cast<bool>(Derived::Flags & Eigen::LvalueBit)) matrix_view
    writable_view_of(Eigen::DenseBase<Derived>& m) {
  return detail::eigen_view<matrix_view>(m, m.derived().data());
}

}  // namespace samebits
