# `cmake --install build/release`: the program with its manual and completion, the libraries of the rooms, their headers, and what
# find_package(shoal) and pkg-config need to find them.
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/shoal)

if(NOT SHOAL_TORCH)
  set(without_torch REGEX "/nn/[^/]*\\.h$" EXCLUDE)
endif()
install(DIRECTORY shoal DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.h" ${without_torch})
install(EXPORT shoal NAMESPACE shoal:: FILE shoalTargets.cmake DESTINATION ${package} COMPONENT development)
configure_package_config_file(cmake/shoalConfig.cmake.in ${PROJECT_BINARY_DIR}/shoalConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/shoalConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/shoalConfig.cmake ${PROJECT_BINARY_DIR}/shoalConfigVersion.cmake DESTINATION ${package} COMPONENT development)
if(SHOAL_TORCH)
  install(EXPORT shoal_torch NAMESPACE shoal:: FILE shoalTorchTargets.cmake DESTINATION ${package} COMPONENT development)
  install(FILES cmake/ShoalTorch.cmake DESTINATION ${package} COMPONENT development)
endif()
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)   # so that the tree may be moved
configure_file(cmake/shoal.pc.in ${PROJECT_BINARY_DIR}/shoal.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/shoal.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
