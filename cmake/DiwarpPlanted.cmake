include_guard()

set(DIWARP_PLANTED_FROM "${PROJECT_SOURCE_DIR}" CACHE PATH
  "The checkout whose sources get the planted faults, where those of this one are changed already")
mark_as_advanced(DIWARP_PLANTED_FROM)

# diwarp_planted_source(OUT NAME FILE TEXT REPLACEMENT)
#
# Sets OUT to the path of a copy of one source file of a layer (FILE, from the project's folder) in
# which TEXT, which must stand there once, is replaced. A program that has the copy among its own
# sources, and links the layer as well, has the copy's code: the linker then takes no object of the
# layer's archive that defines the same. The copy is made anew when the source changes.
function(diwarp_planted_source out name file text replacement)
  set(source "${PROJECT_SOURCE_DIR}/${file}")
  set(original "${DIWARP_PLANTED_FROM}/${file}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${original}")
  file(READ "${original}" contents)
  string(FIND "${contents}" "${text}" first)
  string(FIND "${contents}" "${text}" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    message(FATAL_ERROR "Planted fault ${name}: `${text}` must stand once in ${file}")
  endif()
  string(REPLACE "${text}" "${replacement}" contents "${contents}")
  string(REGEX MATCH "^[a-z]+" layer "${file}")
  set_source_files_properties("${source}" TARGET_DIRECTORY diwarp_${layer}
    PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set(copy "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
  file(GENERATE OUTPUT "${copy}" CONTENT "${contents}")
  set(${out} "${copy}" PARENT_SCOPE)
endfunction()
