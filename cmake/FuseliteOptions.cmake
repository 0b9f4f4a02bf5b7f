# What a person may choose (-DNAME=VALUE), and what every target of the project is compiled with.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# A project that takes this one in (add_subdirectory, FetchContent) wants the libraries alone.
option(FUSELITE_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(FUSELITE_BENCHMARKS "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(FUSELITE_INSTALL "Make the rules of installing" ${PROJECT_IS_TOP_LEVEL})
option(FUSELITE_WERROR "Treat warnings as errors" ${PROJECT_IS_TOP_LEVEL})
option(FUSELITE_PRECOMPILE "Read common headers once: for builds from nothing, a third sooner" OFF)
option(FUSELITE_FUZZ "Make the fuzz targets libFuzzer programs, instead of the tests; needs clang" OFF)
option(FUSELITE_SHARED_ROOMS "Link tests with one shared library for each room: 200 programs take 3 GB with sanitizers, not 35" OFF)
set(FUSELITE_SANITIZE "" CACHE STRING "Sanitizers for every target: address, undefined, thread")

# Rooms export nothing but to each other, and only where each is a library of its own.
if(NOT FUSELITE_SHARED_ROOMS)
  set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
  set(CMAKE_C_VISIBILITY_PRESET hidden)
endif()

# Which OpenMP runtime serves g++'s objects; docs/threads.md compares them. clang always brings LLVM's.
set(FUSELITE_OPENMP gomp CACHE STRING "OpenMP runtime under g++: gomp (GCC's) or omp (LLVM's); none: plain threads")
set_property(CACHE FUSELITE_OPENMP PROPERTY STRINGS gomp omp none)

# What the project is written for.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(FUSELITE_ARCH x86_64)
  option(FUSELITE_JIT "Emit kernels for the model's own shapes" ON)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  set(FUSELITE_ARCH aarch64)
  set(FUSELITE_JIT OFF)
else()
  message(FATAL_ERROR "fuselite is written for x86-64 and aarch64, not for ${CMAKE_SYSTEM_PROCESSOR}")
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
# ccache finds nothing again that was compiled with precompiled headers, and saves more than they do.
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(FUSELITE_PRECOMPILE OFF)
endif()

add_library(fuselite_flags INTERFACE)
# No contraction: a multiply-add that only some ISAs fuse would make their results differ.
target_compile_options(fuselite_flags INTERFACE -Wall -Wextra -Wpedantic -ffp-contract=off
  $<$<BOOL:${FUSELITE_WERROR}>:-Werror>)
target_include_directories(fuselite_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(fuselite_flags INTERFACE $<$<BOOL:${FUSELITE_SHARED_ROOMS}>:FUSELITE_SHARED_ROOMS>)
if(FUSELITE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(FUSELITE_SANITIZE)
  add_compile_options(-fsanitize=${FUSELITE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${FUSELITE_SANITIZE})
endif()
