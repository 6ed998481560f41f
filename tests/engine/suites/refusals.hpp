// Tables of refused calls: each row spoils one argument of a call that would succeed.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "samebits/error.hpp"

namespace samebits::support {

/// What a message says about a call after spoil(call). A Call has run() and expect_untouched().
template <class Call>
struct refusal {
  std::string argument;  ///< with which the message begins
  std::string expected;  ///< which it contains
  void (*spoil)(Call&);
};

/// Each call throws Error with its message, and writes nothing.
template <class Call, class Error = invalid_argument>
void expect_refused(std::initializer_list<refusal<Call>> rows) {
  for (const refusal<Call>& row : rows) {
    Call call;
    row.spoil(call);
    try {
      call.run();
      ADD_FAILURE() << "nothing was refused; expected " << row.argument << " " << row.expected;
    } catch (const Error& e) {
      const std::string text = e.what();
      EXPECT_EQ(text.rfind(row.argument, 0), 0u) << text << "\nexpected " << row.argument;
      EXPECT_NE(text.find(row.expected), std::string::npos)
          << text << "\nexpected " << row.expected;
    }
    call.expect_untouched();
  }
}

}  // namespace samebits::support
