# PyTorch's C++ libraries as the target shoal_torch, from the Python named by SHOAL_PYTHON: here, and for users of an
# installed Shoal (shoalConfig.cmake).
# The wheel's own package file is not used: for a build with CUDA it asks for the CUDA toolkit, which
# nothing here needs. Its headers are SYSTEM: their warnings are not ours.
set(SHOAL_PYTHON "${PROJECT_SOURCE_DIR}/.venv/bin/python" CACHE FILEPATH "The Python whose PyTorch to build against")

execute_process(
  COMMAND ${SHOAL_PYTHON} -c "import torch, os; print(torch.__version__); print(os.path.dirname(torch.__file__))"
  OUTPUT_VARIABLE torch_answer ERROR_VARIABLE torch_error RESULT_VARIABLE torch_failed
  OUTPUT_STRIP_TRAILING_WHITESPACE)
if(torch_failed)
  message(FATAL_ERROR "${SHOAL_PYTHON} cannot import torch: run scripts/setup.sh, set SHOAL_PYTHON, or "
                      "configure with -DSHOAL_TORCH=OFF\n${torch_error}")
endif()
string(REPLACE "\n" ";" torch_answer "${torch_answer}")
list(GET torch_answer 0 torch_version)
list(GET torch_answer 1 torch_root)
if(NOT torch_version MATCHES "^2\\.1[1-9]\\.")
  message(FATAL_ERROR "Shoal needs PyTorch 2.11 or later 2.x; ${SHOAL_PYTHON} has ${torch_version}")
endif()
message(STATUS "PyTorch ${torch_version} in ${torch_root}")

add_library(shoal_torch INTERFACE)
target_include_directories(shoal_torch SYSTEM INTERFACE
  ${torch_root}/include ${torch_root}/include/torch/csrc/api/include)
foreach(library torch torch_cpu c10)
  target_link_libraries(shoal_torch INTERFACE ${torch_root}/lib/lib${library}.so)
endforeach()
set(SHOAL_TORCH_PYTHON_LIBRARY ${torch_root}/lib/libtorch_python.so)
