/* An outside program in C: one array conversion through the shared library. */
#include <samebits/c/samebits.h>
#include <stdio.h>

int main(void) {
  const float x = 1000.0f;
  uint8_t y = 0;
  const int version = samebits_version();
  const samebits_array in = SAMEBITS_DENSE(&x, 1, 1, "fp32");
  const samebits_array out = SAMEBITS_DENSE(&y, 1, 1, "e4m3");
  if (samebits_convert(&in, &out, "overflow=saturate", NULL) != SAMEBITS_OK || y != 0x7E) {
    printf("%s\n", samebits_last_error());
    return 1;
  }
  printf("e4m3 448, version %d.%d.%d\n", version / 10000, version / 100 % 100, version % 100);
  return 0;
}
