// One misuse per CASE; CASE 0 is sound.
#include "samebits/samebits.hpp"

samebits::e4m3 sound() { return samebits::e4m3(1.0f); }

#if CASE == 1
samebits::e4m3 f() { return 1.0f; }
#elif CASE == 2
float f(samebits::bf16 x) { return x; }
#elif CASE == 3
auto f(samebits::e4m3 a, samebits::e5m2 b) { return a + b; }
#elif CASE == 4
auto f(int* p) { return samebits::view_of(p, 1, 1); }
#elif CASE == 5
samebits::matrix_view f(const float* p) { return samebits::view_of(p, 1, 1); }
#elif CASE == 6
samebits::cast_rule f() { return {true, samebits::overflow::ieee}; }
#endif
