"""Files as users write them: good ones in every form, and everything that goes wrong."""

from typing import Final

BENCHMARK: Final = """
import torch
from torch import nn
print("hello")
rows = 2

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layer = nn.Linear(n, 3)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(torch.relu(self.layer(x)))

def get_inputs():
    return [torch.randn(rows, 5)]

def get_init_inputs():
    return [5]
"""
FUNCTION: Final = """
import torch

class Double(torch.nn.Module):
    def forward(self, x):
        return x * 2

def program(n=3):
    return Double(), (torch.ones(n),)
"""
SEVERAL: Final = """
import torch
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        return torch.tanh(x)

class Scale(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor
        self.block = Block()

    def forward(self, x, bias=None, *, mode="add"):
        y = self.block(x) * self.factor
        return y + bias if mode == "add" else y * bias

    @staticmethod
    def init_inputs():
        return {"factor": 2.5}

    @classmethod
    def example_inputs(cls):
        return {"x": torch.randn(5, 7), "bias": torch.randn(7), "mode": "mul"}

class Pair(nn.Module):
    def forward(self, both, n, last=None):
        return both[0] @ both[1]["w"] * n, both[0].sum()

    @staticmethod
    def example_inputs():
        return ([torch.randn(3, 4), {"w": torch.randn(4, 5)}], 3)

class Broken(nn.Module):
    def forward(self, x):
        return x

    @staticmethod
    def example_inputs():
        return torch.randn(-1)

PROGRAMS = {"soft max": lambda: (nn.Softmax(-1), torch.randn(6, 9))}
"""
LARGE: Final = """
import torch
from torch import nn

batch = 4096
inner = 65536
outer = 262144

class Model(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.layer = nn.Linear(n, m)

    def forward(self, x):
        return torch.relu(self.layer(x))

def get_inputs():
    return [torch.rand(batch, inner)]

def get_init_inputs():
    return [inner, outer]
"""
FLOW: Final = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return -x

def get_inputs():
    return [torch.randn(4)]
"""
_HEAD: Final = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return x\n"
#: Name -> (text, reason, line or 0, words of the message).
BROKEN: Final[dict[str, tuple[str, str, int, str]]] = {
    "syntax": ("def program(:\n    pass\n", "syntax-error", 1, "no valid Python"),
    "raises": ("x = 1\ny = x / 0\n", "raised", 2, "ZeroDivisionError"),
    "leaves": ("import sys\nsys.exit(3)\n", "raised", 2, "SystemExit: 3"),
    "exits": ("import os\n\nos._exit(3)\n", "exited", 3, "exit code 3"),
    "crashes": ("import ctypes\nctypes.string_at(0)\n", "crashed", 2, "SIGSEGV"),
    "kills": ("import os\nos.kill(os.getpid(), 9)\n", "crashed", 0, "SIGKILL"),
    "hangs": ("print('x')\nwhile True:\n    print('y')\n", "timed-out", 3, "not done after"),
    "forks": ("import os\nwhile True:\n    os.fork()\n", "raised", 3, "no more than 16 processes"),
    "crowds": (
        "import os\nos.system('for i in $(seq 100); do sleep 60 & done; wait')\n",
        "too-many-processes",
        2,
        "processes without end",
    ),
    "grows": ("x = bytearray(2**40)\n", "out-of-memory", 0, "MiB of memory"),
    "closes": ("import os\nos.closerange(3, 99)\n", "exited", 0, "exit code 1"),
    "reads": ("input()\n", "raised", 1, "EOFError"),
    "nothing": ("x = 1\n", "no-program", 0, "defines no program"),
    "half": (_HEAD, "no-program", 0, "a class Model and no get_inputs()"),
    "table": ("PROGRAMS = {3: 4}\n", "no-program", 0, "must be a dict with names"),
}
#: The same for programs that the file has.
BROKEN_PROGRAMS: Final[dict[str, tuple[str, str, int, str]]] = {
    "module": ("def program():\n    return 3, ()\n", "not-a-module", 0, "type int"),
    "pair": ("def program():\n    return 3\n", "no-program", 0, "must give (module, inputs)"),
    "inputs": (_HEAD + "def get_inputs(): return 5\n", "bad-inputs", 0, "type int"),
    "input": (
        _HEAD + "def get_inputs(): return [[torch.ones(2), object()]]\n",
        "bad-inputs",
        0,
        "the input `x[1]` is a value of type object",
    ),
    "sparse": (
        _HEAD + "def get_inputs(): return torch.ones(2, 2).to_sparse()\n",
        "bad-inputs",
        0,
        "layout torch.sparse_coo",
    ),
    "none": (_HEAD + "def get_inputs(): return [1]\n", "bad-inputs", 0, "no tensor among"),
    "constructor": (
        BENCHMARK.replace("return [5]", "return [5, 6]"),
        "raised",
        0,
        "Model(...) raised TypeError",
    ),
    "shapes": (BENCHMARK + "SHAPES = [{'cols': 3}]\n", "bad-shapes", 0, "names 'cols'"),
    "extents": (BENCHMARK + "SHAPES = [{'rows': -3}]\n", "bad-shapes", 0, "the value -3"),
    "entries": (BENCHMARK + "SHAPES = 5\n", "bad-shapes", 0, "must be a list"),
}
