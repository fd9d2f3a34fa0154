include_guard()

# diwarp_layer(NAME SOURCES ... [USES layer ...] [PRIVATE target ...])
#
# One static target per layer, diwarp_<name>. Only the targets that list it see its headers, as
# <name>/header.h, so an include or a link that points upward fails to build. Where headers stand
# beside the sources, a folder of the build that holds nothing but a link to the layer's folder keeps
# that so.
# USES names the layers below; PRIVATE names outside libraries that only the sources need.
function(diwarp_layer name)
  cmake_parse_arguments(LAYER "" "" "SOURCES;USES;PRIVATE" ${ARGN})
  add_library(diwarp_${name} STATIC ${LAYER_SOURCES})
  set(headers "${CMAKE_CURRENT_SOURCE_DIR}/include")
  if(NOT EXISTS "${headers}")
    set(headers "${CMAKE_CURRENT_BINARY_DIR}/include")
    file(MAKE_DIRECTORY "${headers}")
    file(CREATE_LINK "${CMAKE_CURRENT_SOURCE_DIR}" "${headers}/${name}" SYMBOLIC)
  endif()
  target_include_directories(diwarp_${name} PUBLIC "${headers}")
  list(TRANSFORM LAYER_USES PREPEND diwarp_)
  target_link_libraries(diwarp_${name} PUBLIC ${LAYER_USES} PRIVATE diwarp_settings ${LAYER_PRIVATE})
endfunction()

# Adds a folder if it holds a CMakeLists.txt.
function(diwarp_add_folder folder)
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt")
    add_subdirectory(${folder})
  endif()
endfunction()

# diwarp_link_as_is(TARGET...)
#
# Programs that take the machine code of the library as it is: optimising it anew for each takes long.
function(diwarp_link_as_is)
  if(CMAKE_INTERPROCEDURAL_OPTIMIZATION AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set_target_properties(${ARGN} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
    foreach(target IN LISTS ARGN)
      target_link_options(${target} PRIVATE -fno-lto)
    endforeach()
  endif()
endfunction()
