// escape and decode_utf8: what reaches a message, and what counts as text.
#include "tensor_file/escape.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

#include "tensor_file/utf8.hpp"

namespace samebits::tensor_file::testing {
namespace {

TEST(Escape, KeepsPrintableText) {
  EXPECT_EQ(escape(""), "");
  EXPECT_EQ(escape("layer.0 ~weight"), "layer.0 ~weight");
  EXPECT_EQ(escape("größe 重み \U0001f600"), "größe 重み \U0001f600");
}

TEST(Escape, WritesTheRestInHex) {
  EXPECT_EQ(escape(std::string("\0\n\x1f\x7f", 4)), "\\x00\\x0a\\x1f\\x7f");
  EXPECT_EQ(escape("\xff\xc3("), "\\xff\\xc3(");
  EXPECT_EQ(escape("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(escape("\xc2\x85"), "\\xc2\\x85");           // C1 control
  EXPECT_EQ(escape("a\xe2\x80\xae"
                   "b"),
            "a\\xe2\\x80\\xae"
            "b");  // right-to-left override
  EXPECT_EQ(escape("\xe2\x80\xa8\xef\xbb\xbf"), "\\xe2\\x80\\xa8\\xef\\xbb\\xbf");
}

// The characters that break or reorder a line, and their neighbours that do not.
TEST(Escape, HidesWhatBreaksOrReordersALine) {
  for (const char* const hidden :
       {"\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaa",
        "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9", "\xef\xbb\xbf", "\xc2\x80", "\xc2\x9f"}) {
    EXPECT_EQ(escape(hidden).substr(0, 2), "\\x") << escape(hidden);
  }
  for (const char* const shown :
       {"\xd8\x9b", "\xd8\x9d", "\xe2\x80\x90", "\xe2\x80\xa7", "\xe2\x80\xaf", "\xe2\x81\xa5",
        "\xe2\x81\xaa", "\xef\xbb\xbe", "\xc2\xa0", "~", " "}) {
    EXPECT_EQ(escape(shown), shown);
  }
}

TEST(Escape, MarksQuotesAndBackslashes) {
  EXPECT_EQ(escape("a\"b\\c"), "a\\\"b\\\\c");
  EXPECT_EQ(quote("a\"b"), "\"a\\\"b\"");
}

TEST(Escape, CutsAtACharacter) {
  EXPECT_EQ(escape(std::string(80, 'a')), std::string(80, 'a'));
  EXPECT_EQ(escape(std::string(81, 'a')), std::string(80, 'a').append("..."));
  EXPECT_EQ(escape("aaé", 3), "aa...");
  EXPECT_EQ(escape("aaé", 4), "aaé");
  EXPECT_EQ(escape("aa\n", 5), "aa...");
  EXPECT_EQ(escape("aa\n", 6), "aa\\x0a");
}

TEST(Escape, IsAlwaysOneLineOfUtf8) {
  EXPECT_TRUE(rc::check([] {
    const auto bytes = *rc::gen::container<std::string>(
        rc::gen::map(rc::gen::inRange(0, 256), [](int value) { return static_cast<char>(value); }));
    const std::string escaped = escape(bytes);
    RC_ASSERT(find_invalid_utf8(escaped) == std::string::npos);
    RC_ASSERT(escaped.size() <= 83u);
    for (const char c : escaped) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20);
  }));
}

// Every scalar value, encoded here by the table of the Unicode standard, decodes to itself.
TEST(Utf8, DecodesEveryCharacter) {
  for (std::uint32_t c = 0; c <= 0x10ffff; ++c) {
    std::string text;
    const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xc0 | c >> 6), put(0x80 | (c & 63));
    } else if (c < 0x10000) {
      put(0xe0 | c >> 12), put(0x80 | (c >> 6 & 63)), put(0x80 | (c & 63));
    } else {
      put(0xf0 | c >> 18), put(0x80 | (c >> 12 & 63)), put(0x80 | (c >> 6 & 63));
      put(0x80 | (c & 63));
    }
    const utf8_character decoded = decode_utf8(text, 0);
    if (c >= 0xd800 && c <= 0xdfff) {
      ASSERT_EQ(decoded.length, 0u) << c;
    } else {
      ASSERT_EQ(decoded.length, text.size()) << c;
      ASSERT_EQ(decoded.value, c);
      const std::string_view shorter = std::string_view(text).substr(0, text.size() - 1);
      ASSERT_EQ(find_invalid_utf8(shorter), shorter.empty() ? std::string_view::npos : 0u) << c;
    }
  }
}

// Of all sequences of two bytes, exactly 128 * 128 + 30 * 64 are well formed from end to end.
TEST(Utf8, CountsWellFormedPairs) {
  int well_formed = 0;
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const char text[2] = {static_cast<char>(a), static_cast<char>(b)};
      well_formed += find_invalid_utf8({text, 2}) == std::string_view::npos ? 1 : 0;
    }
  }
  EXPECT_EQ(well_formed, 128 * 128 + 30 * 64);
}

TEST(Escape, LeavesQuotesOfAFinishedSentence) {
  EXPECT_EQ(escape_message("name: \"a\\b\" is wrong"), "name: \"a\\b\" is wrong");
  EXPECT_EQ(escape_message("a\x1b\"\xff"), "a\\x1b\"\\xff");
}

}  // namespace
}  // namespace samebits::tensor_file::testing
