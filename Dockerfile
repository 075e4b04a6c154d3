# The operator's image. Build: docker build -t specdec-operator:0.1.0 .   More: docs/image.md
# BASE_IMAGE must hold Python 3.11 or newer with its venv module, as `python3`, and a shell; nothing needs a compiler.
ARG BASE_IMAGE=docker.io/library/python:3.12.13-slim-trixie

# What builds: uv, and the tools of the dependency group `image`. None of it is in the result.
# The secrets are how a machine reaches its package index; both may be missing.
FROM ${BASE_IMAGE} AS tools
ARG UV_VERSION=0.13.9
ENV UV_PYTHON_DOWNLOADS=never \
    UV_LINK_MODE=copy \
    UV_NO_CACHE=1 \
    UV_SYSTEM_CERTS=true
WORKDIR /source
COPY pyproject.toml uv.lock ./
RUN --mount=type=secret,id=environment --mount=type=secret,id=ca-certificates \
    set -ae; if [ -f /run/secrets/environment ]; then . /run/secrets/environment; fi; \
    python3 -m venv /opt/uv; \
    /opt/uv/bin/pip install --quiet --no-cache-dir --disable-pip-version-check "uv==${UV_VERSION}"; \
    UV_PROJECT_ENVIRONMENT=/opt/tools /opt/uv/bin/uv sync --frozen --only-group image --no-build \
        --python "$(command -v python3)"

# Dependencies change seldom, so they are a layer of their own; wheels only, as there is no compiler.
FROM tools AS dependencies
# Bytecode that is checked by content stays valid whatever times a builder writes into its layers.
ENV UV_COMPILE_BYTECODE=1 \
    PYC_INVALIDATION_MODE=CHECKED_HASH
RUN --mount=type=secret,id=environment --mount=type=secret,id=ca-certificates \
    set -ae; if [ -f /run/secrets/environment ]; then . /run/secrets/environment; fi; \
    UV_PROJECT_ENVIRONMENT=/opt/specdec /opt/uv/bin/uv sync --frozen --no-dev --no-install-project --no-build \
        --python "$(command -v python3)"
# Tests of the libraries, and what only a compiler reads.
RUN find /opt/specdec/lib -type d \( -name tests -o -name include \) -prune -exec rm -rf {} + \
    && find /opt/specdec -type f \( -name '*.a' -o -name '*.c' -o -name '*.h' -o -name '*.pxd' -o -name '*.pyx' \) -delete \
    && rm -rf /opt/specdec/include
RUN /opt/tools/bin/cyclonedx-py environment /opt/specdec/bin/python --pyproject pyproject.toml --output-reproducible \
        --output-format JSON --validate --output-file /opt/specdec/sbom.cdx.json

FROM dependencies AS operator
COPY LICENSE README.md ./
COPY operator operator
RUN /opt/tools/bin/python -m hatchling build --target wheel --directory /wheel \
    && /opt/uv/bin/uv pip install --offline --no-deps --python /opt/specdec/bin/python --prefix /operator/opt/specdec \
        /wheel/*.whl \
    # When it was installed is all that this file says.
    && find /operator -name uv_cache.json -delete \
    && sed -i '/uv_cache\.json/d' /operator/opt/specdec/lib/python3*/site-packages/*.dist-info/RECORD

FROM ${BASE_IMAGE}
# Nothing installs anything in this image.
RUN rm -rf /usr/local/bin/pip* /usr/local/lib/python3*/ensurepip /usr/lib/python3*/ensurepip /usr/share/python-wheels \
        /usr/local/lib/python3*/site-packages/pip* /usr/local/lib/python3*/site-packages/setuptools* \
        /usr/local/lib/python3*/site-packages/wheel*
COPY --from=dependencies /opt/specdec /opt/specdec
# The working directory is on no import path, and nothing is written: the root file system may be read-only.
ENV PATH="/opt/specdec/bin:${PATH}" \
    PYTHONSAFEPATH=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["python", "-m", "specdec_operator"]
ARG VERSION=0.1.0
ARG CREATED=""
ARG SOURCE=""
ARG DOCUMENTATION=""
COPY --from=operator /operator/opt/specdec /opt/specdec
ARG REVISION=""
LABEL org.opencontainers.image.title="specdec-operator" \
      org.opencontainers.image.description="A Kubernetes operator for speculative decoding on Triton Inference Server" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.documentation="${DOCUMENTATION}" \
      dev.specdec.sbom="/opt/specdec/sbom.cdx.json"
