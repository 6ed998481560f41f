/* Formats, rounding rules, and functions on single codes: convert, compute, classify, text. */
#ifndef SAMEBITS_C_SCALAR_H
#define SAMEBITS_C_SCALAR_H

#include "samebits/c/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Formats; include/samebits/core/format.hpp shows their bits. */
typedef int32_t samebits_format;
enum {
  SAMEBITS_FORMAT_FP64 = 0,
  SAMEBITS_FORMAT_FP32 = 1,
  SAMEBITS_FORMAT_TF32 = 2,
  SAMEBITS_FORMAT_FP16 = 3,
  SAMEBITS_FORMAT_BF16 = 4,
  SAMEBITS_FORMAT_E4M3 = 5,
  SAMEBITS_FORMAT_E5M2 = 6,
  SAMEBITS_FORMAT_E3M2 = 7,
  SAMEBITS_FORMAT_E2M3 = 8,
  SAMEBITS_FORMAT_E2M1 = 9,
  SAMEBITS_FORMAT_E4M3FNUZ = 10,
  SAMEBITS_FORMAT_E5M2FNUZ = 11,
  SAMEBITS_FORMAT_E8M0 = 12
};
#define SAMEBITS_FORMAT_COUNT 13

/* Meaning of the codes above the finite values. */
typedef int32_t samebits_specials;
enum {
  SAMEBITS_SPECIALS_IEEE = 0, /* Inf and NaN */
  SAMEBITS_SPECIALS_FN = 1,   /* no Inf; the all-ones magnitude is NaN */
  SAMEBITS_SPECIALS_NONE = 2, /* neither Inf nor NaN */
  SAMEBITS_SPECIALS_FNUZ = 3, /* no Inf, no -0; NaN is the code of -0 */
  SAMEBITS_SPECIALS_SCALE = 4 /* e8m0: no sign, no zero, no Inf; NaN is all ones */
};

/* Properties of a format. Codes are in the low bits of a uint64_t, as the format stores them. */
typedef struct samebits_format_info {
  const char* name;
  int32_t bits;         /* sign, exponent and mantissa */
  int32_t storage_bits; /* width of one stored code: 8, 16, 32 or 64 */
  int32_t padding_bits; /* low bits of a stored code, written 0 and ignored on read (tf32) */
  int32_t exponent_bits;
  int32_t mantissa_bits; /* without the implicit bit */
  int32_t bias;
  int32_t specials;       /* samebits_specials */
  int32_t has_arithmetic; /* 1: samebits_compute() works on the format */
  uint64_t max_finite;    /* code of the largest finite value */
  uint64_t min_normal;    /* code of the smallest positive normal value; e8m0: of 2^-127 */
  uint64_t min_positive;  /* code of the smallest positive value */
  uint64_t canonical_nan; /* code; max finite in formats without NaN */
  double max_value;       /* value of max_finite; the values below likewise */
  double min_normal_value;
  double min_positive_value;
  double epsilon; /* distance from 1 to the next larger value */
} samebits_format_info;

/* Writes the properties of a format.
 *
 * @returns SAMEBITS_INVALID_ARGUMENT if `format` is no samebits_format. */
SAMEBITS_C_API samebits_status samebits_get_format_info(int32_t format, samebits_format_info* info);

/* --- rules ----------------------------------------------------------------------------------- */

/* Rounding of the exact result x. */
typedef int32_t samebits_rounding;
enum {
  SAMEBITS_ROUNDING_NEAREST_EVEN = 0,
  SAMEBITS_ROUNDING_NEAREST_AWAY = 1, /* to nearest, ties away from zero */
  SAMEBITS_ROUNDING_TOWARD_ZERO = 2,
  SAMEBITS_ROUNDING_UPWARD = 3,
  SAMEBITS_ROUNDING_DOWNWARD = 4,
  SAMEBITS_ROUNDING_TO_ODD = 5,
  SAMEBITS_ROUNDING_STOCHASTIC = 6 /* by the bits of samebits_random_stream */
};

/* Result where x, rounded with unbounded exponent, exceeds the largest finite value. */
typedef int32_t samebits_overflow;
enum {
  SAMEBITS_OVERFLOW_IEEE = 0,           /* Inf or NaN, or max finite, as the rounding mode says */
  SAMEBITS_OVERFLOW_SATURATE = 1,       /* max finite, also for Inf */
  SAMEBITS_OVERFLOW_SATURATE_FINITE = 2 /* max finite for finite x; Inf as ieee */
};

/* Result where the input is NaN. */
typedef int32_t samebits_nan_policy;
enum {
  SAMEBITS_NAN_POLICY_CANONICAL = 0,    /* the positive canonical NaN */
  SAMEBITS_NAN_POLICY_PRESERVE_SIGN = 1 /* the canonical NaN with the input's sign */
};

/* Random bits of stochastic rounding in arrays: element (r, c) uses Philox4x32-10 at the index
 * offset + r * pitch + c (mod 2^64), keyed by seed. */
typedef struct samebits_random_stream {
  uint64_t seed;
  uint64_t stream;
  uint64_t offset;
  uint64_t pitch;    /* elements from one row to the next; read only if has_pitch is 1 */
  int32_t has_pitch; /* 0: the pitch is the column count of the array; 1: `pitch` */
  int32_t bits;      /* number of random bits K, in 1..32 */
} samebits_random_stream;
#define SAMEBITS_RANDOM_STREAM_INIT \
  { 0, 0, 0, 0, 0, 32 }

