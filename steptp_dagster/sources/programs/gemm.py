"""Linear layers and what follows them; a class is named for its operators from left to right."""

# mypy: disable-error-code="no-any-return"
# (calls of layers are untyped in PyTorch)

import torch
from torch import Tensor, nn
from torch.nn import functional


class Layer(nn.Module):
    """A linear layer from ``k`` to ``n`` features."""

    def __init__(self, k: int, n: int) -> None:
        super().__init__()
        self.linear = nn.Linear(k, n)


class GroupedLayer(Layer):
    """A linear layer and a normalisation of its features in groups."""

    def __init__(self, k: int, groups: int, features_per_group: int) -> None:
        super().__init__(k, groups * features_per_group)
        self.norm = nn.GroupNorm(groups, groups * features_per_group)


class GemmMultiplyLeakyReLU(Layer):
    """A linear layer, doubled, negative results scaled down."""

    def forward(self, x: Tensor) -> Tensor:
        """``leaky_relu(2*linear(x))``."""
        return functional.leaky_relu(self.linear(x) * 2.0, negative_slope=0.1)


class GemmDivideSumScaling(nn.Module):
    """Half of the products with each row of a matrix, added up and scaled."""

    def __init__(self, k: int, n: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n, k))

    def forward(self, x: Tensor) -> Tensor:
        """``1.5*sum(x@weight.T/2)``."""
        halves = (x @ self.weight.T) / 2.0
        return halves.sum(dim=1, keepdim=True) * 1.5


class GemmScaleBatchNorm(Layer):
    """A linear layer, a factor per feature, normalisation with stored statistics."""

    def __init__(self, k: int, n: int) -> None:
        super().__init__(k, n)
        self.scale = nn.Parameter(torch.randn(n))
        self.norm = nn.BatchNorm1d(n)

    def forward(self, x: Tensor) -> Tensor:
        """``batch_norm(linear(x)*scale)``."""
        return self.norm(self.linear(x) * self.scale)


class GemmBatchNormScalingSoftmax(Layer):
    """A linear layer, normalised and scaled, as probabilities."""

    def __init__(self, k: int, n: int) -> None:
        super().__init__(k, n)
        self.norm = nn.BatchNorm1d(n)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        """``softmax(scale*batch_norm(linear(x)))``."""
        return torch.softmax(self.scale * self.norm(self.linear(x)), dim=1)


class GemmBatchNormGELUGroupNormMeanReLU(nn.Module):
    """Two normalisations around a GELU, then the mean of the batch."""

    def __init__(self, k: int, groups: int, features_per_group: int) -> None:
        super().__init__()
        n = groups * features_per_group
        self.linear = nn.Linear(k, n)
        self.batch_norm = nn.BatchNorm1d(n)
        self.group_norm = nn.GroupNorm(groups, n)

    def forward(self, x: Tensor) -> Tensor:
        """``relu(mean over the batch of group_norm(gelu(batch_norm(linear(x)))))``."""
        y = functional.gelu(self.batch_norm(self.linear(x)))
        return torch.relu(self.group_norm(y).mean(dim=0))


class GemmSigmoidSumLogSumExp(Layer):
    """Activations added up per row, then one smooth maximum for the batch."""

    def forward(self, x: Tensor) -> Tensor:
        """``logsumexp over the batch of sum(sigmoid(linear(x)))``."""
        return torch.logsumexp(torch.sigmoid(self.linear(x)).sum(dim=1), dim=0)


class GemmSubtractGlobalAvgPoolLogSumExpGELUResidualAdd(Layer):
    """A summary of all positions, added to each of them."""

    def __init__(self, k: int, n: int) -> None:
        super().__init__(k, n)
        self.subtrahend = nn.Parameter(torch.randn(n))

    def forward(self, x: Tensor) -> Tensor:
        """``x + gelu(logsumexp(mean over positions of (linear(x)-subtrahend)))``."""
        pooled = (self.linear(x) - self.subtrahend).mean(dim=1, keepdim=True)
        return x + functional.gelu(torch.logsumexp(pooled, dim=2, keepdim=True))


