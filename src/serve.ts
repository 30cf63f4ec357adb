import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { AccountAccess } from './access/account.ts'
import { ApiKeys } from './access/api-key.ts'
import { clientAddress } from './access/client-address.ts'
import { Passwords } from './access/passwords.ts'
import { SignIns } from './access/sign-ins.ts'
import { Admission } from './api/admission.ts'
import { GlobalLimit } from './api/global-limit.ts'
import type { JsonDoor } from './api/json-door.ts'
import { App } from './app.ts'
import type { Config } from './config/config.ts'
import { InForce } from './config/in-force.ts'
import { serveControl } from './control/serve-control.ts'
import type { Settings } from './domain/settings.ts'
import { seedAccounts } from './first-start.ts'
import { followChanges } from './follow-changes.ts'
import { collectAll, giveBackWhenIdle } from './idle-memory.ts'
import { CallSlots } from './limits/call-slots.ts'
import { NODE_LOOP } from './limits/event-loop.ts'
import { Limits } from './limits/limits.ts'
import { MemoryPressure, memoryTaken } from './limits/memory-pressure.ts'
import { Overload } from './limits/overload.ts'
import type { AdministrationParts } from './management/parts.ts'
import { Metrics } from './metrics/metrics.ts'
import { joinNodes } from './nodes/join.ts'
import type { OpenedLedger } from './opening/opened-ledger.ts'
import { pruneRegularly } from './prune.ts'
import { Bodies } from './relay/body.ts'
import { BodyRoom } from './relay/body-room.ts'
import { CallLimits } from './relay/call-limits.ts'
import { Drains } from './relay/drains.ts'
import { FailureLog } from './relay/failure-log.ts'
import { LocalCount } from './relay/local-count.ts'
import { Media } from './relay/media.ts'
import { ModelLists } from './relay/model-lists.ts'
import { Relay } from './relay/relay.ts'
import { reloadOnChange } from './reload.ts'
import type { ConnectionFigures } from './server/http-server.ts'
import { hashAccessToken, hashKey, hashSession, namespaceOf, ownMark, type Secrets } from './store/secrets.ts'
import { openTracing } from './tracing/tracing.ts'
import { ChannelHealth } from './upstreams/channel-health.ts'
import { Upstreams } from './upstreams/http.ts'
import { KeyRings } from './upstreams/key-ring.ts'

/** How long calls that were broken off at the end of a stop may take to be settled. */
const SETTLING_MS = 5_000

/** How long the database may take to show that it can be written. */
const PROBE_MS = 1_000

const UNASKED =
  'the upstream sent bytes that nobody asked for; for ten minutes each call of this channel has a connection of its own'

/** What is there before anybody is served. */
interface Ground {
  readonly config: Config
  readonly log: Logger
  readonly secrets: Secrets
  readonly accounts: OpenedLedger
  readonly connections: ConnectionFigures
}

/** The gateway at work, without the address that it listens on. */
export interface Serving extends AsyncDisposable {
  readonly app: App
  /** What is in force at its start. */
  readonly settings: Settings
  /**
   * Shuts the entrance, lets running calls end, and settles what was broken off. Resolves to the number of calls that could
   * not be settled.
   */
  drain(shut: (atMostMs: number) => Promise<void>): Promise<number>
}

