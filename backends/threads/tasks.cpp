// Tasks: implementation. Handles threads that cannot be started, and exceptions.
#include "backends/threads/tasks.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace samebits::backends {
namespace {

/// Keeps the first exception of several threads.
class first_exception {
 public:
  /// Stores the current exception. Must be called in a handler.
  void keep() noexcept {
    if (!taken_.test_and_set()) caught_ = std::current_exception();
  }
  /// Rethrows the stored exception. Must be called after the threads have ended.
  void rethrow() const {
    if (caught_ != nullptr) std::rethrow_exception(caught_);
  }

 private:
  std::atomic_flag taken_;
  std::exception_ptr caught_;
};

}  // namespace

int thread_count(int threads) {
  if (threads != 0) return threads;
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

void run_tasks(std::int64_t count, const std::function<void(std::int64_t)>& task) {
  first_exception failure;
  const auto run = [&](std::int64_t i) noexcept {
    try {
      task(i);
    } catch (...) {
      failure.keep();
    }
  };
  {
    std::vector<std::jthread> threads;
    std::int64_t next = 1;
    try {
      threads.reserve(static_cast<std::size_t>(std::max<std::int64_t>(count - 1, 0)));
      for (; next < count; ++next) threads.emplace_back(run, next);
    } catch (const std::system_error&) {  // the system has no more threads
    } catch (const std::bad_alloc&) {     // or no memory for a thread
    }
    if (count > 0) run(0);
    for (; next < count; ++next) run(next);
  }  // the destructors of the threads join them
  failure.rethrow();
}

}  // namespace samebits::backends
