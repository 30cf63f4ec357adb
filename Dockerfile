# syntax=docker/dockerfile:1
# A gateway in a container: docs/deployment.md says how it is run. Everything is built in the first stage; the image has Node, its libraries
# and the program, and neither a shell nor a package manager.
FROM node:24.21.0-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
COPY packages ./packages
RUN npm ci --ignore-scripts
COPY tsconfig.json LICENSE ./
COPY bin ./bin
COPY tools ./tools
COPY deploy/image ./deploy/image
COPY console ./console
COPY src ./src
# What `sluice --version` names: there is no clone here.
ARG SLUICE_COMMIT=unknown
RUN npm run console && npm run build && deploy/image/rootfs.sh /rootfs

FROM scratch
COPY --from=build /rootfs /
# SQLite sorts in files when an upgrade adds an index: they belong on the volume, because /tmp may be small.
ENV NODE_ENV=production PATH=/usr/bin HOST=0.0.0.0 PORT=3000 DATA_DIR=/data SQLITE_TMPDIR=/data
# The user of the data folder, by number: Kubernetes compares it.
USER 1000:1000
# Where the gateway looks for gateway.yaml.
WORKDIR /config
VOLUME /data
EXPOSE 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=3600s --retries=3 \
  CMD ["node", "--eval", "fetch(`http://127.0.0.1:${process.env.PORT}/readyz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# The first process itself, so that signals reach it: the program replaces itself, with its flags.
ENTRYPOINT ["node", "/app/bin/sluice.mjs"]
CMD ["start"]
