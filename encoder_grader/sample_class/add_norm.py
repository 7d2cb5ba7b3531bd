"""The typical mistakes of chapter 4; most students make two, in different exercises."""

MISTAKES = {
    "eve_divided_by_one_less": {
        "layer_norm": [("keepdim=True) / x.shape[-1]\n    return", "keepdim=True) / (x.shape[-1] - 1)\n    return")],
        "norm_axes": [("(0, 1)) / words + eps)", "(0, 1)) / (words - 1) + eps)")],
    },
    "fay_put_eps_outside": {
        "layer_norm": [("torch.rsqrt(spread + eps)", "(1 / (spread.sqrt() + eps))")],
        "gradient_depth": [("abs(1 + slope), abs(slope)", "1 + abs(slope), abs(slope)")],
    },
    "gus_cut_the_gradient": {
        "layer_norm": [
            ("deviation = x - x.sum(dim=-1, keepdim=True)", "deviation = x - x.detach().sum(dim=-1, keepdim=True)"),
            ("spread = deviation.square()", "spread = deviation.detach().square()"),
        ],
        "add_norm": [("total = x + self.drop(update)", "total = self.drop(x + update)")],
    },
    "hal_counted_the_padding": {
        "layer_norm_module": [("eps=self.eps)", "eps=1e-5)")],
        "norm_axes": [("7 + 5", "2 * 7"), ("words = word.sum()", "words = mask.numel()")],
    },
    "ida_normalised_the_residual": {
        "add_norm": [
            (
                "update = sublayer(self.normalise(x) if self.norm_first else x)",
                "x = self.normalise(x) if self.norm_first else x\n        update = sublayer(x)",
            )
        ],
        "gradient_depth": [("start = x.detach().clone().requires_grad_()\n", "start = x.requires_grad_()\n")],
    },
}
