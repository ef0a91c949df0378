"""Networks out of publications whose op types suit different devices."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import openvino as ov
from openvino import opset13 as ops

_INPUT = "x"


def _number(value: float) -> ov.Node:
    return ops.constant(np.float32(value))


def _axes(*values: int) -> ov.Node:
    return ops.constant(np.array(values, np.int64))


def _scaled(node: ov.Node, factor: float) -> ov.Node:
    return ops.multiply(node, _number(factor))


def _weights(seed: int, *shape: int, fan_in: int = 1) -> ov.Node:
    random = np.random.default_rng(seed)
    values = random.standard_normal(shape, dtype=np.float32) / np.float32(np.sqrt(fan_in))
    return ops.constant(values)


def _model(outputs: list[ov.Node], inputs: list[ov.Node], name: str) -> ov.Model:
    return ov.Model([ops.result(node) for node in outputs], inputs, name)


def _dense(x: ov.Node, width: int, seed: int) -> ov.Node:
    inputs = x.output(0).get_shape()[-1]
    product = ops.matmul(x, _weights(seed, width, inputs, fan_in=inputs), False, True)
    return ops.add(product, _weights(seed + 1000, 1, width, fan_in=10_000))


def _random_features(x: ov.Node, count: int, seed: int) -> ov.Node:
    """Random Fourier features of rows (Rahimi and Recht 2007): cosines of projections with random phases.

    Their common factor is left to the weights of the layer that reads them.
    """
    phases = np.random.default_rng(seed).uniform(0, 2 * np.pi, (1, count)).astype(np.float32)
    width = x.output(0).get_shape()[-1]
    projected = ops.matmul(x, _weights(seed, width, count), False, False, name="project")
    return ops.cos(ops.add(projected, ops.constant(phases)), name="features")


def fourier_attention() -> ov.Model:
    """Random Fourier features of points before one layer of attention."""
    points, features, heads, width = 1024, 512, 4, 64
    x = ops.parameter([points, 3], np.float32, name=_INPUT)
    y: ov.Node = _dense(_random_features(x, features, 0), width, 1)
    parts = []
    for i in range(3):
        part = ops.reshape(_dense(y, width, 2 + i), _axes(points, heads, -1), False)
        parts.append(ops.transpose(part, _axes(1, 0, 2)))
    query, key, value = parts
    scores = ops.softmax(_scaled(ops.matmul(query, key, False, True), (width / heads) ** -0.5), -1)
    mixed = ops.transpose(ops.matmul(scores, value, False, False), _axes(1, 0, 2))
    return _model([_dense(ops.reshape(mixed, _axes(points, width), False), 3, 9)], [x], "fourier_attention")


def _rendered(x: ov.Node, rays: int, steps: int, seed: int) -> ov.Node:
    """Positional encoding and a small MLP at points ``[rays * steps, 3]``, and rays summed up."""
    frequencies, width = 10, 64
    powers = ops.constant((np.pi * 2.0 ** np.arange(frequencies)).astype(np.float32))
    angles = ops.reshape(ops.multiply(ops.unsqueeze(x, _axes(2)), powers), _axes(0, -1), True)
    y: ov.Node = ops.concat([ops.sin(angles), ops.cos(angles)], 1)
    for layer in range(3):
        y = ops.relu(_dense(y, width, seed + layer))
    density = ops.reshape(ops.relu(_dense(y, 1, seed + 5)), _axes(rays, steps), False)
    colour = ops.reshape(ops.sigmoid(_dense(y, 3, seed + 6)), _axes(rays, steps, 3), False)
    passed = _scaled(density, -1 / steps)
    through = ops.exp(ops.cum_sum(passed, ops.constant(np.int64(1)), exclusive=True))
    weight = ops.multiply(through, ops.subtract(_number(1.0), ops.exp(passed)))
    return ops.reduce_sum(ops.multiply(ops.unsqueeze(weight, _axes(2)), colour), _axes(1), False)


def radiance_field() -> ov.Model:
    """NeRF (Mildenhall et al. 2020): positional encoding, a small MLP, and rays summed up."""
    rays, steps = 256, 64
    x = ops.parameter([rays * steps, 3], np.float32, name=_INPUT)
    return _model([_rendered(x, rays, steps, 0)], [x], "radiance_field")


def blended_radiance_fields() -> ov.Model:
    """Block-NeRF (Tancik et al. 2022): a radiance field for each block of a scene, blended by weights."""
    blocks, rays, steps = 4, 128, 64
    inputs = [ops.parameter([rays * steps, 3], np.float32, name=f"{_INPUT}{i}") for i in range(blocks)]
    nearness = ops.parameter([rays, blocks], np.float32, name="nearness")
    shares = ops.split(ops.softmax(nearness, 1), ops.constant(np.int64(1)), blocks).outputs()
    pixels = [
        ops.multiply(_rendered(x, rays, steps, 100 * i), share)
        for i, (x, share) in enumerate(zip(inputs, shares, strict=True))
    ]
    return _model([reduce(ops.add, pixels)], [*inputs, nearness], "blended_radiance_fields")


def great_circles() -> ov.Model:
    """Interpolation on the globe: haversine distances to stations, and a softmax of them as weights."""
    points, stations = 512, 2048
    random = np.random.default_rng(0)
    place = random.uniform(-1, 1, (2, stations)).astype(np.float32)
    x = ops.parameter([points, 2], np.float32, name=_INPUT)
    latitude, longitude = ops.split(x, ops.constant(np.int64(1)), 2).outputs()

    def half_sine_squared(angle: ov.Node, places: np.ndarray) -> ov.Node:
        sine = ops.sin(_scaled(ops.subtract(angle, ops.constant(places[None])), 0.5))
        return ops.multiply(sine, sine)

    cosines = ops.multiply(ops.cos(latitude), ops.constant(np.cos(place[:1])))
    chord = ops.add(
        half_sine_squared(latitude, place[0]),
        ops.multiply(cosines, half_sine_squared(longitude, place[1])),
    )
    distance = _scaled(ops.asin(ops.sqrt(chord)), 2.0)
    weight = ops.softmax(_scaled(distance, -20.0), 1)
    return _model([ops.matmul(weight, _weights(1, stations, 4), False, False)], [x], "great_circles")


def hyperbolic_classifier() -> ov.Model:
    """Classes as points of hyperbolic space (Nickel and Kiela 2018): softmax over Lorentz distances."""
    samples, width, classes = 256, 32, 4096
    random = np.random.default_rng(0)
    prototypes = random.standard_normal((classes, width)).astype(np.float32) * np.float32(0.2)
    times = np.sqrt(1 + (prototypes**2).sum(axis=1))[None].astype(np.float32)
    x = ops.parameter([samples, 64], np.float32, name=_INPUT)
    tangent = _dense(ops.relu(_dense(x, 64, 0)), width, 1)
    square = ops.reduce_sum(ops.multiply(tangent, tangent), _axes(1), True)
    norm = ops.sqrt(ops.add(square, _number(1e-6)))
    space = ops.multiply(tangent, ops.divide(ops.sinh(norm), norm))
    inner = ops.subtract(
        ops.multiply(ops.cosh(norm), ops.constant(times)),
        ops.matmul(space, ops.constant(prototypes), False, True),
    )
    distance = ops.acosh(ops.maximum(inner, _number(1.0)))
    return _model([ops.softmax(_scaled(distance, -1.0), 1)], [x], "hyperbolic_classifier")


def sine_network() -> ov.Model:
    """SIREN (Sitzmann et al. 2020): dense layers with sines between them, so every mix hands over often."""
    width = 128
    x = ops.parameter([4096, 2], np.float32, name=_INPUT)
    y: ov.Node = x
    for layer in range(4):
        y = ops.sin(_scaled(_dense(y, width, layer), 30.0 if layer == 0 else 1.0))
    return _model([_dense(y, 3, 9)], [x], "sine_network")


def snake_vocoder() -> ov.Model:
    """Convolutions in time with snake activations (Ziyin et al. 2020, x + sin² x), as vocoders have them."""
    channels, length = 32, 8192
    x = ops.parameter([1, channels, length], np.float32, name=_INPUT)
    y: ov.Node = x
    for layer in range(3):
        weights = _weights(layer, channels, channels, 7, fan_in=7 * channels)
        z = ops.convolution(y, weights, [1], [3], [3], [1])
        sine = ops.sin(z)
        y = ops.add(z, ops.multiply(sine, sine))
    return _model([ops.tanh(y)], [x], "snake_vocoder")


def random_feature_classifier(size: int = 32, features: int = 512) -> ov.Model:
    """Convolutions, and random Fourier features of every position.

    Measured on the virtual GPU, on one core and in f32: CPU 1.07 ms, GPU 12.8 ms, 0.54 ms when everything
    from ``project`` on runs on the GPU (fastest of 80 to 660 runs in turns, on a machine with other work).

    Args:
        size: Width and height of the image.
        features: Random features of each position.
    """
    x = ops.parameter([1, 3, size, size], np.float32, name=_INPUT)
    y, channels = x, 3
    for i, (width, stride) in enumerate(((16, 1), (32, 2))):
        kernel = _weights(i, width, channels, 3, 3, fan_in=9 * channels)
        step, pads = [stride, stride], [1, 1]
        y = ops.relu(ops.convolution(y, kernel, step, pads, pads, [1, 1]), name=f"relu{i}")
        channels = width
    rows = ops.transpose(ops.reshape(y, _axes(channels, -1), False), _axes(1, 0), name="positions")
    scores = ops.matmul(
        _random_features(rows, features, 2), _weights(3, features, 10, fan_in=features), False, False
    )
    classes = ops.softmax(ops.reduce_mean(scores, _axes(0), True), 1)
    return _model([classes], [x], "random_feature_classifier")


NETWORKS: dict[str, Callable[[], ov.Model]] = {
    build.__name__: build
    for build in (
        radiance_field,
        blended_radiance_fields,
        great_circles,
        hyperbolic_classifier,
        fourier_attention,
        sine_network,
        snake_vocoder,
        random_feature_classifier,
    )
}
"""Networks out of publications that hold op types of both sorts."""