class GemmScalingHardtanhGELU(Layer):
    """A linear layer, scaled and limited."""

    def forward(self, x: Tensor) -> Tensor:
        """``gelu(hardtanh(linear(x)/2))``."""
        return functional.gelu(functional.hardtanh(self.linear(x) * 0.5, min_val=-0.5, max_val=0.5))


class GemmReLUDivide(Layer):
    """A linear layer, positive results halved."""

    def forward(self, x: Tensor) -> Tensor:
        """``relu(linear(x))/2``."""
        return torch.relu(self.linear(x)) / 2.0


class GemmLogSumExpLeakyReLULeakyReLUGELUGELU(Layer):
    """A smooth maximum per row through four activations."""

    def forward(self, x: Tensor) -> Tensor:
        """``gelu(gelu(leaky_relu(leaky_relu(logsumexp(linear(x))))))``."""
        y = torch.logsumexp(self.linear(x), dim=1, keepdim=True)
        y = functional.leaky_relu(y, negative_slope=0.01)
        y = functional.leaky_relu(y, negative_slope=0.01)
        return functional.gelu(functional.gelu(y))


class GemmSigmoidScalingResidualAdd(Layer):
    """A linear layer plus its scaled sigmoid."""

    def forward(self, x: Tensor) -> Tensor:
        """``y + 2*sigmoid(y) of y = linear(x)``."""
        y = self.linear(x)
        return y + 2.0 * torch.sigmoid(y)


class GemmGroupNormMinBiasAdd(GroupedLayer):
    """The smallest normalised feature of each row, with every bias."""

    def __init__(self, k: int, groups: int, features_per_group: int) -> None:
        super().__init__(k, groups, features_per_group)
        n = groups * features_per_group
        self.bias = nn.Parameter(torch.randn(n))

    def forward(self, x: Tensor) -> Tensor:
        """``min(group_norm(linear(x))) + bias``."""
        return torch.amin(self.norm(self.linear(x)), dim=1, keepdim=True) + self.bias


class GemmGroupNormHardtanh(GroupedLayer):
    """A linear layer, normalised in groups and limited."""

    def forward(self, x: Tensor) -> Tensor:
        """``hardtanh(group_norm(linear(x)))``."""
        return functional.hardtanh(self.norm(self.linear(x)), min_val=-1.0, max_val=1.0)


class GemmGroupNormSwishMultiplySwish(GroupedLayer):
    """A normalised linear layer, gated twice around a factor per feature."""

    def __init__(self, k: int, groups: int, features_per_group: int) -> None:
        super().__init__(k, groups, features_per_group)
        n = groups * features_per_group
        self.factor = nn.Parameter(torch.randn(n))

    def forward(self, x: Tensor) -> Tensor:
        """``swish(swish(group_norm(linear(x)))*factor)``."""
        y = functional.silu(self.norm(self.linear(x)))
        return functional.silu(y * self.factor)


class GemmBiasAddHardtanhMishGroupNorm(nn.Module):
    """A product plus bias, limited, activated and normalised in groups."""

    def __init__(self, k: int, groups: int, features_per_group: int) -> None:
        super().__init__()
        n = groups * features_per_group
        self.linear = nn.Linear(k, n, bias=False)
        self.bias = nn.Parameter(torch.randn(n))
        self.norm = nn.GroupNorm(groups, n)

    def forward(self, x: Tensor) -> Tensor:
        """``group_norm(mish(hardtanh(x@weight.T + bias)))``."""
        y = functional.hardtanh(self.linear(x) + self.bias)
        return self.norm(functional.mish(y))


class GemmAddReLU(nn.Module):
    """A product plus a bias that is a parameter of its own, cut at 0."""

    def __init__(self, k: int, n: int) -> None:
        super().__init__()
        self.linear = nn.Linear(k, n, bias=False)
        self.bias = nn.Parameter(torch.randn(n))

    def forward(self, x: Tensor) -> Tensor:
        """``relu(x@weight.T + bias)``."""
        return torch.relu(self.linear(x) + self.bias)