/* Rules that round one value. */
typedef struct samebits_cast_rule {
  uint32_t struct_size;
  int32_t rounding;      /* samebits_rounding */
  int32_t overflow;      /* samebits_overflow */
  int32_t nan_policy;    /* samebits_nan_policy */
  uint32_t random_value; /* stochastic rounding: the random bits, below 2^random_bits */
  int32_t random_bits;   /* stochastic rounding: K, in 1..32 */
} samebits_cast_rule;
#define SAMEBITS_CAST_RULE_INIT \
  { (uint32_t)sizeof(samebits_cast_rule), 0, 0, 0, 0, 32 }
SAMEBITS_C_API samebits_status samebits_cast_rule_init(samebits_cast_rule* rule);

/* --- single codes ---------------------------------------------------------------------------- */

/* Functions below return SAMEBITS_INVALID_ARGUMENT for a format, rule or random value that is not
 * allowed, and for a null pointer where none is allowed. Bits of a code beyond the format's own are
 * ignored. */

/* A converted code and the events of its conversion. */
typedef struct samebits_converted {
  uint64_t code;
  int32_t inexact;  /* 1: a finite value changed */
  int32_t overflow; /* 1: a finite value, rounded with unbounded exponent, exceeds max finite */
} samebits_converted;

/* Converts one code between two formats, rounded once. `rule` may be null. */
SAMEBITS_C_API samebits_status samebits_convert_code(int32_t from, int32_t to, uint64_t code,
                                                     const samebits_cast_rule* rule,
                                                     samebits_converted* result);
/* Writes the exact value of a code as a double. */
SAMEBITS_C_API samebits_status samebits_code_value(int32_t format, uint64_t code, double* value);

/* Class of a number. */
typedef int32_t samebits_number_class;
enum {
  SAMEBITS_NUMBER_CLASS_ZERO = 0,
  SAMEBITS_NUMBER_CLASS_SUBNORMAL = 1,
  SAMEBITS_NUMBER_CLASS_NORMAL = 2,
  SAMEBITS_NUMBER_CLASS_INFINITE = 3,
  SAMEBITS_NUMBER_CLASS_NAN = 4
};

/* Class, sign bit and neighbours of a code. */
typedef struct samebits_code_info {
  int32_t number_class; /* samebits_number_class */
  int32_t negative;     /* the sign bit; 0 in e8m0 and for the NaN of fnuz formats */
  uint64_t next_up;   /* code of the next value above; beyond max finite: Inf, NaN or max finite */
  uint64_t next_down; /* code of the next value below */
} samebits_code_info;

/* Writes class, sign bit and neighbours of a code. */
SAMEBITS_C_API samebits_status samebits_get_code_info(int32_t format, uint64_t code,
                                                      samebits_code_info* info);

/* Writes the K random bits of one element: the bits that array functions use at this index.
 *
 * @param bits  K, in 1..32
 * @param value  receives the bits, below 2^K */
SAMEBITS_C_API samebits_status samebits_random_word(uint64_t seed, uint64_t stream, uint64_t index,
                                                    int32_t bits, uint32_t* value);

/* --- text ------------------------------------------------------------------------------------ */

/* Functions that return text write at most `size` bytes into `buffer`, the final null byte
 * included.
 * - *length receives the bytes of the text without the null byte, also if the buffer is too small.
 *   `length` may be null.
 * - A null `buffer` only asks for the length.
 * - A buffer that is too small gets no text, and the status is SAMEBITS_INVALID_ARGUMENT. */

typedef int32_t samebits_text_style;
enum {
  SAMEBITS_TEXT_STYLE_SHORTEST = 0,      /* the shortest decimal that reads back: "0.0625" */
  SAMEBITS_TEXT_STYLE_EXACT_DECIMAL = 1, /* the exact value in plain decimal: "0.001953125" */
  SAMEBITS_TEXT_STYLE_HEX_FLOAT = 2      /* the exact value in hexadecimal: "0x1.8p-3" */
};

/* Writes the value of a code as text. */
SAMEBITS_C_API samebits_status samebits_format_code(int32_t format, uint64_t code, int32_t style,
                                                    char* buffer, size_t size, size_t* length);

/* Result of samebits_parse_code(). */
typedef struct samebits_parsed {
  uint64_t code;         /* the rounded value */
  uint64_t error_offset; /* if not ok: offset of the first byte that cannot continue a number */
  int32_t ok;            /* 1: the whole text is a number */
  int32_t inexact;       /* 1: a finite value changed */
  int32_t overflow;      /* 1: a finite value exceeds max finite */
  int32_t reserved;      /* 0 */
} samebits_parsed;

/* Parses a decimal, hexadecimal or special number and rounds it once. A text that is no number is
 * not an error: result->ok is 0. `rule` may be null. */
SAMEBITS_C_API samebits_status samebits_parse_code(int32_t format, const char* text,
                                                   const samebits_cast_rule* rule,
                                                   samebits_parsed* result);

#ifdef __cplusplus
}
#endif
#endif
