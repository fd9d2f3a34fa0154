include_guard(GLOBAL)

# A `python3` of the search path may be a script that looks for the interpreter each time, and the
# tests start hundreds: from here on Python3_EXECUTABLE is the interpreter itself.
if(NOT Python3_EXECUTABLE)
  find_program(DIWARP_PYTHON python3 REQUIRED)
  mark_as_advanced(DIWARP_PYTHON)
  execute_process(COMMAND "${DIWARP_PYTHON}" -c "import sys; print(sys.executable)"
    OUTPUT_VARIABLE interpreter OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(Python3_EXECUTABLE "${interpreter}" CACHE FILEPATH "Python for the tests")
endif()