class GemmMaxSubtractGELU(Layer):
    """The largest value of each feature over the positions, without its mean."""

    def forward(self, x: Tensor) -> Tensor:
        """``gelu(y - mean(y)) of y = max over positions of linear(x)``."""
        y = torch.amax(self.linear(x), dim=1)
        return functional.gelu(y - y.mean(dim=1, keepdim=True))


class GemmSwishDivideClampTanhClamp(Layer):
    """A gated linear layer, limited before and after a tanh."""

    def forward(self, x: Tensor) -> Tensor:
        """``clamp(tanh(clamp(swish(linear(x))/2)))``."""
        y = functional.silu(self.linear(x)) / 2.0
        y = torch.tanh(torch.clamp(y, min=-1.0, max=0.5))
        return torch.clamp(y, min=-0.05, max=1.0)


class MatmulSumMaxAvgPoolLogSumExpLogSumExp(Layer):
    """A grid of linear layers, reduced dimension by dimension to one number."""

    def forward(self, x: Tensor) -> Tensor:
        """``logsumexp(logsumexp(avg_pool(max(sum(linear(x))))))``."""
        y = self.linear(x).sum(dim=-1)
        y = functional.avg_pool1d(torch.amax(y, dim=1), kernel_size=2)
        return torch.logsumexp(torch.logsumexp(y, dim=2), dim=1)


