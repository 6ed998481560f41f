/* Converts, quantizes and multiplies in C: what each call needs, and how errors arrive. */
#include <samebits/c/samebits.h>
#include <stdint.h>
#include <stdio.h>

/* Prints the error of a call and returns 1 if there was one. */
static int failed(samebits_status status) {
  if (status == SAMEBITS_OK) return 0;
  fprintf(stderr, "%s: %s\n", samebits_enum_name(SAMEBITS_ENUM_STATUS, status),
          samebits_last_error());
  return 1;
}

/* Converts three numbers into e4m3, where numbers that are too large saturate. */
static int convert(void) {
  const float x[3] = {0.3f, 1000.0f, 1e-5f};
  uint8_t y[3];
  const samebits_view in = samebits_dense_view(SAMEBITS_FORMAT_FP32, x, 1, 3);
  const samebits_view out = samebits_dense_view(SAMEBITS_FORMAT_E4M3, y, 1, 3);
  samebits_convert_options options = SAMEBITS_CONVERT_OPTIONS_INIT;
  int i;

  options.overflow = SAMEBITS_OVERFLOW_SATURATE;
  if (failed(samebits_convert(&in, &out, &options, NULL))) return 1;
  for (i = 0; i < 3; ++i) {
    char text[32];
    if (failed(samebits_format_code(SAMEBITS_FORMAT_E4M3, y[i], SAMEBITS_TEXT_STYLE_SHORTEST, text,
                                    sizeof text, NULL))) {
      return 1;
    }
    printf("%g -> %s\n", x[i], text);
  }
  return 0;
}

/* Quantizes a matrix [2, 256] as DeepGEMM does, with one scale per 128 elements. */
static int quantize(void) {
  float x[2 * 256];
  uint8_t codes[2 * 256];
  float scales[2 * 2];
  const samebits_view in = samebits_dense_view(SAMEBITS_FORMAT_FP32, x, 2, 256);
  const samebits_view code_view = samebits_dense_view(SAMEBITS_FORMAT_E4M3, codes, 2, 256);
  const samebits_view scale_view = samebits_dense_view(SAMEBITS_FORMAT_FP32, scales, 2, 2);
  samebits_quantize_outputs outputs = SAMEBITS_QUANTIZE_OUTPUTS_INIT;
  samebits_recipe_preset recipe;
  int i;

  for (i = 0; i < 2 * 256; ++i) x[i] = (float)i;
  outputs.codes = &code_view;
  outputs.scales = &scale_view;
  if (failed(samebits_find_recipe("DEEPGEMM_FP32_CUDA", &recipe))) return 1;
  if (failed(samebits_quantize_by_recipe(&in, &outputs, &recipe.rules, NULL))) return 1;
  printf("scales %g %g %g %g\n", scales[0], scales[1], scales[2], scales[3]);
  return 0;
}

/* Shows an error: a view whose shape is not that of the input. */
static void refuse(void) {
  float x[4] = {0};
  const samebits_view in = samebits_dense_view(SAMEBITS_FORMAT_FP32, x, 1, 4);
  const samebits_view out = samebits_dense_view(SAMEBITS_FORMAT_FP32, x, 4, 1);
  if (samebits_convert(&in, &out, NULL, NULL) == SAMEBITS_INVALID_ARGUMENT) {
    printf("refused: %s\n", samebits_last_error());
  }
}

int main(void) {
  printf("samebits %s\n", samebits_version_text());
  if (convert() || quantize()) return 1;
  refuse();
  return 0;
}
