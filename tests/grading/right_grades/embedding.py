"""Chapter 1: student → the points of each exercise in the notebook's order, and what the feedback says."""

RIGHT = {
    "ada_full_marks": ((4, 6, 5, 6, 4), "25.0 / 25.0"),
    "ben_untouched_stub": ((0, 0, 0, 0, 0), "raised NotImplementedError"),
    "cleo_half_finished": ((4, 6, 0, 0, 0), "raised NotImplementedError"),
    "dan_deleted_a_test": ((4, 6, 5, 6, 4), "was missing; it came back"),
    "eve_averaged_the_uses": ((3, 6, 5, 6, 4), "you average over the uses of a row: their gradients should add up"),
    "fay_forgot_the_scale": ((4, 5, 5, 6, 4), "you left out the factor √d_model"),
    "gus_overwrote_the_padding": ((4, 5, 5, 6, 4), "overwrote the zeros that nn.Embedding had put into"),
    # of 3 only the ValueError is left; in 4 the rows belong to no patch
    "hal_cut_strips": ((4, 6, 1, 5, 4), "your rows are runs of neighbouring pixels in reading order, not squares"),
    # 4 asks for the order of the patches too
    "ida_went_down_the_columns": ((4, 6, 4, 5, 4), "your patches run down the columns of the grid first"),
    "jon_forgot_the_stride": ((4, 6, 5, 4, 4), "your convolution moves by one pixel"),
    "kim_forgot_the_bias": ((4, 6, 5, 6, 2), "you left out the bias"),
    # nothing in that cell ran
    "lea_typed_half_a_line": ((4, 6, 5, 6, 0), "SyntaxError"),
}
