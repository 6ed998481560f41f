/* Converts, quantizes and trains in C: what each call needs, and how errors arrive. */
#include <samebits/c/samebits.h>
#include <stdint.h>
#include <stdio.h>

/* Prints the error of a call and returns 1 if there was one. */
static int failed(int status) {
  if (status == SAMEBITS_OK) return 0;
  fprintf(stderr, "error %d: %s\n", status, samebits_last_error());
  return 1;
}

/* Converts three numbers into e4m3, where numbers that are too large saturate. */
static int convert(void) {
  const float x[3] = {0.3f, 1000.0f, 1e-5f};
  uint8_t y[3];
  float back[3];
  const samebits_array in = SAMEBITS_DENSE(x, 1, 3, "fp32");
  const samebits_array out = SAMEBITS_DENSE(y, 1, 3, "e4m3");
  const samebits_array again = SAMEBITS_DENSE(back, 1, 3, "fp32");
  int i;

  if (failed(samebits_convert(&in, &out, "overflow=saturate", NULL))) return 1;
  if (failed(samebits_convert(&out, &again, NULL, NULL))) return 1;
  for (i = 0; i < 3; ++i) printf("%g -> %g\n", x[i], back[i]);
  return 0;
}

/* Quantizes a matrix [2, 256] as DeepGEMM does, with one scale per 128 elements. */
static int quantize(void) {
  float x[2 * 256];
  uint8_t codes[2 * 256];
  float scales[2 * 2];
  const samebits_array in = SAMEBITS_DENSE(x, 2, 256, "fp32");
  const samebits_array code_array = SAMEBITS_DENSE(codes, 2, 256, "e4m3");
  const samebits_array scale_array = SAMEBITS_DENSE(scales, 2, 2, "fp32");
  const char* const recipe = "recipe=DEEPGEMM_FP32_CUDA";
  int i;

  for (i = 0; i < 2 * 256; ++i) x[i] = (float)i;
  if (failed(samebits_quantize(&in, &code_array, &scale_array, recipe, NULL))) return 1;
  printf("scales %g %g %g %g\n", scales[0], scales[1], scales[2], scales[3]);
  return 0;
}

/* Trains one weight with loss scaling: minimizes w^2 / 2, whose gradient is w. */
static int train(void) {
  float w[1] = {1.0f}, state[1] = {0.0f}, gradient[1], scale, grad_mul;
  const samebits_array gradients = SAMEBITS_DENSE(gradient, 1, 1, "fp32");
  samebits_parameter weight = {0};
  samebits_scaler* scaler = NULL;
  samebits_optimizer* optimizer = NULL;
  uint64_t steps = 0;
  int32_t apply = 0;
  int i, status;

  weight.count = 1;
  weight.weights.codes = w;
  weight.weights.format = "fp32";
  weight.gradient.codes = gradient;
  weight.gradient.format = "fp32";
  weight.states[0].codes = state;
  weight.states[0].format = "fp32";
  status = failed(samebits_scaler_create("native", NULL, &scaler)) ||
           failed(samebits_optimizer_create(&weight, 1, 0, "rule=sgd momentum=0.5", &optimizer));
  for (i = 0; !status && i < 10; ++i) {
    status = failed(samebits_scaler_scale(scaler, 1.0f, &scale));
    gradient[0] = w[0] * scale; /* the backward pass */
    status = status || failed(samebits_scaler_inspect(scaler, &gradients, 1, NULL, NULL, NULL)) ||
             failed(samebits_scaler_step(scaler, &apply, &grad_mul, NULL));
    if (!status && apply) {
      status = failed(samebits_optimizer_step(optimizer, ++steps, grad_mul, 0.1, NULL));
    }
  }
  printf("w after %d steps: %.4f\n", (int)steps, w[0]);
  samebits_optimizer_destroy(optimizer);
  samebits_scaler_destroy(scaler);
  return status;
}

/* Shows an error: an array whose shape is not that of the input. */
static void refuse(void) {
  float x[4] = {0};
  const samebits_array in = SAMEBITS_DENSE(x, 1, 4, "fp32");
  const samebits_array out = SAMEBITS_DENSE(x, 4, 1, "fp32");
  if (samebits_convert(&in, &out, NULL, NULL) == SAMEBITS_INVALID_ARGUMENT) {
    printf("refused: %s\n", samebits_last_error());
  }
}

int main(void) {
  printf("samebits %d\n", (int)samebits_version());
  if (convert() || quantize() || train()) return 1;
  refuse();
  return 0;
}
