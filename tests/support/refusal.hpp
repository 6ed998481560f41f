// The message of the exception with which a call refuses its arguments.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "samebits/error.hpp"

namespace samebits::support {

/// The message of the Error that a call throws; empty if it throws none.
template <class Error = invalid_argument, class Call>
std::string refusal_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// Expects that a call throws an Error whose message has `part`.
template <class Error = invalid_argument, class Call>
void expect_refusal(const std::string& part, const Call& call) {
  const std::string text = refusal_of<Error>(call);
  EXPECT_FALSE(text.empty()) << "nothing was refused; expected: " << part;
  EXPECT_TRUE(contains(text, part)) << text << "\nexpected: " << part;
}

}  // namespace samebits::support
