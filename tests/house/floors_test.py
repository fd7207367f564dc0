"""Each rule of floors.py finds a planted violation, and a clean tree has none.

Method: a small house is written to a temporary folder; each case adds one file that breaks one rule and
expects exactly one line, which names file and line.
"""

import tempfile
import unittest
from pathlib import Path

import floors

CLEAN = {
    "docs/architecture.md": "| 0 | `core` |\n| 1 | `topo` · `net` |\n| 4 | `nn` |\n| 6 | `app` · `python` |\n",
    "shoal/core/error.h": "// Errors.\n#pragma once\nnamespace shoal {}\n",
    "shoal/net/job.h": '// A job.\n#pragma once\n#include "shoal/core/error.h"\nnamespace shoal::net {}\n',
    "shoal/net/tcp.cc": '#include <asio.hpp>\n#include <fmt/core.h>\n#include "shoal/net/job.h"\n',
    "shoal/nn/hooks.cc": '#include <torch/torch.h>\n#include "shoal/net/job.h"\n',
    "shoal/net/CMakeLists.txt": "shoal_room(net LINKS core)\n",
    "app/main.cc": '#include "shoal/net/job.h"\n',
    "python/shoal/__init__.py": "import sys\nimport torch\nfrom . import _C\n",
    "tests/net/CMakeLists.txt": "shoal_test(net/tcp LINKS net)\n",
    "tests/net/tcp.cc": '#include "shoal/net/job.h"\n',
}


class Floors(unittest.TestCase):
    def found(self, planted: dict[str, str]) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in (CLEAN | planted).items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return floors.violations(root)

    def expect_one(self, planted: dict[str, str], where: str, words: str):
        found = self.found(planted)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(where + ": "), found)
        self.assertIn(words, found[0])

    def test_a_clean_house_has_no_violation(self):
        self.assertEqual(self.found({}), [])

    def test_an_upward_include_is_found(self):
        self.expect_one({"shoal/core/bad.cc": '\n#include "shoal/net/job.h"\n'}, "shoal/core/bad.cc:2", "core (floor 0)")

    def test_an_include_of_the_same_floor_is_found(self):
        self.expect_one({"shoal/topo/bad.cc": '#include "shoal/net/job.h"\n'}, "shoal/topo/bad.cc:1", "not on a lower")

    def test_a_library_that_includes_the_program_is_found(self):
        self.expect_one({"shoal/net/bad.cc": '#include "app/command.h"\n'}, "shoal/net/bad.cc:1", "reaches app")

    def test_an_upward_link_is_found(self):
        self.expect_one({"shoal/net/CMakeLists.txt": "shoal_room(net LINKS core nn)\n"},
                        "shoal/net/CMakeLists.txt:1", "reaches nn")

    def test_a_name_local_to_two_files_is_found(self):
        a = "namespace {\nconstexpr int kMost = 3, kLeast = 1;\nvoid show(const Job& job) {\n}  // namespace\n"
        b = "namespace {\nstruct Job;\nint show(int rank) {\nconstexpr int kLeast{2};\n}  // namespace\n"
        self.expect_one({"shoal/net/a.cc": a, "shoal/net/b.cc": b}, "shoal/net/b.cc:4", "kLeast is local to a.cc too")
        self.expect_one({"shoal/net/a.cc": a, "shoal/net/b.cc": "namespace {\nvoid show(const Job& job, int rank) {\n}  // namespace\n"},
                        "shoal/net/b.cc:2", "show is local to a.cc too")

    def test_a_room_without_a_floor_is_found(self):
        self.expect_one({"shoal/attic/a.cc": ""}, "shoal/attic/a.cc:1", "has no floor")

    def test_torch_outside_nn_is_found(self):
        self.expect_one({"app/bad.cc": "#include <torch/torch.h>\n"}, "app/bad.cc:1", "PyTorch")

    def test_torch_in_the_group_behind_the_backend_is_found(self):
        self.expect_one({"shoal/nn/group/bad.cc": "#include <torch/torch.h>\n"}, "shoal/nn/group/bad.cc:1", "not to nn/group/")
        self.expect_one({"shoal/nn/models/bad.cc": "#include <torch/torch.h>\n"}, "shoal/nn/models/bad.cc:1", "nn/models/")

    def test_asio_outside_net_is_found(self):
        self.expect_one({"app/bad.cc": "#include <asio/ip/tcp.hpp>\n"}, "app/bad.cc:1", "Asio")

    def test_fmt_in_a_header_that_nn_reaches_through_another_is_found(self):
        self.expect_one({"shoal/core/error.h": "// Errors.\n#pragma once\n#include <fmt/core.h>\nnamespace shoal {}\n"},
                        "shoal/core/error.h:3", "seen by nn/")

    def test_a_header_without_opening_comment_is_found(self):
        self.expect_one({"shoal/net/a.h": "#pragma once\nnamespace shoal::net {}\n"}, "shoal/net/a.h:1", "opens with")

    def test_a_header_in_a_foreign_namespace_is_found(self):
        self.expect_one({"shoal/net/a.h": "// A.\n#pragma once\nnamespace shoal::topo {}\n"}, "shoal/net/a.h:1", "namespace")

    def test_a_long_file_is_found(self):
        self.expect_one({"app/long.cc": "\n" * 401}, "app/long.cc:401", "401 lines")

    def test_a_folder_without_a_name_is_found(self):
        self.expect_one({"app/utils/a.cc": ""}, "app/utils/a.cc:1", "names nothing")

    def test_a_mark_for_later_is_found(self):
        self.expect_one({"app/a.cc": "// TO" + "DO: finish\n"}, "app/a.cc:1", "open an issue")

    def test_a_foreign_python_module_is_found(self):
        self.expect_one({"python/shoal/a.py": "import pandas\n"}, "python/shoal/a.py:1", "pandas")

    def test_an_undeclared_test_is_found(self):
        self.expect_one({"tests/net/lost.cc": ""}, "tests/net/lost.cc:1", "not declared")


if __name__ == "__main__":
    unittest.main()
