// Reductions over axes by torch_2_11: plans of tensors, sums of results. python.axis_reductions compares
// with what PyTorch returned.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "numerics/hardware/torch_operators/axis_reduction.hpp"
#include "unit/torch_rows.hpp"

namespace samebits {
namespace {

using namespace torch_rows;
struct planned_tensor {
  format_id format;
  axis_reduction of;
  std::vector<std::int64_t> shape, strides;
  std::uint64_t reduced;
  std::int64_t offset;
  int multiprocessors;
  /// Each axis as size:stride:stride of the result; axes that are reduced; results of elements; vector;
  /// width x height x blocks; what the threads of a result extend over.
  const char* plan;
};

torch::axis_plan plan_of(const planned_tensor& t) {
  return torch::plan_of({t.format, t.of, static_cast<int>(t.shape.size()), t.shape.data(),
                         t.strides.data(), t.reduced, t.offset, t.multiprocessors});
}

std::string text(const torch::axis_plan& p) {
  std::ostringstream out;
  for (int i = 0; i < p.count; ++i) {
    const torch::plan_axis& a = p.axes[i];
    out << (i == 0 ? "" : " ") << a.size << ':' << a.from << ':' << a.to;
  }
  out << "; " << p.reduced << "; " << p.outputs << " of " << p.inputs << "; " << p.vector << "; "
      << p.width << 'x' << p.height << 'x' << p.blocks << (p.across_x ? " x" : "")
      << (p.across_y ? " y" : "");
  return out.str();
}

// Width, height and blocks are those of the kernels that PyTorch 2.11 launched on an H200.
const planned_tensor recorded[] = {
    // clang-format off
    {format_id::fp16, axis_reduction::mean, {2048, 3, 127}, {381, 127, 1}, 7, 8, 132, "780288:1:0; 1; 1 of 780288; 8; 512x1x96 x y"},
    {format_id::fp16, axis_reduction::mean, {17, 129, 128}, {16512, 128, 1}, 7, 0, 132, "280704:1:0; 1; 1 of 280704; 8; 512x1x35 x y"},
    {format_id::fp32, axis_reduction::sum, {512, 640}, {640, 1}, 3, 0, 132, "327680:1:0; 1; 1 of 327680; 4; 512x1x40 x y"},
    {format_id::fp16, axis_reduction::norm, {17, 129, 128}, {16512, 128, 1}, 7, 0, 132, "280704:1:0; 1; 1 of 280704; 4; 512x1x35 x y"},
    {format_id::fp16, axis_reduction::sum, {4096, 513}, {513, 1}, 3, 3, 132, "2101248:1:0; 1; 1 of 2101248; 8; 512x1x257 x y"},
    {format_id::fp32, axis_reduction::norm, {589824}, {1}, 1, 0, 132, "589824:1:0; 1; 1 of 589824; 4; 512x1x72 x y"},
    {format_id::bf16, axis_reduction::norm, {1536, 128}, {128, 1}, 3, 0, 132, "196608:1:0; 1; 1 of 196608; 4; 512x1x24 x y"},
    {format_id::fp16, axis_reduction::sum, {127, 4096}, {4096, 1}, 3, 8, 132, "520192:1:0; 1; 1 of 520192; 8; 512x1x64 x y"},
    {format_id::fp32, axis_reduction::sum, {64, 4096}, {4096, 1}, 3, 3, 132, "262144:1:0; 1; 1 of 262144; 4; 512x1x32 x y"},
    {format_id::fp32, axis_reduction::norm, {3000000}, {1}, 1, 0, 132, "3000000:1:0; 1; 1 of 3000000; 4; 512x1x367 x y"},
    {format_id::bf16, axis_reduction::mean, {1024, 64, 5, 2}, {1, 1024, 65536, 327680}, 7, 4, 132, "327680:1:0 2:327680:1; 1; 2 of 327680; 8; 256x2x40 x y"},
    {format_id::bf16, axis_reduction::norm, {4096, 768}, {768, 1}, 3, 1, 132, "3145728:1:0; 1; 1 of 3145728; 4; 512x1x384 x y"},
    {format_id::fp32, axis_reduction::mean, {17, 8192}, {8192, 1}, 3, 0, 132, "139264:1:0; 1; 1 of 139264; 4; 512x1x17 x y"},
    {format_id::fp16, axis_reduction::sum, {3000000}, {1}, 1, 0, 132, "3000000:1:0; 1; 1 of 3000000; 8; 512x1x367 x y"},
    {format_id::fp32, axis_reduction::norm, {300, 3072}, {3072, 1}, 3, 0, 132, "921600:1:0; 1; 1 of 921600; 4; 512x1x113 x y"},
    {format_id::fp16, axis_reduction::sum, {5000, 768}, {768, 1}, 1, 5, 132, "5000:768:0 768:1:1; 1; 768 of 5000; 0; 32x16x20 y"},
    {format_id::bf16, axis_reduction::norm, {3, 8192}, {8192, 1}, 3, 1, 132, "24576:1:0; 1; 1 of 24576; 4; 512x1x1 x y"},
    {format_id::fp32, axis_reduction::norm, {257, 8}, {8, 1}, 1, 0, 132, "257:8:0 8:1:1; 1; 8 of 257; 0; 2x64x1 y"},
    {format_id::fp16, axis_reduction::norm, {33, 16}, {1, 33}, 1, 0, 132, "33:1:0 16:33:1; 1; 16 of 33; 0; 32x16x1 x"},
    {format_id::fp32, axis_reduction::sum, {17, 1024, 33}, {33792, 33, 1}, 4, 0, 132, "33:1:0 17408:33:1; 1; 17408 of 33; 0; 32x16x1 x"},
    {format_id::fp32, axis_reduction::mean, {640, 8}, {8, 1}, 3, 5, 132, "5120:1:0; 1; 1 of 5120; 4; 512x1x1 x"},
    {format_id::bf16, axis_reduction::norm, {255, 3}, {1, 255}, 3, 4, 132, "765:1:0; 1; 1 of 765; 4; 128x1x1 x"},
    {format_id::bf16, axis_reduction::norm, {1536}, {1}, 1, 0, 132, "1536:1:0; 1; 1 of 1536; 4; 256x1x1 x"},
    {format_id::fp16, axis_reduction::sum, {2, 128}, {1, 2}, 1, 5, 132, "2:1:0 128:2:1; 1; 128 of 2; 0; 2x128x1 x"},
    {format_id::fp16, axis_reduction::norm, {17, 48, 32}, {48, 1, 816}, 3, 4, 132, "816:1:0 32:816:1; 1; 32 of 816; 4; 32x16x1 x"},
    {format_id::bf16, axis_reduction::sum, {768, 3}, {3, 1}, 3, 0, 132, "2304:1:0; 1; 1 of 2304; 8; 256x1x1 x"},
    {format_id::fp16, axis_reduction::mean, {129, 513}, {513, 1}, 1, 0, 132, "129:513:0 513:1:1; 1; 513 of 129; 0; 32x16x1"},
    {format_id::fp32, axis_reduction::norm, {512, 255}, {255, 1}, 3, 1, 132, "130560:1:0; 1; 1 of 130560; 4; 512x1x1 x y"},
    {format_id::bf16, axis_reduction::norm, {5, 31, 3}, {93, 3, 1}, 5, 0, 132, "3:1:0 5:93:0 31:3:1; 2; 31 of 15; 0; 8x16x1 x"},
    {format_id::bf16, axis_reduction::sum, {1000, 5, 17}, {85, 17, 1}, 4, 7, 132, "17:1:0 5000:17:1; 1; 5000 of 17; 0; 16x32x1 x"},
    {format_id::bf16, axis_reduction::mean, {5, 2304, 5}, {11520, 5, 1}, 6, 0, 132, "11520:1:0 5:11520:1; 1; 5 of 11520; 8; 128x4x1 x y"},
    {format_id::fp32, axis_reduction::norm, {257}, {1}, 1, 0, 132, "257:1:0; 1; 1 of 257; 4; 64x1x1 x"},
    {format_id::fp16, axis_reduction::sum, {2, 255}, {255, 1}, 2, 1, 132, "255:1:0 2:255:1; 1; 2 of 255; 8; 16x2x1 x"},
    {format_id::fp32, axis_reduction::sum, {513, 16}, {16, 1}, 2, 0, 132, "16:1:0 513:16:1; 1; 513 of 16; 0; 16x32x1 x"},
    {format_id::fp16, axis_reduction::sum, {1536, 1}, {1, 1}, 3, 0, 132, "1536:1:0; 1; 1 of 1536; 8; 128x1x1 x"},
    {format_id::bf16, axis_reduction::sum, {257}, {1}, 1, 0, 132, "257:1:0; 1; 1 of 257; 8; 32x1x1 x"},
    {format_id::fp16, axis_reduction::norm, {5, 2304, 5}, {11520, 5, 1}, 6, 0, 132, "11520:1:0 5:11520:1; 1; 5 of 11520; 4; 128x4x1 x y"},
    {format_id::bf16, axis_reduction::mean, {16, 1, 16, 3}, {48, 48, 3, 1}, 15, 1, 132, "768:1:0; 1; 1 of 768; 8; 64x1x1 x"},
    {format_id::bf16, axis_reduction::mean, {3, 8192}, {8192, 1}, 3, 1, 132, "24576:1:0; 1; 1 of 24576; 8; 512x1x1 x y"},
    {format_id::bf16, axis_reduction::sum, {512, 2, 64, 33}, {4224, 2112, 33, 1}, 12, 0, 132, "2112:1:0 1024:2112:1; 1; 1024 of 2112; 8; 32x16x1 x"},
    {format_id::fp16, axis_reduction::mean, {8, 3}, {3, 1}, 1, 3, 132, "8:3:0 3:1:1; 1; 3 of 8; 0; 2x8x1"},
    {format_id::fp16, axis_reduction::sum, {32, 1024}, {1024, 1}, 1, 2, 132, "32:1024:0 1024:1:1; 1; 1024 of 32; 0; 32x8x1"},
    {format_id::fp16, axis_reduction::norm, {1024, 31}, {31, 1}, 1, 0, 132, "1024:31:0 31:1:1; 1; 31 of 1024; 0; 16x32x1 y"},
    {format_id::fp16, axis_reduction::mean, {5, 8192}, {8192, 1}, 1, 4, 132, "5:8192:0 8192:1:1; 1; 8192 of 5; 0; 32x4x1"},
    {format_id::fp32, axis_reduction::mean, {5, 1024}, {1024, 1}, 1, 0, 132, "5:1024:0 1024:1:1; 1; 1024 of 5; 0; 32x4x1"},
    {format_id::bf16, axis_reduction::norm, {2304, 640}, {1, 2304}, 2, 4, 132, "640:2304:0 2304:1:1; 1; 2304 of 640; 0; 32x4x1 y"},
    {format_id::bf16, axis_reduction::mean, {5, 100}, {100, 1}, 2, 0, 132, "100:1:0 5:100:1; 1; 5 of 100; 0; 64x4x1 x"},
    {format_id::fp32, axis_reduction::mean, {17}, {1}, 1, 4, 132, "17:1:0; 1; 1 of 17; 0; 16x1x1 x"},
    {format_id::fp32, axis_reduction::norm, {255, 3}, {1, 255}, 3, 4, 132, "765:1:0; 1; 1 of 765; 4; 128x1x1 x"},
    {format_id::fp32, axis_reduction::norm, {5, 100}, {100, 1}, 2, 0, 132, "100:1:0 5:100:1; 1; 5 of 100; 0; 64x4x1 x"},
    {format_id::fp32, axis_reduction::sum, {192}, {1}, 1, 3, 132, "192:1:0; 1; 1 of 192; 4; 32x1x1 x"},
    {format_id::fp16, axis_reduction::norm, {33, 33, 257}, {33, 1, 1089}, 4, 0, 132, "257:1089:0 1089:1:1; 1; 1089 of 257; 0; 32x16x1 y"},
    // clang-format on
};

// Gaps, repeated elements and other GPUs, which were not recorded: results of the rule as it is.
const planned_tensor others[] = {
    // clang-format off
    {format_id::fp32, axis_reduction::sum, {4, 200000}, {200000, 1}, 2, 0, 1, "200000:1:0 4:200000:1; 1; 4 of 200000; 4; 128x4x2 x y"},
    {format_id::fp32, axis_reduction::sum, {16, 131072}, {131072, 1}, 2, 0, 132, "131072:1:0 16:131072:1; 1; 16 of 131072; 4; 32x16x16 x y"},
    {format_id::fp32, axis_reduction::sum, {256, 4}, {4, 1}, 1, 0, 132, "256:4:0 4:1:1; 1; 4 of 256; 0; 1x128x1 y"},
    {format_id::fp32, axis_reduction::sum, {3, 200000}, {200000, 1}, 2, 0, 2, "200000:1:0 3:200000:1; 1; 3 of 200000; 4; 256x2x3 x y"},
    {format_id::fp32, axis_reduction::mean, {2, 3}, {5, 5}, 3, 0, 132, "2:5:0 3:5:0; 2; 1 of 6; 0; 4x1x1 x"},
    {format_id::fp32, axis_reduction::mean, {3, 2}, {5, 5}, 3, 0, 132, "2:5:0 3:5:0; 2; 1 of 6; 0; 4x1x1 x"},
    {format_id::bf16, axis_reduction::norm, {5, 1}, {1, 1}, 2, 0, 132, "5:1:1; 0; 5 of 1; 0; 4x1x1"},
    {format_id::fp32, axis_reduction::norm, {16, 600000}, {600000, 1}, 2, 0, 132, "600000:1:0 16:600000:1; 1; 16 of 600000; 4; 32x16x33 x y"},
    {format_id::fp16, axis_reduction::sum, {16, 8192}, {8192, 1}, 2, 0, 132, "8192:1:0 16:8192:1; 1; 16 of 8192; 8; 32x16x1 x y"},
    {format_id::fp32, axis_reduction::sum, {}, {}, 0, 0, 132, "; 0; 1 of 1; 0; 1x1x1 x"},
    {format_id::fp32, axis_reduction::sum, {127}, {1}, 1, 0, 132, "127:1:0; 1; 1 of 127; 0; 64x1x1 x"},
    {format_id::fp32, axis_reduction::sum, {128}, {1}, 1, 0, 132, "128:1:0; 1; 1 of 128; 4; 32x1x1 x"},
    {format_id::fp32, axis_reduction::sum, {2, 64, 4}, {256, 4, 1}, 3, 0, 132, "128:4:0 4:1:1; 1; 4 of 128; 0; 1x128x1"},
    {format_id::bf16, axis_reduction::sum, {131072, 32}, {32, 1}, 1, 0, 132, "131072:32:0 32:1:1; 1; 32 of 131072; 0; 8x16x512 y"},
    {format_id::bf16, axis_reduction::sum, {131072, 32}, {32, 1}, 1, 2, 4, "131072:32:0 32:1:1; 1; 32 of 131072; 0; 16x16x32 y"},
    {format_id::fp32, axis_reduction::sum, {5, 8}, {10, 1}, 1, 0, 132, "5:10:0 8:1:1; 1; 8 of 5; 0; 4x4x1"},
    {format_id::fp32, axis_reduction::sum, {1, 1}, {5, 1}, 0, 0, 132, "1:5:1; 0; 1 of 1; 0; 1x1x1"},
    {format_id::fp32, axis_reduction::sum, {3, 200000}, {200000, 1}, 2, 0, 1, "200000:1:0 3:200000:1; 1; 3 of 200000; 4; 256x2x2 x y"},
    {format_id::bf16, axis_reduction::norm, {127, 40, 7, 8}, {1, 127, 5080, 35560}, 2, 4, 16, "40:127:0 8:35560:1 7:5080:8 127:1:56; 1; 7112 of 40; 0; 32x16x1 x"},
    {format_id::fp32, axis_reduction::sum, {128}, {1}, 1, 0, 4, "128:1:0; 1; 1 of 128; 4; 32x1x1 x"},
    {format_id::fp16, axis_reduction::sum, {7}, {0}, 1, 0, 132, "7:0:0; 1; 1 of 7; 0; 4x1x1 x"},
    {format_id::fp32, axis_reduction::sum, {129, 3}, {3, 1}, 3, 1, 16, "387:1:0; 1; 1 of 387; 4; 64x1x1 x"},
    {format_id::fp32, axis_reduction::mean, {129}, {1}, 1, 0, 4, "129:1:0; 1; 1 of 129; 4; 32x1x1 x"},
    {format_id::fp32, axis_reduction::sum, {1}, {1}, 0, 0, 16, "1:1:1; 0; 1 of 1; 0; 1x1x1"},
    {format_id::fp32, axis_reduction::sum, {129, 3}, {5, 1}, 1, 6, 114, "129:5:0 3:1:1; 1; 3 of 129; 0; 2x128x1"},
    {format_id::bf16, axis_reduction::mean, {2, 4, 128, 31, 8}, {8, 2048, 16, 8192, 1}, 5, 0, 16, "256:8:0 8:1:1 31:8192:8 4:2048:248; 1; 992 of 256; 0; 32x4x1 y"},
    {format_id::fp16, axis_reduction::sum, {16, 128, 16, 1}, {2050, 16, 1, 1}, 7, 1, 66, "2048:1:0 16:2050:0; 2; 1 of 32768; 0; 512x1x1 x y"},
    {format_id::bf16, axis_reduction::sum, {64, 4, 4096}, {1, 262144, 0}, 6, 1, 66, "4096:0:0 4:262144:0 64:1:1; 2; 64 of 16384; 0; 32x16x1 x y"},
    {format_id::fp32, axis_reduction::norm, {40, 1}, {1, 40}, 1, 0, 16, "40:1:0; 1; 1 of 40; 0; 32x1x1 x"},
    {format_id::fp16, axis_reduction::mean, {1, 2}, {1, 0}, 2, 0, 114, "2:0:0; 1; 1 of 2; 0; 2x1x1 x"},
    {format_id::fp16, axis_reduction::norm, {7, 3, 40000}, {11, 1, 23}, 2, 6, 132, "3:1:0 40000:23:1 7:11:40000; 1; 280000 of 3; 0; 2x256x1 x"},
    {format_id::bf16, axis_reduction::mean, {7, 8, 3, 8, 31}, {1, 7, 13888, 1736, 0}, 24, 0, 1, "31:0:0 8:1736:0 3:13888:1 8:7:3 7:1:24; 2; 168 of 248; 0; 32x16x1 x"},
    {format_id::bf16, axis_reduction::norm, {4}, {2}, 1, 2, 1, "4:2:0; 1; 1 of 4; 0; 4x1x1 x"},
    {format_id::fp16, axis_reduction::norm, {31, 2, 3, 2}, {4, 2, 126, 1}, 2, 0, 1, "2:2:0 2:1:1 3:126:2 31:4:6; 1; 186 of 2; 0; 64x2x1"},
    {format_id::bf16, axis_reduction::sum, {100}, {1}, 0, 2, 66, "100:1:1; 0; 100 of 1; 0; 32x1x1"},
    {format_id::bf16, axis_reduction::sum, {1000, 7, 4, 127}, {890, 1, 889001, 7}, 1, 0, 1, "1000:890:0 127:7:1 4:889001:127 7:1:508; 1; 3556 of 1000; 0; 32x16x1 y"},
    {format_id::fp16, axis_reduction::norm, {4, 1, 300}, {300, 1200, 0}, 1, 0, 4, "4:300:0 300:0:1; 1; 300 of 4; 0; 128x4x1"},
    {format_id::fp16, axis_reduction::sum, {1, 300}, {300, 1}, 0, 4, 1, "300:1:1; 0; 300 of 1; 0; 64x1x1"},
    {format_id::fp32, axis_reduction::mean, {1000, 100, 31}, {62, 62000, 2}, 2, 0, 16, "100:62000:0 31000:2:1; 1; 31000 of 100; 0; 32x16x1"},
    {format_id::fp16, axis_reduction::mean, {1, 64, 4, 1}, {256, 4, 0, 256}, 15, 1, 114, "64:4:0 4:0:0; 2; 1 of 256; 0; 256x1x1 x"},
    {format_id::fp16, axis_reduction::mean, {3, 40}, {40, 0}, 3, 0, 66, "40:0:0 3:40:0; 2; 1 of 120; 0; 64x1x1 x"},
    {format_id::bf16, axis_reduction::mean, {100}, {1}, 0, 0, 4, "100:1:1; 0; 100 of 1; 0; 16x1x1"},
    {format_id::bf16, axis_reduction::mean, {3, 100}, {100, 1}, 3, 6, 4, "300:1:0; 1; 1 of 300; 8; 32x1x1 x"},
    {format_id::bf16, axis_reduction::mean, {1}, {2}, 1, 0, 66, "1:2:0; 1; 1 of 1; 0; 1x1x1 x"},
    {format_id::bf16, axis_reduction::sum, {16, 3, 31, 1, 100}, {1, 1600, 4808, 1600, 16}, 25, 4, 66, "1600:1:0 31:4808:1 3:1600:31; 1; 93 of 1600; 8; 32x16x1 x"},
    {format_id::fp16, axis_reduction::norm, {8, 8, 8, 1}, {12, 65, 1, 12}, 4, 2, 114, "8:1:0 8:65:1 8:12:8; 1; 64 of 8; 0; 8x64x1 x"},
    {format_id::fp32, axis_reduction::norm, {8, 100}, {1, 8}, 2, 4, 132, "100:8:0 8:1:1; 1; 8 of 100; 0; 2x64x1"},
    {format_id::fp32, axis_reduction::mean, {127, 1, 8}, {8, 0, 1}, 3, 4, 132, "127:8:0 8:1:1; 1; 8 of 127; 0; 2x64x1"},
    {format_id::fp16, axis_reduction::mean, {4096, 16}, {20, 1}, 3, 0, 16, "16:1:0 4096:20:0; 2; 1 of 65536; 0; 512x1x1 x y"},
    {format_id::bf16, axis_reduction::sum, {3, 127}, {127, 1}, 3, 0, 114, "381:1:0; 1; 1 of 381; 8; 32x1x1 x"},
    {format_id::fp16, axis_reduction::sum, {100, 31, 8, 1, 2}, {500, 2, 62, 500, 1}, 25, 0, 1, "2:1:0 100:500:0 8:62:1 31:2:8; 2; 248 of 200; 0; 32x16x1 x"},
    {format_id::fp16, axis_reduction::sum, {300, 2, 100, 8}, {400, 2, 4, 120000}, 12, 0, 114, "100:4:0 8:120000:0 2:2:1 300:400:2; 2; 600 of 800; 0; 32x16x1 y"},
    {format_id::bf16, axis_reduction::sum, {4, 4096}, {4096, 0}, 2, 1, 114, "4096:0:0 4:4096:1; 1; 4 of 4096; 0; 128x4x1 x"},
    {format_id::bf16, axis_reduction::sum, {2, 4096}, {4098, 1}, 0, 2, 4, "4096:1:1 2:4098:4096; 0; 8192 of 1; 0; 256x1x1"},
    // clang-format on
};

TEST(AxisPlan, OfRecordedTensors) {
  for (const planned_tensor& t : recorded) EXPECT_EQ(text(plan_of(t)), t.plan);
}
TEST(AxisPlan, OfOtherTensors) {
  for (const planned_tensor& t : others) EXPECT_EQ(text(plan_of(t)), t.plan);
}

// As many axes as there may be, none of them continued by another.
constexpr bool fits_all_axes() {
  std::int64_t shape[max_reduction_axes] = {}, strides[max_reduction_axes] = {};
  for (int i = 0; i < max_reduction_axes; ++i) {
    shape[i] = 2;
    strides[i] = 3 * i + 1;
  }
  const auto p = torch::plan_of(
      {format_id::fp32, axis_reduction::sum, max_reduction_axes, shape, strides, 0x5555, 0, 132});
  return p.count == max_reduction_axes && p.reduced == 8 && p.inputs == 256 && p.outputs == 256;
}
static_assert(fits_all_axes());

TEST(AxisPlan, PlacesOfElements) {
  const torch::plan_axis axes[] = {{2, 100, 0}, {3, 7, 0}, {5, 1, 0}};
  EXPECT_EQ(torch::place_of(axes, 3, 0), 0);
  EXPECT_EQ(torch::place_of(axes, 3, 1), 100);
  EXPECT_EQ(torch::place_of(axes, 3, 2), 7);
  EXPECT_EQ(torch::place_of(axes, 3, 29), 100 + 2 * 7 + 4);
  EXPECT_EQ(torch::place_of(axes + 1, 1, 2), 14);
  EXPECT_EQ(torch::place_of(axes, 0, 0), 0);
}

/// The sums of results of random elements, read from each place between two boundaries.
template <std::size_t Count>
std::uint64_t sum_of_results(const planned_tensor (&tensors)[Count], std::mt19937& engine) {
  word_sum sum;
  for (const planned_tensor& t : tensors) {
    const torch::axis_plan p = plan_of(t);
    row x(static_cast<std::size_t>(p.inputs));
    for (std::uint32_t& e : x) {
      const auto word = static_cast<std::uint32_t>(engine());
      e = (word & 0x807FFFFFu) | (120 + (word >> 23) % 8) << 23;
    }
    const auto element = [&](std::int64_t i) { return x.at(static_cast<std::size_t>(i)); };
    for (std::int64_t shift = 0; shift < (p.vector > 0 ? p.vector : 1); ++shift) {
      sum.add(torch::axis_sum(p, t.of, shift, element));
    }
  }
  return sum.value();
}

// Those of a program that has reduce_kernel thread by thread in the processor's floats and shares no
// code with the library.
TEST(AxisReduction, AsTheKernelAdds) {
  std::mt19937 engine(1);
  EXPECT_EQ(sum_of_results(recorded, engine), 0xAC14EA03A98D5A95u);
  EXPECT_EQ(sum_of_results(others, engine), 0x1826D73A265B3BDEu);
}

TEST(AxisReduction, SumsStartAtPositiveZero) {
  const planned_tensor row{format_id::fp16, axis_reduction::sum, {200}, {1}, 1, 0, 132, ""};
  const auto zero = [](std::int64_t) { return bits(-0.0f); };
  for (std::int64_t shift = 0; shift < 8; ++shift) {
    EXPECT_EQ(torch::axis_sum(plan_of(row), row.of, shift, zero), 0u);
  }
}

TEST(AxisReduction, ResultsOfSums) {
  torch::axis_plan p;
  p.inputs = 3;
  p.outputs = 5;
  const auto result = [&](axis_reduction of, float sum) {
    return number(torch::axis_result(p, of, bits(sum)));
  };
  EXPECT_EQ(result(axis_reduction::sum, -2.5f), -2.5f);
  EXPECT_EQ(result(axis_reduction::mean, 1.1f), 1.1f * (5.0f / 15.0f));
  EXPECT_EQ(result(axis_reduction::norm, 2.0f), std::sqrt(2.0f));
  p.inputs = 1;  // the magnitude, whose square may overflow
  EXPECT_EQ(result(axis_reduction::norm, -1e30f), 1e30f);
  const auto large = [](std::int64_t) { return bits(-1e30f); };
  EXPECT_EQ(torch::axis_sum(p, axis_reduction::norm, 0, large), bits(-1e30f));
  p.inputs = 2;  // overflows
  EXPECT_EQ(torch::axis_sum(p, axis_reduction::norm, 0, large), 0x7F800000u);
  p.inputs = 0;
  EXPECT_EQ(bits(result(axis_reduction::sum, 0)), 0u);
  EXPECT_EQ(bits(result(axis_reduction::norm, 0)), 0u);
  EXPECT_TRUE(std::isnan(result(axis_reduction::mean, 0)));
}

}  // namespace
}  // namespace samebits
