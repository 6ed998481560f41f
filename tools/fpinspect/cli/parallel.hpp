// Runs independent tasks on several threads.
#pragma once

#include <atomic>
#include <exception>
#include <new>
#include <system_error>
#include <thread>

#include "fpinspect/common.hpp"

namespace fpinspect {

/// Calls task(i, worker) once for each i in [0, count), on at most `threads` >= 1 threads. Worker
/// numbers are below `threads`. Uses fewer threads if the system has no more. After an exception no
/// further task starts; the first exception is rethrown when all threads have ended.
template <class Task>
void for_each_index(std::size_t count, std::size_t threads, const Task& task) {
  std::atomic<std::size_t> next = 0;
  std::atomic_flag failed;
  std::exception_ptr failure;
  const auto work = [&](std::size_t worker) noexcept {
    try {
      for (std::size_t i = next++; i < count; i = next++) task(i, worker);
    } catch (...) {
      next = count;
      if (!failed.test_and_set()) failure = std::current_exception();
    }
  };
  {
    const std::size_t workers = std::min(count, threads);
    std::vector<std::jthread> others;
    try {
      for (std::size_t worker = 1; worker < workers; ++worker) others.emplace_back(work, worker);
    } catch (const std::system_error&) {  // the threads that run do all tasks
    } catch (const std::bad_alloc&) {
    }
    work(0);
  }  // joins the threads
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace fpinspect
