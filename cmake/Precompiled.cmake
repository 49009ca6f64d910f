# Precompiled headers of the runtime and of the unit tests (Mlir.cmake has the compiler's). Each is built through an object library of its own,
# with the flags of those that read it: GCC takes a precompiled header only where -fPIC or -fPIE is the same. They are made in the folders that
# use them: in that of the runtime LLVM's headers are not on the path, so that a build without LLVM finds the same in the compiler cache.
find_package(fmt REQUIRED)
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cpp CONTENT "// the precompiled headers are built through this file\n")

# zero_precompiled(NAME header LINK libraries…)
function(zero_precompiled name header)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  target_precompile_headers(${name} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/${header})
endfunction()
