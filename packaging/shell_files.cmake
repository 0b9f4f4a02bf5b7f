# The manual page and the completions of shells, which the program itself prints.

set(shell_files)
foreach(file IN ITEMS "man:man1/fuselite.1:man" "completion bash:bash-completion/completions/fuselite:"
    "completion zsh:zsh/site-functions/_fuselite:" "completion fish:fish/vendor_completions.d/fuselite.fish:")
  string(REPLACE ":" ";" parts "${file}")
  list(GET parts 0 command)
  list(GET parts 1 path)
  list(GET parts 2 folder)
  get_filename_component(name ${path} NAME)
  get_filename_component(directory ${path} DIRECTORY)
  set(written ${CMAKE_CURRENT_BINARY_DIR}/share/${directory}/${name})
  add_custom_command(OUTPUT ${written} DEPENDS fuselite_cli VERBATIM
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/share/${directory}
    COMMAND sh -c "$<TARGET_FILE:fuselite_cli> ${command} > ${written}")
  list(APPEND shell_files ${written})
  install(FILES ${written} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder}/${directory} COMPONENT runtime)
endforeach()
add_custom_target(fuselite_shell_files ALL DEPENDS ${shell_files})
