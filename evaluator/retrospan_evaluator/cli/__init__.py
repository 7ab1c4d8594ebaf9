"""The command retrospan."""
