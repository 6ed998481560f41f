// Constants of each group of tensors, which the kernels of an optimizer step read.
//
// Constants that the host knows are kernel arguments. Constants that depend on a loss scaler's
// decision or on learning rates in device memory are computed by a kernel of one thread per group.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "numerics/bits/random.hpp"
#include "numerics/update/constants.hpp"
#include "numerics/update/update.hpp"
#include "numerics/update/update_tables.hpp"
#include "samebits/core/optimizer.hpp"

namespace samebits::cuda {

/// The number of a formula: different for all formulas that visit_formula() knows.
template <class Formula>
inline constexpr std::uint8_t formula_number = static_cast<std::uint8_t>(
    static_cast<int>(Formula::rule) << 4 | static_cast<int>(Formula::profile) << 1 |
    (Formula::states == 1 ? 1 : 0));

/// One group's part of a step.
struct group_step {
  numerics::update_constants constants;
  std::uint64_t step;    ///< applied steps, this one included
  std::uint8_t formula;  ///< formula_number
  bool applied;          ///< false: the step changes no byte
};

/// Maximum number of groups whose constants are kernel arguments.
inline constexpr std::uint32_t argument_groups = 8;

/// A list of formulas.
template <class... Formulas>
struct formula_list {
  SAMEBITS_HD static constexpr bool has(std::uint8_t number) {
    return ((number == formula_number<Formulas>) || ...);
  }
  /// Calls f(formula) for the formula with this number, if the list has it.
  template <class Function>
  static void visit(std::uint8_t number, const Function& f) {
    (void)((number == formula_number<Formulas> && (f(Formulas{}), true)) || ...);
  }
  /// The same in a kernel.
  template <class Function>
  __device__ __forceinline__ static void visit_in_kernel(std::uint8_t number, const Function& f) {
    (void)((number == formula_number<Formulas> && (f(Formulas{}), true)) || ...);
  }
};

template <class... F, class... G>
constexpr formula_list<F..., G...> operator+(formula_list<F...>, formula_list<G...>) {
  return {};
}

namespace formulas {

/// The formulas of one rule and profile: two if a profile of sgd takes steps of its own.
template <update_rule R, update_profile P>
constexpr auto of_profile() {
  if constexpr (!has_profile(R, P) || numerics::steps_of(R, P) != P)
    return formula_list<>{};
  else if constexpr (R != update_rule::sgd)
    return formula_list<numerics::update_formula<R, P>>{};
  else
    return formula_list<numerics::update_formula<R, P, false>,
                        numerics::update_formula<R, P, true>>{};
}

/// The formulas of a rule.
template <update_rule R, int... P>
constexpr auto of_rule(std::integer_sequence<int, P...>) {
  return (formula_list<>{} + ... + of_profile<R, static_cast<update_profile>(P)>());
}
template <update_rule R>
using list_of = decltype(of_rule<R>(std::make_integer_sequence<int, enum_count<update_profile>>{}));

/// The formulas of all rules except those of lamb.
template <int... R>
constexpr auto without_norms(std::integer_sequence<int, R...>) {
  constexpr int lamb = static_cast<int>(update_rule::lamb);
  return (formula_list<>{} + ... +
          std::conditional_t<R == lamb, formula_list<>, list_of<static_cast<update_rule>(R)>>{});
}

/// The formulas that update each element alone, without norms.
using of_elements =
    decltype(without_norms(std::make_integer_sequence<int, enum_count<update_rule>>{}));
using of_lamb = list_of<update_rule::lamb>;

}  // namespace formulas

/// Two sums of squares of rule lamb, as binary64 bits.
struct lamb_squares {
  std::uint64_t weights;
  std::uint64_t direction;
};

/// Maximum number of threads of a block.
inline constexpr int update_threads = 256;

/// A step as a kernel argument.
struct update_launch {
  numerics::update_tables list;
  numerics::philox_keys keys;   ///< of the seed of stochastic formats
  std::uint32_t threads;        ///< of a block of native_update_kernel
  const group_step* in_memory;  ///< [groups] in device memory; null: `given` is used
  lamb_squares* chunk_squares;  ///< rule lamb: [chunks]
  std::uint32_t* lamb_factors;  ///< rule lamb: [tensors]
  group_step given[argument_groups];
};
static_assert(sizeof(update_launch) <= 4096, "the limit of kernel arguments");

/// The group's part of a step.
__device__ __forceinline__ const group_step& group_of(const update_launch& call,
                                                      std::uint32_t group) {
  return (call.in_memory == nullptr ? call.given : call.in_memory)[group];
}

/// Whether a block has work: the step is applied, and the group has the formula.
template <class Formula>
__device__ __forceinline__ bool has_work(const group_step& group) {
  return group.applied && group.formula == formula_number<Formula>;
}

/// Enqueues a step of all tensors whose groups have the formula of formulas::of_elements with this
/// number, by the GPU's instructions. Does nothing for another number.
void launch_native_update(std::uint8_t number, const update_launch& call, void* stream);

}  // namespace samebits::cuda
