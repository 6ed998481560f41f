// reduce_gradients(): checks the call on all ranks; and its steps in host memory, on whole arrays.
#include "samebits/distributed.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "backends/api/lists/list_checks.hpp"
#include "backends/api/view_checks.hpp"
#include "backends/dispatch/calls/list.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/refuse.hpp"
#include "backends/ranks/element_list.hpp"
#include "backends/ranks/gradient_exchange.hpp"
#include "backends/ranks/rank_functions.hpp"
#include "backends/ranks/ranks.hpp"
#include "backends/reference/reductions/rank_sum.hpp"
#include "backends/reference/reference.hpp"
#include "backends/self_test/self_test.hpp"
#include "numerics/sums/rank_sum.hpp"
#include "samebits/convert.hpp"

namespace samebits {
namespace {

/// Number of elements processed at a time; fits the first-level cache.
constexpr std::int64_t batch = 4096;

numerics::communication_settings rule_of(const gradient_reduction& how) {
  return {spec_of(how.communication), how.scale, how.rounding};
}

void check_options(const gradient_reduction& how) {
  if (!backends::is_among(how.communication, backends::arithmetic_formats)) {
    refuse("how.communication must be fp32, fp16, bf16, e4m3 or e5m2",
           static_cast<int>(how.communication) < format_count
               ? detail::cat(", got ", how.communication)
               : "");
  }
  refuse_if(static_cast<int>(how.scale) >= one_level_scale_rules,
            "how.scale: must be a samebits::scale_rule with one level, got ",
            static_cast<int>(how.scale));
  refuse_if(how.rounding != rounding::nearest_even && how.rounding != rounding::stochastic,
            "how.rounding must be nearest_even or stochastic, got ", how.rounding);
  backends::check_random(how.rounding, how.random);
  refuse_if(numerics::binary32::magnitude(std::bit_cast<std::uint32_t>(how.factor)) >=
                numerics::binary32::inf,
            "how.factor must be finite");
  refuse_if(how.elements_at_once < 1, "how.elements_at_once must be >= 1, got ",
            how.elements_at_once);
}

/// A fingerprint of everything that must be equal on all ranks.
std::uint32_t fingerprint_of(std::span<const matrix_view> tensors, const gradient_reduction& how) {
  backends::fingerprint f;
  for (const matrix_view& t : tensors) {
    f.add(static_cast<std::uint64_t>(t.format));
    f.add(static_cast<std::uint64_t>(t.rows));
    f.add(static_cast<std::uint64_t>(t.cols));
  }
  for (const auto option : {static_cast<int>(how.communication), static_cast<int>(how.scale),
                            static_cast<int>(how.rounding), how.random.bits}) {
    f.add(static_cast<std::uint64_t>(option));
  }
  for (const std::uint64_t number : {how.random.seed, how.random.stream, how.random.offset}) {
    f.add(number);
  }
  f.add(std::bit_cast<std::uint32_t>(how.factor));
  f.add(static_cast<std::uint64_t>(how.elements_at_once));
  return f.folded();
}

/// A call with valid arguments.
struct checked_call {
  std::shared_ptr<const backends::list_data> list;
  const backends::backend* by = nullptr;
};

/// The backend that computes. Host memory uses the reference backend.
const backends::backend& chosen_backend(const communicator& ranks, const gradient_reduction& how) {
  if (ranks.space() == memory_space::host) {
    require(how.backend.empty(), "how.backend: is for gradients in device memory, got '",
            how.backend, "' for a communicator on host memory");
    return backends::reference;
  }
  const auto has_ranks = [](const backends::backend& b) { return b.ranks != nullptr; };
  const backends::backend& by =
      backends::resolve({how.backend, 1, nullptr}, memory_space::device, has_ranks);
  backends::check_memory(by, memory_space::device);
  require<unsupported>(has_ranks(by), "backend '", by.name, "' has no sums over ranks");
  return by;
}

/// The device of the first gradient; no_device if it is not on a single device. Messages before the
/// check of the list use the communicator of this device.
int first_device(const communicator& ranks, std::span<const matrix_view> tensors) {
  backends::device_finder finder(ranks.space());
  try {
    if (!tensors.empty()) finder.add(backends::address_of(tensors[0]), "gradients");
  } catch (const invalid_argument&) {  // the check of the list reports this error to all ranks
  }
  return finder.device();
}

/// Throws unless the arguments are valid on every rank and equal on all ranks.
checked_call check_all(communicator& ranks, std::span<const matrix_view> tensors,
                       const gradient_reduction& how) {
  constexpr const char* call = "reduce_gradients()";
  const backends::device_scope on(ranks.space(), first_device(ranks, tensors), ranks.stream(),
                                  backends::completion::awaited);
  backends::host_ranks on_host(ranks);
  checked_call checked;
  std::array<std::uint32_t, 2> words = {};
  backends::check_together(on_host, call, words, [&] {
    check_options(how);
    checked.list = backends::checked_list(tensors, ranks.space(), "gradients");
    const backends::device_scope of_list(ranks.space(), checked.list->device, ranks.stream());
    checked.by = &chosen_backend(ranks, how);
    backends::require_tested(*checked.by, ranks.stream());
    const std::uint32_t f = fingerprint_of(tensors, how);
    words = {f, ~f};
  });
  require<rank_error>(words[0] == ~words[1], call,
                      ": the ranks' lists of gradients or their options differ");
  return checked;
}

/// The largest finite magnitude of a tensor, encoded for the exchange between ranks.
std::uint32_t amax_word(const matrix_view& t) {
  numerics::tile_amax amax = numerics::no_amax;
  std::vector<std::uint32_t> x(batch);
  for_each_step(0, count_of(t), batch, [&](std::int64_t begin, std::int64_t end) {
    std::uint32_t* at = x.data();
    for_each_block(t, begin, end, [&](const matrix_view& block, std::int64_t) {
      convert(block, view_of_codes(format_id::fp32, at, block.rows, block.cols));
      at += count_of(block);
    });
    for (const std::uint32_t* v = x.data(); v != at; ++v) {
      amax = numerics::combined(amax, numerics::amax_contribution(nonfinite::skip_nonfinite, *v));
    }
  });
  return numerics::amax_to_word(amax);
}

/// The steps of a reduction in host memory.
class host_steps final : public backends::reduction_steps {
 public:
  host_steps(int ranks, std::span<const matrix_view> tensors, const gradient_reduction& how)
      : ranks_(ranks), tensors_(tensors), how_(how), list_(tensors) {}

