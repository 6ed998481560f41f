// Prints the names of the self-test's probes that fail in the flags it is compiled and linked with.
#include <cstdio>

#include "backends/self_test/probes.hpp"

int main() {
  namespace b = samebits::backends;
  b::probe_report report{};
  b::run_probes(report);
  for (int i = 0; i < b::probe_count; ++i) {
    if (report.of[i].bits != 0) std::puts(b::probe_names[i]);
  }
  std::puts("done");
  return 0;
}
