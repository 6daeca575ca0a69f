"""Convolutional networks: classifiers, their blocks, segmentation, upsampling."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.support.networks.base import Case, network, normal


def conv_norm(
    i: int, o: int, kernel: int = 3, stride: int = 1, groups: int = 1, act: type | None = nn.ReLU
) -> nn.Sequential:
    layers = [
        nn.Conv2d(i, o, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(o),
    ]
    return nn.Sequential(*layers, *([act()] if act else []))


@network("lenet")
def lenet() -> Case:
    net = nn.Sequential(
        nn.Conv2d(1, 2, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(2, 3, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(12, 8),
        nn.ReLU(),
        nn.Linear(8, 5),
    )
    return net, (normal(2, 1, 16, 16),)


@network("alexnet")
def alexnet() -> Case:
    net = nn.Sequential(
        nn.Conv2d(3, 4, 11, 4, 2),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2),
        nn.Conv2d(4, 6, 5, padding=2),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2),
        nn.AdaptiveAvgPool2d((3, 3)),
        nn.Flatten(1),
        nn.Dropout(0.5),
        nn.Linear(54, 8),
        nn.ReLU(inplace=True),
        nn.Dropout(0.5),
        nn.Linear(8, 5),
    )
    return net, (normal(1, 3, 63, 63),)


class Vgg(nn.Module):
    def __init__(self, plan: tuple[int | str, ...]) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for item in plan:
            if isinstance(item, str):
                layers.append(nn.MaxPool2d(2, 2))
            else:
                layers += [nn.Conv2d(channels, item, 3, padding=1), nn.ReLU(inplace=True)]
                channels = item
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Linear(channels, 6), nn.ReLU(), nn.Linear(6, 4))

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        return self.classifier(torch.flatten(x, 1))


@network("vgg16")
def vgg() -> Case:
    plan = (2, 2, "M", 3, 3, "M", 4, 4, 4, "M", 4, 4, 4, "M", 5, 5, 5, "M")
    return Vgg(plan), (normal(1, 3, 32, 32),)


class BasicBlock(nn.Module):
    def __init__(self, i: int, o: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(o)
        self.conv2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(o)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module | None = None
        if stride != 1 or i != o:
            self.downsample = conv_norm(i, o, 1, stride, act=None)

    def forward(self, x: Tensor) -> Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class Bottleneck(nn.Module):
    def __init__(self, i: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            conv_norm(i, width, 1),
            conv_norm(width, width, 3, stride),
            conv_norm(width, width * 4, 1, act=None),
        )
        short = stride == 1 and i == width * 4
        self.short = nn.Identity() if short else conv_norm(i, width * 4, 1, stride, act=None)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.body(x) + self.short(x))


class ResNet(nn.Module):
    def __init__(self, depths: tuple[int, ...], bottleneck: bool = False, width: int = 2) -> None:
        super().__init__()
        self.stem = nn.Sequential(conv_norm(3, width, 7, 2), nn.MaxPool2d(3, 2, 1))
        stages = []
        channels = width
        for i, depth in enumerate(depths):
            for j in range(depth):
                stride = 2 if i and not j else 1
                size = width * 2 ** min(i, 1)
                if bottleneck:
                    stages.append(Bottleneck(channels, size, stride))
                    channels = size * 4
                else:
                    stages.append(BasicBlock(channels, size, stride))
                    channels = size
        self.stages = nn.Sequential(*stages)
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(channels, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.stages(self.stem(x)))
        return self.fc(torch.flatten(x, 1))


@network("resnet-basic-block")
def resnet_block() -> Case:
    return BasicBlock(3, 4, 2), (normal(2, 3, 7, 7),)


@network("resnet18")
def resnet18() -> Case:
    return ResNet((2, 2, 2, 2)), (normal(1, 3, 33, 33),)


@network("resnet101-bottlenecks")
def resnet101() -> Case:
    return ResNet((1, 2, 3, 1), bottleneck=True), (normal(1, 3, 24, 24),)


class DenseBlock(nn.Module):
    def __init__(self, count: int, channels: int, growth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(channels + i * growth),
                nn.ReLU(inplace=True),
                nn.Conv2d(channels + i * growth, growth, 3, padding=1, bias=False),
                nn.Dropout(0.0),
            )
            for i in range(count)
        )

    def forward(self, x: Tensor) -> Tensor:
        features = [x]
        for layer in self.layers:
            x = torch.cat(features, 1)
            features.append(layer(x))
        return torch.cat(features, 1)


def transition(i: int, o: int) -> nn.Sequential:
    return nn.Sequential(
        nn.BatchNorm2d(i), nn.ReLU(inplace=True), nn.Conv2d(i, o, 1, bias=False), nn.AvgPool2d(2, 2)
    )


@network("densenet-block")
def dense_block() -> Case:
    return DenseBlock(3, 3, 2), (normal(2, 3, 5, 4),)


@network("densenet-transition")
def dense_transition() -> Case:
    return transition(4, 2), (normal(2, 4, 7, 6),)


@network("densenet121")
def densenet() -> Case:
    net = nn.Sequential(
        conv_norm(3, 4, 7, 2),
        nn.MaxPool2d(3, 2, 1),
        DenseBlock(2, 4, 2),
        transition(8, 4),
        DenseBlock(3, 4, 2),
        transition(10, 5),
        DenseBlock(2, 5, 2),
        nn.BatchNorm2d(9),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(9, 4),
    )
    return net, (normal(1, 3, 24, 24),)


@network("mobilenet-v1")
def mobilenet_v1() -> Case:
    def separable(i: int, o: int, stride: int) -> nn.Sequential:
        return nn.Sequential(conv_norm(i, i, 3, stride, groups=i), conv_norm(i, o, 1))

    net = nn.Sequential(
        conv_norm(3, 4, 3, 2),
        separable(4, 6, 1),
        separable(6, 6, 2),
        separable(6, 8, 1),
        nn.AvgPool2d(4),
        nn.Flatten(),
        nn.Linear(8, 4),
    )
    return net, (normal(1, 3, 16, 16),)


class InvertedResidual(nn.Module):
    def __init__(self, i: int, o: int, stride: int, ratio: int, excite: bool = False) -> None:
        super().__init__()
        hidden = i * ratio
        act = nn.SiLU if excite else nn.ReLU6
        self.expand = conv_norm(i, hidden, 1, act=act) if ratio > 1 else nn.Identity()
        self.depthwise = conv_norm(hidden, hidden, 3, stride, hidden, act)
        self.excite = SqueezeExcite(hidden, 2) if excite else nn.Identity()
        self.project = conv_norm(hidden, o, 1, act=None)
        self.residual = stride == 1 and i == o

    def forward(self, x: Tensor) -> Tensor:
        y = self.project(self.excite(self.depthwise(self.expand(x))))
        return x + y if self.residual else y


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int, reduced: int) -> None:
        super().__init__()
        self.fc1 = nn.Conv2d(channels, reduced, 1)
        self.fc2 = nn.Conv2d(reduced, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        s = x.mean((2, 3), keepdim=True)
        return x * torch.sigmoid(self.fc2(functional.silu(self.fc1(s))))


@network("mobilenet-v2")
def mobilenet_v2() -> Case:
    net = nn.Sequential(
        conv_norm(3, 3, 3, 2, act=nn.ReLU6),
        InvertedResidual(3, 2, 1, 1),
        InvertedResidual(2, 3, 2, 3),
        InvertedResidual(3, 3, 1, 3),
        conv_norm(3, 6, 1, act=nn.ReLU6),
        nn.AdaptiveAvgPool2d((1, 1)),
        nn.Flatten(),
        nn.Linear(6, 4),
    )
    return net, (normal(1, 3, 14, 14),)


@network("efficientnet-mbconv")
def mbconv() -> Case:
    return InvertedResidual(3, 3, 1, 2, excite=True), (normal(2, 3, 5, 5),)


@network("efficientnet-b0")
def efficientnet() -> Case:
    net = nn.Sequential(
        conv_norm(3, 3, 3, 2, act=nn.SiLU),
        InvertedResidual(3, 2, 1, 1, True),
        InvertedResidual(2, 3, 2, 3, True),
        InvertedResidual(3, 3, 1, 3, True),
        conv_norm(3, 6, 1, act=nn.SiLU),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, 4),
    )
    return net, (normal(1, 3, 14, 14),)


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    b, c, h, w = x.size()
    x = x.view(b, groups, c // groups, h, w)
    return x.transpose(1, 2).contiguous().view(b, -1, h, w)


class ShuffleUnit(nn.Module):
    def __init__(self, i: int, o: int, groups: int) -> None:
        super().__init__()
        middle = o // 2
        self.groups = groups
        self.conv1 = conv_norm(i, middle, 1, groups=groups)
        self.conv2 = conv_norm(middle, middle, 3, groups=middle, act=None)
        self.conv3 = conv_norm(middle, o, 1, groups=groups)
        self.short = nn.Sequential() if i == o else conv_norm(i, o, 1, act=None)

    def forward(self, x: Tensor) -> Tensor:
        y = channel_shuffle(self.conv1(x), self.groups)
        return self.conv3(self.conv2(y)) + self.short(x)


@network("shufflenet-unit")
def shuffle_unit() -> Case:
    return ShuffleUnit(4, 8, 2), (normal(2, 4, 4, 5),)


@network("shufflenet")
def shufflenet() -> Case:
    net = nn.Sequential(
        conv_norm(3, 6, 3, 2),
        nn.MaxPool2d(3, 2, 1),
        ShuffleUnit(6, 12, 3),
        ShuffleUnit(12, 12, 3),
        nn.AdaptiveAvgPool2d((1, 1)),
        nn.Flatten(1),
        nn.Linear(12, 4),
    )
    return net, (normal(1, 3, 14, 14),)


class Fire(nn.Module):
    def __init__(self, i: int, squeeze: int, expand: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(i, squeeze, 1)
        self.expand1 = nn.Conv2d(squeeze, expand, 1)
        self.expand3 = nn.Conv2d(squeeze, expand, 3, padding=1)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        x = self.act(self.squeeze(x))
        return torch.cat([self.act(self.expand1(x)), self.act(self.expand3(x))], 1)


@network("squeezenet-fire")
def fire() -> Case:
    return Fire(3, 2, 4), (normal(2, 3, 5, 4),)


@network("squeezenet")
def squeezenet() -> Case:
    net = nn.Sequential(
        nn.Conv2d(3, 4, 7, 2),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        Fire(4, 2, 3),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        Fire(6, 2, 3),
        nn.Dropout(0.0),
        nn.Conv2d(6, 4, 1),
        nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d((1, 1)),
    )
    return net, (normal(1, 3, 26, 26),)


class Inception(nn.Module):
    def __init__(self, i: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(i, 2, 1)
        self.three = nn.Sequential(nn.Conv2d(i, 2, 1), nn.Conv2d(2, 3, 3, padding=1))
        self.five = nn.Sequential(nn.Conv2d(i, 1, 1), nn.Conv2d(1, 2, 5, padding=2))
        self.pool = nn.Sequential(nn.MaxPool2d(3, 1, 1), nn.Conv2d(i, 2, 1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.one(x), self.three(x), self.five(x), self.pool(x)], 1)


@network("googlenet-inception")
def inception() -> Case:
    return Inception(3), (normal(2, 3, 6, 5),)


@network("regnet")
def regnet() -> Case:
    def stage(i: int, o: int) -> nn.Sequential:
        return nn.Sequential(
            conv_norm(i, o, 3), conv_norm(o, o, 3, groups=o // 2), nn.MaxPool2d(2, 2)
        )

    class RegNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = nn.Sequential(stage(3, 4), stage(4, 6))
            self.fc = nn.Linear(6, 4)

        def forward(self, x: Tensor) -> Tensor:
            x = self.features(x)
            return self.fc(torch.mean(x, dim=[2, 3]))

    return RegNet(), (normal(1, 3, 8, 8),)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()

        def double(i: int, o: int) -> nn.Sequential:
            return nn.Sequential(
                nn.Conv2d(i, o, 3, padding=1),
                nn.BatchNorm2d(o),
                nn.Softmax(dim=-1),
                nn.Conv2d(o, o, 3, padding=1),
                nn.BatchNorm2d(o),
                nn.Softmax(dim=-1),
            )

        self.down1 = double(2, 2)
        self.down2 = double(2, 4)
        self.bottom = double(4, 4)
        self.up2 = nn.ConvTranspose2d(4, 4, 2, 2)
        self.dec2 = double(8, 2)
        self.up1 = nn.ConvTranspose2d(2, 2, 2, 2)
        self.dec1 = double(4, 2)
        self.last = nn.Conv2d(2, 3, 1)
        self.pool = nn.MaxPool2d(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        a = self.down1(x)
        b = self.down2(self.pool(a))
        c = self.bottom(self.pool(b))
        c = self.dec2(torch.cat([self.up2(c), b], dim=1))
        c = self.dec1(torch.cat([self.up1(c), a], dim=1))
        return self.last(c)


@network("unet-softmax")
def unet() -> Case:
    return UNet(), (normal(1, 2, 8, 12),)


class NetVlad(nn.Module):
    def __init__(self, clusters: int, ghosts: int, size: int) -> None:
        super().__init__()
        self.clusters = clusters
        self.size = size
        self.centres = nn.Parameter(torch.randn(size, clusters + ghosts))
        self.norm = nn.BatchNorm1d(clusters + ghosts)
        self.centres2 = nn.Parameter(torch.randn(1, size, clusters))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        length = x.size()[1]
        flat = x.view(-1, self.size)
        assignment = self.norm(torch.matmul(flat, self.centres))
        assignment = functional.softmax(assignment, dim=1)[:, : self.clusters]
        assignment = assignment.view(-1, length, self.clusters)
        a = torch.sum(assignment, dim=1, keepdim=True) * self.centres2
        vlad = torch.matmul(assignment.transpose(1, 2), x.view(-1, length, self.size))
        vlad = functional.normalize(vlad.transpose(1, 2) - a)
        return functional.normalize(vlad.reshape(-1, self.clusters * self.size))


@network("netvlad")
def netvlad() -> Case:
    return NetVlad(3, 0, 4), (normal(2, 5, 4),)


@network("netvlad-ghost")
def netvlad_ghost() -> Case:
    return NetVlad(3, 2, 4), (normal(2, 5, 4),)
