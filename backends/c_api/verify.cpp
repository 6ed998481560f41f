// Self-test and verification through the C interface.
#include "samebits/verify.hpp"

#include <string>

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "backends/c_api/arguments/options.hpp"
#include "samebits/c/verify.h"
#include "samebits/self_test.hpp"

namespace api = samebits::c_api;

namespace {

void report(const samebits::self_test_result& r, samebits_self_test_function each, void* user) {
  const std::string backend(r.backend);
  const std::string check(r.check);
  const samebits_self_test_result result = {.backend = backend.c_str(),
                                            .check = check.c_str(),
                                            .detail = r.detail.c_str(),
                                            .passed = r.passed ? 1 : 0,
                                            .reserved = 0};
  each(user, &result);
}

void report(const samebits::verification& v, samebits_verify_function each, void* user) {
  const std::string backend(v.backend);
  const samebits_verification entry = {.backend = backend.c_str(),
                                       .what = v.what.c_str(),
                                       .first_difference = v.first_difference.c_str(),
                                       .compared = v.compared,
                                       .differed = v.differed};
  each(user, &entry);
}

}  // namespace

samebits_status samebits_self_test(const char* backend, samebits_self_test_function each,
                                   void* user, int32_t* failed) {
  return api::guarded([&] {
    int32_t failures = 0;
    for (const samebits::self_test_result& r : samebits::self_test(api::text(backend))) {
      failures += r.passed ? 0 : 1;
      if (each != nullptr) report(r, each, user);
    }
    api::write(failed, failures);
  });
}

samebits_status samebits_initialize(const char* backend) {
  return api::guarded([&] { samebits::initialize(api::text(backend)); });
}

samebits_status samebits_verify(const samebits_verify_options* options,
                                samebits_verify_function each, void* user, uint64_t* compared,
                                uint64_t* differed) {
  return api::guarded([&] {
    const samebits_verify_options o = api::read(options, "options");
    samebits::verify_options all = {
        .backend = api::text(o.backend),
        .extent = api::enumerator<samebits::verify_extent>(o.extent, "options.extent"),
        .threads = o.threads};
    if (each != nullptr) {
      all.on_result = [&](const samebits::verification& v) { report(v, each, user); };
    }
    uint64_t results = 0;
    uint64_t differences = 0;
    for (const samebits::verification& v : samebits::verify(all)) {
      results += v.compared;
      differences += v.differed;
    }
    api::write(compared, results);
    api::write(differed, differences);
  });
}
