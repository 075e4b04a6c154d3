#!/bin/bash
# The place of NVIDIA's entrypoint: it speaks, then becomes its arguments.
echo "== SIMULATOR of Triton Inference Server: real tritonserver, stand-in backends, no GPU code. See /app/SIMULATOR.md ==" >&2
if [[ $# -eq 0 ]]; then
  exec /bin/bash
fi
exec "$@"