/** Puts together what answers calls, and all that goes on beside them. */
export async function serve({ config, log, secrets, accounts, connections }: Ground): Promise<Serving> {
  await using opened = new AsyncDisposableStack()
  const { environment } = config
  const { store, ledger } = accounts
  const nodes = opened.adopt(
    await joinNodes({
      redisUrl: environment.redisUrl,
      postgresUrl: accounts.announcements && environment.databaseUrl,
      namespace: namespaceOf(secrets, accounts.place),
      node: randomUUID(),
      log,
      onAlone: () => metrics.limitsAlone.add(1),
    }),
    (joined) => joined.close(),
  )
  const { changes } = nodes
  const warn = (sentence: string): void => log.warn(sentence)
  const inForce = await InForce.open(store, config, warn, () => changes?.tell({ of: 'settings' }))
  const apiKeys = new ApiKeys(
    store,
    ledger,
    (key) => hashKey(secrets, key),
    changes && ((change) => changes.tell(change)),
  )
  if (changes) {
    const following = followChanges(changes, apiKeys, inForce, warn)
    opened.defer(() => following.stop())
  }

  let draining = false
  /** Whoever was connected when it began has had a moment to say what he had to. */
  let isShut = false
  const addresses = (): ReturnType<typeof clientAddress> =>
    clientAddress(inForce.settings.options.trustedProxies, () =>
      log.warn('a peer that is not in options.trusted_proxies sends X-Forwarded-For; it is not believed'),
    )
  let addressOf = addresses()

  const health = new ChannelHealth()
  const metrics = new Metrics({
    connections,
    openStreams: () => relay.openStreams,
    openCalls: () => app.visits,
    openHolds: () => ledger.open.size,
    restingChannels: () => health.resting(performance.now()),
    unwrittenOperations: () => store.queued,
    isRedisThere: nodes.isRedisThere,
  })
  const nowMs = (): number => performance.now()
  const bodies = new Bodies(new BodyRoom(() => inForce.settings.options.bodyLimit, nowMs))
  const limits = new Limits(nodes.counts)
  const upstreams = opened.adopt(
    new Upstreams(ownMark(secrets), {
      channels: () => inForce.settings.channels,
      onUnasked(channel, isNews) {
        metrics.unaskedBytes.add(1, channel)
        if (isNews) log.warn({ channel }, UNASKED)
      },
    }),
    (upstreams) => upstreams.close(),
  )
  const relay: Relay = opened.adopt(
    new Relay({
      settings: () => inForce.settings,
      ledger,
      upstreams,
      keyRings: new KeyRings(),
      health,
      bodies,
      count: opened.adopt(new LocalCount(), (count) => count.close()),
      drains: new Drains(),
      metrics,
      limits: new CallLimits(limits),
      failureLog: new FailureLog(log),
      media: opened.adopt(new Media(() => inForce.settings.options.media, nowMs), (media) => media.close()),
    }),
    (open) => open.close(),
  )
  const management: AdministrationParts = {
    databaseUrl: environment.databaseUrl,
    secretFile: environment.secret === undefined ? join(environment.dataDir, 'secret') : undefined,
    store,
    ledger,
    apiKeys,
    passwords: new Passwords(),
    settings: () => inForce.settings,
    inForce,
    upstreams,
    signIns: new SignIns(),
    nowMs: () => Date.now(),
  }
  const control = await serveControl({ ...management, dataDir: environment.dataDir, log })
  opened.defer(() => control.close())
  const reloading = await reloadOnChange(
    environment,
    async (next) => {
      await inForce.replaceFile(next, async () => void (await seedAccounts(store, next.users)))
      addressOf = addresses()
      apiKeys.forgetAll()
    },
    (result) => metrics.reloads.add(1, result),
    log,
  )
  opened.defer(() => reloading.close())

  opened.adopt(
    pruneRegularly(accounts.prune, () => inForce.settings.options.usageLogDays, log),
    (pruning) => pruning.stop(),
  )
  const tracing = await openTracing(environment.variables)
  opened.defer(() => tracing?.close())

  const globalLimit = new GlobalLimit(
    limits,
    () => addressOf,
    () => inForce.settings.rateLimits.global,
  )
  let door: Promise<JsonDoor> | undefined
  const openDoor = async (): Promise<JsonDoor> => {
    const { JsonDoor } = await import('./api/json-door.ts')
    return new JsonDoor({
      accounts: new AccountAccess({
        store,
        hashAccessToken: (accessToken) => hashAccessToken(secrets, accessToken),
        hashSession: (session) => hashSession(secrets, session),
        trustedProxies: () => inForce.settings.options.trustedProxies,
      }),
      apiKeys,
      clientAddress: () => addressOf,
      limits,
      globalLimit,
      bodies,
      management,
      models: new ModelLists(),
    })
  }
  const json = (): Promise<JsonDoor> => (door ??= openDoor())

  const app: App = new App({
    mark: ownMark(secrets),
    apiKeys,
    clientAddress: () => addressOf,
    cors: () => inForce.settings.options.cors,
    metricsToken: () => inForce.settings.options.metricsToken,
    host: environment.host,
    limits,
    admission: new Admission(
      new Overload(NODE_LOOP, new MemoryPressure(memoryTaken, collectAll)),
      new CallSlots(() => inForce.settings.options.maxCalls, nowMs),
    ),
    relayLimit: () => inForce.settings.rateLimits.relay,
    relay,
    json,
    globalLimit,
    metrics,
    isOpen: () => !isShut,
    isStaying: () => !draining,
    isReady: async () => !draining && (await soon(accounts.isReady())),
    log,
    tracing,
  })
  opened.adopt(
    giveBackWhenIdle(() => app.visits),
    (givingBack) => givingBack.stop(),
  )
  const everything = opened.move()

  return {
    app,
    settings: inForce.settings,
    async drain(shut) {
      draining = true
      const { drainTimeoutMs } = inForce.settings.options
      const untilMs = performance.now() + drainTimeoutMs
      await shut(drainTimeoutMs)
      isShut = true
      await until(() => app.visits === 0, untilMs - performance.now())
      relay.stop()
      await until(() => app.visits === 0 && ledger.unresolved === 0, SETTLING_MS)
      const unresolved = ledger.unresolved
      ledger.giveUp()
      return unresolved
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  }
}

// A database that takes long to answer is not ready either.
function soon(isSo: Promise<boolean>): Promise<boolean> {
  return Promise.race([isSo, new Promise<boolean>((resolve) => setTimeout(resolve, PROBE_MS, false).unref())])
}

async function until(isSo: () => boolean, limitMs: number): Promise<void> {
  const endMs = performance.now() + limitMs
  while (!isSo() && performance.now() < endMs) await new Promise((resolve) => setTimeout(resolve, 10))
}
