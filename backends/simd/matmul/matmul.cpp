// Matrix products on the SIMD backends: kernels compute the calls they support on several threads,
// the reference backend all others. Compiled without instruction set flags.
#include "backends/dispatch/calls/matmul.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "backends/dispatch/matmul_element.hpp"
#include "backends/reference/reference.hpp"
#include "backends/simd/functions/functions.hpp"
#include "backends/simd/lanes/control_register.hpp"
#include "backends/simd/matmul/matmul_chains.hpp"
#include "backends/simd/matmul/matmul_exact.hpp"
#include "backends/simd/matmul/matmul_kernel.hpp"
#include "backends/simd/matmul/matmul_pack.hpp"
#include "backends/simd/simd.hpp"
#include "backends/threads/interruption.hpp"
#include "backends/threads/parts.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/sums/dot.hpp"

namespace samebits::backends {
namespace {

/// Rows of a row panel (a block of rows of A): its sums and one step of it stay in the first-level
/// caches.
constexpr std::int64_t row_panel_rows = 64;

/// Whether the kernels support a call: tensor_core with fp32 results.
bool supports(const matmul_call& call) {
  return call.sum.kind == accumulator_kind::tensor_core && call.sum.result == format_id::fp32 &&
         call.a.cols > 0;
}

lane_width width_of(const matmul_kernel& kernel, const matmul_call& call) {
  const bool fits = call.unit.alignment_bits == 13 && call.unit.rounded.mantissa_bits == 13;
  return kernel.narrow != nullptr && fits ? lane_width::narrow : lane_width::wide;
}

/// The rows of A, packed row panel by row panel. Each row panel is packed by one thread.
class packed_rows {
 public:
  packed_rows(const matmul_call& call, const matmul_steps& steps)
      : call_(call),
        steps_(steps),
        decode_(call.unit.a, call.unit.subnormal_exponent_a, steps.a_shift, steps.width),
        words_(std::make_unique_for_overwrite<std::uint32_t[]>(
            static_cast<std::size_t>(call.a.rows * steps.count * steps.a_words()))),
        special_(
            std::make_unique_for_overwrite<std::uint8_t[]>(static_cast<std::size_t>(call.a.rows))) {
  }

  void pack_row_panel(std::int64_t first) {
    pack_rows(call_, steps_, decode_, first, std::min(row_panel_rows, call_.a.rows - first),
              words_.get() + first * steps_.count * steps_.a_words(), special_.get() + first);
  }
  [[nodiscard]] const std::uint32_t* row_panel(std::int64_t first) const {
    return words_.get() + first * steps_.count * steps_.a_words();
  }
  /// Whether the row contains a NaN or Inf.
  [[nodiscard]] bool is_special(std::int64_t row) const { return special_.get()[row] != 0; }

 private:
  const matmul_call& call_;
  const matmul_steps& steps_;
  lane_decoder decode_;
  std::unique_ptr<std::uint32_t[]> words_;  ///< not zero-initialized: every word is written
  std::unique_ptr<std::uint8_t[]> special_;
};

/// The work of one thread: multiplies panels of B with row panels of A.
class panel_worker {
 public:
  panel_worker(const matmul_kernel& kernel, const matmul_call& call, const matmul_steps& steps,
               const packed_rows& rows, const lane_decoder& decode)
      : kernel_(kernel),
        call_(call),
        steps_(steps),
        rows_(rows),
        decode_(decode),
        panel_(static_cast<std::size_t>(steps.count * steps.b_words())),
        special_(static_cast<std::size_t>(steps.columns)) {
    for (sums* all : {&step_sums_, &late_sums_, &promoted_}) {
      all->resize(static_cast<std::size_t>(row_panel_rows * steps.columns));
    }
  }

  void take_panel(std::int64_t first_column) {
    column_ = first_column;
    pack_columns(call_, steps_, decode_, first_column, panel_.data(), special_.data());
  }

  void multiply_row_panel(std::int64_t first_row) {
    row_ = first_row;
    count_ = std::min(row_panel_rows, call_.d.rows - first_row);
    start();
    const bool late = call_.unit.place == sum_place::last_addition;
    const std::int64_t per_instruction = steps_.steps_per_instruction();
    const std::int64_t promotion =
        call_.sum.promotion == 0 ? 0 : call_.sum.promotion / steps_.group;
    for (std::int64_t step = 0; step < steps_.count; ++step) {
      one_step(step);
      const std::int64_t done = step + 1;
      if (late && done % per_instruction == 0) combine(step_sums_, late_sums_);
      if (promotion != 0 && (done % promotion == 0 || done == steps_.count)) {
        promote(late ? late_sums_ : step_sums_, step * steps_.group / scale_block * scale_block);
      }
    }
    finish(promotion != 0 ? promoted_ : late ? late_sums_ : step_sums_);
  }

