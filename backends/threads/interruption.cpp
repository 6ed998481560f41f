// Interruption: the check of a thread's calls, and when it is asked.
#include "backends/threads/interruption.hpp"

#include <chrono>

namespace samebits::backends {
namespace {

using clock = std::chrono::steady_clock;
constexpr auto between_checks = std::chrono::milliseconds(100);

struct thread_check {
  interrupt_check check = nullptr;
  clock::time_point next;  ///< when the check is asked again
  bool ended = false;      ///< the check has said so
};

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
thread_local thread_check own;

}  // namespace

interruption::interruption()
    : possible_(own.check != nullptr), caller_(std::this_thread::get_id()) {}

void interruption::ask() {
  if (std::this_thread::get_id() == caller_) {
    if (!own.ended && clock::now() >= own.next) {
      own.ended = own.check() != 0;
      own.next = clock::now() + between_checks;
    }
    if (own.ended) ended_ = true;
  }
  if (ended_) throw interrupted("the caller's interrupt check ended the call");
}

}  // namespace samebits::backends

samebits::interrupt_check samebits::set_interrupt_check(interrupt_check check) noexcept {
  using namespace backends;
  const interrupt_check before = own.check;
  own = {check, check == nullptr ? clock::time_point{} : clock::now() + between_checks, false};
  return before;
}
