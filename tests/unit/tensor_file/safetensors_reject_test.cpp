// parse_safetensors: one test for each reason to refuse a file.
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "support.hpp"
#include "tensor_file/safetensors/safetensors.hpp"

namespace samebits::tensor_file::testing {
namespace {

void refuse_file(const std::string& file, std::string_view text,
                 error_kind kind = error_kind::malformed) {
  expect_refused([&] { parse_safetensors(bytes_of(file)); }, kind, text);
}

void refuse(const std::string& header, std::string_view text,
            error_kind kind = error_kind::malformed) {
  refuse_file(safetensors_of(header, "abcd"), text, kind);
}

// Refusals of one tensor "t" with these fields.
void refuse_fields(const std::string& fields, std::string_view text,
                   error_kind kind = error_kind::malformed) {
  refuse("{\"t\":{" + fields + "}}", text, kind);
}

void refuse_shape(const std::string& shape, std::string_view text) {
  refuse_fields(R"("dtype":"U8","shape":)" + shape + R"(,"data_offsets":[0,4])", text);
}

void refuse_offsets(const std::string& offsets, std::string_view text) {
  refuse_fields(R"("dtype":"U8","shape":[4],"data_offsets":)" + offsets, text);
}

const std::string good_fields = R"("dtype":"U8","shape":[4],"data_offsets":[0,4])";
const std::string good = "{\"t\":{" + good_fields + "}}";

std::string two(const char* a, const char* b) {
  return R"({"a":{"dtype":"U8",)" + std::string(a) + R"(},"b":{"dtype":"U8",)" + b + "}}";
}

TEST(SafetensorsRefuses, NothingOfAGoodFile) {
  EXPECT_EQ(parse_safetensors(bytes_of(safetensors_of(good, "abcd"))).tensors.size(), 1u);
}

TEST(SafetensorsRefuses, Length) {
  for (std::size_t size = 0; size < 8; ++size) {
    refuse_file(std::string(size, '\0'), "byte 0: the file has " + std::to_string(size) + " bytes");
  }
  refuse_file(little_endian(100'000'001, 8) + std::string(64, ' '),
              "byte 0: a header of 100000001 bytes; at most 100000000");
  refuse_file(std::string(16, '\xff'), "a header of 18446744073709551615 bytes");
  refuse_file(little_endian(3, 8) + "{}", "a header of 3 bytes, but the file has only 2 more");
  refuse_file(little_endian(100'000'000, 8) + "{}", "but the file has only 2 more");
  const std::string file = safetensors_of(good, "abcd");
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_THROW(parse_safetensors(bytes_of(std::string_view(file).substr(0, size))), file_error);
  }
}

TEST(SafetensorsRefuses, HeadersThatAreNoJson) {
  refuse_file(std::string(8, '\0'), "byte 8: the header must begin with '{'");
  for (const std::string& header :
       {std::string(), " " + good, "\xef\xbb\xbf" + good, std::string("[]"), std::string("null")}) {
    refuse(header, "byte 8: the header must begin with '{'");
  }
  for (const char* const bad : {"\xff", "\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                                "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xc3", "\xe2\x82"}) {
    refuse("{\"" + std::string(bad) + "\":{" + good_fields + "}}",
           "byte 10: the header is not UTF-8");
  }
  refuse(good + "\xe9", "byte " + std::to_string(8 + good.size()) + ": the header is not UTF-8");
  refuse("{t}", "byte 10: the header is not JSON");
  refuse("{]}", "byte 9: the header is not JSON");
  for (const std::string& header : std::initializer_list<std::string>{
           "{'t':1}", "{\"t\"}", "{\"t\":}", "{\"t\":{" + good_fields + "},}",
           "{\"t\":{" + good_fields + ",}}", "{/* */}", "{\"t\":NaN}", "{\"\n\":{}}",
           "{\"\\x\":{}}", "{\"\\ud800\":{}}", "{\"t\":{" + good_fields + "}", good + "\n}"}) {
    refuse(header, "the header is not JSON");
  }
  refuse("{}}", "byte 10: the header is not JSON");
  for (const char* const shape : {"[04]", "[4,]", "[+4]", "[1e999]"}) {
    refuse_shape(shape, "the header is not JSON");
  }
  refuse("{", "byte 8: the header must end in '}' and spaces");
  // A JSON parser may take a zero byte for the end of the text and skip all that follows.
  refuse(good + std::string(1, '\0') + "}", "the header is not JSON: it holds a zero byte");
  refuse(good + std::string(1, '\0'), "the header is not JSON: it holds a zero byte");
  refuse("{" + std::string(1, '\0') + "}", "byte 9: the header is not JSON: it holds a zero byte");
  const std::string at = "byte " + std::to_string(8 + good.size()) + ": ";
  for (const char* const tail : {"\n", "\t", "\r", ",", "]", "x"}) {
    refuse(good + tail, at + "the header must end in '}' and spaces");
  }
  refuse(good + "\n  ", at + "the header must end in '}' and spaces");
  refuse(good + "{}", at + "the header is not JSON");
}

TEST(SafetensorsRefuses, KeysAndFields) {
  refuse("{\"t\":{" + good_fields + "},\"t\":{" + good_fields + "}}",
         "the tensor \"t\" occurs twice");
  refuse("{\"t\":{" + good_fields + R"(},"\u0074":{)" + good_fields + "}}",
         "the tensor \"t\" occurs twice");
  refuse_fields(good_fields + R"(,"dtype":"U8")", "tensor \"t\": the field dtype occurs twice");
  refuse_fields(good_fields + R"(,"shape":[4])", "tensor \"t\": the field shape occurs twice");
  refuse_fields(good_fields + R"(,"data_offsets":[0,4])", "the field data_offsets occurs twice");
  refuse(R"({"__metadata__":{},"__metadata__":{}})", "the key __metadata__ occurs twice");
  refuse(R"({"__metadata__":{"a":"1","b":"2","a":"1"}})",
         "__metadata__: the key \"a\" occurs twice");
  refuse_fields(good_fields + R"(,"strides":[1])", "tensor \"t\": unknown field \"strides\"");
  refuse_fields(R"("Dtype":"U8")", "unknown field \"Dtype\"");
  refuse_fields("", "tensor \"t\": the field dtype is missing");
  refuse_fields(R"("dtype":"U8","data_offsets":[0,4])", "the field shape is missing");
  refuse_fields(R"("dtype":"U8","shape":[4])", "the field data_offsets is missing");
}

TEST(SafetensorsRefuses, Metadata) {
  for (const char* const value : {"null", "1", "1.5", "-1", "true", "[]", "{}"}) {
    refuse(R"({"__metadata__":{"key":)" + std::string(value) + "}}",
           "__metadata__ \"key\": expected a string");
    if (value[0] != '{') {
      refuse(R"({"__metadata__":)" + std::string(value) + "}",
             "__metadata__: expected an object of strings");
    }
  }
  refuse(R"({"__metadata__":"text"})", "__metadata__: expected an object of strings");
  const std::string file = safetensors_of(R"({"__metadata__":{"a":"","b":"","c":""}})", "");
  expect_refused([&] { parse_safetensors(bytes_of(file), {.metadata = 2}); }, error_kind::malformed,
                 "__metadata__: more than 2 entries");
}

TEST(SafetensorsRefuses, TypesAndShapes) {
  for (const char* const value : {"null", "1", "-1", "1.5", "true", "\"x\"", "[]"}) {
    refuse("{\"t\":" + std::string(value) + "}",
           "tensor \"t\": expected an object with dtype, shape and data_offsets");
  }
  for (const char* const type : {"F128", "f32", "C128", "F8", "F8_E4M3FN", "", "F32 ", "FLOAT"}) {
    refuse_fields(R"("dtype":")" + std::string(type) + R"(","shape":[4],"data_offsets":[0,4])",
                  "tensor \"t\": unknown dtype \"" + std::string(type) + "\"",
                  error_kind::unsupported);
  }
  for (const char* const type : {"null", "1", "true", "[\"U8\"]", "{}"}) {
    refuse_fields(R"("dtype":)" + std::string(type), "expected dtype as a string");
  }
  for (const char* const shape :
       {"null", "4", "\"4\"", "{}", "[4.0]", "[4e0]", "[-4]", "[-0]", "[\"4\"]", "[null]", "[true]",
        "[[4]]", "[{}]", "[18446744073709551616]"}) {
    refuse_shape(shape, "tensor \"t\": ");
  }
  refuse_shape("[4.0]",
               "expected shape as an array of integers from 0 to 2^64 - 1, found the number");
  refuse_shape("[-4]", "found a negative number");
  refuse_shape("[18446744073709551616]", "found the number \"18446744073709551616\"");
  for (const char* const offsets :
       {"null", "4", "\"4\"", "{}", "[]", "[0]", "[0,4,4]", "[0,4.0]", "[0,4e0]", "[-0,4]",
        "[0,\"4\"]", "[0,null]", "[[0,4]]", "[0,18446744073709551616]"}) {
    refuse_offsets(offsets, "expected data_offsets as an array of two integers");
  }
  std::string shape = "[4";
  for (std::size_t i = 0; i < max_rank; ++i) shape += ",1";
  refuse_shape(shape + "]", "tensor \"t\": shape has more than 64 dimensions");
}

TEST(SafetensorsRefuses, BeyondTheLimits) {
  refuse("{\"" + std::string(4097, 'n') + "\":{" + good_fields + "}}",
         std::string(80, 'n') + "...\" has more than 4096 bytes");
  const std::string empty = R"("dtype":"U8","shape":[0],"data_offsets":[0,0])";
  const std::string file =
      safetensors_of("{\"a\":{" + empty + "},\"b\":{" + empty + "},\"c\":{" + empty + "}}", "");
  expect_refused([&] { parse_safetensors(bytes_of(file), {.tensors = 2}); }, error_kind::malformed,
                 "header: more than 2 tensors");
  std::string deep;
  for (int i = 0; i < 1'000'000; ++i) deep += "{\"a\":";
  refuse(deep + "}", "tensor \"a\": unknown field \"a\"");
  refuse("{\"a\":" + std::string(1'000'000, '[') + "}", "tensor \"a\": expected an object");
  refuse_shape(std::string(1'000'000, '['), "found an array");
  refuse_shape("[4294967296,4294967296]", "tensor \"t\": the product of the shape exceeds 64 bits");
  refuse_shape("[4294967296,4294967296,0]", "the product of the shape exceeds 64 bits");
  refuse_fields(R"("dtype":"F64","shape":[288230376151711744],"data_offsets":[0,4])",
                "tensor \"t\": the size of the data in bits exceeds 64 bits");
  refuse_fields(R"("dtype":"F4","shape":[7],"data_offsets":[0,4])",
                "tensor \"t\": 7 elements of F4 do not fill whole bytes");
  refuse_fields(R"("dtype":"F6_E2M3","shape":[5],"data_offsets":[0,4])",
                "5 elements of F6_E2M3 do not fill whole bytes");
}

TEST(SafetensorsRefuses, Offsets) {
  refuse_offsets("[4,0]", "tensor \"t\": data_offsets end at 0, before they begin at 4");
  refuse_offsets("[0,3]", "tensor \"t\": data_offsets span 3 bytes where shape and dtype need 4");
  refuse_offsets("[0,5]", "tensor \"t\": data_offsets span 5 bytes where shape and dtype need 4");
  refuse_offsets("[0,18446744073709551615]", "data_offsets span 18446744073709551615 bytes");
  refuse_fields(R"("dtype":"U8","shape":[0,9],"data_offsets":[0,4])", "shape and dtype need 0");
  refuse_fields(R"("dtype":"F4","shape":[4],"data_offsets":[0,4])", "shape and dtype need 2");
  refuse(R"({"t":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}})",
         "tensor \"t\": its data begins at 1, which leaves a hole or overlaps: expected 0");
  refuse(two(R"("shape":[1],"data_offsets":[0,1])", R"("shape":[2],"data_offsets":[2,4])"),
         "tensor \"b\": its data begins at 2, which leaves a hole or overlaps: expected 1");
  refuse(two(R"("shape":[3],"data_offsets":[0,3])", R"("shape":[2],"data_offsets":[2,4])"),
         "tensor \"b\": its data begins at 2, which leaves a hole or overlaps: expected 3");
  refuse(two(R"("shape":[4],"data_offsets":[0,4])", R"("shape":[4],"data_offsets":[0,4])"),
         "its data begins at 0, which leaves a hole or overlaps: expected 4");
  refuse(two(R"("shape":[4],"data_offsets":[0,4])", R"("shape":[0],"data_offsets":[2,2])"),
         "tensor \"b\": its data begins at 2");
  refuse(two(R"("shape":[4],"data_offsets":[0,4])", R"("shape":[0],"data_offsets":[5,5])"),
         "tensor \"b\": its data begins at 5");
  refuse_file(safetensors_of(good, "abc"),
              "the tensors end at byte 4 of the data, but the file has 3");
  refuse_file(safetensors_of(good, "abcde"),
              "the tensors end at byte 4 of the data, but the file has 5");
  refuse_file(safetensors_of("{}", "a"),
              "the tensors end at byte 0 of the data, but the file has 1");
  refuse(two(R"("shape":[4],"data_offsets":[0,4])",
             R"("shape":[0],"data_offsets":[18446744073709551615,18446744073709551615])"),
         "tensor \"b\": its data begins at 18446744073709551615");
}

TEST(SafetensorsRefuses, NamesAreEscapedInMessages) {
  refuse(R"({"a\nb\u0001\"\u202e":1})", "tensor \"a\\x0ab\\x01\\\"\\xe2\\x80\\xae\": expected");
}

}  // namespace
}  // namespace samebits::tensor_file::testing
