"""The cost of recording with other libraries, each in an environment of its own."""
