include_guard()

# diwarp_targets_below(OUT FOLDER)
#
# Sets OUT to the targets of FOLDER and of the folders that it adds.
function(diwarp_targets_below out folder)
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  get_property(folders DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(subfolder IN LISTS folders)
    diwarp_targets_below(found "${subfolder}")
    list(APPEND targets ${found})
  endforeach()
  set(${out} "${targets}" PARENT_SCOPE)
endfunction()

# diwarp_unity_sources(OUT TARGET)
#
# Sets OUT to a line "folder;target;source" for each source file of TARGET that it may compile with
# others.
function(diwarp_unity_sources out target)
  set(lines)
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  foreach(source IN LISTS sources)
    get_filename_component(path "${source}" ABSOLUTE BASE_DIR "${folder}")
    get_source_file_property(alone "${path}" TARGET_DIRECTORY ${target} SKIP_UNITY_BUILD_INCLUSION)
    if(path MATCHES "\\.cpp$" AND EXISTS "${path}" AND NOT alone)
      string(APPEND lines "${folder};${target};${path}\n")
    endif()
  endforeach()
  set(${out} "${lines}" PARENT_SCOPE)
endfunction()

# diwarp_unity(FOLDER ...)
#
# The targets below each FOLDER compile their sources in groups. Most of the time that a compiler
# takes goes into headers, so a group takes little more than one source. Called after all targets
# are there.
function(diwarp_unity)
  set(lines)
  foreach(folder IN LISTS ARGN)
    diwarp_targets_below(targets "${folder}")
    foreach(target IN LISTS targets)
      get_target_property(type ${target} TYPE)
      if(type MATCHES "EXECUTABLE|STATIC_LIBRARY|SHARED_LIBRARY|OBJECT_LIBRARY")
        diwarp_unity_sources(added ${target})
        string(APPEND lines "${added}")
        set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
      endif()
    endforeach()
  endforeach()
  set(sources "${PROJECT_BINARY_DIR}/unity_sources.txt")
  set(groups "${PROJECT_BINARY_DIR}/unity_groups.cmake")
  file(WRITE "${sources}" "${lines}")
  set(script "${PROJECT_SOURCE_DIR}/cmake/unity_groups.py")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${script}")
  include(DiwarpPython)
  execute_process(COMMAND "${Python3_EXECUTABLE}" -B "${script}" "${PROJECT_SOURCE_DIR}"
    INPUT_FILE "${sources}" OUTPUT_FILE "${groups}" COMMAND_ERROR_IS_FATAL ANY)
  include("${groups}")
endfunction()
