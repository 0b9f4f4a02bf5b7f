# What the Python wheel holds besides the Python files: the component "wheel", which scikit-build-core installs into
# site-packages (pyproject.toml).

add_custom_target(fuselite_wheel DEPENDS fuselite fuselite_cli fuselite_litert)
# One file: a wheel keeps no symbolic links.
install(FILES $<TARGET_FILE:fuselite> RENAME $<TARGET_SONAME_FILE_NAME:fuselite> DESTINATION fuselite/lib
  PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE
  COMPONENT wheel EXCLUDE_FROM_ALL)
install(TARGETS fuselite_cli RUNTIME DESTINATION fuselite/bin COMPONENT wheel EXCLUDE_FROM_ALL)
install(TARGETS fuselite_litert LIBRARY DESTINATION fuselite/litert COMPONENT wheel EXCLUDE_FROM_ALL)
# Makes FUSELITE_ENABLE=1 work; docs/python.md.
install(FILES ${PROJECT_SOURCE_DIR}/python/fuselite-enable.pth DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL)
