// Work on a GPU timed with CUDA events beside a plain device copy, for the gpu_*bench programs.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace samebits::bench {

/// Ends the program where a call failed; `what` names it.
inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

/// Something to time and the bytes that it must move: each input read once, each result written
/// once.
struct work {
  std::string name;
  double bytes;
  std::function<void(cudaStream_t)> run;
  std::vector<float> ms = {};
};

/// The copy that all shares are of: cudaMemcpyAsync between device buffers, bytes read and written.
inline work copy_of(void* to, const void* from, std::size_t bytes) {
  return {"copy", 2.0 * static_cast<double>(bytes), [=](cudaStream_t stream) {
            check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "copy");
          }};
}

/// Leaves the work whose name contains `only`, and the first, the copy.
inline void keep_only(std::vector<work>& list, std::string_view only) {
  std::erase_if(list, [&](const work& w) {
    return &w != list.data() && w.name.find(only) == std::string::npos;
  });
}

/// Milliseconds.
inline double median(std::vector<float> ms) {
  const auto middle = ms.begin() + static_cast<std::ptrdiff_t>(ms.size() / 2);
  std::nth_element(ms.begin(), middle, ms.end());
  return static_cast<double>(*middle);
}

/// `rounds` rounds over all work after one that warms up.
inline void time_all(std::vector<work>& list, int rounds, cudaStream_t stream) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  for (int round = -1; round < rounds; ++round) {
    for (work& w : list) {
      check(cudaEventRecord(begin, stream), w.name.c_str());
      w.run(stream);
      check(cudaEventRecord(end, stream), w.name.c_str());
      check(cudaEventSynchronize(end), w.name.c_str());
      float ms = 0;
      check(cudaEventElapsedTime(&ms, begin, end), w.name.c_str());
      if (round >= 0) w.ms.push_back(ms);
    }
  }
  check(cudaEventDestroy(begin), "event");
  check(cudaEventDestroy(end), "event");
}

/// A table of medians on stdout, and as JSON in a file if there is one; the first work is the copy.
inline void print(const std::vector<work>& list, std::FILE* json = nullptr) {
  const double copy = list[0].bytes / median(list[0].ms);
  std::printf("| work | ms | GB/s | share of copy |\n|---|---|---|---|\n");
  if (json != nullptr) std::fprintf(json, "[");
  for (const work& w : list) {
    const double ms = median(w.ms);
    const double share = w.bytes / ms / copy;
    std::printf("| %s | %.4f | %.0f | %.3f |\n", w.name.c_str(), ms, w.bytes / ms / 1e6, share);
    if (json != nullptr) {
      std::fprintf(json, "%s\n {\"work\": \"%s\", \"ms\": %.4f, \"bytes\": %.0f, \"share\": %.4f}",
                   &w == list.data() ? "" : ",", w.name.c_str(), ms, w.bytes, share);
    }
  }
  if (json != nullptr) std::fprintf(json, "\n]\n");
}

}  // namespace samebits::bench
