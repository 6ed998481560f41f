// One misuse per CASE; CASE 0 is sound.
#include <array>
#include <vector>

#include "samebits/samebits.hpp"
#if CASE == 0 || CASE >= 9
#include "samebits/eigen.hpp"
#endif

samebits::e4m3 sound() { return samebits::e4m3(1.0f); }
#if CASE == 0
samebits::matrix_view sound(Eigen::MatrixXf& m) { return samebits::view_of(m.row(1)); }
#endif

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
#elif CASE == 7
samebits::matrix_view f() { return samebits::view_of(std::vector<float>(4)); }
#elif CASE == 8
samebits::const_matrix_view f(const std::array<float, 4>& x) {
  return samebits::view_of(std::array(x));
}
#elif CASE == 9
samebits::matrix_view f(const Eigen::MatrixXf& m) { return samebits::view_of(m); }
#elif CASE == 10
auto f(const Eigen::MatrixXf& m) { return samebits::view_of(Eigen::MatrixXf(m)); }
#elif CASE == 11
samebits::matrix_view f(const Eigen::MatrixXf& m) { return samebits::view_of(m.row(1)); }
#endif