 private:
  using sums = lane_vector;

  [[nodiscard]] std::int64_t columns_here() const {
    return std::min<std::int64_t>(steps_.columns, call_.d.cols - column_);
  }

  /// Initializes the sums to +0, or to C if C is the first addend.
  void start() {
    for (sums* all : {&step_sums_, &late_sums_, &promoted_})
      std::fill(all->begin(), all->end(), 0u);
    if (!has_first_addend(call_)) return;
    sums& outermost = call_.sum.promotion != 0                       ? promoted_
                      : call_.unit.place == sum_place::last_addition ? late_sums_
                                                                     : step_sums_;
    for (std::int64_t r = 0; r < count_; ++r) {
      for (std::int64_t c = 0; c < columns_here(); ++c) {
        outermost[static_cast<std::size_t>(r * steps_.columns + c)] =
            code_at(call_.c, row_ + r, column_ + c);
      }
    }
  }

  void one_step(std::int64_t step) {
    const std::uint32_t* row_panel = rows_.row_panel(row_) + step * count_ * steps_.a_words();
    const matmul_step s = {row_panel,
                           panel_.data() + step * steps_.b_words(),
                           step_sums_.data(),
                           count_,
                           steps_.group,
                           call_.unit.alignment_bits,
                           call_.unit.rounded.mantissa_bits,
                           call_.unit.floor};
    (steps_.width == lane_width::narrow ? kernel_.narrow : kernel_.wide)(s);
  }

  void combine(sums& parts, sums& into) {
    kernel_.promote({parts.data(), into.data(), count_, nullptr, nullptr, call_.order});
  }

  /// Adds the partial sums of a block of K to promoted_. k is the first index of the block.
  void promote(sums& parts, std::int64_t k) {
    if (!call_.scaled_along_k) return combine(parts, promoted_);
    std::uint32_t a_scales[row_panel_rows];
    std::uint32_t b_scales[16] = {};
    for (std::int64_t r = 0; r < count_; ++r) {
      a_scales[r] = scale_at(call_.a_scales, row_ + r, k);
    }
    for (std::int64_t c = 0; c < columns_here(); ++c) {
      b_scales[c] = scale_at(call_.b_scales, k, column_ + c);
    }
    if (kernel_.promote_scaled != nullptr) {
      kernel_.promote_scaled(
          {parts.data(), promoted_.data(), count_, a_scales, b_scales, call_.order});
      return;
    }
    for (std::int64_t i = 0; i < count_ * steps_.columns; ++i) {
      const auto at = static_cast<std::size_t>(i);
      promoted_[at] =
          numerics::add_scaled(call_.order, promoted_[at], parts[at], a_scales[i / steps_.columns],
                               b_scales[i % steps_.columns]);
      parts[at] = 0;
    }
  }

  /// Whether the kernels cannot compute an element: NaN or Inf in its operands or in C.
  [[nodiscard]] bool is_special(std::int64_t r, std::int64_t c) const {
    if (rows_.is_special(row_ + r) || special_[static_cast<std::size_t>(c)] != 0) {
      return true;
    }
    return has_first_addend(call_) &&
           numerics::binary32::magnitude(code_at(call_.c, row_ + r, column_ + c)) >=
               numerics::binary32::inf;
  }

  void finish(const sums& results) {
    namespace f = numerics::binary32;
    const bool plain =
        call_.d.format == format_id::fp32 && !is_scaled_at_end(call_) && !has_last_addend(call_);
    auto* d = static_cast<std::byte*>(call_.d.data);
    for (std::int64_t r = 0; r < count_; ++r) {
      for (std::int64_t c = 0; c < columns_here(); ++c) {
        const std::int64_t i = row_ + r;
        const std::int64_t j = column_ + c;
        std::uint32_t sum = results[static_cast<std::size_t>(r * steps_.columns + c)];
        if (is_special(r, c)) sum = reference_tensor_core_sum(call_, i, j);
        if (plain) {
          if (f::is_nan(sum)) sum = f::nan;
          std::memcpy(d + (i * call_.d.row_stride + j * call_.d.col_stride) * 4, &sum, sizeof sum);
        } else {
          finish_element(call_, i, j, sum);
        }
      }
    }
  }

