# Everything that the project takes from outside: Debian's packages, through find_package. Nothing is downloaded.
# scripts/install-deps installs the packages; a target that is named here is linked where it is needed:
#   Threads::Threads  OpenMP::OpenMP_CXX  hwy::hwy  xbyak::xbyak  flatbuffers::flatbuffers (flatc: flatbuffers::flatc)
#   xxhash::headers  protozero::headers  CLI11::CLI11  nlohmann_json::nlohmann_json  stb::image  GTest::gtest GTest::gtest_main GTest::gmock  benchmark::benchmark

find_package(Threads REQUIRED)
if(NOT FUSELITE_OPENMP STREQUAL none)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
endif()
find_package(hwy CONFIG REQUIRED)
# xxHash, a header.
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
add_library(xxhash::headers INTERFACE IMPORTED)
target_include_directories(xxhash::headers SYSTEM INTERFACE ${XXHASH_INCLUDE_DIR})
# protozero reads protocol buffers, headers alone.
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_reader.hpp REQUIRED)
add_library(protozero::headers INTERFACE IMPORTED)
target_include_directories(protozero::headers SYSTEM INTERFACE ${PROTOZERO_INCLUDE_DIR})
if(FUSELITE_JIT)
  find_package(xbyak CONFIG REQUIRED)
endif()
# Only FlatBuffers' headers are used (reading, verifying and building need no more): Debian's static library is not
# position-independent, so a shared library that pulls an object of it in does not link.
# Newer releases name their configuration file in lower case.
find_package(flatbuffers CONFIG REQUIRED NAMES FlatBuffers flatbuffers)
find_package(CLI11 CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
# stb_image, a header; as a system header its warnings are not ours.
find_path(STB_INCLUDE_DIR stb_image.h PATH_SUFFIXES stb REQUIRED)
add_library(stb::image INTERFACE IMPORTED)
target_include_directories(stb::image SYSTEM INTERFACE ${STB_INCLUDE_DIR})
if(FUSELITE_TESTS)
  find_package(GTest CONFIG REQUIRED)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()
if(FUSELITE_BENCHMARKS)
  find_package(benchmark CONFIG REQUIRED)
endif()
