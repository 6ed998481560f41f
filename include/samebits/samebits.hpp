// Everything: includes only.
#pragma once

#include "samebits/backend.hpp"
#include "samebits/convert.hpp"
#include "samebits/error.hpp"
#include "samebits/format.hpp"
#include "samebits/quantize.hpp"
#include "samebits/reduce.hpp"
#include "samebits/rounding.hpp"
#include "samebits/scalar.hpp"
#include "samebits/scaling.hpp"
#include "samebits/self_test.hpp"
#include "samebits/text.hpp"
#include "samebits/types.hpp"
#include "samebits/verify.hpp"
#include "samebits/version.hpp"
#include "samebits/view.hpp"
