import type { ConnectionFigures } from '@sluice/http1'
import type { Logger } from 'pino'
import { ApiKeys } from '../accounts/authentication/api-keys.ts'
import { clientAddress } from '../accounts/authentication/client-address.ts'
import { RequestAdmission } from '../api/admission.ts'
import { GlobalLimit } from '../api/global-limit.ts'
import { joinCluster } from '../cluster/join-cluster.ts'
import type { Config } from '../config/config.ts'
import { LiveConfig } from '../config/live-config.ts'
import { Console } from '../console/console.ts'
import type { Settings } from '../domain/settings.ts'
import { RequestSlots } from '../limits/fair-semaphore.ts'
import { THREAD_EVENT_LOOP } from '../limits/event-loop.ts'
import { setHeapGrowthOnOverload, MemoryPressure, memoryUsage } from '../limits/memory-pressure.ts'
import { Overload } from '../limits/overload.ts'
import { RateLimiter } from '../limits/rate-limiter.ts'
import { RefusalCounts, RefusedCalls } from '../limits/refused-calls.ts'
import { LastDeliveries } from '../alerts/last-deliveries.ts'
import { LiveCalls } from '../management/usage/live-calls.ts'
import { CallLimits } from '../call/call-limits.ts'
import { mediaDialects } from '../features/media/media-endpoints.ts'
import { RecordingLengths } from '../features/media/recording-length.ts'
import { ProviderSockets } from '../features/websocket/provider-sockets.ts'
import { WebSockets } from '../features/websocket/web-sockets.ts'
import { renderError } from '../api/envelopes.ts'
import { endSecretChange } from '../store/gateway-secrets.ts'
import { readinessOf } from './readiness.ts'
import { followSecretChange } from './follow-secret-change.ts'
import { keyHashes, loopMarker, namespaceOf, guardKey, promptKey, type Secrets } from '../store/secrets.ts'
import { GuardFigures } from '../telemetry/guard-figures.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { openTelemetry } from '../telemetry/telemetry.ts'
import { ChannelHealth } from '../upstreams/channel-health.ts'
import { ChannelMinutes } from '../upstreams/channel-minutes.ts'
import { KeyRings } from '../upstreams/key-ring.ts'
import { ProviderLimits } from '../upstreams/provider-limits.ts'
import { MissingModels } from '../upstreams/missing-models.ts'
import { App } from './app.ts'
import { followChangesOfOtherNodes } from './follow-changes.ts'
import { gracefulStop } from './graceful-stop.ts'
import { shareProviderLimits } from './share-provider-limits.ts'
import { collectAll, collectGarbageWhenIdle } from './idle-memory.ts'
import { openContentLog, contentPruneParts } from './open-content-log.ts'
import { createCallFindings, openAlerts } from './open-alerts.ts'
import { openConversationMemory } from './open-conversation-memory.ts'
import { type OpenedMcp, openMcp } from './open-mcp.ts'
import { jsonApiWhenNeeded } from './open-json-api.ts'
import { openManagement } from './open-management.ts'
import { openRelay } from './open-relay.ts'
import { openModelRetirements } from './open-model-retirements.ts'
import { openRequestMemory } from './open-request-memory.ts'
import { keptEndpoints, openBatches, openResponses } from './open-responses.ts'
import { openUpstreams, UNSOLICITED } from './open-upstreams.ts'
import type { StartedHelperThreads } from './start-helper-threads.ts'
import type { OpenedLedger } from './open-ledger.ts'
import { ChannelProbes } from './probe-channels.ts'
import { removeUploadsRegularly } from './import-planning.ts'
import { retentionDays, pruneRegularly } from './prune.ts'
import { recordConfiguration } from './record-configuration.ts'
import { restoreChannelMinutes } from './restore-channel-minutes.ts'
import { openStorageWatch } from './storage-watch.ts'
import { serveOperator } from './serve-operator.ts'

/** What must be ready before calls are served. */
interface ServeInputs {
  readonly config: Config
  readonly log: Logger
  /** Number of log lines that were dropped. */
  readonly lines: { readonly dropped: number }
  readonly secrets: Secrets
  readonly accounts: OpenedLedger
  readonly connections: ConnectionFigures
  readonly helpers: StartedHelperThreads
}

