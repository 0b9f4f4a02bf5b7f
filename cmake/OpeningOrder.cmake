# fuselite_opening_order(TARGET): the shared library TARGET has the code that opening a model runs in one place. The
# system maps 64 KiB around each page of a file that is touched: 1.1 MB of code that is spread over the library takes
# 4 to 5 MB of memory, and a page fault for each 64 KiB.
#
# These are the functions of opening_order.txt (scripts/opening-order writes it), those that give an operator's
# definition, and what the compiler runs when the library is loaded.
#
# Nor does it read data where it writes next. A read maps the 64 KiB around it, and each page of them that is written
# then is mapped anew, which other cores are told of: 40 us a page in a virtual machine. So what the loader reads first,
# .dynamic, lies 64 KiB apart from what it relocates, and variables lie on few pages, in front of zeros that nothing
# writes.
function(fuselite_opening_order target)
  set(list ${PROJECT_SOURCE_DIR}/cmake/opening_order.txt)
  file(STRINGS ${list} functions)
  set(sections "*crtbegin*.o(.text)\n*(.text._ZN8fuselite7kernels*OperatorEv)\n")
  foreach(function IN LISTS functions)
    string(APPEND sections "*(.text.${function})\n")
  endforeach()
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${target}.order)
  file(CONFIGURE OUTPUT ${script} @ONLY CONTENT "\
SECTIONS { .text.opening : {\n${sections}} } INSERT BEFORE .text;
SECTIONS { .dynamic : ALIGN(0x10000) { *(.dynamic) } } INSERT AFTER .data.rel.ro;
SECTIONS { .bss.zeros (NOLOAD) : { *(.bss._ZN8fuselite8internal12shared_zeros*) } } INSERT AFTER .bss;
")
  target_link_options(${target} PRIVATE -Wl,-T,${script})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${script})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
endfunction()
