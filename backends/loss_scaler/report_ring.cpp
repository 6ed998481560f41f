// The host side of a ring of reports.
#include "backends/loss_scaler/report_ring.hpp"

#include <atomic>
#include <cstddef>
#include <optional>

#include "backends/dispatch/refuse.hpp"
#include "numerics/loss_scale/report_ring.hpp"

namespace samebits::backends {
namespace {

struct host_words {
  static std::uint64_t load(const std::uint64_t& word) {
    // Before C++26 atomic_ref takes no const object. Loading does not write.
    return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(word))
        .load(std::memory_order_relaxed);
  }
  static void store(std::uint64_t& word, std::uint64_t value) {
    std::atomic_ref<std::uint64_t>(word).store(value, std::memory_order_relaxed);
  }
  static void fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
};

void check_ring(std::span<const numerics::report_slot> ring) {
  refuse_if(ring.empty(), "ring: must have one slot or more");
}

}  // namespace

void put_report(std::span<numerics::report_slot> ring, const step_report& report) {
  check_ring(ring);
  numerics::put_report<host_words>(ring.data(), ring.size(), report);
}

report_reader::report_reader(std::span<const numerics::report_slot> ring, std::uint64_t first)
    : ring_((check_ring(ring), ring)), next_(first) {}

std::optional<step_report> report_reader::poll() {
  // After a jump the oldest report in the ring is less than one ring further on. If the writer overtakes
  // the reader again, a later call catches up.
  for (std::size_t i = 0; i <= ring_.size(); ++i) {
    step_report report;
    const std::uint64_t wanted = next_;
    switch (numerics::take_report<host_words>(ring_.data(), ring_.size(), next_, report)) {
      case numerics::report_found::here: return report;
      case numerics::report_found::not_yet: return std::nullopt;
      case numerics::report_found::overwritten: lost_ += next_ - wanted; break;
    }
  }
  return std::nullopt;
}

}  // namespace samebits::backends