  const matmul_kernel& kernel_;
  const matmul_call& call_;
  const matmul_steps& steps_;
  const packed_rows& rows_;
  const lane_decoder& decode_;
  lane_vector panel_;
  std::vector<std::uint8_t> special_;
  std::int64_t column_ = 0;
  std::int64_t row_ = 0;
  std::int64_t count_ = 0;
  sums step_sums_;  ///< sums of the current steps
  sums late_sums_;  ///< sums of instructions that add the input sum last
  sums promoted_;
};

/// Number of threads for a call; small products are not worth several threads.
std::int64_t threads_for(const matmul_call& call, int threads) {
  const auto work = static_cast<__int128>(call.d.rows) * call.d.cols * call.a.cols;
  constexpr int products_worth_a_thread = 1 << 18;
  const __int128 maximum = work / products_worth_a_thread;
  const int wanted = thread_count(threads);
  return maximum < wanted ? std::max<std::int64_t>(1, static_cast<std::int64_t>(maximum)) : wanted;
}

/// The work of all threads: packs the row panels of A, then multiplies panels with row panels. Each
/// free thread takes the next item, because a thread may lose its processor to other processes. All
/// memory is allocated before D is written.
class shared_product {
 public:
  shared_product(const matmul_kernel& kernel, const matmul_call& call, std::int64_t threads)
      : kernel_(kernel),
        call_(call),
        steps_(call, width_of(kernel, call), kernel.columns),
        rows_(call, steps_),
        decode_(call.unit.b, call.unit.subnormal_exponent_b, steps_.b_shift, steps_.width),
        workers_(static_cast<std::size_t>(threads)),
        panels_((call.d.cols + kernel.columns - 1) / kernel.columns),
        row_panels_((call.d.rows + row_panel_rows - 1) / row_panel_rows) {
    // Some items per thread, but not many: each item starts by packing its panel.
    const std::int64_t wanted = threads == 1 ? 1 : 8 * threads;
    const std::int64_t parts = std::clamp<std::int64_t>(wanted / panels_, 1, row_panels_);
    row_panels_per_item_ = (row_panels_ + parts - 1) / parts;
    // NOLINTNEXTLINE(cppcoreguidelines-prefer-member-initializer): follows from the line above
    items_per_panel_ = (row_panels_ + row_panels_per_item_ - 1) / row_panels_per_item_;
  }

  void run() {
    const auto threads = static_cast<std::int64_t>(workers_.size());
    const std::int64_t packers = std::min(threads, row_panels_);
    for_each_task(packers, [&](std::int64_t i) {
      for (std::int64_t w = i; w < threads; w += packers) {
        workers_[static_cast<std::size_t>(w)] =
            std::make_unique<panel_worker>(kernel_, call_, steps_, rows_, decode_);
      }
      pack();
    });
    for_each_task(threads,
                  [&](std::int64_t i) { multiply(*workers_[static_cast<std::size_t>(i)]); });
  }

 private:
  void pack() {
    for (std::int64_t s = next_row_panel_++; s < row_panels_; s = next_row_panel_++) {
      interrupt_.poll();
      rows_.pack_row_panel(s * row_panel_rows);
    }
  }

  void multiply(panel_worker& worker) {
    const ieee_control_register ieee;
    std::int64_t taken = -1;
    for (std::int64_t i = next_item_++; i < panels_ * items_per_panel_; i = next_item_++) {
      if (i / items_per_panel_ != taken) {
        taken = i / items_per_panel_;
        worker.take_panel(taken * kernel_.columns);
      }
      const std::int64_t first = i % items_per_panel_ * row_panels_per_item_;
      for (std::int64_t s = first; s < std::min(row_panels_, first + row_panels_per_item_); ++s) {
        interrupt_.poll();
        worker.multiply_row_panel(s * row_panel_rows);
      }
    }
  }

  const matmul_kernel& kernel_;
  const matmul_call& call_;
  matmul_steps steps_;
  packed_rows rows_;
  lane_decoder decode_;
  std::vector<std::unique_ptr<panel_worker>> workers_;
  std::int64_t panels_;
  std::int64_t row_panels_;
  std::int64_t row_panels_per_item_ = 1;
  std::int64_t items_per_panel_ = 1;
  std::atomic<std::int64_t> next_row_panel_ = 0;
  std::atomic<std::int64_t> next_item_ = 0;
  interruption interrupt_;
};

}  // namespace

void multiply_by_lanes(const lane_kernels& by, const matmul_call& call, const executor& where) {
  if (supports_fixed_point(call)) return multiply_fixed_point(call, where);
  if (has_fused_multiply_adds() && supports_chains(call)) {
    return multiply_chains(call, where, by.rows.chains);
  }
  if (!supports(call)) return reference_matmul(call, where);
  shared_product(by.products, call, threads_for(call, where.threads)).run();
}

}  // namespace samebits::backends
