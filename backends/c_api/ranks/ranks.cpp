// Functions over several ranks through the C interface.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "backends/c_api/arguments/handles.hpp"
#include "backends/c_api/arguments/options.hpp"
#include "backends/c_api/ranks/callback_ranks.hpp"
#include "backends/ranks/ranks.hpp"
#include "samebits/c/ranks.h"
#include "samebits/distributed.hpp"
#include "samebits/error.hpp"
#include "samebits/loss_scaler.hpp"

struct samebits_tree_part {
  samebits::tree_part part;
};

namespace api = samebits::c_api;

namespace {

/// Returns convert(), the C++ values of a call's arguments. If convert() throws, the other ranks
/// learn it by the call's first message and return SAMEBITS_RANK_ERROR.
///
/// @param words  number of words that the C++ function compares in its first message
template <class Convert>
auto converted_together(samebits::communicator& ranks, const char* call, std::size_t words,
                        const Convert& convert) {
  try {
    return convert();
  } catch (...) {
    const std::exception_ptr mine = std::current_exception();
    samebits::backends::host_ranks on_host(ranks);
    std::vector<std::uint32_t> compared(words);
    samebits::backends::check_together(on_host, call, compared,
                                       [&] { std::rethrow_exception(mine); });
    throw;
  }
}

samebits_rank_observation observation_of(const samebits::rank_observation& o) {
  return {.nonfinite = o.seen.nonfinite ? 1 : 0,
          .loss_nonfinite = o.seen.loss_nonfinite ? 1 : 0,
          .unscaled_nonfinite = o.seen.unscaled_nonfinite ? 1 : 0,
          .amax_bits = o.seen.amax,
          .first_bad = o.first_bad,
          .bad_rank = o.bad_rank};
}

samebits::gradient_reduction reduction_of(const samebits_gradient_reduction* options) {
  const samebits_gradient_reduction o = api::read(options, "how");
  return {.communication =
              api::enumerator<samebits::format_id>(o.communication, "how", ".communication"),
          .rule = api::enumerator<samebits::scale_rule>(o.rule, "how", ".rule"),
          .round = api::enumerator<samebits::rounding>(o.rounding, "how", ".rounding"),
          .random = api::random(o.random),
          .factor = o.factor,
          .elements_at_once = o.elements_at_once,
          .backend = api::text(o.backend)};
}

/// The arguments of reduce_gradients().
struct reduction_arguments {
  std::vector<samebits::matrix_view> gradients;
  samebits::gradient_reduction how;
};

reduction_arguments arguments_of(const samebits_view* gradients, size_t count,
                                 const samebits_gradient_reduction* options) {
  api::check_array(gradients, count, "gradients");
  reduction_arguments a;
  for (size_t i = 0; i < count; ++i) {
    const std::string which = "gradients[" + std::to_string(i) + "]";
    a.gradients.push_back(api::view(&gradients[i], which.c_str()));
  }
  a.how = reduction_of(options);
  return a;
}

std::vector<samebits::tree_part> parts_of(const samebits_tree_part* const* parts, size_t count) {
  api::check_array(parts, count, "parts");
  std::vector<samebits::tree_part> all;
  for (size_t i = 0; i < count; ++i) all.push_back(api::required(parts[i], "parts[]").part);
  return all;
}

samebits::tree_part& part_of(samebits_tree_part* part) { return api::required(part, "part").part; }

}  // namespace

samebits_status samebits_gather_messages(const samebits_communicator* ranks, const void* sent,
                                         size_t bytes, void* received) {
  return api::guarded([&] {
    api::callback_ranks all(ranks);
    api::check_array(static_cast<const std::byte*>(sent), bytes, "sent");
    api::check_array(static_cast<std::byte*>(received), bytes, "received");
    if (bytes == 0) return;
    samebits::backends::host_ranks(all).all_gather(
        {static_cast<const std::byte*>(sent), bytes},
        {static_cast<std::byte*>(received), bytes * static_cast<size_t>(all.size())});
  });
}

