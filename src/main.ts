import { randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import pino, { type Logger } from 'pino'
import { ApiKeys } from './access/api-key.ts'
import { type ClientAddress, clientAddress } from './access/client-address.ts'
import { createApp } from './app.ts'
import type { Config } from './config/config.ts'
import type { Environment } from './config/environment.ts'
import { serveControl } from './control/serve-control.ts'
import { type FirstCredentials, seedAccounts } from './first-start.ts'
import { Ledger } from './ledger/ledger.ts'
import { Bodies } from './relay/body.ts'
import { Drains } from './relay/drains.ts'
import { LocalCount } from './relay/local-count.ts'
import { Relay } from './relay/relay.ts'
import { lockDataFolder, secretOfDataFolder } from './store/data-folder.ts'
import { deriveSecrets, hashKey, type Secrets } from './store/secrets.ts'
import { openSqliteStore } from './store/sqlite/open.ts'
import { answerUnreadable } from './unreadable.ts'
import { Upstreams } from './upstreams/http.ts'
import { KeyRings } from './upstreams/key-ring.ts'

/** How long running calls may take to end once the gateway is told to stop. */
const GRACE_MS = 30_000

/** A gateway that listens. */
export interface Gateway {
  readonly url: string
  /** Printed once, at the first start on an empty database. */
  readonly firstCredentials: FirstCredentials | undefined
  /** What earlier runs left open and this one settled. */
  readonly recovered: { readonly count: number; readonly quota: number }
  /** Takes no more calls, lets running ones end, writes everything, and lets go of the data folder. */
  close(): Promise<void>
}

/** Opens the store, settles what a crash left behind, and listens. Rejects with a sentence for the operator. */
export async function startGateway(config: Config): Promise<Gateway> {
  const { environment } = config
  const log = pino(
    { level: environment.logLevel, base: null },
    pino.destination({ sync: false, minLength: 4096 }),
  )
  const flushing = setInterval(() => log.flush(), 250).unref()
  const folder = lockDataFolder(environment.dataDir)
  const secrets = secretsOf(environment)
  const store = await openSqliteStore({
    path: environment.databaseUrl.slice('sqlite:'.length),
    secret: secrets,
  })
  const firstCredentials = await seedAccounts(store, config.users)
  const ledger = new Ledger(store, randomUUID())
  const recovered = await ledger.recover()

  const count = new LocalCount()
  const upstreams = new Upstreams()
  const { settings } = config
  const relay = new Relay({
    settings: () => settings,
    ledger,
    upstreams,
    keyRings: new KeyRings(),
    bodies: new Bodies(),
    count,
    drains: new Drains(),
  })
  let draining = false
  const apiKeys = new ApiKeys(store, ledger, (key) => hashKey(secrets, key))
  const addressOf = addresses(settings.options.trustedProxies, log)
  const app = createApp({
    apiKeys,
    clientAddress: () => addressOf,
    relay,
    isReady: () => !draining,
    log,
  })
  const server = hardened(createServer({ maxHeaderSize: 16_384, connectionsCheckingInterval: 1_000 }, app))
  const url = await listen(server, environment)
  const control = await serveControl({
    dataDir: environment.dataDir,
    databaseUrl: environment.databaseUrl,
    secretFile: environment.secret === undefined ? join(environment.dataDir, 'secret') : undefined,
    store,
    ledger,
    apiKeys,
    settings: () => settings,
    seeds: () => config.users,
    nowMs: () => Date.now(),
    log,
  })

  return {
    url,
    firstCredentials,
    recovered,
    async close() {
      draining = true
      await drain(server, relay)
      relay.close()
      await upstreams.close()
      await settled(ledger)
      await count.close()
      await control.close()
      await store.close()
      clearInterval(flushing)
      log.flush()
      folder.release()
    },
  }
}

function secretsOf({ secret, dataDir }: Environment): Secrets {
  return deriveSecrets(secret ?? secretOfDataFolder(dataDir))
}

function addresses(trustedProxies: readonly string[], log: Logger): ClientAddress {
  return clientAddress(trustedProxies, () =>
    log.warn('a peer that is not in options.trusted_proxies sends X-Forwarded-For; it is not believed'),
  )
}

// Slow or endless requests must not hold a connection for ever.
function hardened(server: Server): Server {
  server.headersTimeout = 10_000
  server.requestTimeout = 60_000
  server.keepAliveTimeout = 65_000
  server.maxHeadersCount = 100
  server.maxConnections = 10_000
  server.on('clientError', answerUnreadable)
  return server
}

async function listen(server: Server, { port, host }: Environment): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
  const { port: bound } = server.address() as AddressInfo
  return `http://${host.includes(':') ? `[${host}]` : host}:${bound}`
}

async function drain(server: Server, relay: Relay): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  const endMs = Date.now() + GRACE_MS
  while (relay.running > 0 && Date.now() < endMs) {
    server.closeIdleConnections()
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  server.closeAllConnections()
  await closed
}

// Closed connections make their calls settle; that takes a moment.
async function settled(ledger: Ledger): Promise<void> {
  const endMs = Date.now() + 5_000
  while (ledger.open.size > 0 && Date.now() < endMs) await new Promise((resolve) => setTimeout(resolve, 10))
}
