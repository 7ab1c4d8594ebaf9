"""Fisher's exact test, one-sided: is a variant better than the control."""

from __future__ import annotations

from math import comb


def fisher_greater(*, passes: int, n: int, control_passes: int, control_n: int) -> float:
    """P(at least these passes fall to the variant), all margins given (hypergeometric tail)."""
    if not (0 <= passes <= n and 0 <= control_passes <= control_n and n and control_n):
        raise ValueError(
            "expected 0 ≤ passes ≤ n and n ≥ 1 in both arms, "
            f"got {passes} of {n} and {control_passes} of {control_n}"
        )
    total = passes + control_passes
    ways = sum(comb(n, k) * comb(control_n, total - k) for k in range(passes, min(n, total) + 1))
    return ways / comb(n + control_n, total)
