// parse_npy: one test for each reason to refuse a file.
#include <gtest/gtest.h>

#include <string>

#include "support.hpp"
#include "tensor_file/npy/npy.hpp"

namespace samebits::tensor_file::testing {
namespace {

void refuse_file(std::string_view file, std::string_view text,
                 error_kind kind = error_kind::malformed) {
  expect_refused([&] { parse_npy(bytes_of(file)); }, kind, text);
}

void refuse(std::string_view header, std::string_view text,
            error_kind kind = error_kind::malformed) {
  refuse_file(npy_of(1, std::string(header) + '\n', "abcdef"), text, kind);
}

void refuse_shape(const std::string& shape, std::string_view text) {
  refuse("{'descr': '<u2', 'fortran_order': False, 'shape': " + shape + "}", text);
}

void refuse_descr(const std::string& descr, std::string_view text, error_kind kind) {
  refuse("{'descr': " + descr + ", 'fortran_order': False, 'shape': (3,)}", text, kind);
}

const std::string good = "{'descr': '<u2', 'fortran_order': False, 'shape': (3,)}";

// The base of the other tests: what they break is whole.
TEST(NpyRefuses, NothingOfAGoodFile) {
  EXPECT_EQ(parse_npy(bytes_of(npy_of(1, good + '\n', "abcdef"))).count, 3u);
}

TEST(NpyRefuses, StartOfTheFile) {
  refuse_file("", "byte 0: a .npy file begins with \\x93NUMPY");
  std::string file = npy_of(1, good + '\n', "abcdef");
  for (std::size_t at = 0; at < 6; ++at) {
    file[at] = static_cast<char>(file[at] ^ 1);
    refuse_file(file, "byte 0: a .npy file begins with \\x93NUMPY");
    file[at] = static_cast<char>(file[at] ^ 1);
  }
  for (const int version : {1, 2, 3}) {
    const std::string whole = npy_of(version, good + '\n', "abcdef");
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_THROW(parse_npy(bytes_of(whole.substr(0, size))), file_error) << size;
    }
  }
  file = npy_of(2, good + '\n', "abcdef");
  refuse_file(file.substr(0, 7), "byte 6: the file ends before the version");
  refuse_file(file.substr(0, 8), "byte 8: the file ends before the header length");
  refuse_file(file.substr(0, 11), "byte 8: the file ends before the header length");
  refuse_file(file.substr(0, 12), "byte 8: a header of 56 bytes, but the file has only 0 more");
  for (const char* const version : {"0.0", "0.1", "1.1", "2.1", "3.1", "4.0", "255.0"}) {
    file = npy_of(1, good + '\n', "abcdef");
    const std::string text = version;
    file[6] = static_cast<char>(std::stoi(text.substr(0, text.find('.'))));
    file[7] = static_cast<char>(text.back() - '0');
    refuse_file(file, "byte 6: .npy version " + text, error_kind::unsupported);
  }
}

TEST(NpyRefuses, Header) {
  std::string header = good;
  header.append(max_npy_header_bytes - header.size(), ' ');
  refuse(header, "byte 8: a header of 10001 bytes; at most 10000");
  refuse_file(npy_of(2, header + '\n', "abcdef"), "a header of 10001 bytes; at most 10000");
  const std::string huge = "\x93NUMPY\x03" + std::string(1, '\0') + "\xff\xff\xff\xff";
  refuse_file(huge + good, "a header of 4294967295 bytes");
  std::string file = npy_of(1, good + '\n', "");
  file[8] = static_cast<char>(file[8] + 1);
  refuse_file(file, "but the file has only 56 more");
  refuse_file(npy_of(1, good, "abcdef"), "the header does not end in a line feed");
  refuse_file(npy_of(1, "", "abcdef"), "the header does not end in a line feed");
  const std::string latin = "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), '\xe9': 1}\n";
  refuse_file(npy_of(1, latin, "abcdef"), "byte 67: the header is not ASCII");
  refuse_file(npy_of(2, latin, "abcdef"), "byte 69: the header is not ASCII");
  refuse_file(npy_of(3, latin, "abcdef"), "byte 69: the header is not UTF-8");
  const std::string utf8 = "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), 'é': 1}\n";
  refuse_file(npy_of(1, utf8, "abcdef"), "byte 67: the header is not ASCII");
  refuse_file(npy_of(3, utf8, "abcdef"), "unknown key \"é\"");
}

TEST(NpyRefuses, Dictionary) {
  refuse("", "byte 11: expected '{' at the start of the header");
  refuse("3", "byte 10: expected '{'");
  refuse("[('descr', '<u2')]", "byte 10: expected '{'");
  refuse("dict(descr='<u2')", "byte 10: expected '{'");
  for (const std::string& tail :
       {std::string(" x"), std::string("}"), good, std::string(1, '\0')}) {
    refuse(good + tail, "only spaces may follow the dictionary");
  }
  refuse("{", "expected a key in quotes");
  refuse("{'descr': '<u2'", "expected ',' or '}'");
  refuse("{'descr': '<u2', ", "expected a key in quotes");
  refuse("{'descr': '<u2", "a string holds an escape or a line break");
  refuse_file(npy_of(1, "{'descr", "abcdef"), "the header does not end in a line feed");
  refuse("{'descr' '<u2', 'fortran_order': False, 'shape': (3,)}", "expected ':' after a key");
  refuse("{'descr': '<u2' 'fortran_order': False, 'shape': (3,)}", "expected ',' or '}'");
  refuse("{'descr': '<u2',, 'fortran_order': False, 'shape': (3,)}", "expected a key in quotes");
  refuse("{, 'descr': '<u2', 'fortran_order': False, 'shape': (3,)}", "expected a key in quotes");
  refuse("{descr: '<u2', 'fortran_order': False, 'shape': (3,)}", "expected a key in quotes");
  refuse("{u'descr': '<u2', 'fortran_order': False, 'shape': (3,)}", "expected a key in quotes");
  refuse("{'descr\": '<u2', 'fortran_order': False, 'shape': (3,)}", "expected ':' after a key");
  refuse("{'de\\163cr': '<u2', 'fortran_order': False, 'shape': (3,)}", "a string holds an escape");
  refuse("{}", "lacks the key descr");
  refuse("{'fortran_order': False, 'shape': (3,)}", "lacks the key descr");
  refuse("{'descr': '<u2', 'shape': (3,)}", "lacks the key fortran_order");
  refuse("{'descr': '<u2', 'fortran_order': False}", "lacks the key shape");
  const std::string start = good.substr(0, good.size() - 1);
  refuse(start + ", 'descr': '<u2'}", "the key descr occurs twice");
  refuse(start + ", 'fortran_order': False}", "the key fortran_order occurs twice");
  refuse(start + ", 'shape': (3,)}", "the key shape occurs twice");
  refuse(good.substr(0, good.size() - 1) + ", 'order': 'C'}", "unknown key \"order\"");
  refuse("{'" + std::string(500, 'k') + "': 1}", std::string(80, 'k').append("...\""));
  refuse("{'a\x01\"b': 1}", "unknown key \"a\\x01\\\"b\"");
  for (const char* const value : {"0", "1", "false", "true", "None", "'False'", "not True", ""}) {
    refuse("{'descr': '<u2', 'fortran_order': " + std::string(value) + ", 'shape': (3,)}",
           "fortran_order must be True or False");
  }
  refuse("{'descr': '<u2', 'fortran_order': Falsely, 'shape': (3,)}", "expected ',' or '}'");
}

TEST(NpyRefuses, Shape) {
  for (const char* const shape : {"3", "[3]", "None", "{3}", "'(3,)'", "", "tuple([3])"}) {
    refuse_shape(shape, "shape must be a tuple");
  }
  refuse_shape("(3)", "shape must be a tuple: (3) is a number, (3,) is one");
  for (const char* const shape : {"(True,)", "(None,)", "('3',)", "(+3,)", "((3,),)", "(,)",
                                  "(3,,)", "(0+3,)", "(.5,)", "(1 if 1 else 2,)"}) {
    EXPECT_NO_FATAL_FAILURE(refuse_shape(shape, "shape"));
  }
  refuse_shape("(True,)", "shape must be a tuple of integers");
  for (const char* const shape :
       {"(3.0,)", "(3e0,)", "(0x3,)", "(1_0,)", "(3 L,)", "(3l,)", "(3LL,)", "(1 3)", "(3"}) {
    refuse_shape(shape, "expected ',' or ')' in shape");
  }
  refuse_file(npy_of(3, "{'descr': '<u2', 'fortran_order': False, 'shape': (3L,)}\n", "abcdef"),
              "expected ',' or ')' in shape");
  refuse_shape("(-3,)", "shape holds a negative number");
  refuse_shape("(03,)", "a number with a leading zero");
  refuse_shape("(00,)", "a number with a leading zero");
  refuse_shape("(18446744073709551616,)", "a number that exceeds 64 bits");
  refuse_shape("(0, 99999999999999999999999,)", "a number that exceeds 64 bits");
  std::string tuple = "(3,";
  for (std::size_t i = 1; i <= max_rank; ++i) tuple += "1,";
  refuse_shape(tuple + ")", "shape has more than 64 dimensions");
  refuse_shape("(4294967296, 4294967296)", "the product of the shape exceeds 64 bits");
  // The product is taken from left to right: a later 0 does not make up for it.
  refuse_shape("(4294967296, 4294967296, 0)", "the product of the shape exceeds 64 bits");
  refuse_shape("(1152921504606846976,)", "the size of the data in bits exceeds 64 bits");
  // 2^64 / 16 elements of 16 bits: 0 bits modulo 2^64.
  refuse("{'descr': '<u2', 'fortran_order': False, 'shape': (1152921504606846976, 1)}",
         "the size of the data in bits exceeds 64 bits");
}

TEST(NpyRefuses, Type) {
  const auto kind = error_kind::unsupported;
  refuse_descr("'|O'", "descr \"|O\": Python objects are pickled and never read", kind);
  refuse_descr("'O'", "Python objects are pickled", kind);
  refuse_descr("'|S2'", "strings are not read", kind);
  refuse_descr("'<U2'", "strings are not read", kind);
  refuse_descr("'|a2'", "strings are not read", kind);
  refuse_descr("'|V2'", "raw bytes have no element type; save array.view('u1')", kind);
  refuse_descr("'<V2'", "raw bytes have no element type", kind);
  refuse_descr("'<M8[s]'", "dates and times are not read", kind);
  refuse_descr("'<m8[s]'", "dates and times are not read", kind);
  refuse_descr("[('a', '<u2')]", "structured and sub-array types are not read", kind);
  refuse_descr("('<u2', (3,))", "structured and sub-array types are not read", kind);
  const std::string unicode = "{'descr': [('é', '<f4')], 'fortran_order': False, 'shape': (1,)}\n";
  refuse_file(npy_of(3, unicode, "abcd"), "structured and sub-array types are not read", kind);
  for (const char* const descr :
       {"'<f16'", "'<f1'", "'<f3'", "'<i16'", "'<u3'", "'|b2'", "'<c32'", "'<f'", "'<'", "''",
        "'f'", "'<f02'", "'<<f2'", "'<f2 '", "'<F2'", "'float32'", "'<f2,<f2'"}) {
    refuse_descr(descr, "f2, f4, f8, c8 and c16 are read", error_kind::unsupported);
  }
  for (const char* const descr : {"'u2'", "'=u2'", "'|u2'", "'u1'", "'=u1'"}) {
    refuse_descr(descr, "the byte order must be given as < or >", error_kind::malformed);
  }
  refuse_descr("None", "expected a type in quotes", error_kind::malformed);
  refuse_descr("3", "expected a type in quotes", error_kind::malformed);
  refuse_descr("{}", "expected a type in quotes", error_kind::malformed);
}

TEST(NpyRefuses, Data) {
  refuse_file(npy_of(1, good + '\n', "abcde"), "5 bytes of data where shape and descr need 6");
  refuse_file(npy_of(1, good + '\n', ""), "byte 66: 0 bytes of data");
  refuse_file(npy_of(1, good + '\n', "abcdefg"), "7 bytes of data where shape and descr need 6");
  refuse_file(npy_of(1, "{'descr': '<u2', 'fortran_order': False, 'shape': (0,)}\n", "x"),
              "1 bytes of data where shape and descr need 0");
}

}  // namespace
}  // namespace samebits::tensor_file::testing
