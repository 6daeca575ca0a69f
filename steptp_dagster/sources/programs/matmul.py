"""Matrix products in the forms in which people write them."""

import torch
from torch import Tensor, nn


class MatMul(nn.Module):
    """A product of two tensors of any ranks."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """``a @ b``."""
        return torch.matmul(a, b)


class Einsum4D(nn.Module):
    """A 4-D tensor times a matrix over its last dimension."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """``[b,i,j,l] x [l,k] -> [b,i,j,k]``."""
        return torch.einsum("bijl,lk->bijk", a, b)


class DiagonalMatMul(nn.Module):
    """A diagonal matrix, given by its diagonal, times a matrix."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """``diag(a) @ b``."""
        return torch.diag(a) @ b


class UpperTriangularMatMul(nn.Module):
    """A product of which the upper triangle is kept."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """``triu(a @ b)``."""
        return torch.triu(a @ b)


class LowerTriangularMatMul(nn.Module):
    """A product of which the lower triangle is kept."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """``tril(a @ b)``."""
        return torch.tril(a @ b)


class TransposedLeftMatMul(nn.Module):
    """The left operand is stored transposed."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """``a.T @ b``."""
        return a.T @ b


class TransposedRightMatMul(nn.Module):
    """The right operand is stored transposed."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """``a @ b.T``."""
        return a @ b.T


class TransposedBothMatMul(nn.Module):
    """Both operands are stored transposed."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """``a.T @ b.T``."""
        return a.T @ b.T


class BatchedMatMul(nn.Module):
    """One product per element of a batch."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """``a[i] @ b[i]``."""
        return torch.bmm(a, b)


class MatrixScalar(nn.Module):
    """A matrix times a number that is known when the program is written."""

    def forward(self, a: Tensor) -> Tensor:
        """``3.14 * a``."""
        return a * 3.14


class MatMulSoftmax(nn.Module):
    """A linear layer without bias, then a softmax over its outputs."""

    def __init__(self, k: int, n: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(k, n))

    def forward(self, x: Tensor) -> Tensor:
        """``softmax(x @ weight)``."""
        return torch.softmax(x @ self.weight, dim=-1)
