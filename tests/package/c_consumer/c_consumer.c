/* An outside program in C: one array conversion through the shared library. */
#include <samebits/c/samebits.h>
#include <stdio.h>

int main(void) {
  const float x = 1000.0f;
  uint8_t y = 0;
  char text[16];
  const samebits_view in = samebits_dense_view(SAMEBITS_FORMAT_FP32, &x, 1, 1);
  const samebits_view out = samebits_dense_view(SAMEBITS_FORMAT_E4M3, &y, 1, 1);
  samebits_convert_options options = SAMEBITS_CONVERT_OPTIONS_INIT;
  options.overflow = SAMEBITS_OVERFLOW_SATURATE;
  if (samebits_convert(&in, &out, &options, NULL) != SAMEBITS_OK ||
      samebits_format_code(SAMEBITS_FORMAT_E4M3, y, 0, text, sizeof text, NULL) != SAMEBITS_OK) {
    printf("%s\n", samebits_last_error());
    return 1;
  }
  printf("e4m3 %s, version %s\n", text, samebits_version_text());
  return 0;
}
