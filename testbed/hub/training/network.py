"""The same networks as in `testbed.runtime.inference`, in JAX, where they can be trained."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import jax  # type: ignore[import-not-found]
import jax.numpy as jnp  # type: ignore[import-not-found]

from testbed.hub.training.shapes import CAPTURED_LAYERS, EAGLE_HEAD, HEAD, MEDUSA, REDRAFTER, Shape

Parameters: TypeAlias = Mapping[str, Any]


def initial_llama(key: Any, shape: Shape) -> dict[str, Any]:
    """Return random parameters of a whole model under their Hugging Face names."""
    sizes = {
        "model.embed_tokens.weight": (shape.vocabulary, shape.hidden),
        "model.norm.weight": (shape.hidden,),
        "lm_head.weight": (shape.vocabulary, shape.hidden),
    }
    for number in range(shape.layers):
        prefix = f"model.layers.{number}."
        sizes |= _layer_sizes(prefix, shape, shape.hidden)
        sizes[prefix + "input_layernorm.weight"] = (shape.hidden,)
    return _initial(key, sizes)


def initial_head(key: Any, draft_vocabulary: int) -> dict[str, Any]:
    """Return random parameters of an EAGLE-3 head under the names that published heads use."""
    shape = HEAD
    sizes = {
        "fc.weight": (shape.hidden, shape.hidden * len(CAPTURED_LAYERS)),
        "norm.weight": (shape.hidden,),
        "lm_head.weight": (draft_vocabulary, shape.hidden),
        "midlayer.input_layernorm.weight": (shape.hidden,),
        "midlayer.hidden_norm.weight": (shape.hidden,),
    }
    return _initial(key, sizes | _layer_sizes("midlayer.", shape, shape.hidden * 2))


def initial_eagle_head(key: Any) -> dict[str, Any]:
    """Return random parameters of an EAGLE-1 head under the names that published heads use, less the embedding."""
    shape = EAGLE_HEAD
    sizes = {"fc.weight": (shape.hidden, shape.hidden * 2)}
    return _initial(key, sizes | _layer_sizes("layers.0.", shape, shape.hidden))


def initial_medusa_heads(key: Any) -> dict[str, Any]:
    """Return parameters of MEDUSA heads under the names that published heads use."""
    sizes: dict[str, tuple[int, ...]] = {}
    for head in range(MEDUSA.heads):
        for layer in range(MEDUSA.layers):
            sizes[f"{head}.{layer}.linear.weight"] = (MEDUSA.hidden, MEDUSA.hidden)
            sizes[f"{head}.{layer}.linear.bias"] = (MEDUSA.hidden,)
        sizes[f"{head}.{MEDUSA.layers}.weight"] = (MEDUSA.vocabulary, MEDUSA.hidden)
    return _without_bias(_initial(key, sizes))


def initial_redrafter(key: Any) -> dict[str, Any]:
    """Return parameters of a ReDrafter drafter under the names that published drafters use."""
    hidden, inner = REDRAFTER.hidden, REDRAFTER.exit_dim
    sizes: dict[str, tuple[int, ...]] = {
        "rnn_u.weight": (hidden, hidden),
        "rnn_u.bias": (hidden,),
        "rnn_w.weight": (hidden, hidden),
        f"lm_heads.{REDRAFTER.layers}.weight": (REDRAFTER.vocabulary, inner),
    }
    for layer in range(REDRAFTER.layers):
        sizes[f"lm_heads.{layer}.linear.weight"] = (inner, inner)
        sizes[f"lm_heads.{layer}.linear.bias"] = (inner,)
    return _without_bias(_initial(key, sizes))


def final_hidden(parameters: Parameters, tokens: Any, shape: Shape) -> Any:
    """Return the hidden states after the final norm [lines, length, hidden], which `lm_head` reads."""
    return _norm(_states(parameters, tokens, shape)[-1], parameters["model.norm.weight"], shape)


def run_llama(parameters: Parameters, tokens: Any, shape: Shape) -> tuple[Any, Any]:
    """Return logits [lines, length, vocabulary] and the captured features [lines, length, 3 * hidden]."""
    states = _states(parameters, tokens, shape)
    logits = _norm(states[-1], parameters["model.norm.weight"], shape) @ parameters["lm_head.weight"].T
    captured = [states[number] for number in CAPTURED_LAYERS if number < len(states)]
    return logits, jnp.concatenate(captured, axis=-1)


def run_eagle_head(parameters: Parameters, hidden: Any, embedded: Any) -> Any:
    """Return the next hidden states [lines, length, hidden], from hidden states and the next tokens' embeddings."""
    shape = EAGLE_HEAD
    fused = jnp.concatenate((embedded, hidden), axis=-1) @ parameters["fc.weight"].T
    # The head's layer has no norm before its attention, as the published heads.
    return _layer(parameters, "layers.0.", fused, fused, shape)


