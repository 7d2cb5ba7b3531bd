"""The typical mistakes of chapter 2: each student makes one in every exercise."""

CHECK_OF_THE_SHIFT = """    if d_model % 2 == 1:
        raise ValueError(f"d_model={d_model} must be even, so that each sine has its cosine")
"""
CHECK_OF_THE_TABLE = """        if length > limit:
            raise ValueError(f"{length} positions are asked for, but max_len={limit}")
"""
CHECK_OF_THE_ROWS = """        if length > limit:
            raise ValueError(f"there is no row for position {limit} and later: max_len={limit}, sequence {length}")
"""

MISTAKES = {
    "mia_swapped_and_turned_back": {
        "sinusoidal_table": [("(phases.sin(), phases.cos())", "(phases.cos(), phases.sin())")],
        "shift_matrix": [("[[cosine, -sine], [sine, cosine]]", "[[cosine, sine], [-sine, cosine]]")],
        "sinusoidal_encoding": [("self.drop(x + self.rows[:length])", "x + self.drop(self.rows[:length])")],
        "learned_encoding": [("0.02 * torch.randn(", "torch.zeros(")],
        "counts": [("return len([", "return 2 * len([")],
    },
    "ned_put_all_sines_first": {
        "sinusoidal_table": [
            (
                "torch.stack((phases.sin(), phases.cos()), dim=2).flatten(1)",
                "torch.cat((phases.sin(), phases.cos()), dim=1)",
            )
        ],
        "shift_matrix": [
            (
                "    return torch.block_diag(*blocks)",
                "    parts = torch.stack(blocks)\n"
                "    rows = [torch.cat([parts[:, row, column].diag() for column in (0, 1)], dim=1) for row in (0, 1)]\n"
                "    return torch.cat(rows)",
            )
        ],
        "sinusoidal_encoding": [("self.rows[:length]", "self.rows[: x.size(0)].unsqueeze(1)")],
        "learned_encoding": [("self.table[:length]", "self.table[: x.size(0)].unsqueeze(1)")],
        "counts": [("math.cos(turn) for turn", "math.sin(turn) for turn")],
    },
    "oda_counted_the_2_twice": {
        "sinusoidal_table": [("dtype=torch.float64) / d_model", "dtype=torch.float64) * 2 / d_model")],
        "shift_matrix": [("(-2 * pair / d_model)", "(-4 * pair / d_model)")],
        "sinusoidal_encoding": [
            (
                'self.register_buffer("rows", sinusoidal_table(max_len, d_model))',
                "self.rows = nn.Parameter(sinusoidal_table(max_len, d_model))",
            )
        ],
        "learned_encoding": [
            (CHECK_OF_THE_ROWS, ""),
            ("self.table[:length]", "self.table[torch.arange(length) % limit]"),
        ],
        "counts": [("return math.tau * 10000", "return 10000")],
    },
    "pia_left_the_errors_to_torch": {
        "sinusoidal_table": [
            (
                "    return columns[:, :d_model].float()",
                "    table = torch.zeros(num_positions, d_model)\n"
                "    table[:, 0::2] = columns[:, 0::2]\n"
                "    table[:, 1::2] = columns[:, 1::2]\n"
                "    return table",
            )
        ],
        "shift_matrix": [(CHECK_OF_THE_SHIFT, "")],
        "sinusoidal_encoding": [(CHECK_OF_THE_TABLE, "")],
        "learned_encoding": [(CHECK_OF_THE_ROWS, "")],
        "counts": [("(14 * 14, 512)", "(16 * 16, 512)"), ("14 * 14 * 512", "16 * 16 * 512")],
    },
    "rex_started_at_1_and_dropped_nothing": {
        "sinusoidal_table": [("torch.arange(num_positions, dtype", "torch.arange(1, num_positions + 1, dtype")],
        "shift_matrix": [("turn = offset * 10000", "turn = 10000")],
        "sinusoidal_encoding": [("self.drop(x + self.rows[:length])", "x + self.rows[:length]")],
        "learned_encoding": [("return self.drop(summed)", "return summed")],
        "counts": [("if length > num_positions", "if length <= num_positions")],
    },
}
