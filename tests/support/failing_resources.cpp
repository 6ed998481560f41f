// Replaces operator new and pthread_create() by ones that can be told to fail.
#include "support/failing_resources.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

constexpr int unlimited = std::numeric_limits<int>::max();

std::atomic<int> threads_left = unlimited;
std::atomic<int> threads_refused = 0;
std::atomic<int> allocations_left = unlimited;
std::atomic<bool> allocation_failed = false;
std::atomic<bool> only_one_allocates = false;
thread_local bool allocates = false;

/// Takes one of what is left.
bool take(std::atomic<int>& left) {
  int n = left.load();
  while (n != unlimited && n > 0 && !left.compare_exchange_weak(n, n - 1)) {
  }
  return n > 0;
}

void* allocate(std::size_t size, std::size_t alignment) {
  const bool allowed = !only_one_allocates || allocates;
  void* const memory =
      !allowed || !take(allocations_left) ? nullptr
      : alignment == 0
          ? std::malloc(size == 0 ? 1 : size)
          : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory != nullptr) return memory;
  allocation_failed = true;
  throw std::bad_alloc();
}

}  // namespace

// NOLINTBEGIN: replacements of the library's own
void* operator new(std::size_t size) { return allocate(size, 0); }
void* operator new[](std::size_t size) { return allocate(size, 0); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) noexcept {
  using function = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto real = reinterpret_cast<function>(dlsym(RTLD_NEXT, "pthread_create"));
  if (take(threads_left)) return real(thread, attributes, start, argument);
  ++threads_refused;
  return EAGAIN;
}
// NOLINTEND

namespace samebits::support {

only_threads::only_threads(int count) {
  threads_refused = 0;
  threads_left = count;
}
only_threads::~only_threads() { threads_left = unlimited; }
int only_threads::refused() const { return threads_refused; }

no_memory_elsewhere::no_memory_elsewhere() {
  allocates = true;
  only_one_allocates = true;
}
no_memory_elsewhere::~no_memory_elsewhere() { only_one_allocates = false; }

only_allocations::only_allocations(int first) {
  allocation_failed = false;
  allocations_left = first;
}
bool only_allocations::failed() { return allocation_failed; }
only_allocations::~only_allocations() { allocations_left = unlimited; }

}  // namespace samebits::support
