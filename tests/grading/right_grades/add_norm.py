"""Chapter 4: student → the points of each exercise in the notebook's order, and what the feedback says."""

RIGHT = {
    "ada_full_marks": ((6, 5, 7, 5, 6), "29.0 / 29.0"),
    "ben_untouched_stub": ((0, 0, 0, 0, 0), "raised NotImplementedError"),
    "cleo_half_finished": ((6, 5, 0, 0, 0), "raised NotImplementedError"),
    "dan_deleted_a_test": ((6, 5, 7, 5, 6), "was missing; it came back"),
    # the module and Add & Norm are right, though they call that layer_norm
    "eve_divided_by_one_less": ((5, 5, 6, 5, 6), "layer norm divides by d_model"),
    "fay_put_eps_outside": ((5, 5, 7, 5, 5), "you add ε to the standard deviation, outside the root"),
    "gus_cut_the_gradient": ((5, 5, 7, 3, 6), "your dropout falls on the sum, and so on x as well"),
    "hal_counted_the_padding": ((6, 4, 5, 5, 6), "you left padding out of the sums"),
    # each gradient holds those before it
    "ida_normalised_the_residual": ((6, 5, 7, 3, 3), "your pre-norm adds the norm of x, not x itself"),
}
