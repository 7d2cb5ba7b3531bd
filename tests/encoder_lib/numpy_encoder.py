"""A second witness: the encoder in NumPy and float64, written from the papers, one sentence and one head at a time.

Vectors are rows. A layer is a dictionary of arrays: W_Q, W_K, W_V, W_O and W_1, W_2 multiply from the right,
b_Q … b_2 are added, gamma_1, beta_1, gamma_2, beta_2 belong to the two norms.
"""

import math

import numpy as np


def positions(length, width):
    """Section 3.5 of Vaswani et al. 2017, entry by entry."""
    table = np.zeros((length, width))
    for pos in range(length):
        for column in range(width):
            i = column // 2
            angle = pos / 10000 ** (2 * i / width)
            table[pos, column] = math.sin(angle) if column % 2 == 0 else math.cos(angle)
    return table


def softmax(row):
    """Of one row of scores."""
    exponentials = np.exp(row - np.max(row))
    return exponentials / np.sum(exponentials)


def attention(Q, K, V, visible):
    """Section 3.2.1: a query sees the keys in `visible`; one that sees none gets zeros."""
    context = np.zeros((len(Q), V.shape[1]))
    for t, query in enumerate(Q):
        if visible:
            weights = softmax(np.array([np.dot(query, K[s]) / math.sqrt(len(query)) for s in visible]))
            context[t] = sum(weight * V[s] for weight, s in zip(weights, visible, strict=True))
    return context


def multi_head(X, layer, heads, visible):
    """Section 3.2.2: each head takes its own columns of the projections."""
    d_k = X.shape[1] // heads
    found = []
    for head in range(heads):
        columns = slice(head * d_k, (head + 1) * d_k)
        Q = X @ layer["W_Q"][:, columns] + layer["b_Q"][columns]
        K = X @ layer["W_K"][:, columns] + layer["b_K"][columns]
        V = X @ layer["W_V"][:, columns] + layer["b_V"][columns]
        found.append(attention(Q, K, V, visible))
    return np.concatenate(found, axis=1) @ layer["W_O"] + layer["b_O"]


def feed_forward(X, layer, activation):
    """Section 3.3, with GELU as in Hendrycks and Gimpel 2016."""
    inner = X @ layer["W_1"] + layer["b_1"]
    if activation == "relu":
        inner = np.maximum(0, inner)
    else:
        inner = np.vectorize(lambda z: z * 0.5 * math.erfc(-z / math.sqrt(2)))(inner)
    return inner @ layer["W_2"] + layer["b_2"]


def layer_norm(X, gamma, beta, epsilon):
    """Section 3 of Ba, Kiros and Hinton 2016."""
    rows = [(row - np.mean(row)) / math.sqrt(np.var(row) + epsilon) for row in X]
    return gamma * np.array(rows) + beta


def encoder(X, layers, heads, visible, *, norm_first, activation="relu", epsilon=1e-5, final=None):
    """All layers on one sequence X, in post-norm or pre-norm; `final` is (gamma, beta) of a last norm."""
    for layer in layers:

        def norm(Y, which, layer=layer):
            return layer_norm(Y, layer[f"gamma_{which}"], layer[f"beta_{which}"], epsilon)

        if norm_first:
            X = X + multi_head(norm(X, 1), layer, heads, visible)
            X = X + feed_forward(norm(X, 2), layer, activation)
        else:
            X = norm(X + multi_head(X, layer, heads, visible), 1)
            X = norm(X + feed_forward(X, layer, activation), 2)
    return X if final is None else layer_norm(X, *final, epsilon)


def patches(image, side):
    """Cut an image (channels, height, width) into rows of numbers, as section 3.1 of Dosovitskiy et al. 2021."""
    _, height, width = image.shape
    return np.array(
        [
            image[:, top : top + side, left : left + side].flatten()
            for top in range(0, height, side)
            for left in range(0, width, side)
        ]
    )
