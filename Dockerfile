# Shoal as an image: the wheel in a slim Python, run as an unprivileged user.
#
#   docker build -t shoal .                                       # with fusion: --build-arg EXTRAS='[fuse]'
#   docker run --rm --network none --user "$(id -u):$(id -g)" -v "$PWD:/data" shoal \
#       publish patients.csv -p patients.policy.yaml -o published.csv
#
# Only fusion, Kafka and PostgreSQL need a network.
FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS build
ARG EXTRAS=""
ARG SOURCE_DATE_EPOCH=1580601600
ENV SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH} PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /source
# the libraries first: they change less often than the code
COPY constraints.txt pyproject.toml ./
RUN python -m venv /opt/shoal \
    && python -c "import tomllib; print('\n'.join(tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies']))" > needs.txt \
    && /opt/shoal/bin/pip install --constraint constraints.txt --requirement needs.txt
COPY build-requirements.txt hatch_build.py README.md LICENSE ./
COPY share share
COPY src src
RUN python -m pip install --require-hashes --only-binary :all: --requirement build-requirements.txt \
    && python -m pip wheel --no-build-isolation --no-deps --wheel-dir /wheels . \
    && /opt/shoal/bin/pip install --constraint constraints.txt "$(echo /wheels/shoal-*.whl)${EXTRAS}"

FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
LABEL org.opencontainers.image.title="shoal" \
      org.opencontainers.image.description="Publish personal data with k-anonymity and more, and audit every release" \
      org.opencontainers.image.licenses="Apache-2.0"
# where compiled kernels and the plots' fonts are kept, writable whoever --user is; what is loaded from there is code, so a
# volume that keeps it between runs should be yours alone
ENV PATH="/opt/shoal/bin:${PATH}" \
    PYTHONDONTWRITEBYTECODE=1 \
    NUMBA_CACHE_DIR=/var/cache/shoal/kernels \
    MPLCONFIGDIR=/var/cache/shoal/plots
RUN groupadd --gid 10001 shoal \
    && useradd --no-log-init --uid 10001 --gid shoal --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin shoal \
    && install --directory --mode 1777 /var/cache/shoal /var/cache/shoal/kernels /var/cache/shoal/plots \
    && install --directory --owner shoal --group shoal /data
COPY --from=build /opt/shoal /opt/shoal
USER 10001:10001
# no run waits for the compiler on a processor like the one that built the image; another kind compiles in each container
# anew, unless a volume keeps what it compiled, and whoever --user is then has to write beside these kernels
RUN shoal warmup --quiet \
    && find /var/cache/shoal/kernels -type d -user shoal -exec chmod 0777 {} +
WORKDIR /data
ENTRYPOINT ["shoal"]
CMD ["--help"]
