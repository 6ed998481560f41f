// Axis plan: in which order PyTorch 2.11's reduce_kernel adds the elements of a tensor over some of
// its axes.
//
//   axes    sorted by stride, those of the reduction first; neighbours that continue each other are
//           one axis
//   launch  blocks of width x height threads, and how many blocks share one result
//
// Source: PyTorch's TensorIterator.cpp (the order of the axes) and Reduce.cuh (the launch).
#pragma once

#include <cstdint>

#include "numerics/hardware/torch_operators/row_order.hpp"
#include "samebits/core/axis_reduction.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::numerics::torch_2_11 {

/// One axis of the iteration. Strides are counted in elements; `to` is 0 in axes of the reduction.
struct plan_axis {
  std::int64_t size = 1;
  std::int64_t from = 0;  ///< stride of the tensor
  std::int64_t to = 0;    ///< stride of the result, which is contiguous
};

/// The tensor and the card of a reduction.
struct reduced_tensor {
  format_id format;
  axis_reduction of;
  int axes;
  const std::int64_t* shape;
  const std::int64_t* strides;  ///< in elements, not negative
  std::uint64_t reduced;        ///< bit i: over axis i
  std::int64_t offset;          ///< elements from a 16-byte boundary to the first element
  int multiprocessors;
};

struct axis_plan {
  plan_axis axes[max_reduction_axes];
  int count = 0;             ///< of axes
  int reduced = 0;           ///< of them, the first ones: axes of the reduction
  std::int64_t inputs = 1;   ///< elements of one result
  std::int64_t outputs = 1;  ///< results
  /// Elements that a thread loads at once from a row of neighbours; 0: one element of a result at a
  /// time.
  int vector = 0;
  int width = 1;            ///< threads of a block in x
  int height = 1;           ///< threads of a block in y
  std::int64_t blocks = 1;  ///< blocks that share one result
  bool across_x = false;    ///< threads in x share one result, otherwise each has its own
  bool across_y = false;    ///< the same in y
};

/// Threads of one block that share a result.
SAMEBITS_HD constexpr int sharing_threads(const axis_plan& p) {
  return (p.across_x ? p.width : 1) * (p.across_y ? p.height : 1);
}

/// Where an element of a linear index lies in the tensor: the first of `axes` changes fastest.
SAMEBITS_HD constexpr std::int64_t place_of(const plan_axis* axes, int count, std::int64_t index) {
  std::int64_t place = 0;
  for (int i = 0; i + 1 < count; ++i) {
    place += index % axes[i].size * axes[i].from;
    index /= axes[i].size;
  }
  return count == 0 ? 0 : place + index * axes[count - 1].from;
}

