# libdiwarp: the objects of all layers in one library, shared (diwarp::diwarp) and static
# (diwarp::diwarp_static), with its headers, a CMake package and a pkg-config file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(objects)
foreach(layer IN LISTS DIWARP_LAYERS)
  list(APPEND objects $<TARGET_OBJECTS:diwarp_${layer}>)
endforeach()
set(header_folder "${PROJECT_SOURCE_DIR}/include")
set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/diwarp")

# The layers stand in no interface: a program that links the library sees its public headers alone.
function(diwarp_library target type exported_as)
  add_library(${target} ${type} ${objects})
  add_library(diwarp::${exported_as} ALIAS ${target})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME diwarp EXPORT_NAME ${exported_as})
  target_compile_features(${target} INTERFACE cxx_std_20)
  target_include_directories(${target} INTERFACE
    "$<BUILD_INTERFACE:${header_folder}>" $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS ${target} EXPORT ${exported_as})
  install(EXPORT ${exported_as} NAMESPACE diwarp:: DESTINATION "${package_folder}"
    FILE ${exported_as}-targets.cmake)
endfunction()

diwarp_library(diwarp_shared SHARED diwarp)
set(map "${PROJECT_SOURCE_DIR}/cmake/libdiwarp.map")
set_target_properties(diwarp_shared PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION 0 LINK_DEPENDS "${map}")
target_link_options(diwarp_shared PRIVATE "LINKER:--version-script=${map}")
if(NOT DIWARP_SANITIZE)
  target_link_options(diwarp_shared PRIVATE LINKER:--no-undefined)
endif()
# For what the layers need from outside; their own objects are in already.
target_link_libraries(diwarp_shared PRIVATE diwarp_verbs)

diwarp_library(diwarp_static STATIC diwarp_static)
# The needs of a program that links the static library. These are names of libraries and not
# targets, so that neither the CMake package nor the pkg-config file looks for anything else.
set(folders ${liburing_STATIC_LIBRARY_DIRS} ${isal_STATIC_LIBRARY_DIRS})
list(REMOVE_ITEM folders ${CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES})
list(TRANSFORM folders PREPEND -L)
set(private_libraries ${liburing_STATIC_LIBRARIES} ${isal_STATIC_LIBRARIES})
list(TRANSFORM private_libraries PREPEND -l)
list(PREPEND private_libraries ${folders})
target_link_libraries(diwarp_static PRIVATE Threads::Threads ${private_libraries})
list(JOIN private_libraries " " private_libraries)

if(CMAKE_INTERPROCEDURAL_OPTIMIZATION AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  install(CODE "set(DIWARP_OBJCOPY [[${CMAKE_OBJCOPY}]])
    set(DIWARP_ARCHIVE [[${CMAKE_INSTALL_LIBDIR}/libdiwarp.a]])")
  install(SCRIPT "${PROJECT_SOURCE_DIR}/cmake/MachineCodeOnly.cmake")
endif()

include("${header_folder}/headers.cmake")
foreach(header IN LISTS DIWARP_DATA_HEADERS DIWARP_HANDLE_HEADERS)
  get_filename_component(folder "${header}" DIRECTORY)
  install(FILES "${header_folder}/diwarp/${header}"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/diwarp/${folder}")
endforeach()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/diwarp-config.cmake.in"
  "${PROJECT_BINARY_DIR}/diwarp-config.cmake" INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/diwarp-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/diwarp-config.cmake"
  "${PROJECT_BINARY_DIR}/diwarp-config-version.cmake" DESTINATION "${package_folder}")
# From the folder of the pkg-config file to the prefix, so that an installed tree can move.
file(RELATIVE_PATH to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file("${PROJECT_SOURCE_DIR}/cmake/diwarp.pc.in" "${PROJECT_BINARY_DIR}/diwarp.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/diwarp.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
