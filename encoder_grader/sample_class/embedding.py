"""The typical mistakes of chapter 1, one in each exercise and two in one."""

MISTAKES = {
    "eve_averaged_the_uses": {
        "one_hot_lookup": [
            (
                'return torch.einsum("bsv,bsd->vd", one_hot(ids, vocab_size), upstream)',
                "uses = one_hot(ids, vocab_size)\n"
                '    total = torch.einsum("bsv,bsd->vd", uses, upstream)\n'
                "    return total / uses.sum((0, 1)).clamp(min=1).unsqueeze(-1)",
            )
        ]
    },
    "fay_forgot_the_scale": {"token_embedding": [("return self.factor * rows", "return rows")]},
    "gus_overwrote_the_padding": {
        "token_embedding": [
            ("            if pad_id is not None:\n                self.embedding.weight[pad_id] = 0.0\n", "")
        ]
    },
    "hal_cut_strips": {
        "image_to_patches": [
            (
                "    bands = torch.stack(images.split(patch_size, dim=2), dim=1)"
                "  # (batch, rows, channels, patch_size, width)\n"
                "    squares = torch.stack(bands.split(patch_size, dim=4), dim=2)"
                "  # (batch, rows, columns, channels, size, size)\n"
                "    return squares.flatten(3).flatten(1, 2)",
                "    return images.reshape(len(images), -1, images.shape[1] * patch_size**2)",
            )
        ]
    },
    "ida_went_down_the_columns": {
        "image_to_patches": [
            ("return squares.flatten(3).flatten(1, 2)", "return squares.transpose(1, 2).flatten(3).flatten(1, 2)")
        ]
    },
    "jon_forgot_the_stride": {"patch_embedding": [("kernel_size=size, stride=size)", "kernel_size=size)")]},
    "kim_forgot_the_bias": {"shapes": [("16 * 16 * 512 + 512", "16 * 16 * 512"), ("(patch_dim + 1)", "patch_dim")]},
    "lea_typed_half_a_line": {"shapes": [("num_patches = height * width // patch_size**2", "num_patches = height *")]},
}
