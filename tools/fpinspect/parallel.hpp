// Independent tasks shared among threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace fpinspect {

/// Calls task(i, worker) once for each i below `count`, on at most `threads` >= 1 threads with
/// worker numbers below `threads`. The task must not throw.
template <class Task>
void for_each_index(std::size_t count, std::size_t threads, const Task& task) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&](std::size_t worker) {
    for (std::size_t i = next++; i < count; i = next++) task(i, worker);
  };
  const std::size_t workers = std::min(count, threads);
  std::vector<std::jthread> others;
  for (std::size_t worker = 1; worker < workers; ++worker) others.emplace_back(work, worker);
  work(0);
}

}  // namespace fpinspect