  /// Whether any gradient was replaced.
  [[nodiscard]] bool wrote() const { return wrote_; }

  std::byte* memory(std::size_t bytes) override {
    memory_.resize(bytes);
    return memory_.data();
  }
  void fill_with_zeros(std::byte* data, std::size_t bytes) override {
    std::fill_n(data, bytes, std::byte{0});
  }
  std::span<std::uint32_t> amaxes() override {
    for (const matrix_view& t : tensors_) amaxes_.push_back(amax_word(t));
    return amaxes_;
  }
  void scales() override {
    for (const std::uint32_t word : amaxes_) {
      scales_.push_back(numerics::shared_scale(rule_of(how_), numerics::amax_from_word(word)));
    }
  }

  void contributions(const backends::list_part& part, std::byte* communication) override {
    const std::int64_t bytes = storage_bytes(how_.communication);
    if (scales_.empty()) {
      list_.for_each_block(part.begin, part.end, [&](const matrix_view& block, std::int64_t first) {
        std::byte* const at = communication + (first - part.begin) * bytes;
        convert(block, view_of_codes(how_.communication, at, block.rows, block.cols),
                cast_at(first));
      });
      return;
    }
    list_.for_each_tensor(
        part.begin, part.end, [&](std::size_t i, std::int64_t from, std::int64_t to) {
          for_each_step(from, to, batch, [&](std::int64_t first, std::int64_t last) {
            scale_elements(i, first, last);
            convert(view_of(std::span(scaled_)),
                    view_of_codes(how_.communication, communication + (first - part.begin), 1,
                                  last - first),
                    cast_at(first));
          });
        });
  }

  void sums(const backends::list_part& part, const std::byte* communication, std::int64_t share,
            std::byte* sums) override {
    const std::int64_t bytes = storage_bytes(how_.communication);
    for_each_step(part.begin, part.end, batch, [&](std::int64_t from, std::int64_t to) {
      sum_of_ranks(communication + (from - part.begin) * bytes, share * bytes, from, to);
      std::byte* const at = sums + (from - part.begin) * storage_bytes(part.format);
      convert(view_of(std::span(total_)), view_of_codes(part.format, at, 1, to - from));
    });
  }