namespace detail {

enum class axis_order : std::uint8_t { before, either, behind };

/// Where axis `a` should stand, seen from axis `b`.
SAMEBITS_HD constexpr axis_order order_of(const plan_axis& a, bool a_reduced, const plan_axis& b,
                                          bool b_reduced) {
  if (a_reduced != b_reduced) return b_reduced ? axis_order::behind : axis_order::before;
  const std::int64_t strides[][2] = {{a.to, b.to}, {a.from, b.from}};
  for (const auto& s : strides) {
    if (s[0] == 0 || s[1] == 0) continue;
    if (s[0] < s[1]) return axis_order::before;
    if (s[0] > s[1] || a.size > b.size) return axis_order::behind;
  }
  return axis_order::either;
}

/// Sorts the axes as TensorIterator::reorder_dimensions does: by insertion, from the last axis.
SAMEBITS_HD constexpr void sort_axes(const reduced_tensor& t, axis_plan& p) {
  bool reduced[max_reduction_axes] = {};
  std::int64_t stride = 1;
  for (int i = t.axes - 1; i >= 0; --i) {
    const int at = t.axes - 1 - i;
    reduced[at] = ((t.reduced >> static_cast<unsigned>(i)) & 1u) != 0;
    p.axes[at] = {t.shape[i], t.strides[i], reduced[at] ? 0 : stride};
    if (!reduced[at]) stride *= t.shape[i];
  }
  for (int i = 1; i < t.axes; ++i) {
    int moving = i;
    for (int before = i - 1; before >= 0; --before) {
      const axis_order order =
          order_of(p.axes[before], reduced[before], p.axes[moving], reduced[moving]);
      if (order == axis_order::before) break;
      if (order == axis_order::either) continue;
      const plan_axis axis = p.axes[before];
      p.axes[before] = p.axes[moving];
      p.axes[moving] = axis;
      const bool was = reduced[before];
      reduced[before] = reduced[moving];
      reduced[moving] = was;
      moving = before;
    }
  }
  p.count = t.axes;
}

/// Joins neighbouring axes as TensorIterator::coalesce_dimensions does.
SAMEBITS_HD constexpr void join_axes(axis_plan& p) {
  if (p.count == 0) return;
  int last = 0;
  for (int i = 1; i < p.count; ++i) {
    plan_axis& a = p.axes[last];
    const plan_axis b = p.axes[i];
    const bool continues = a.size * a.from == b.from && a.size * a.to == b.to;
    if (a.size == 1 || b.size == 1 || continues) {
      if (a.size == 1) {
        a.from = b.from;
        a.to = b.to;
      }
      a.size *= b.size;
    } else {
      p.axes[++last] = b;
    }
  }
  p.count = last + 1;
}

/// The largest power of two that is not above n >= 1.
SAMEBITS_HD constexpr std::int64_t power_of_two_below(std::int64_t n) {
  std::int64_t power = 1;
  while (power * 2 <= n) power *= 2;
  return power;
}

/// Results that one thread computes side by side: the largest of 4, 2, 1 that fits all strides.
SAMEBITS_HD constexpr int results_per_thread(const axis_plan& p, std::int64_t offset) {
  int n = 4;
  const auto fit = [&](std::int64_t distance) {
    while (distance % n != 0) n /= 2;
  };
  fit(offset);
  fit(p.axes[p.reduced].size);
  for (int i = 0; i < p.count; ++i) {
    if (i != p.reduced) fit(p.axes[i].from);
  }
  return n;
}

/// Chooses the launch as setReduceConfig does.
SAMEBITS_HD constexpr void choose_launch(const reduced_tensor& t, axis_plan& p) {
  constexpr int threads_of_multiprocessor = 2048, most_values = 256, least_values = 16;
  const bool all = p.reduced == p.count;
  const bool in_rows = all || p.axes[0].from < p.axes[p.reduced].from;
  std::int64_t across = in_rows ? p.inputs : p.outputs;
  const std::int64_t down = in_rows ? p.outputs : p.inputs;
  const std::int64_t stride = p.axes[in_rows ? 0 : p.reduced].from;
  int results = 1;
  if (stride == 1 && in_rows && across >= 128 && p.reduced == 1) {
    const bool wide = t.of != axis_reduction::norm && t.format != format_id::fp32;
    p.vector = wide ? 8 : 4;
    across /= p.vector;
  } else if (stride == 1 && !in_rows) {
    results = results_per_thread(p, t.offset);
    across /= results;
  }
  const int most_threads = 512 / results;
  const std::int64_t most_x = power_of_two_below(across);
  p.width = static_cast<int>(smaller(most_x, warp_lanes));
  p.height = static_cast<int>(smaller(power_of_two_below(down), most_threads / p.width));
  p.width = static_cast<int>(smaller(most_x, most_threads / p.height));

  p.across_x = in_rows;
  const auto values = [&] { return divide_up(p.inputs, sharing_threads(p)); };
  p.across_y = values() >= smaller(p.height * least_values, most_values);
  if (!p.across_y || values() < most_values) return;
  const std::int64_t grid = divide_up(p.outputs / results, p.across_x ? 1 : p.width);
  const std::int64_t target =
      std::int64_t{t.multiprocessors} * (threads_of_multiprocessor / (p.width * p.height));
  if (grid > target) return;
  const std::int64_t for_card = divide_up(target, grid);
  const std::int64_t for_least = divide_up(values(), least_values);
  const std::int64_t for_most = divide_up(values(), most_values);
  const std::int64_t wanted = smaller(for_card, for_least);
  p.blocks = wanted > for_most ? wanted : for_most;
}

}  // namespace detail

/// The plan of a tensor with at least one element.
SAMEBITS_HD constexpr axis_plan plan_of(const reduced_tensor& t) {
  axis_plan p;
  detail::sort_axes(t, p);
  detail::join_axes(p);
  for (int i = 0; i < p.count; ++i) {
    const bool reduces = p.axes[i].to == 0;
    p.reduced += reduces ? 1 : 0;
    (reduces ? p.inputs : p.outputs) *= p.axes[i].size;
  }
  detail::choose_launch(t, p);
  return p;
}

}  // namespace samebits::numerics::torch_2_11
