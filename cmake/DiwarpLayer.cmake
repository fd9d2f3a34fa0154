include_guard()

# diwarp_layer(NAME SOURCES ... [USES layer ...] [PRIVATE target ...])
#
# One static target per layer, diwarp_<name>. Its headers lie in <name>/include and are seen only by
# the targets that list it, so an include or a link that points upward fails to build.
# USES names the layers below; PRIVATE names outside libraries that only the sources need.
function(diwarp_layer name)
  cmake_parse_arguments(LAYER "" "" "SOURCES;USES;PRIVATE" ${ARGN})
  add_library(diwarp_${name} STATIC ${LAYER_SOURCES})
  target_include_directories(diwarp_${name} PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}/include")
  list(TRANSFORM LAYER_USES PREPEND diwarp_)
  target_link_libraries(diwarp_${name} PUBLIC ${LAYER_USES} PRIVATE diwarp_settings ${LAYER_PRIVATE})
endfunction()

# Adds a folder if it holds a CMakeLists.txt.
function(diwarp_add_folder folder)
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt")
    add_subdirectory(${folder})
  endif()
endfunction()
