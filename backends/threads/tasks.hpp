// Tasks: work shared among threads, complete even where no thread can be started.
#pragma once

#include <cstdint>
#include <functional>

namespace samebits::backends {

/// Threads that `threads` asks for; 0 asks for one per hardware thread.
int thread_count(int threads);

/// Calls task(i) once for each i in [0, count): task(0) on the calling thread and the others each
/// on a thread of its own. The calling thread also runs the tasks for which no thread can be
/// started, so a task must not wait for another one.
///
/// Returns when all tasks have ended. An exception of a task does not end the others; the first is
/// then rethrown. Throws nothing of its own.
void run_tasks(std::int64_t count, const std::function<void(std::int64_t)>& task);

/// The same without a copy of the task, which could throw std::bad_alloc.
template <class Task>
void for_each_task(std::int64_t count, const Task& task) {
  run_tasks(count, std::cref(task));
}

}  // namespace samebits::backends
