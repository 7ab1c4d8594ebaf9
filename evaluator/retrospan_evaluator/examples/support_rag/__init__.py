"""A help desk with fourteen passages and thirteen questions."""