  void results(const backends::list_part& part, const std::byte* sums) override {
    wrote_ = true;
    list_.for_each_block(part.begin, part.end, [&](const matrix_view& block, std::int64_t first) {
      const std::byte* const at = sums + (first - part.begin) * storage_bytes(part.format);
      convert(view_of_codes(part.format, at, block.rows, block.cols), block);
    });
  }

 private:
  /// Sets scaled_ to the scaled elements [first, last) of tensor i.
  void scale_elements(std::size_t i, std::int64_t first, std::int64_t last) {
    scaled_.resize(static_cast<std::size_t>(last - first));
    list_.for_each_block(first, last, [&](const matrix_view& block, std::int64_t at) {
      convert(block, view_of(scaled_.data() + (at - first), block.rows, block.cols));
    });
    const auto factor = std::bit_cast<float>(scales_[i].factor);
    if (how_.scale == scale_rule::div) {
      backends::divide_each(scaled_, factor);
    } else {
      backends::multiply_each(scaled_, factor);
    }
  }

  /// Sets total_ to the sums of the elements [from, to). In `communication` the contributions of
  /// consecutive ranks are `share_bytes` apart.
  void sum_of_ranks(const std::byte* communication, std::int64_t share_bytes, std::int64_t from,
                    std::int64_t to) {
    total_.resize(static_cast<std::size_t>(to - from));
    contribution_.resize(total_.size());
    for (int rank = 0; rank < ranks_; ++rank, communication += share_bytes) {
      std::vector<float>& x = rank == 0 ? total_ : contribution_;
      convert(view_of_codes(how_.communication, communication, 1, to - from),
              view_of(std::span(x)));
      if (rank != 0) backends::add_each(total_, contribution_);
    }
    if (!scales_.empty()) {
      list_.for_each_tensor(from, to, [&](std::size_t i, std::int64_t first, std::int64_t last) {
        backends::multiply_each(std::span(total_).subspan(static_cast<std::size_t>(first - from),
                                                          static_cast<std::size_t>(last - first)),
                                std::bit_cast<float>(scales_[i].dequantization_scale));
      });
    }
    backends::multiply_each(total_, how_.factor);
  }

  /// The rounding options for elements that start at this position of the list.
  [[nodiscard]] convert_options cast_at(std::int64_t position) const {
    convert_options options = {.rounding = how_.rounding, .random = how_.random};
    options.random.offset += static_cast<std::uint64_t>(position);
    options.random.pitch.reset();
    return options;
  }

  int ranks_;
  std::span<const matrix_view> tensors_;
  const gradient_reduction& how_;
  element_list list_;
  std::vector<std::byte> memory_;
  std::vector<std::uint32_t> amaxes_;
  std::vector<numerics::tile_scale> scales_;  // empty if the communication dtype needs no scale
  bool wrote_ = false;
  std::vector<float> scaled_;
  std::vector<float> total_;
  std::vector<float> contribution_;
};

void reduce_on_host(communicator& ranks, std::span<const matrix_view> tensors,
                    const backends::list_data& list, const gradient_reduction& how) {
  host_steps steps(ranks.size(), tensors, how);
  // Created before any gradient is written: later its message might not find memory.
  const incomplete_write halfway(
      "reduce_gradients(): failed after some gradients had been replaced by their sums");
  try {
    backends::exchange_gradients(ranks, list, how, steps);
  } catch (...) {
    if (!steps.wrote()) throw;
    std::throw_with_nested(halfway);
  }
}

}  // namespace

view_list::view_list(const tensor_list& tensors) {
  copies_.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) copies_.push_back(tensors[i].view);
  views_ = copies_;
}

void reduce_gradients(communicator& ranks, const view_list& gradients,
                      const gradient_reduction& how) {
  const checked_call checked = check_all(ranks, gradients, how);
  gradient_reduction mine = how;
  mine.random.stream += static_cast<std::uint64_t>(ranks.rank());
  if (checked.by->ranks == nullptr) return reduce_on_host(ranks, gradients, *checked.list, mine);
  const backends::device_scope on(ranks.space(), checked.list->device, ranks.stream());
  checked.by->ranks->reduce(ranks, *checked.list, mine);
}

}  // namespace samebits