class MatmulScaleResidualAddClampLogSumExpMish(nn.Module):
    """A scaled layer and its input, limited, as one smooth maximum per row."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.linear = nn.Linear(k, k)

    def forward(self, x: Tensor) -> Tensor:
        """``mish(logsumexp(clamp(2*linear(x) + x)))``."""
        y = torch.clamp(self.linear(x) * 2.0 + x, min=-1.5, max=1.5)
        return functional.mish(torch.logsumexp(y, dim=1, keepdim=True))


class MatmulMishMish(Layer):
    """A linear layer through two activations."""

    def forward(self, x: Tensor) -> Tensor:
        """``mish(mish(linear(x)))``."""
        return functional.mish(functional.mish(self.linear(x)))


class MatmulSwishSumGroupNorm(nn.Module):
    """A gated linear layer plus a parameter, normalised in groups."""

    def __init__(self, k: int, groups: int, features_per_group: int) -> None:
        super().__init__()
        n = groups * features_per_group
        self.linear = nn.Linear(k, n)
        self.addend = nn.Parameter(torch.randn(n))
        self.norm = nn.GroupNorm(groups, n)

    def forward(self, x: Tensor) -> Tensor:
        """``group_norm(swish(linear(x)) + addend)``."""
        return self.norm(functional.silu(self.linear(x)) + self.addend)


class MatmulScalingResidualAdd(Layer):
    """A linear layer plus half of itself."""

    def forward(self, x: Tensor) -> Tensor:
        """``y/2 + y of y = linear(x)``."""
        y = self.linear(x)
        return y * 0.5 + y


class MatmulMaxPoolSumScale(Layer):
    """The maxima of neighbouring features, added up and scaled."""

    def __init__(self, k: int, n: int, kernel: int) -> None:
        super().__init__(k, n)
        self.pool = nn.MaxPool1d(kernel)

    def forward(self, x: Tensor) -> Tensor:
        """``sum(max_pool(linear(x)))/2``."""
        return self.pool(self.linear(x)).sum(dim=1) * 0.5


class MatmulSigmoidSum(Layer):
    """Activations added up per row."""

    def forward(self, x: Tensor) -> Tensor:
        """``sum(sigmoid(linear(x)))``."""
        return torch.sigmoid(self.linear(x)).sum(dim=1, keepdim=True)


class MatmulSwishScaling(Layer):
    """A gated linear layer, doubled."""

    def forward(self, x: Tensor) -> Tensor:
        """``2*swish(linear(x))``."""
        y = self.linear(x)
        return y * torch.sigmoid(y) * 2.0


class MatmulGroupNormLeakyReLUSum(GroupedLayer):
    """A layer normalised in groups, activated and added up per row."""

    def forward(self, x: Tensor) -> Tensor:
        """``sum(leaky_relu(group_norm(linear(x))))``."""
        return functional.leaky_relu(self.norm(self.linear(x)), negative_slope=0.01).sum(dim=1)


class MatmulMeanSoftmax(Layer):
    """The mean of all positions as probabilities."""

    def forward(self, x: Tensor) -> Tensor:
        """``softmax(mean over positions of linear(x))``."""
        return torch.softmax(self.linear(x).mean(dim=1), dim=1)


class MatmulMinSubtract(Layer):
    """A linear layer limited from above by a parameter, which is then taken away."""

    def __init__(self, k: int, n: int) -> None:
        super().__init__(k, n)
        self.limit = nn.Parameter(torch.randn(n))

    def forward(self, x: Tensor) -> Tensor:
        """``min(linear(x), limit) - limit``."""
        return torch.minimum(self.linear(x), self.limit) - self.limit


class MatmulDivideGELU(Layer):
    """A linear layer, halved and activated."""

    def forward(self, x: Tensor) -> Tensor:
        """``gelu(linear(x)/2)``."""
        return functional.gelu(self.linear(x) / 2.0)


class MatmulAddSwishTanhGELUHardtanh(Layer):
    """A layer plus a parameter through three activations, limited."""

    def __init__(self, k: int, n: int) -> None:
        super().__init__(k, n)
        self.addend = nn.Parameter(torch.randn(n))

    def forward(self, x: Tensor) -> Tensor:
        """``hardtanh(gelu(tanh(swish(linear(x) + addend))))``."""
        y = functional.silu(self.linear(x) + self.addend)
        y = functional.gelu(torch.tanh(y))
        return functional.hardtanh(y, min_val=-0.05, max_val=0.5)


class MatmulBatchNormBiasAddDivideSwish(Layer):
    """A normalised layer plus one bias, halved and gated."""

    def __init__(self, k: int, n: int) -> None:
        super().__init__(k, n)
        self.norm = nn.BatchNorm1d(n)
        self.bias = nn.Parameter(torch.randn(1))

    def forward(self, x: Tensor) -> Tensor:
        """``swish((batch_norm(linear(x)) + bias)/2)``."""
        return functional.silu((self.norm(self.linear(x)) + self.bias) / 2.0)


class MatmulAvgPoolGELUScaleMax(Layer):
    """Means of neighbouring features, activated and scaled; the largest counts."""

    def __init__(self, k: int, n: int, kernel: int) -> None:
        super().__init__(k, n)
        self.pool = nn.AvgPool1d(kernel)

    def forward(self, x: Tensor) -> Tensor:
        """``max(2*gelu(avg_pool(linear(x))))``."""
        y = self.pool(self.linear(x).unsqueeze(1)).squeeze(1)
        return torch.amax(functional.gelu(y) * 2.0, dim=1)


class MatmulGELUSoftmax(Layer):
    """An activated linear layer as probabilities."""

    def forward(self, x: Tensor) -> Tensor:
        """``softmax(gelu(linear(x)))``."""
        return torch.softmax(functional.gelu(self.linear(x)), dim=1)


class MatmulSubtractMultiplyReLU(Layer):
    """A linear layer, shifted, scaled and cut at 0."""

    def forward(self, x: Tensor) -> Tensor:
        """``relu((linear(x) - 0.5)*1.5)``."""
        return torch.relu((self.linear(x) - 0.5) * 1.5)


class BMMInstanceNormSumResidualAddMultiply(nn.Module):
    """Batched products with normalised rows, added up and combined with a third input."""

    def __init__(self, m: int) -> None:
        super().__init__()
        self.norm = nn.InstanceNorm1d(m)

    def forward(self, a: Tensor, b: Tensor, y: Tensor) -> Tensor:
        """``(s + y)*y of s = sum over rows of instance_norm(a@b)``."""
        rows = self.norm(torch.bmm(a, b))
        return (rows.sum(dim=1) + y) * y