def run_medusa_head(parameters: Parameters, number: int, hidden: Any) -> Any:
    """Return one head's logits from the target's final hidden states [lines, length, hidden]."""
    for layer in range(MEDUSA.layers):
        hidden = _residual(parameters, f"{number}.{layer}.linear", hidden)
    return hidden @ parameters[f"{number}.{MEDUSA.layers}.weight"].T


def run_redrafter(parameters: Parameters, state: Any, hidden: Any) -> Any:
    """Return the drafter's logits from its recurrent state and the target's final hidden state."""
    inner = jnp.concatenate((state, hidden), axis=-1)
    for layer in range(REDRAFTER.layers):
        inner = _residual(parameters, f"lm_heads.{layer}.linear", inner)
    return inner @ parameters[f"lm_heads.{REDRAFTER.layers}.weight"].T


def advance_redrafter(parameters: Parameters, state: Any, embedded: Any) -> Any:
    """Return the drafter's recurrent state after one more token."""
    fed = embedded @ parameters["rnn_u.weight"].T + parameters["rnn_u.bias"]
    return jax.nn.silu(state @ parameters["rnn_w.weight"].T + fed)


def _states(parameters: Parameters, tokens: Any, shape: Shape) -> list[Any]:
    hidden = parameters["model.embed_tokens.weight"][tokens]
    states = [hidden]
    for number in range(shape.layers):
        prefix = f"model.layers.{number}."
        normed = _norm(hidden, parameters[prefix + "input_layernorm.weight"], shape)
        hidden = _layer(parameters, prefix, hidden, normed, shape)
        states.append(hidden)
    return states


def run_head(parameters: Parameters, hidden: Any, embedded: Any) -> tuple[Any, Any]:
    """Return draft logits and the new hidden state, from a hidden state and the next token's embedding."""
    shape = HEAD
    normed = jnp.concatenate(
        (
            _norm(embedded, parameters["midlayer.input_layernorm.weight"], shape),
            _norm(hidden, parameters["midlayer.hidden_norm.weight"], shape),
        ),
        axis=-1,
    )
    hidden = _layer(parameters, "midlayer.", hidden, normed, shape)
    return _norm(hidden, parameters["norm.weight"], shape) @ parameters["lm_head.weight"].T, hidden


def run_llama_to_last(parameters: Parameters, tokens: Any, shape: Shape) -> tuple[Any, Any]:
    """Return logits [lines, length, vocabulary] and the last layer's output [lines, length, hidden]."""
    last = _states(parameters, tokens, shape)[-1]
    logits = _norm(last, parameters["model.norm.weight"], shape) @ parameters["lm_head.weight"].T
    return logits, last


def initial_multi_token(key: Any, prefix: str) -> dict[str, Any]:
    """Return random parameters of a multi-token-prediction layer under the names of GLM-4.5 and DeepSeek-V3."""
    shape = HEAD
    sizes: dict[str, tuple[int, ...]] = {
        prefix + f"{name}.weight": (shape.hidden,) for name in ("enorm", "hnorm", "input_layernorm", "shared_head.norm")
    }
    sizes[prefix + "eh_proj.weight"] = (shape.hidden, shape.hidden * 2)
    return _initial(key, sizes | _layer_sizes(prefix, shape, shape.hidden))


def run_multi_token(parameters: Parameters, prefix: str, hidden: Any, embedded: Any) -> tuple[Any, Any]:
    """Return logits and the new hidden state, from a hidden state and the next token's embedding."""
    shape = HEAD
    pair = (
        _norm(embedded, parameters[prefix + "enorm.weight"], shape),
        _norm(hidden, parameters[prefix + "hnorm.weight"], shape),
    )
    hidden = jnp.concatenate(pair, axis=-1) @ parameters[prefix + "eh_proj.weight"].T
    normed = _norm(hidden, parameters[prefix + "input_layernorm.weight"], shape)
    hidden = _layer(parameters, prefix, hidden, normed, shape)
    logits = _norm(hidden, parameters[prefix + "shared_head.norm.weight"], shape) @ parameters["lm_head.weight"].T
    return logits, hidden


