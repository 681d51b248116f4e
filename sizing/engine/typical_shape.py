"""The shape of a typical model of a given size, for those who know only the number of its parameters."""

import math

from sizing.engine.architecture import Architecture

VOCAB = 128_256
MLP_RATIO, KV_SHARE, HEADS = 3.5, 4, 32
LAYERS_AT_8B, LAYER_GROWTH, FEWEST_LAYERS, MOST_LAYERS = 32, 0.42, 26, 160


def typical_architecture(b_params: float) -> Architecture:
    """Return a Llama-shaped model of `b_params` billion parameters: 13 h^2 per layer, untied embeddings.

    >>> shape = typical_architecture(8.03)
    >>> shape.layers, shape.hidden // 100, shape.is_known
    (32, 40, False)
    """
    layers = round(LAYERS_AT_8B * (b_params / 8) ** LAYER_GROWTH)
    layers = min(MOST_LAYERS, max(FEWEST_LAYERS, layers))
    per_layer = layers * (2 + 2 / KV_SHARE + 3 * MLP_RATIO)
    # per_layer h^2 + 2 V h = P, solved for h
    hidden = math.ceil((math.sqrt(VOCAB**2 + per_layer * b_params * 1e9) - VOCAB) / per_layer)
    return Architecture(
        family="typical",
        layers=layers,
        hidden=hidden,
        heads=HEADS,
        kv_heads=HEADS // KV_SHARE,
        head_dim=math.ceil(hidden / HEADS),
        intermediate=math.ceil(MLP_RATIO * hidden),
        vocab=VOCAB,
        is_known=False,
        notes=("only the number of parameters is known: the shape of a typical Llama-like model is assumed",),
    )
