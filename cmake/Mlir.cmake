# MLIR/LLVM 19 of Debian (or apt.llvm.org): linked as the two shared libraries only. Naming single
# static MLIR libraries beside them would register every option and TypeID twice.
find_package(MLIR 19.1 REQUIRED CONFIG HINTS /usr/lib/llvm-19)
find_package(LLD REQUIRED CONFIG HINTS /usr/lib/llvm-19)
set(LLVM_RUNTIME_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/bin)
set(LLVM_LIBRARY_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/lib)
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS} ${LLD_INCLUDE_DIRS})
separate_arguments(ZERO_LLVM_DEFINITIONS NATIVE_COMMAND ${LLVM_DEFINITIONS})

# One precompiled header for every MLIR translation unit of the project.
file(WRITE ${CMAKE_BINARY_DIR}/mlir_pch.cpp.in "// the precompiled header is built through this file\n")
configure_file(${CMAKE_BINARY_DIR}/mlir_pch.cpp.in ${CMAKE_BINARY_DIR}/mlir_pch.cpp COPYONLY)
add_library(zero_mlir_pch OBJECT ${CMAKE_BINARY_DIR}/mlir_pch.cpp)
target_compile_definitions(zero_mlir_pch PRIVATE ${ZERO_LLVM_DEFINITIONS})
target_precompile_headers(zero_mlir_pch PRIVATE "$<$<NOT:$<CONFIG:Release>>:${CMAKE_SOURCE_DIR}/cmake/mlir_as_built.h>" ${CMAKE_SOURCE_DIR}/cmake/mlir_pch.h)

# zero_mlir_library(NAME sources… [DEPENDS tablegen targets…] [LINK libraries…])
function(zero_mlir_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_compile_definitions(${name} PRIVATE ${ZERO_LLVM_DEFINITIONS})
  target_precompile_headers(${name} REUSE_FROM zero_mlir_pch)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_LINK} MLIR LLVM)
endfunction()

# zero_passes(TARGET Group): Passes.td beside the caller becomes Passes.h.inc in the build tree.
function(zero_passes target group)
  set(LLVM_TARGET_DEFINITIONS Passes.td)
  mlir_tablegen(Passes.h.inc -gen-pass-decls -name ${group})
  add_public_tablegen_target(${target})
endfunction()
