// Lists of tensors to quantize, on threads: implementation.
#include "backends/threads/quantize_list.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/threads/parts.hpp"
#include "backends/threads/tasks.hpp"

namespace samebits::backends {

void quantize_each(void (*quantize_one)(const quantize_call&, const executor&),
                   const quantize_list_data& list, const executor& where) {
  std::vector<const quantize_call*> small, large;
  std::int64_t small_tiles = 0, large_tiles = 0;  // tile count of the tensor with the most tiles
  for (const quantize_call& call : list.calls) {
    const bool is_small = call.in.rows * call.in.cols < 2 * elements_worth_a_thread;
    (is_small ? small : large).push_back(&call);
    std::int64_t& tiles = is_small ? small_tiles : large_tiles;
    tiles = std::max(tiles, call.grid.rows * call.grid.cols);
  }
  const auto count = static_cast<std::int64_t>(small.size());
  const std::int64_t workers = std::min<std::int64_t>(count, thread_count(where.threads));
  const auto room = std::make_unique_for_overwrite<numerics::tile_scale[]>(
      static_cast<std::size_t>(std::max(large_tiles, workers * small_tiles)));
  const auto quantize = [&](quantize_call call, numerics::tile_scale* own, const executor& by) {
    call.scale_room = own;
    quantize_one(call, by);
  };
  for (const quantize_call* call : large) quantize(*call, room.get(), where);
  executor alone = where;
  alone.threads = 1;
  for_each_task(workers, [&](std::int64_t worker) {
    const element_range dealt = part_of(count, workers, worker);
    for (std::int64_t i = dealt.begin; i < dealt.end; ++i) {
      quantize(*small[static_cast<std::size_t>(i)], room.get() + worker * small_tiles, alone);
    }
  });
}

}  // namespace samebits::backends
