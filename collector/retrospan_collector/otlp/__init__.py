"""The OTLP receivers: gRPC and HTTP."""
