# Builds the executable, then puts it alone on a base that holds glibc and nothing that is run: no shell, no Node, no package manager.
FROM node:24-bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends binutils && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY package.json package-lock.json .npmrc ./
COPY scripts/install scripts/install
RUN bash -c 'set -euo pipefail; . scripts/install'
COPY tsconfig.json ./
COPY scripts/build scripts/build
COPY build build
COPY docs docs
COPY src src
RUN scripts/build && mkdir -p /empty/data /empty/key

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /source/dist/kms /usr/local/bin/kms
# Data and key lie in volumes of their own, so that a copy of the one is not a copy of the other.
COPY --from=build --chown=nonroot:nonroot --chmod=0700 /empty/data /var/lib/kms
COPY --from=build --chown=nonroot:nonroot --chmod=0700 /empty/key /var/lib/kms-key
USER nonroot
# The last lets threads share what the C library keeps of freed memory.
ENV KMS_DATA=/var/lib/kms \
    KMS_KEY_FILE=/var/lib/kms-key/master.key \
    MALLOC_ARENA_MAX=2
VOLUME ["/var/lib/kms", "/var/lib/kms-key"]
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["/usr/local/bin/kms", "status"]
ENTRYPOINT ["/usr/local/bin/kms"]
# In a container the address must be open; TLS is given with --tls-cert and --tls-key, or ends in front (--behind-proxy).
CMD ["serve", "--listen", "0.0.0.0:8080", "--behind-proxy"]
