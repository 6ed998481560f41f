// Times GPU work with CUDA events, beside a plain device copy, for the gpu_*bench programs.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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

/// Times nine rounds over all work, after one round that warms up.
inline void time_all(std::vector<work>& list) {
  constexpr int rounds = 9;
  cudaStream_t stream;
  check(cudaStreamCreate(&stream), "stream");
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

/// Prints a table of medians on stdout, and JSON to `json` if not null.
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

/// Times and prints the copy, which comes first, and all work whose name contains `only`.
inline void run(std::vector<work> list, std::string_view only, std::FILE* json = nullptr) {
  keep_only(list, only);
  time_all(list);
  print(list, json);
}

/// The options of a program.
struct bench_options {
  const char* only = "";       ///< --only TEXT
  int log2 = 0;                ///< of the size, by an option that the program names
  const char* json = nullptr;  ///< --json FILE
};

/// Reads options; prints `usage` and ends the program if they are wrong. `size` is the option of the
/// size, null: none; `log2` its default, which must be in [lowest, highest].
inline bench_options options_of(int argc, char** argv, const char* usage,
                                const char* size = nullptr, int log2 = 0, int lowest = 0,
                                int highest = 0) {
  bench_options all{.log2 = log2};
  bool known = argc % 2 == 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--only") {
      all.only = argv[i + 1];
    } else if (size != nullptr && option == size) {
      all.log2 = std::atoi(argv[i + 1]);
    } else if (option == "--json" && std::strstr(usage, "--json") != nullptr) {
      all.json = argv[i + 1];
    } else {
      known = false;
    }
  }
  if (known && lowest <= all.log2 && all.log2 <= highest) return all;
  std::fprintf(stderr, "usage: %s\n", usage);
  std::exit(2);
}

/// Elements of each tensor of the model: an embedding; per layer attention, projection and two
/// feed-forward matrices with their biases, and two normalisations.
inline std::vector<std::int64_t> model_sizes() {
  constexpr std::int64_t d = 2048, layers = 24, words = 50304;
  std::vector<std::int64_t> sizes = {words * d};
  for (int layer = 0; layer < layers; ++layer) {
    for (const std::int64_t n :
         {3 * d * d, d * d, 4 * d * d, 4 * d * d, 3 * d, d, 4 * d, d, d, d, d, d}) {
      sizes.push_back(n);
    }
  }
  return sizes;
}

}  // namespace samebits::bench