samebits_status samebits_agree(const samebits_communicator* ranks,
                               const samebits_rank_observation* mine,
                               samebits_rank_observation* all) {
  return api::guarded([&] {
    api::callback_ranks with(ranks);
    const samebits_rank_observation& m = api::required(mine, "mine");
    samebits_rank_observation& out = api::required(all, "all");
    out = observation_of(
        samebits::agree(with, {.seen = {.nonfinite = m.nonfinite != 0,
                                        .loss_nonfinite = m.loss_nonfinite != 0,
                                        .unscaled_nonfinite = m.unscaled_nonfinite != 0,
                                        .amax = m.amax_bits},
                               .first_bad = m.first_bad}));
  });
}

samebits_status samebits_loss_scaler_agree(samebits_loss_scaler* scaler,
                                           const samebits_communicator* ranks,
                                           const char* optimizer, samebits_rank_observation* all) {
  return api::guarded([&] {
    api::callback_ranks with(ranks);
    api::write(all, observation_of(
                        api::required(scaler, "scaler").scaler.agree(with, api::text(optimizer))));
  });
}

samebits_status samebits_tree_part_create(uint64_t first, samebits_tree_part** part) {
  return api::guarded([&] {
    samebits_tree_part*& out = api::required(part, "part");
    out = new samebits_tree_part{samebits::tree_part(first)};
  });
}

void samebits_tree_part_destroy(samebits_tree_part* part) { delete part; }

samebits_status samebits_tree_part_add(samebits_tree_part* part, const double* inputs,
                                       size_t count) {
  return api::guarded([&] {
    api::check_array(inputs, count, "inputs");
    part_of(part).add(std::span(inputs, count));
  });
}

samebits_status samebits_tree_part_add_squares(samebits_tree_part* part,
                                               const samebits_view* elements) {
  return api::guarded([&] { part_of(part).add_squares(api::view(elements, "elements")); });
}

samebits_status samebits_tree_part_add_subtree(samebits_tree_part* part, uint64_t chunks,
                                               double value) {
  return api::guarded([&] { part_of(part).add_subtree(chunks, value); });
}

samebits_status samebits_tree_part_extent(const samebits_tree_part* part, uint64_t* first,
                                          uint64_t* count) {
  return api::guarded([&] {
    const samebits::tree_part& p = api::required(part, "part").part;
    api::write(first, p.first());
    api::write(count, p.count());
  });
}

samebits_status samebits_sum_shards(const samebits_communicator* ranks,
                                    const samebits_tree_part* const* parts, size_t count,
                                    double* sums, double* total) {
  return api::guarded([&] {
    api::callback_ranks with(ranks);
    const auto mine =
        converted_together(with, "sum_shards()", 3, [&] { return parts_of(parts, count); });
    const samebits::sharded_sums s = samebits::sum_shards(with, mine);
    if (sums != nullptr) std::copy(s.of_tensors.begin(), s.of_tensors.end(), sums);
    api::write(total, s.total);
  });
}

samebits_status samebits_reduce_gradients(const samebits_communicator* ranks,
                                          const samebits_view* gradients, size_t count,
                                          const samebits_gradient_reduction* options) {
  return api::guarded([&] {
    api::callback_ranks with(ranks);
    const auto a = converted_together(with, "reduce_gradients()", 2,
                                      [&] { return arguments_of(gradients, count, options); });
    samebits::reduce_gradients(with, a.gradients, a.how);
  });
}

samebits_status samebits_shard_layout_create(const samebits_communicator* ranks,
                                             const samebits_tensor_list* shards,
                                             const uint64_t* first,
                                             samebits_shard_layout** layout) {
  return api::guarded([&] {
    api::callback_ranks with(ranks);
    struct list {
      const samebits::tensor_list& shards;
      samebits_shard_layout*& out;
    };
    const list mine = converted_together(with, "shard_layout", 2, [&] {
      const samebits::tensor_list& all = api::list_of(shards, "shards");
      api::check_array(first, all.size(), "first");
      return list{all, api::required(layout, "layout")};
    });
    mine.out = new samebits_shard_layout{
        samebits::shard_layout(with, mine.shards, {first, mine.shards.size()})};
  });
}

void samebits_shard_layout_destroy(samebits_shard_layout* layout) { delete layout; }
