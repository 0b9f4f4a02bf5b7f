# The functions that declare a room's library, its exports and its tests.
include(${CMAKE_CURRENT_LIST_DIR}/OpeningOrder.cmake)

# fuselite_add_rooms(ROOM...): adds the top-level folders that have a CMakeLists.txt.
function(fuselite_add_rooms)
  foreach(room IN LISTS ARGN)
    if(EXISTS ${PROJECT_SOURCE_DIR}/${room}/CMakeLists.txt)
      add_subdirectory(${PROJECT_SOURCE_DIR}/${room} ${PROJECT_BINARY_DIR}/${room})
    endif()
  endforeach()
endfunction()

# fuselite_room(NAME DEPENDS ... [EXCLUDE REGEX...] [HEADERS ...]): the library of one top-level folder, from all its
# sources, shared where FUSELITE_SHARED_ROOMS says so. HEADERS are what most of them include, for FUSELITE_PRECOMPILE.
function(fuselite_room name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;EXCLUDE;HEADERS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
  foreach(pattern IN LISTS ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${pattern})
  endforeach()
  # Not the tools: what links them brings the delegates that register themselves.
  if(FUSELITE_SHARED_ROOMS AND NOT name STREQUAL "tools")
    add_library(fuselite_${name} SHARED ${sources})
  else()
    add_library(fuselite_${name} STATIC ${sources})
  endif()
  target_link_libraries(fuselite_${name} PUBLIC fuselite_flags ${ARG_DEPENDS})
  # The linker puts the functions that opening a model runs together (cmake/OpeningOrder.cmake).
  if(name MATCHES "^(runtime|kernels|jit|fusion|partitioner)$")
    target_compile_options(fuselite_${name} PRIVATE -ffunction-sections)
  endif()
  # What runs once for each model spends memory and time on code that is touched for the first time: g++ puts copies and
  # destructors of descriptions wherever there are some.
  if(name MATCHES "^(fusion|partitioner)$")
    target_compile_options(fuselite_${name} PRIVATE
      $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:--param=max-inline-insns-single=20>)
  endif()
  if(FUSELITE_PRECOMPILE AND ARG_HEADERS)
    target_precompile_headers(fuselite_${name} PRIVATE ${ARG_HEADERS})
  endif()
endfunction()

# fuselite_exports(TARGET PATTERN...): the shared library TARGET exports the symbols that match a pattern
# ("tflite_plugin_*") and nothing else. Hidden visibility alone lets the weak symbols of the standard library's
# templates and of static third-party libraries out, which then mix with the host's own.
function(fuselite_exports target)
  string(JOIN "; " symbols ${ARGN})
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${target}.exports)
  file(CONFIGURE OUTPUT ${script} CONTENT "{ global: ${symbols}; local: *; };\n")
  target_link_options(${target} PRIVATE -Wl,--version-script=${script} -Wl,--exclude-libs,ALL)
  # Symbols are bound when the library is loaded: bound at their first calls, each of which saves all vector registers,
  # they take 0.35 ms more until a model's first output.
  target_link_options(${target} PRIVATE -Wl,-z,now)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${script})
endfunction()

# fuselite_libgomp_on_demand(TARGET): TARGET loads libgomp when it asks for threads (runtime/threads/libgomp_on_demand.cc). The
# linker leaves out a library that nothing asks for any more.
function(fuselite_libgomp_on_demand target)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:fuselite_libgomp_on_demand>)
  target_link_options(${target} PRIVATE -Wl,--as-needed)
endfunction()

# fuselite_shared_library(NAME DEPENDS ... EXPORTS PATTERN...): a shared library that applications link or load, made
# of the rooms and objects of DEPENDS. Its users get the public headers and no dependency.
function(fuselite_shared_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;EXPORTS" ${ARGN})
  # A library needs a source of its own; the code is in what it depends on.
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}_shared.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(${name} SHARED ${source})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
  foreach(dependency IN LISTS ARG_DEPENDS)
    get_target_property(type ${dependency} TYPE)
    if(type STREQUAL "OBJECT_LIBRARY")
      target_sources(${name} PRIVATE $<TARGET_OBJECTS:${dependency}>)
    endif()
  endforeach()
  if(TARGET fuselite_libgomp_on_demand)
    fuselite_libgomp_on_demand(${name})
  endif()
  target_include_directories(${name} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  fuselite_exports(${name} ${ARG_EXPORTS})
  fuselite_opening_order(${name})
  set_target_properties(${name} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
endfunction()

# fuselite_test(NAME DEPENDS ... [SOURCES ...] [SERIAL]): the GoogleTest program NAME from NAME.cc
# and SOURCES, registered with ctest. SERIAL: measures time or the load of the machine, so it must run alone. The
# cases' results go to test-results/NAME.xml in the build folder, where scripts/test-summary counts them.
function(fuselite_test name)
  cmake_parse_arguments(ARG "SERIAL" "" "DEPENDS;SOURCES" ${ARGN})
  add_executable(${name} ${name}.cc ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE fuselite_flags ${ARG_DEPENDS} GTest::gmock GTest::gtest GTest::gtest_main)
  if(TARGET "${FUSELITE_TEST_HEADERS}" AND FUSELITE_TEST_HEADERS_OF IN_LIST ARG_DEPENDS)
    target_precompile_headers(${name} REUSE_FROM ${FUSELITE_TEST_HEADERS})
    set(in_c ${ARG_SOURCES})
    list(FILTER in_c INCLUDE REGEX "\\.c$")
    set_source_files_properties(${in_c} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  endif()
  fuselite_add_test(${name})
  set_tests_properties(${name} PROPERTIES RUN_SERIAL "${ARG_SERIAL}")
endfunction()

# fuselite_test_headers(DEPENDS ROOM HEADERS ...): what most programs of a folder of tests include, GoogleTest's headers
# before it, for FUSELITE_PRECOMPILE; said before the folder's fuselite_test. It serves the programs that depend on ROOM,
# as only these are compiled with the same definitions.
function(fuselite_test_headers)
  cmake_parse_arguments(ARG "" "DEPENDS" "HEADERS" ${ARGN})
  if(NOT FUSELITE_PRECOMPILE)
    return()
  endif()
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set(target fuselite_${folder}_test_headers)
  # What is precompiled belongs to a target, and a target has a source. g++ takes it where it is compiled as programs are.
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${target}.cc CONTENT "")
  add_library(${target} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${target}.cc)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE ${CMAKE_CXX_COMPILE_OPTIONS_PIE})
  target_link_libraries(${target} PRIVATE fuselite_flags ${ARG_DEPENDS} GTest::gmock GTest::gtest)
  target_precompile_headers(${target} PRIVATE <algorithm> <gmock/gmock.h> <gtest/gtest.h> ${ARG_HEADERS})
  set(FUSELITE_TEST_HEADERS ${target} PARENT_SCOPE)
  set(FUSELITE_TEST_HEADERS_OF ${ARG_DEPENDS} PARENT_SCOPE)
endfunction()

# fuselite_add_test(NAME): registers the GoogleTest program NAME with ctest.
function(fuselite_add_test name)
  add_test(NAME ${name} COMMAND ${name})
  set(timeout 300)
  if(FUSELITE_SANITIZE)  # takes up to twenty times as long
    set(timeout 3600)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout}
    ENVIRONMENT GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/test-results/${name}.xml)
endfunction()