/** The running gateway, without its listening sockets. */
export interface ServingGateway extends AsyncDisposable {
  readonly app: App
  /** Settings at the time of the start. */
  readonly settings: Settings
  /**
   * Stops listening, waits for running calls, aborts the remaining ones and charges them. Resolves to the
   * number of calls that could not be charged.
   */
  drain(shut: (atMostMs: number) => Promise<void>): Promise<number>
}

/** Builds the application and starts all background work. */
export async function serveGateway({
  config,
  log,
  lines,
  secrets,
  accounts,
  connections,
  helpers: { threads, tokens, tokensLoaded },
}: ServeInputs): Promise<ServingGateway> {
  await using opened = new AsyncDisposableStack()
  const { environment } = config
  const { store, ledger, others, messages, node } = accounts
  const warn = (sentence: string): void => log.warn(sentence)
  endSecretChange(environment, secrets, warn)
  const namespace = namespaceOf(secrets, accounts.databaseId)
  const nodes = opened.adopt(
    await joinCluster({
      redisUrl: environment.redisUrl,
      databaseUrl: environment.databaseUrl,
      others,
      messages,
      namespace,
      node,
      log,
      onIsolated: () => metrics.add('limitsAlone', 1),
    }),
    (joined) => joined.close(),
  )
  const { changes } = nodes
  const inForce = await LiveConfig.open(store, config, warn, () => changes?.notify({ of: 'settings' }))
  const apiKeys = new ApiKeys(
    store,
    ledger,
    (key) => keyHashes(secrets, key),
    changes && ((change) => changes.notify(change)),
  )
  const modelEnds = await openModelRetirements(accounts, secrets, changes)
  const { ends } = modelEnds
  const reread = async () => void (await Promise.all([inForce.reread(), modelEnds.reread()]))
  if (changes)
    opened.adopt(followChangesOfOtherNodes(changes, apiKeys, { reread }, warn), (following) =>
      following.stop(),
    )

  let draining = false
  /** Set once the gateway accepts no more requests; those that still arrive are refused. */
  let isShut = false
  const addresses = (): ReturnType<typeof clientAddress> =>
    clientAddress(inForce.settings.options.trusted_proxies, {
      onUntrusted: () =>
        log.warn(
          'a peer that is not in options.trusted_proxies sends X-Forwarded-For; the header is ignored',
        ),
      onUnreadable: (proxy, form) =>
        log.warn(
          { proxy, form },
          'an entry of X-Forwarded-For is no address; the client counts as the hop before it',
        ),
    })
  let addressOf = addresses()

  const minutes = new ChannelMinutes()
  // Calls need not wait for statistics.
  void restoreChannelMinutes(store, minutes, Date.now(), log)
  const health = new ChannelHealth((name) => minutes.recovered(name))
  const missing = new MissingModels()
  const providerLimits = new ProviderLimits()
  const isDegraded = (): boolean => !threads.areComplete
  const metrics = new Metrics({
    channels: () => inForce.settings.channels.map(({ name }) => name),
    connections,
    openStreams: () => relay.openStreams,
    openWebSockets: () => webSockets.open,
    openCalls: () => app.openExchanges,
    openBatches: () => batches.runs.open,
    openHolds: () => ledger.openHolds.size + ledger.parkedHolds.size,
    openBreakers: () => health.openBreakers(performance.now()),
    missingModels: () => missing.list(performance.now()),
    modelEnds: () => ends.of(inForce.settings).ending,
    providerLimits: () => providerLimits.samples(inForce.settings.channels),
    pendingWrites: () => store.queued + ledger.writes.repeating,
    isDegraded,
    isStorageOk: () => ledger.writes.storage.isOk,
    droppedLines: () => lines.dropped,
    droppedMessages: () => messages.dropped,
    isRedisReachable: nodes.isRedisReachable,
  })
  // Telemetry is opened before everything that settles calls, so that it is closed after that.
  const telemetry = opened.adopt(
    await openTelemetry(environment.variables, {
      metrics,
      warn: (fields, sentence) => log.warn(fields, sentence),
    }),
    (open) => open?.close(),
  )
  const nowMs = (): number => performance.now()
  const shared = openRequestMemory(environment.dataDir, () => inForce.settings.options.body_limit, nowMs)
  const limits = new RateLimiter(nodes.rateCounter)
  const upstreams = opened.adopt(
    openUpstreams(
      secrets,
      environment.proxies,
      () => inForce.settings,
      (channel, isNews) => {
        metrics.add('unsolicitedBytes', 1, channel)
        if (isNews) log.warn({ channel }, UNSOLICITED)
      },
    ),
    (upstreams) => upstreams.close(),
  )
  const callServices = {
    ledger,
    upstreams,
    metrics,
    telemetry,
    count: tokens,
    threads,
    limits: new CallLimits(limits, nodes.semaphore),
    ...createCallFindings(),
    providerSockets: new ProviderSockets(nowMs, () => inForce.settings.channels),
    settings: () => inForce.settings,
    log,
  }
  const kept = await openResponses(accounts, secrets, {
    ...callServices,
    environment,
    announcer: nodes.limitAnnouncer,
  })
  opened.defer(() => kept.close())
  const conversations = opened.adopt(
    await openConversationMemory({
      others,
      redisUrl: environment.redisUrl,
      namespace,
      key: promptKey(secrets),
      metrics,
    }),
    (open) => open.close(),
  )
  const content = opened.adopt(
    openContentLog(environment, secrets, {
      settings: () => inForce.settings.contentLog,
      metrics,
      warn,
      room: kept.room,
    }),
    (open) => open.close(),
  )
  if (others)
    opened.adopt(
      await followSecretChange({
        store,
        secrets,
        node,
        onChange: () => content.replaceSecrets(secrets),
        warn,
      }),
      (following) => following.close(),
    )
  const keyRings = new KeyRings()
  const guardFigures = new GuardFigures()
  opened.adopt(modelEnds.readLists(callServices), (reading) => reading.close())
  const sharing = { ...callServices, node, namespace, secrets, providerLimits, keyRings }
  opened.adopt(await shareProviderLimits(nodes, sharing), (feed) => feed?.close())
  opened.adopt(new ChannelProbes({ ...callServices, health, keyRings }), (probes) => probes.close())
  const recordings = opened.adopt(new RecordingLengths(threads), (lengths) => lengths.close())
  const { relay, lifeCycle, idempotent } = opened.use(
    openRelay(
      {
        ...callServices,
        ...kept,
        ...conversations,
        ...shared,
        providerLimits,
        keyRings,
        health,
        minutes,
        missing,
        ends,
        content,
        guardKey: guardKey(secrets),
        guardFigures,
        mcpRounds: () => mcp.rounds,
      },
      nowMs,
    ),
  )
  const batches = opened.use(openBatches({ ...callServices, ...kept, ...shared, rows: store, node, relay }))
  const noteRefusal: OpenedMcp['rounds']['noteRefusal'] = (part, error) => app.noteRefusal(part, error)
  const mcpServices = { ...callServices, ...kept, apiKeys, clientAddress: () => addressOf, noteRefusal }
  const mcp: OpenedMcp = opened.use(openMcp(secrets, relay, store, inForce, { ...shared, ...mcpServices }))
  const slots = new RequestSlots(() => inForce.settings.options.max_calls, nowMs)
  const liveCalls = new LiveCalls({
    ledger: ledger.writes,
    store,
    memory: shared.memory,
    maxReaders: () => slots.streams,
    nowMs,
  })
  opened.defer(() => liveCalls.close())
  const deliveries = new LastDeliveries()
  const management = openManagement(secrets, {
    environment,
    inForce,
    relay,
    nodeId: node,
    deliveries,
    warn,
    store,
    ledger,
    apiKeys,
    upstreams,
    channels: { health, keyRings, providerLimits, minutes },
    otherNodes: nodes.reports,
    batches: batches.managed,
    mcpTools: mcp.tools,
    answers: kept.answers,
    liveCalls,
    modelEnds: ends,
    guardFigures,
    content,
    telemetry,
  })
  opened.use(
    await serveOperator({
      running: config,
      management,
      async apply(next) {
        await inForce.replaceFile(next, async () => void (await recordConfiguration(store, next)))
        addressOf = addresses()
        apiKeys.forgetAll()
      },
      onReload(result, refused) {
        inForce.refused = refused
        metrics.add('reloads', 1, result)
      },
      log,
    }),
  )

  opened.adopt(removeUploadsRegularly(environment.dataDir), (files) => files.stop())
  const pruning = pruneRegularly(
    [...accounts.pruneParts, ...contentPruneParts(content, store)],
    () => retentionDays(inForce.settings.options),
    log,
  )
  opened.defer(() => pruning.stop())
  const storageWatch = opened.adopt(openStorageWatch(accounts, log), (watch) => watch.close())

  const overload = new Overload(
    THREAD_EVENT_LOOP,
    new MemoryPressure(memoryUsage, collectAll, setHeapGrowthOnOverload),
  )
  const watched = { providerLimits, health, keyRings, minutes, overload, deliveries, ends }
  const alerted = { ...callServices, ...watched, refusedConfig: () => inForce.refused }
  opened.adopt(await openAlerts(accounts, secrets, alerted), (open) => open.close())
  const from = { limits, clientAddress: () => addressOf }
  const globalLimit = new GlobalLimit(limits, from.clientAddress, () => inForce.settings.rateLimits.global)
  const json = jsonApiWhenNeeded(secrets, ends, { ...from, apiKeys, globalLimit, ...shared, management })

  const webSockets: WebSockets = opened.adopt(
    new WebSockets({
      ...shared,
      providers: callServices.providerSockets,
      settings: () => inForce.settings,
      serveTurn: (turn) => app.serveTurn(turn),
      renderError: (error, id) => renderError('relay', error, id),
      // Codes from 3000 on are chosen by clients, which must not create series.
      onClosed: (code) => metrics.add('closedWebSockets', 1, code < 3_000 ? String(code) : 'other'),
      nowMs,
    }),
    (open) => open.close(),
  )
  const app: App = new App({
    mark: loopMarker(secrets),
    ...from,
    apiKeys,
    cors: () => inForce.settings.options.cors,
    metricsToken: () => inForce.settings.options.metrics_token,
    host: environment.host,
    admission: new RequestAdmission(overload, slots),
    relayLimit: () => inForce.settings.rateLimits.relay,
    relay,
    ...keptEndpoints({ ...callServices, ...kept, ...shared, ...batches, lifeCycle, relay }),
    media: mediaDialects(recordings),
    webSockets,
    mcp: mcp.endpoint,
    opensWebSockets: () => inForce.settings.options.websocket.enabled,
    lifeCycle,
    json,
    globalLimit,
    console: new Console(() => inForce.settings.options),
    metrics,
    refusals: opened.adopt(new RefusalCounts(store), (counts) => counts.close()),
    refusedCalls: opened.adopt(
      new RefusedCalls(store, () => inForce.settings.options.refusals_kept),
      (calls) => calls.close(),
    ),
    isOpen: () => !isShut,
    isStaying: () => !draining,
    basePath: () => inForce.settings.options.base_path,
    readiness: readinessOf({ isDraining: () => draining, loaded: tokensLoaded, accounts, isDegraded }),
    onStoreFailure: (error) => storageWatch.report(error),
    log,
    telemetry,
  })
  const collecting = collectGarbageWhenIdle(() => app.openExchanges)
  opened.defer(() => collecting.stop())
  const everything = opened.move()
  return {
    app,
    settings: inForce.settings,
    drain: (shut) =>
      gracefulStop({
        timeoutMs: inForce.settings.options.drain_timeout,
        shut,
        beginDraining() {
          draining = true
          webSockets.drain()
          batches.runs.stop()
          liveCalls.close()
        },
        refuseRequests: () => (isShut = true),
        openExchanges: () => app.openExchanges + idempotent.left + batches.runs.busy,
        relay,
        ledger,
      }),
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  }
}
