// Tasks: runs tasks on several threads; completes even if no thread can be started.
#pragma once

#include <cstdint>
#include <functional>

namespace samebits::backends {

/// Number of threads that `threads` requests; 0 requests one per hardware thread.
int thread_count(int threads);

/// Calls task(i) once for each i in [0, count). task(0) runs on the calling thread; each other task
/// runs on its own thread. If threads cannot be started, the calling thread runs their tasks. A
/// task must therefore not wait for another one.
///
/// Returns when all tasks have ended. An exception of a task does not end the other tasks; the
/// first exception is rethrown at the end. Throws no exceptions of its own.
void run_tasks(std::int64_t count, const std::function<void(std::int64_t)>& task);

/// run_tasks() without a copy of the task, which could throw std::bad_alloc.
template <class Task>
void for_each_task(std::int64_t count, const Task& task) {
  run_tasks(count, std::cref(task));
}

}  // namespace samebits::backends
