"""The typical mistakes of chapter 5, at least one in each exercise and several in a notebook."""

MISTAKES = {
    "eve_bent_the_output": {
        "two_maps": [
            ('return torch.einsum("bsf,fd->bsd", hidden, w_2) + b_2', "return torch.relu(hidden @ w_2 + b_2)"),
        ],
        "module": [
            ("return self.linear_2(self.drop_hidden(bent))", "return self.drop_hidden(self.linear_2(bent))"),
        ],
        "counts": [("    return tokens * 2 * d_model * d_ff", "    return tokens * 2 * 2 * d_model * d_ff")],
    },
    "fay_left_out_the_bend": {
        "two_maps": [("torch.maximum(x @ w_1 + b_1, torch.zeros(()))", "x @ w_1 + b_1")],
        "module": [("bent = self.function(self.linear_1(x))", "bent = self.linear_1(x)")],
        "by_hand": [("w_2 = torch.tensor([[0.5], [0.5]])", "w_2 = torch.tensor([[0.5], [-0.5]])")],
        "counts": [("    return d_ff - 2 * d_model  # from 4·d + 2·seq = 2·d_ff", "    return d_ff")],
    },
    "gus_trusted_the_tanh": {
        "gelu": [
            (
                "share_below = torch.special.ndtr(x)",
                "share_below = (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x.pow(3)))) / 2",
            ),
            ("return torch.special.ndtr(x) + x * density", "return torch.special.ndtr(x)"),
        ],
        "module": [
            (
                '"gelu": nn.functional.gelu}',
                '"gelu": lambda x: nn.functional.gelu(x, approximate="tanh")}',
            )
        ],
        "collapse": [("from_zero = torch.matmul(b_1, w_2) + b_2", "from_zero = b_2")],
    },
    "hal_counted_one_token": {
        "collapse": [
            ("rank_through_64 = 64", "rank_through_64 = 512"),
            ("sorted((d_in, d_hidden, d_out))", "sorted((d_in, d_out))"),
        ],
        "counts": [
            ("4 * 512 * 513", "4 * 512 * 512"),
            ("2048 * 513 + 512 * 2049", "2 * 2048 * 512"),
            ("d_model * (d_model + 1)", "d_model * d_model"),
            ("d_ff * (d_model + 1), d_model * (d_ff + 1)", "d_ff * d_model, d_model * d_ff"),
            ("return tokens * 2 * d_model * d_ff", "return 2 * d_model * d_ff"),
        ],
    },
    "ida_called_the_library": {
        "gelu": [("share_below = torch.special.ndtr(x)", "return nn.functional.gelu(x)")],
        "module": [
            (
                "        if activation not in functions:\n"
                '            raise ValueError(f"there is no activation {activation!r}, '
                "only {', '.join(functions)}\")\n",
                "",
            )
        ],
        "by_hand": [("w_1 = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])", "w_1 = torch.tensor([[1.0, 0.0], [0.0, 1.0]])")],
    },
}
