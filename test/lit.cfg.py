# lit configuration: finds the built tools through ZERO_BUILD (default: build/ beside the sources).
import os
import lit.formats

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
build = os.environ.get("ZERO_BUILD", os.path.join(root, "build"))
llvm = os.environ.get("ZERO_LLVM_TOOLS", "/usr/lib/llvm-19/bin")

config.name = "zero"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "unit", "e2e", "bench"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = os.path.join(build, "test")
config.environment["PATH"] = os.pathsep.join([os.path.join(build, "bin"), llvm, config.environment["PATH"]])
config.environment["FILECHECK_OPTS"] = "--enable-var-scope --dump-input=fail"
# Tests of the reader and end to end need a Python with the onnx package; tools/setup.sh makes one.
config.substitutions.append(("%python", os.environ.get("ZERO_PYTHON", os.path.join(root, ".venv", "bin", "python"))))
config.substitutions.append(("%root", root))
