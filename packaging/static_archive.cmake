# libfuselite.a: the interpreter and the delegate as one object of which only the public functions can be linked, so that
# a program has no name of Highway, FlatBuffers or the standard library's templates in it to clash with. (What g++ makes
# unique, inline variables of ours, objcopy leaves as it is.)

set(rooms runtime kernels fusion partitioner interpreter)
if(FUSELITE_JIT)
  list(APPEND rooms jit)
endif()
list(TRANSFORM rooms PREPEND fuselite_)
set(archives ${rooms})
list(TRANSFORM archives REPLACE "(.+)" "$<TARGET_FILE:\\1>")
set(FUSELITE_ARCHIVE ${PROJECT_BINARY_DIR}/lib/libfuselite.a)
set(object ${CMAKE_CURRENT_BINARY_DIR}/fuselite.o)
# Groups of duplicates are resolved here: a later link that dropped one of ours for the program's would miss the
# names that are hidden by then.
add_custom_command(OUTPUT ${FUSELITE_ARCHIVE}
  COMMAND ${CMAKE_CXX_COMPILER} -nostdlib -r -Wl,--force-group-allocation -Wl,--whole-archive ${archives}
    -Wl,--no-whole-archive "$<TARGET_OBJECTS:fuselite_interpreter_c_api>" "$<TARGET_OBJECTS:fuselite_delegate_c_api>"
    -o ${object}
  COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=Fuselite* --keep-global-symbol=tflite_plugin_*
    --strip-debug ${object}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${FUSELITE_ARCHIVE}
  COMMAND ${CMAKE_AR} rcs ${FUSELITE_ARCHIVE} ${object}
  DEPENDS ${rooms} fuselite_interpreter_c_api fuselite_delegate_c_api
    $<TARGET_OBJECTS:fuselite_interpreter_c_api> $<TARGET_OBJECTS:fuselite_delegate_c_api>
  COMMAND_EXPAND_LISTS VERBATIM COMMENT "Making libfuselite.a")
add_custom_target(fuselite_static ALL DEPENDS ${FUSELITE_ARCHIVE})
