# cmake --install BUILD [--component runtime|development]; cpack --config BUILD/CPackConfig.cmake makes a .deb.

include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fuselite)

# Which OpenMP library a program that links libfuselite.a needs: runtime/CMakeLists.txt.
if(FUSELITE_OPENMP STREQUAL none)
  set(FUSELITE_OPENMP_LIBRARY pthread)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  set(FUSELITE_OPENMP_LIBRARY omp)
else()
  set(FUSELITE_OPENMP_LIBRARY ${FUSELITE_OPENMP})
endif()

set_target_properties(fuselite PROPERTIES EXPORT_NAME interpreter)
set_target_properties(fuselite_delegate PROPERTIES EXPORT_NAME delegate)
set_target_properties(fuselite_custom_operators PROPERTIES EXPORT_NAME custom_operators)
file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set_target_properties(fuselite_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib};$ORIGIN/../lib")

install(TARGETS fuselite fuselite_delegate fuselite_custom_operators EXPORT fuselite
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)
install(TARGETS fuselite_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
install(TARGETS fuselite_litert LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/fuselite/litert COMPONENT runtime)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/fuselite DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(FILES ${FUSELITE_ARCHIVE} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)

install(EXPORT fuselite NAMESPACE fuselite:: FILE fuselite-targets.cmake DESTINATION ${package_dir}
  COMPONENT development)
configure_package_config_file(fuselite-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/fuselite-config.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/fuselite-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fuselite-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/fuselite-config-version.cmake
  DESTINATION ${package_dir} COMPONENT development)

# Where the files are is found from the .pc file's own place, so that an installation may be moved.
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
foreach(name IN ITEMS fuselite fuselite-delegate)
  configure_file(${name}.pc.in ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT development)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)

set(CPACK_PACKAGE_NAME fuselite)
set(CPACK_PACKAGE_CONTACT "The fuselite authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Fast inference of .tflite models on the CPU")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
include(CPack)
