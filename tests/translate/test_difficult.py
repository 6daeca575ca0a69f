"""Programs that go beyond LEIR end in a refusal that names the operator and the user's line."""

import inspect

import pytest
import torch
from torch import Tensor, nn

from steptp_dagster.translate.fidelity import fidelity
from steptp_dagster.translate.tracing import LIMIT
from steptp_dagster.translate.translate import Translation, TranslationRefusal, translate
from tests.support.networks.difficult import DIFFICULT, Forward

#: What is refused: by which operator, and what the refusal says.
REFUSED = {
    "branch-on-value": ("torch.export", "control flow that depends on data"),
    "loop-until": ("torch.export", "control flow that depends on data"),
    "item-as-number": ("aten._local_scalar_dense.default", "Python number"),
    "item-as-size": ("torch.export", "depends on data"),
    "tolist": ("aten._local_scalar_dense.default", "Python number"),
    "boolean-mask": ("aten.index.Tensor", "torch.where"),
    "nonzero": ("aten.nonzero.default", "torch.where"),
    "unique": ("aten._unique2.default", "torch.where"),
    "assert-on-value": ("torch.export", "control flow that depends on data"),
    "dropout-in-training": ("aten.native_dropout.default", ".eval()"),
    "random-normal": ("aten.randn_like.default", "as an input"),
    "random-permutation": ("aten.randperm.default", "as an input"),
    "multinomial": ("aten.multinomial.default", "as an input"),
    "complex-parts": ("aten.view_as_complex.default", "real and imaginary parts"),
    "complex-literal": ("aten.mul.Tensor", "real and imaginary parts"),
    "fourier": ("aten._fft_r2c.default", "real and imaginary parts"),
    "sparse": ("aten._to_sparse.default", "dense ones do"),
    "sparse-input": ("input", "dense ones do"),
    "quantized": ("aten.quantize_per_tensor.default", "quantized"),
    "fake-quantized": ("aten.fake_quantize_per_tensor_affine_cachemask.default", "quantized"),
    "numpy-inside": ("torch.export", "NumPy"),
    "cond": ("cond", "torch.where"),
    "while-loop": ("while_loop", "nn.LSTM"),
    "meta-device": ("aten._to_copy.default", "the CPU does"),
    "cuda-inside": ("torch.export", "the CPU does"),
    "nested-tensor": ("torch.export", "padded tensors"),
    "wrong-shapes": ("torch.export", "broadcast"),
    "raises": ("torch.export", "ValueError: no such mode"),
    "raises-from-argument": ("torch.export", "KeyError"),
    "recursion": ("torch.export", "RecursionError"),
    "returns-nothing": ("output", "computes nothing"),
    "returns-text": ("output", "an output of type"),
    "eigenvalues": ("aten._linalg_eigh.default", "as an input"),
    "inverse": ("aten.linalg_inv_ex.default", "as an input"),
    "cholesky": ("aten.linalg_cholesky_ex.default", "as an input"),
    "determinant": ("aten._linalg_det.default", "as an input"),
    "histogram": ("aten.histc.default", "torch.where"),
    "bincount": ("aten.bincount.default", "torch.where"),
    "float8": ("aten._to_copy.default", "LEIR has"),
    "unsigned": ("aten._to_copy.default", "LEIR has"),
    "data-pointer": ("torch.export", "address"),
    "packed-sequence": ("aten._pack_padded_sequence.default", "padded ones"),
}
#: Refused without a line: the inputs and outputs of the program are to blame.
WITHOUT_LINE = ("sparse-input", "returns-nothing", "returns-text")
SAMPLE = (
    "branch-on-value",
    "boolean-mask",
    "cond",
    "raises",
    "data-pointer",
)


def holds(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    function, inputs = DIFFICULT[name]
    module = Forward(function).eval()
    result = translate(module, inputs)
    said = capfd.readouterr()
    assert said.out + said.err == ""
    if name not in REFUSED:
        assert isinstance(result, Translation), str(result)
        assert fidelity(module, inputs, result).faithful
        return
    assert isinstance(result, TranslationRefusal)
    operator, words = REFUSED[name]
    assert result.operator == operator
    assert words in result.message
    if name in WITHOUT_LINE:
        assert result.location == ""
        return
    file, line, code = result.location.split(":", maxsplit=2)
    lines, start = inspect.getsourcelines(function)
    assert file.endswith("difficult.py")
    assert code.strip() == lines[int(line) - start].strip()


@pytest.mark.parametrize("name", SAMPLE)
def test_difficult_program(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    holds(name, capfd)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in DIFFICULT if n not in SAMPLE])
def test_every_difficult_program(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    holds(name, capfd)


@pytest.mark.slow
def test_endless_programs_are_refused() -> None:
    class Long(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            for _ in range(10 * LIMIT):
                x = x * 2
            return x

    result = translate(Long(), (torch.ones(2),))
    assert isinstance(result, TranslationRefusal)
    assert result.operator == "torch.export"
    assert f"more than {LIMIT} operators" in result.message
    assert result.location.endswith("x = x * 2")
