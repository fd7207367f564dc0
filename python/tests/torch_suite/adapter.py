"""PyTorch's own distributed tests, from the installed wheel, as if "shoal" stood wherever they say "gloo".

The tests choose by the backend's name what runs and what is expected, and many ask for a GPU only as the place of their
tensors. They are loaded with the name and the place exchanged in their source, so that Shoal is held to what gloo is held
to, on CPU. torch.distributed itself is used as it is, but for monitored_barrier, which refuses every name but gloo.
"""

import ast
import contextlib
import importlib.util
import inspect
import os
import sys
import textwrap

SUITE = "torch.testing._internal.distributed.distributed_test"

# Words of gloo's errors; where PyTorch calls every plug-in "custom"; sizes that only a GPU gets through; a deadline that
# a busy machine would miss; and a test that is switched off on Linux, as others that run here are, but depends on who leaves first.
WORDS = [
    ('" (Timed out|closed|timeout) "', '"not done within"'),
    ('f"Rank {failed_rank} failed to pass monitoredBarrier"', 'f"rank {failed_rank} has not come"'),
    ('f"Ranks {rank_str} failed to pass monitoredBarrier"', 'f"ranks {rank_str} have not come"'),
    ('f"Rank {expected_first_failed_rank}"', 'f"rank {expected_first_failed_rank} has not come"'),
    ('f"Rank {self.rank} successfully reached monitoredBarrier,"', '"rank 0 has not let this member go on"'),
    ('f" but received errors while waiting for send/recv from rank"', '""'),
    ('f" {src_rank}"', '""'),
    ('f"Rank {self.rank} timed out in monitoredBarrier"', '"has not come within"'),
    ('"Timed out waiting 1ms"', '"not done within 1 ms"'),
    ('"caught collective operation timeout"', '"not done within"'),
    ('f"Rank {expected_first_fail_rank} failed to pass monitoredBarrier"', 'f"rank {expected_first_fail_rank} has not come"'),
    ('ddp_logging_data.get("backend_name"), dist.get_backend(group_id)', 'ddp_logging_data.get("backend_name"), "custom"'),
    ("dim = 1000\n            batch = 1", "dim = 20\n            batch = 1"),
    ("wait_for=None, timeout=10)", "wait_for=None, timeout=60)"),
    ('IS_LINUX, "https://github.com/pytorch/pytorch/issues/179691"', 'True, "https://github.com/pytorch/pytorch/issues/179691"'),
]


def _of_rank(node):
    """Is it a rank, or what the tests look up under one, as the number of a GPU?"""
    return isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and ast.unparse(node) in (
        "self.rank", "rank", "device", "device_id", "rank_to_GPU[rank][0]", "rank_to_GPU[self.rank][0]")


class _Exchange(ast.NodeTransformer):
    def visit_Compare(self, node):
        # `== "nccl"` asks what is peculiar to it; everywhere else it is one more name for what gloo has as well.
        return node if isinstance(node.ops[0], ast.Eq) and ast.unparse(node.comparators[0]) == "'nccl'" else self.generic_visit(node)

    def visit_Constant(self, node):
        return ast.copy_location(ast.Constant("shoal"), node) if node.value in ("gloo", "mpi", "nccl") else node

    def visit_Attribute(self, node):
        self.generic_visit(node)
        if node.attr in ("GLOO", "NCCL"):
            node.attr = "SHOAL"
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if method == "cuda" or (method == "to" and len(node.args) == 1 and _of_rank(node.args[0])):
            return node.func.value
        for keyword in node.keywords:
            if keyword.arg in ("device_ids", "output_device"):
                keyword.value = ast.Constant(None)
            elif keyword.arg == "device" and (_of_rank(keyword.value) or ast.unparse(keyword.value) == "'cuda'"):
                keyword.value = ast.Constant("cpu")
        if ast.unparse(node.func) == "torch.device" and len(node.args) == 1 and _of_rank(node.args[0]):
            node.args = [ast.Constant("cpu")]
        return ast.Constant("cpu") if ast.unparse(node.func) == "torch.cuda.current_device" else node


def _exchanged(source, filename):
    return compile(ast.fix_missing_locations(_Exchange().visit(ast.parse(source))), filename, "exec")


def path():
    return importlib.util.find_spec("torch.testing._internal.distributed").submodule_search_locations[0] + "/distributed_test.py"


def test_names():
    """Of all tests of the suite, by parsing: importing it takes seconds."""
    with open(path()) as file:
        module = ast.parse(file.read())
    (outer,) = [node for node in module.body if isinstance(node, ast.ClassDef) and node.name == "DistributedTest"]
    (base,) = [node for node in outer.body if isinstance(node, ast.ClassDef) and node.name == "_DistTestBase"]
    return [node.name for node in base.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


def _no_gpu(common_distributed, torch):
    for name in ("skip_if_lt_x_gpu", "require_n_gpus_for_nccl_backend"):
        setattr(common_distributed, name, lambda *arguments, **options: lambda test: test)
    for name in ("skip_if_no_gpu", "skip_if_small_worldsize"):
        setattr(common_distributed, name, lambda test: test)
    common_distributed.init_multigpu_helper = lambda size, backend: {rank: [rank] for rank in range(int(size))}
    torch.cuda.set_device = lambda device: None
    torch.cuda.synchronize = lambda device=None: None
    torch.cuda.device = lambda device: contextlib.nullcontext()


def load():
    """The suite's module. BACKEND, WORLD_SIZE and INIT_METHOD must be in the environment: it reads them when it is loaded."""
    import torch
    import torch.distributed.distributed_c10d as c10d
    from torch.testing._internal import common_distributed, common_utils

    for names in common_distributed.DistTestCases.backend_feature.values():
        if "gloo" in names:
            names.add("shoal")
    _no_gpu(common_distributed, torch)
    common_utils.IS_LINUX = False  # tests that are switched off there because of gloo or NCCL
    exec(_exchanged(textwrap.dedent(inspect.getsource(c10d.monitored_barrier)), c10d.__file__), vars(c10d))
    torch.distributed.monitored_barrier = c10d.monitored_barrier

    with open(path()) as file:
        source = file.read()
    for theirs, ours in WORDS:
        assert theirs in source, f"{theirs} is no longer in {path()}"
        source = source.replace(theirs, ours)
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(SUITE, path()))
    sys.modules[SUITE] = module
    exec(_exchanged(source, path()), vars(module))
    return module
