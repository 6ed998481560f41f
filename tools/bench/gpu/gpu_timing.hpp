// Times GPU work with CUDA events, beside a plain device copy, for the gpu_*bench programs.
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

/// Ends the program if a CUDA call failed; `what` names the call.
inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

/// One operation to time, and the bytes that the operation must move: each input read once, each
/// result written once.
struct work {
  std::string name;
  double bytes;
  std::function<void(cudaStream_t)> run;
  /// Called before each run, not timed; may be empty.
  std::function<void(cudaStream_t)> prepare = {};
  std::vector<float> ms = {};  ///< one time per round
};

/// The copy that every share refers to: cudaMemcpyAsync between device buffers. Counts bytes read
/// and bytes written.
inline work copy_of(void* to, const void* from, std::size_t bytes) {
  return {"copy", 2.0 * static_cast<double>(bytes), [=](cudaStream_t stream) {
            check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "copy");
          }};
}

/// Keeps the first entry, the copy, and all work whose name contains `only`.
inline void keep_only(std::vector<work>& list, std::string_view only) {
  std::erase_if(list, [&](const work& w) {
    return &w != list.data() && w.name.find(only) == std::string::npos;
  });
}

/// Median of times in milliseconds.
inline double median(std::vector<float> ms) {
  const auto middle = ms.begin() + static_cast<std::ptrdiff_t>(ms.size() / 2);
  std::nth_element(ms.begin(), middle, ms.end());
  return static_cast<double>(*middle);
}

/// Times `rounds` rounds over all work, after one round that warms up.
inline void time_all(std::vector<work>& list, int rounds, cudaStream_t stream) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  for (int round = -1; round < rounds; ++round) {
    for (work& w : list) {
      if (w.prepare) w.prepare(stream);
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

/// Prints a table of medians on stdout, and JSON to `json` if not null. The first work must be the
/// copy.
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
