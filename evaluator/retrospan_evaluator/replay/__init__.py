"""Run a recorded request again under other settings."""
