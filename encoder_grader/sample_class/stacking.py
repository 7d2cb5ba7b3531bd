"""The typical mistakes of chapter 6; most students make two or three, in different exercises."""

MISTAKES = {
    "eve_lost_the_mask": {
        "encoder_layer": [("self.attention(stream, mask=mask)", "self.attention(stream)")],
        "counting": [("12 * (4 * (768", "12 * (3 * (768"), ("attention = 4 * (d_model", "attention = 3 * (d_model")],
        "bug_hunt": [("candidate(elsewhere, weights, mask)", "candidate(x, weights, mask)")],
    },
    "fay_shared_one_layer": {
        "encoder": [
            (
                "[EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first) for _ in range(num_layers)]",
                "[EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first)] * num_layers",
            )
        ],
        "token_encoder": [
            ("words = self.embedding(ids)", "words = self.embedding(ids) * math.sqrt(self.embedding.d_model)")
        ],
        "masked_mean": [("number = counts.sum(dim=1)", "number = torch.tensor(x.shape[1])")],
    },
    "gus_forgot_the_final_norm": {
        "encoder": [("LayerNorm(d_model) if norm_first else None", "None")],
        "patch_encoder": [("[in_front, patches]", "[patches, in_front]")],
        "masked_mean": [("return total / number.clamp(min=1)", "return x.mean(dim=1)")],
    },
    "hal_began_with_the_key": {
        "token_encoder": [("self.encoder(self.embed(ids), mask=mask)", "self.encoder(self.embed(ids))")],
        "from_torch": [("query, key, value = tensor.chunk(3)", "key, query, value = tensor.chunk(3)")],
        "bug_hunt": [
            ('assert same(candidate(x, weights), output), "two calls differ"', "return output.shape == x.shape")
        ],
    },
    "ida_lost_the_attention": {
        "encoder_layer": [("self.add_norm_2(attended, self.feed_forward)", "self.add_norm_2(x, self.feed_forward)")],
        "patch_encoder": [("nn.Parameter(0.02 * torch.randn(1, 1, d_model))", "0.02 * torch.randn(1, 1, d_model)")],
        "counting": [("14 * 14 + 1", "14 * 14")],
        "bug_hunt": [("torch.allclose(one, other, atol=1e-4)", "torch.equal(one, other)")],
    },
}
