# fuselite_opening_order(TARGET): the shared library TARGET has the code that opening a model runs in one place. The
# system maps 64 KiB around each page of a file that is touched: 1.1 MB of code that is spread over the library takes
# 4 to 5 MB of memory, and a page fault for each 64 KiB.
#
# These are the functions of opening_order.txt (scripts/opening-order writes it), those that give an operator's
# definition, and what the compiler runs when the library is loaded.
function(fuselite_opening_order target)
  set(list ${PROJECT_SOURCE_DIR}/cmake/opening_order.txt)
  file(STRINGS ${list} functions)
  set(sections "*crtbegin*.o(.text)\n*(.text._ZN8fuselite7kernels*OperatorEv)\n")
  foreach(function IN LISTS functions)
    string(APPEND sections "*(.text.${function})\n")
  endforeach()
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${target}.order)
  file(CONFIGURE OUTPUT ${script} CONTENT "SECTIONS { .text.opening : {\n${sections}} } INSERT BEFORE .text;\n" @ONLY)
  target_link_options(${target} PRIVATE -Wl,-T,${script})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${script})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
endfunction()
