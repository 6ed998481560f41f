// No exception leaves a function of the C interface: the status and message of each exception.
#include "backends/c_api/error.hpp"
#include "samebits/error.hpp"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <thread>

#include "samebits/c/samebits.h"

namespace samebits::c_api {
namespace {

/// Expects a status and a message for an exception.
template <class Exception>
void expect_status(const Exception& e, int status, const char* message) {
  EXPECT_EQ(guarded([&] { throw e; }), status);
  EXPECT_STREQ(samebits_last_error(), message);
}

TEST(CErrors, StatusOfEachException) {
  expect_status(invalid_argument("x: must be 1"), SAMEBITS_INVALID_ARGUMENT, "x: must be 1");
  expect_status(invalid_argument("outputs.codes: shape"), SAMEBITS_INVALID_ARGUMENT,
                "codes: shape");
  expect_status(unsupported("a"), SAMEBITS_UNSUPPORTED, "a");
  expect_status(environment_error("b"), SAMEBITS_ENVIRONMENT_ERROR, "b");
  expect_status(call_order_error("c"), SAMEBITS_CALL_ORDER_ERROR, "c");
  expect_status(scale_exhausted("d"), SAMEBITS_SCALE_EXHAUSTED, "d");
  expect_status(cuda_error("e", 719), SAMEBITS_CUDA_ERROR, "e");
  expect_status(std::bad_alloc(), SAMEBITS_NO_MEMORY, "out of memory");
  expect_status(std::out_of_range("f"), SAMEBITS_INTERNAL_ERROR, "internal error: f");
  expect_status(7, SAMEBITS_INTERNAL_ERROR, "internal error: an exception of an unknown type");
  EXPECT_EQ(guarded([] {}), SAMEBITS_OK);  // keeps the message
  EXPECT_STREQ(samebits_last_error(), "internal error: an exception of an unknown type");
}

TEST(CErrors, AMessageNamesTheNestedCause) {
  const int status = guarded([] {
    try {
      throw std::runtime_error("the bus");
    } catch (...) {
      std::throw_with_nested(incomplete_write("scale"));
    }
  });
  EXPECT_EQ(status, SAMEBITS_INCOMPLETE_WRITE);
  EXPECT_STREQ(samebits_last_error(), "scale: the bus");
}

TEST(CErrors, EachThreadHasItsOwnMessage) {
  expect_status(unsupported("mine"), SAMEBITS_UNSUPPORTED, "mine");
  std::thread([] {
    EXPECT_STREQ(samebits_last_error(), "");
    expect_status(unsupported("another"), SAMEBITS_UNSUPPORTED, "another");
  }).join();
  EXPECT_STREQ(samebits_last_error(), "mine");
}

}  // namespace
}  // namespace samebits::c_api