def _residual(parameters: Parameters, prefix: str, rows: Any) -> Any:
    return rows + jax.nn.silu(rows @ parameters[prefix + ".weight"].T + parameters[prefix + ".bias"])


def _without_bias(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: value * 0 if name.endswith(".bias") else value for name, value in parameters.items()}


def _layer_sizes(prefix: str, shape: Shape, inputs: int) -> dict[str, tuple[int, ...]]:
    inner, shared = shape.heads * shape.head_dim, shape.key_value_heads * shape.head_dim
    return {
        prefix + "self_attn.q_proj.weight": (inner, inputs),
        prefix + "self_attn.k_proj.weight": (shared, inputs),
        prefix + "self_attn.v_proj.weight": (shared, inputs),
        prefix + "self_attn.o_proj.weight": (shape.hidden, inner),
        prefix + "mlp.gate_proj.weight": (shape.intermediate, shape.hidden),
        prefix + "mlp.up_proj.weight": (shape.intermediate, shape.hidden),
        prefix + "mlp.down_proj.weight": (shape.hidden, shape.intermediate),
        prefix + "post_attention_layernorm.weight": (shape.hidden,),
    }


def _initial(key: Any, sizes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    keys = jax.random.split(key, len(sizes))
    return {name: _initial_one(each, sizes[name]) for each, name in zip(keys, sorted(sizes), strict=True)}


def _initial_one(key: Any, size: tuple[int, ...]) -> Any:
    return jnp.ones(size) if len(size) == 1 else jax.random.normal(key, size) * size[-1] ** -0.5


def _norm(rows: Any, weight: Any, shape: Shape) -> Any:
    return rows * jax.lax.rsqrt(jnp.mean(rows**2, axis=-1, keepdims=True) + shape.epsilon) * weight


def _layer(parameters: Parameters, prefix: str, hidden: Any, normed: Any, shape: Shape) -> Any:
    hidden = hidden + _attention(parameters, prefix + "self_attn.", normed, shape)
    normed = _norm(hidden, parameters[prefix + "post_attention_layernorm.weight"], shape)
    gate = normed @ parameters[prefix + "mlp.gate_proj.weight"].T
    up = normed @ parameters[prefix + "mlp.up_proj.weight"].T
    return hidden + (jax.nn.silu(gate) * up) @ parameters[prefix + "mlp.down_proj.weight"].T


def _attention(parameters: Parameters, prefix: str, rows: Any, shape: Shape) -> Any:
    lines, length, _ = rows.shape
    groups, per_group = shape.key_value_heads, shape.heads // shape.key_value_heads
    query = _rotate((rows @ parameters[prefix + "q_proj.weight"].T).reshape(lines, length, -1, shape.head_dim), shape)
    key = _rotate((rows @ parameters[prefix + "k_proj.weight"].T).reshape(lines, length, -1, shape.head_dim), shape)
    value = (rows @ parameters[prefix + "v_proj.weight"].T).reshape(key.shape)
    query = query.reshape(lines, length, groups, per_group, shape.head_dim)
    scores = jnp.einsum("btgph,bsgh->bgpts", query, key) * shape.head_dim**-0.5
    scores = jnp.where(jnp.tril(jnp.ones((length, length), dtype=bool)), scores, -1e9)
    mixed = jnp.einsum("bgpts,bsgh->btgph", jax.nn.softmax(scores, axis=-1), value)
    return mixed.reshape(lines, length, -1) @ parameters[prefix + "o_proj.weight"].T


def _rotate(heads: Any, shape: Shape) -> Any:
    half = shape.head_dim // 2
    angles = jnp.arange(heads.shape[1])[:, None, None] * shape.rope_theta ** (-jnp.arange(half) / half)
    first, second = heads[..., :half], heads[..., half:]
    turned = (first * jnp.cos(angles) - second * jnp.sin(angles), second * jnp.cos(angles) + first * jnp.sin(angles))
    return jnp.concatenate(turned, axis=-1)
