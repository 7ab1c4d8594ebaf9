"""One module for each way of writing retrieval spans."""
