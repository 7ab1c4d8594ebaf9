"""The read side: recorded requests from the store."""
