"""The typical mistakes of chapter 3: five students, and together a mistake in every exercise."""

MISTAKES = {
    # her own function is what she compares the candidates with, so every right one fails her test
    "mia_forgot_the_scale": {
        "softmax": [("scores - largest", "scores")],
        "scaled_dot_product_attention": [(" / math.sqrt(d_k)", "")],
        "counts": [("8 * 196 * 196 * 4", "8 * 196 * 196"), ("4 * math.prod(shape)", "math.prod(shape)")],
    },
    "ned_turned_the_masks_round": {
        "masks": [("ids.ne(pad_id)", "ids.eq(pad_id)"), (">= place", "< place"), ("words & past", "words | past")],
        "counts": [("4 * (512 * 512 + 512)", "4 * 512 * 512"), ("4 * d_model * (d_model + 1)", "4 * d_model**2")],
        "repair": [("return self.w_o(context.reshape(x.shape))", "return context.reshape(x.shape)")],
    },
    "oda_viewed_the_heads": {
        "heads": [
            (
                "x.unflatten(-1, (num_heads, d_model // num_heads)).transpose(1, 2)",
                "x.reshape(len(x), num_heads, -1, d_model // num_heads)",
            )
        ],
        "bug_hunt": [
            ("torch.randn(2, 3, 4, 7", "torch.randn(2, 4, 7"),
            ("torch.randn(2, 3, 5, 7", "torch.randn(2, 5, 7"),
        ],
    },
    "pia_hid_after_the_softmax": {
        "scaled_dot_product_attention": [("        scores = scores.masked_fill(~mask, -1e30)\n", "        pass\n")],
        "multi_head_attention": [("self.drop(weights)", "F.dropout(weights, self.drop.p)")],
        "bug_hunt": [("for each in (None, mask)", "for each in (None,)")],
    },
    "quin_left_nan": {
        "softmax": [("scores.max(dim, keepdim=True).values", "scores.max()")],
        "scaled_dot_product_attention": [
            ("-1e30", "-torch.inf"),
            ("    if mask is not None:\n        weights = weights * mask  # a row without a key was uniform\n", ""),
            ("softmax(scores)", "torch.softmax(scores, dim=-1)"),
        ],
        "multi_head_attention": [("split_heads(self.w_v(value)", "split_heads(self.w_v(query)")],
        "repair": [
            (".view(batch_size, -1, self.h, self.d_k).transpose(1, 2)", ".view(batch_size, -1, self.h, self.d_k)"),
            ("self_attention(q, k, v).transpose(1, 2)  #", "self_attention(q, k, v)  #"),
        ],
    },
}
