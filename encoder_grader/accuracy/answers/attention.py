RIGHT: dict[str, dict[str, str]] = {}
WRONG: dict[str, dict[str, tuple[str, str]]] = {}
PAIRS: dict[str, dict[tuple[str, str], str]] = {}
EQUIVALENT: dict[str, dict[str, str]] = {}
