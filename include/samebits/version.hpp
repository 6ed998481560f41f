// The version: CMake reads it from here.
#pragma once

#define SAMEBITS_VERSION_MAJOR 0
#define SAMEBITS_VERSION_MINOR 1
#define SAMEBITS_VERSION_PATCH 0
#define SAMEBITS_VERSION "0.1.0"
