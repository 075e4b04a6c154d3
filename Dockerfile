# The operator's image. Build: docker build -t specdec-operator:0.1.0 .
# BASE_IMAGE must hold Python 3.11 or newer with its venv module, as `python3`; nothing here needs a compiler.
ARG BASE_IMAGE=python:3.12-slim

FROM ${BASE_IMAGE} AS build
ARG UV_VERSION=0.13.9
ENV UV_PROJECT_ENVIRONMENT=/opt/specdec \
    UV_PYTHON_DOWNLOADS=never \
    UV_COMPILE_BYTECODE=1 \
    UV_LINK_MODE=copy \
    UV_NO_CACHE=1 \
    UV_SYSTEM_CERTS=true
RUN python3 -m venv /opt/uv \
    && /opt/uv/bin/pip install --quiet --no-cache-dir --disable-pip-version-check "uv==${UV_VERSION}"
WORKDIR /source
COPY pyproject.toml uv.lock ./
# Dependencies change seldom, so they are a layer of their own; wheels only, as there is no compiler.
RUN /opt/uv/bin/uv sync --frozen --no-dev --no-install-project --no-build --python "$(command -v python3)"
COPY LICENSE README.md ./
COPY operator operator
RUN /opt/uv/bin/uv sync --frozen --no-dev --no-editable

FROM ${BASE_IMAGE}
LABEL org.opencontainers.image.title="specdec-operator" \
      org.opencontainers.image.description="A Kubernetes operator for speculative decoding on Triton Inference Server" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/specdec /opt/specdec
# The working directory is on no import path, and nothing is written: the root file system may be read-only.
ENV PATH="/opt/specdec/bin:${PATH}" \
    PYTHONSAFEPATH=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["python", "-m", "specdec_operator"]
