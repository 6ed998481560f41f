// Pages: benchmark buffers on huge pages, so that page walks do not count as conversion time.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <new>

namespace samebits::bench {

/// Zeroed memory of at least `bytes` bytes, every page touched.
class pages {
 public:
  explicit pages(std::size_t bytes) : bytes_((bytes + huge - 1) / huge * huge) {
    void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<std::byte*>(p);
    madvise(data_, bytes_, MADV_HUGEPAGE);  // a wish: without it the figures only get worse
    std::memset(data_, 0, bytes_);
  }
  pages(const pages&) = delete;
  pages& operator=(const pages&) = delete;
  ~pages() { munmap(data_, bytes_); }

  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  static constexpr std::size_t huge = std::size_t{1} << 21;  // bytes
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace samebits::bench
