# Language level, warnings and sanitizers for every target of the project.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# A default. Where diwarp is part of another project, that project decides.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

find_program(DIWARP_CCACHE ccache)
if(DIWARP_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness lets ccache keep what was compiled with precompiled headers. With the base folder
  # it finds what another checkout of the same sources compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros
    "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=true "${DIWARP_CCACHE}")
endif()

if(CMAKE_INTERPROCEDURAL_OPTIMIZATION AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-ffat-lto-objects)  # machine code, too, for the tests and what is installed
endif()

# Where sources compile in groups, a local name may be that of another source of the group.
# -Wrestrict in GCC 12 sees overlaps that are not there in `"text" + string` (GCC bug 105651).
add_library(diwarp_settings INTERFACE)
target_compile_options(diwarp_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wshadow>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<BOOL:${DIWARP_WERROR}>:-Werror>)

if(DIWARP_SANITIZE)
  # For the whole tree, so that test programs and the library agree.
  add_compile_options(-fsanitize=${DIWARP_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${DIWARP_SANITIZE})
  # LeakSanitizer (LLVM 14) guesses the bounds of a loaded library's thread-local storage, and ends
  # the process where that happens to begin 16 bytes into a page. Those of the static block it knows.
  if(DIWARP_SANITIZE MATCHES "address")
    add_compile_options(-ftls-model=initial-exec)
  endif()
  if(DIWARP_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
    add_link_options(-fno-sanitize-recover=undefined)
  endif()
endif()

if(DIWARP_FUZZ)
  # libFuzzer's view of what an input reaches; the fuzzers alone link the rest of it.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
