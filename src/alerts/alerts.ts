import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Agent } from 'undici'
import { type AlertEvent, alertThresholds, type AlertType, receiverHost } from '../domain/alert.ts'
import type { SmtpOptions } from '../domain/options.ts'
import type { RefusedConfiguration, Settings } from '../domain/settings.ts'
import type { CallsRefusedByOverload } from '../limits/overload.ts'
import type {
  AboutChannels,
  ReportedConditions,
  DueAlert,
  AlertSubscriptions,
} from '../store/operations/alerts.ts'
import type { RowStore } from '../store/store.ts'
import type { AlertOutcome, AlertSender, TaggedAlertReceiver } from './alert-sender.ts'
import type { LowLimitChange, LowLimits } from '../upstreams/low-limits.ts'
import type { LastDeliveries } from './last-deliveries.ts'
import { type AnnouncedRetirement, ModelRetirementAlerts } from './model-retirement-alerts.ts'
import {
  type HourlyReports,
  type ImplausibleUsage,
  REPORT_INTERVAL_MS,
  type UnpricedTool,
  type WithheldTool,
} from './hourly-reports.ts'

/** Interval at which the table of undelivered alerts is read. */
const TICK_MS = 1_000
/** Minimum time between two log lines about failures of the same receiver. */
const LOG_MS = 60_000

/** Services that alerts need. */
interface AlertDependencies extends ConditionSources {
  readonly rows: Pick<RowStore, 'read' | 'write'>
  readonly settings: () => Settings
  /** Identifier of this node. A node that has the database to itself keeps its identifier over restarts. */
  readonly node: string
  /** Why the database cannot be written; undefined while it can be. */
  readonly storageFailure: () => Error | undefined
  /** Computes the tag of a receiver from its URL. */
  readonly tag: (url: string) => string
  readonly count: (result: 'delivered' | 'failed' | 'given_up', count: number) => void
  readonly deliveries: Pick<LastDeliveries, 'note'>
  /** The models that their provider will shut down. */
  readonly ending: () => Iterable<AnnouncedRetirement>
  readonly log: Pick<Logger, 'warn'>
}

/**
 * Informs the receivers listed in gateway.yaml about events: detects conditions on this node, and delivers
 * the alerts that wait in the database. Without receivers it does nothing. `docs/operations.md: Alerts`.
 */
export class Alerts {
  readonly #dependencies: AlertDependencies
  readonly #watch: ConditionWatch
  readonly #storage: StorageAlerts
  readonly #endings = new ModelRetirementAlerts()
  readonly #timer: NodeJS.Timeout
  /** Subscriptions stored in the database; undefined until they have been compared with the configuration. */
  #subscribed: string | undefined
  #sender: AlertSender | undefined
  #ticking: Promise<void> | undefined
  #hasFailed = false
  #isClosed = false
  readonly #loggedMs = new Map<string, number>()

  private constructor(dependencies: AlertDependencies) {
    this.#dependencies = dependencies
    this.#watch = new ConditionWatch(dependencies)
    this.#storage = new StorageAlerts({
      nodeName: dependencies.nodeName,
      failure: dependencies.storageFailure,
      smtp: () => dependencies.settings().options.smtp,
      onOutcome: (target, outcome) => this.#note(target, outcome),
    })
    this.#timer = setInterval(() => {
      this.#storage.tick(this.#targets)
      void this.#tickOnce()
    }, TICK_MS).unref()
  }

  /** Starts informing receivers. Resolves once the database records the events that calls cause. */
  static async open(dependencies: AlertDependencies): Promise<Alerts> {
    const alerts = new Alerts(dependencies)
    if (dependencies.settings().alerts.length > 0) await alerts.#tickOnce()
    return alerts
  }

  /** Stops informing receivers. Deliveries in progress are aborted; the next sender repeats them. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    await Promise.all([this.#sender?.close(), this.#storage.close()])
    await this.#ticking
  }

  #tickOnce(): Promise<void> {
    return (this.#ticking ??= this.#tick().finally(() => (this.#ticking = undefined)))
  }

  get #targets(): TaggedAlertReceiver[] {
    const { settings, tag } = this.#dependencies
    return settings().alerts.map((target) => ({ ...target, tag: tag(target.url) }))
  }

  async #tick(): Promise<void> {
    try {
      const targets = this.#targets
      await this.#subscribe(targets)
      if (targets.length > 0) await this.#work(targets)
      this.#hasFailed = false
    } catch (error) {
      this.#failed(error)
    }
  }

  async #subscribe(targets: readonly TaggedAlertReceiver[]): Promise<void> {
    const { rows } = this.#dependencies
    const wanted = subscriptionsOf(targets, this.#dependencies.settings())
    const text = JSON.stringify(wanted)
    if (text === this.#subscribed) return
    // Writes nothing to the database if the gateway never had receivers.
    if (targets.length > 0 || (await rows.read('hasAlertState'))) await rows.write('subscribeAlerts', wanted)
    this.#subscribed = text
  }

  async #work(targets: readonly TaggedAlertReceiver[]): Promise<void> {
    const { rows, node, settings } = this.#dependencies
    const { channels: configured } = settings()
    const channels = configured.map(({ name }) => name)
    const wanted = new Set<AlertType>(targets.flatMap(({ types }) => types))
    await this.#report((type) => wanted.has(type), new Set(channels))
    if (wanted.has('model.ending')) await this.#reportEndings()
    const tags = targets.map(({ tag }) => tag)
    const work = await rows.read('findPendingAlerts', { node, nowMs: Date.now(), tags })
    if (work.isConditionOver)
      await rows.write('endConditions', {
        nowMs: Date.now(),
        channels,
        about: this.#dependencies.about(channels),
      })
    if (this.#isClosed) return
    const sender = (this.#sender ??= await this.#openSender())
    await sender.work(work, targets)
  }

  async #report(isWanted: (type: AlertType) => boolean, channels: ReadonlySet<string>): Promise<void> {
    const news = this.#watch.news(isWanted, channels, performance.now(), Date.now())
    if (!news) return
    try {
      await this.#dependencies.rows.write('reportConditions', news)
    } catch (error) {
      this.#watch.forget()
      throw error
    }
  }

  async #reportEndings(): Promise<void> {
    const nowMs = Date.now()
    const endings = this.#endings.due(this.#dependencies.ending(), nowMs)
    if (endings.length === 0) return
    try {
      await this.#dependencies.rows.write('reportModelRetirements', { nowMs, endings })
    } catch (error) {
      this.#endings.forget()
      throw error
    }
  }

  // Imported on demand: most gateways have no receivers of alerts.
  async #openSender(): Promise<AlertSender> {
    const { AlertSender } = await import('./alert-sender.ts')
    return new AlertSender({
      rows: this.#dependencies.rows,
      node: this.#dependencies.node,
      onOutcome: (target, outcome) => this.#note(target, outcome),
      smtp: () => this.#dependencies.settings().options.smtp,
      onError: (error) => this.#failed(error),
    })
  }

  #note({ url, tag }: TaggedAlertReceiver, { delivered, failed, givenUp, reason, last }: AlertOutcome): void {
    const { count, log, deliveries } = this.#dependencies
    deliveries.note(tag, last)
    if (delivered > 0) count('delivered', delivered)
    if (failed > 0) count('failed', failed)
    if (givenUp > 0) count('given_up', givenUp)
    const nowMs = performance.now()
    if (reason === undefined || nowMs - (this.#loggedMs.get(tag) ?? Number.NEGATIVE_INFINITY) < LOG_MS) return
    this.#loggedMs.set(tag, nowMs)
    const receiver = receiverHost(url)
    if (givenUp > 0) log.warn({ receiver, reason, alerts: givenUp }, 'alerts were given up after a day')
    else if (failed > 0)
      log.warn({ receiver, reason, alerts: failed }, 'alerts could not be delivered; tried again for a day')
    else log.warn({ receiver, reason, alerts: delivered }, 'alerts were not delivered to every address')
  }

  #failed(error: unknown): void {
    if (!this.#hasFailed && !this.#isClosed)
      this.#dependencies.log.warn({ err: error }, 'alerts wait: the database cannot be used')
    this.#hasFailed = true
  }
}

/**
 * The event types and thresholds of these receivers, stored in the database so that it can detect events of
 * calls.
 */
export function subscriptionsOf(
  targets: readonly Pick<TaggedAlertReceiver, 'tag' | 'types'>[],
  { options }: Settings,
): AlertSubscriptions {
  const types = new Set(targets.flatMap((target) => target.types))
  return { tags: targets.map(({ tag }) => tag).sort(), thresholds: alertThresholds(types, options) }
}

/** Interval at which this node reports a lasting condition, such as an open circuit breaker, again. */
const REPEAT_MS = 15_000
/**
 * Time without an open circuit breaker on any node after which a channel counts as recovered. The circuit
 * breaker may open again right after that.
 */
const CALM_MS = 60_000
/** Time without refusals after which the next load shedding is reported as a new event. */
const OVERLOAD_CALM_MS = 300_000
/**
 * Maximum time for which a provider's rate limit counts as nearly used up after its last report, even if it
 * resets later.
 */
const MAX_LOW_MS = 86_400_000

/** Functions that report the conditions of this node of which receivers are informed. */
interface ConditionSources {
  /** Names of the channels whose circuit breaker is open or half-open. */
  readonly opened: () => readonly string[]
  /** Names of the channels without a usable key. */
  readonly withoutKey: () => readonly string[]
  /** Facts about these channels for their events. */
  readonly about: (channels: readonly string[]) => AboutChannels
  /** The calls that this node refused because it was overloaded. */
  readonly shed: () => CallsRefusedByOverload
  readonly unpriced: Pick<HourlyReports<UnpricedTool>, 'due' | 'forget'>
  readonly implausible: Pick<HourlyReports<ImplausibleUsage>, 'due' | 'forget'>
  readonly withheldTools: Pick<HourlyReports<WithheldTool>, 'due' | 'forget'>
  readonly lowLimits: Pick<LowLimits, 'due' | 'forget'>
  /** Name of this node, as people see it. */
  readonly nodeName: string
  /** The configuration file that differs from the running configuration, because it was refused. */
  readonly refusedConfig: () => RefusedConfiguration | undefined
}

/**
 * Watches this node for the conditions that the nodes of a cluster report together: channels whose circuit
 * breaker has opened, and load shedding.
 */
class ConditionWatch {
  readonly #sources: ConditionSources
  /** Time of the last report of each channel, on a monotonic clock. */
  #reportedMs: ReadonlyMap<string, number> = new Map()
  #keyReportedMs: ReadonlyMap<string, number> = new Map()
  #overloadReportedMs = Number.NEGATIVE_INFINITY
  #shedCount = 0
  #reportedRefusal: RefusedConfiguration | undefined

  constructor(sources: ConditionSources) {
    this.#sources = sources
  }

  /**
   * Returns the conditions to report, or undefined. `isWanted` says whether a receiver wants events of a type.
   * `nowMs` is on a monotonic clock, `timeMs` is the time of day.
   */
  news(
    isWanted: (type: AlertType) => boolean,
    channels: ReadonlySet<string>,
    nowMs: number,
    timeMs: number,
  ): ReportedConditions | undefined {
    const isDue = (reportedMs: number | undefined): boolean =>
      reportedMs === undefined || nowMs - reportedMs >= REPEAT_MS
    const isWatched = isWanted('channel.resting') || isWanted('channel.back')
    const opened = isWatched ? this.#sources.opened().filter((name) => channels.has(name)) : []
    const due = opened.filter((name) => isDue(this.#reportedMs.get(name)))
    this.#reportedMs = reportedMs(opened, due, this.#reportedMs, nowMs)
    const areKeysWatched = isWanted('channel.no_key') || isWanted('channel.back')
    const withoutKey = areKeysWatched ? this.#sources.withoutKey().filter((name) => channels.has(name)) : []
    const keysDue = withoutKey.filter((name) => isDue(this.#keyReportedMs.get(name)))
    this.#keyReportedMs = reportedMs(withoutKey, keysDue, this.#keyReportedMs, nowMs)
    const { count, reason } = this.#sources.shed()
    const hasShed = count > this.#shedCount && isWanted('gateway.overloaded')
    // Refusals before the next report is due are included in that report.
    const isOverloadDue = hasShed && isDue(this.#overloadReportedMs)
    if (isOverloadDue) this.#overloadReportedMs = nowMs
    if (isOverloadDue || !hasShed) this.#shedCount = count
    const unpriced = isWanted('price.incomplete') ? this.#sources.unpriced.due(nowMs) : []
    const implausible = isWanted('usage.implausible') ? this.#sources.implausible.due(nowMs) : []
    const withheld = isWanted('mcp.tool_changed') ? this.#sources.withheldTools.due(nowMs) : []
    const limits = isWanted('provider.limit') ? this.#sources.lowLimits.due(nowMs) : []
    const refused = isWanted('config.refused') ? this.#sources.refusedConfig() : undefined
    const isRefusalNew = refused !== undefined && refused !== this.#reportedRefusal
    this.#reportedRefusal = refused
    const news = [due, keysDue, unpriced, implausible, withheld, limits].some((some) => some.length > 0)
    if (!news && !isRefusalNew && !isOverloadDue) return undefined
    const untilMs = timeMs + REPORT_INTERVAL_MS
    return {
      nowMs: timeMs,
      opened: due,
      ...(keysDue.length > 0 && { withoutKey: keysDue }),
      about: this.#sources.about([...due, ...keysDue]),
      backAtMs: timeMs + CALM_MS,
      ...(unpriced.length > 0 && { unpriced: { tools: unpriced, untilMs } }),
      ...(implausible.length > 0 && { implausible: { usages: implausible, untilMs } }),
      ...(withheld.length > 0 && { withheld }),
      ...(limits.length > 0 && { limits: limits.map((one) => limitCondition(one, timeMs)) }),
      overload: isOverloadDue ? { reason, untilMs: timeMs + OVERLOAD_CALM_MS } : undefined,
      ...(isRefusalNew && {
        refusedConfig: {
          node: this.#sources.nodeName,
          file: refused.file,
          line: refused.line,
          mistakes: refused.mistakes,
        },
      }),
    }
  }

  /** Makes every condition due again, because a report could not be stored. */
  forget(): void {
    this.#reportedMs = new Map()
    this.#keyReportedMs = new Map()
    this.#reportedRefusal = undefined
    this.#sources.unpriced.forget()
    this.#sources.implausible.forget()
    this.#sources.withheldTools.forget()
    this.#sources.lowLimits.forget()
    this.#overloadReportedMs = Number.NEGATIVE_INFINITY
    this.#shedCount = Math.max(0, this.#shedCount - 1)
  }
}

/** The time of the last report of each channel; of those that are reported now, the present. */
function reportedMs(
  channels: readonly string[],
  due: readonly string[],
  before: ReadonlyMap<string, number>,
  nowMs: number,
): ReadonlyMap<string, number> {
  return new Map(channels.map((name) => [name, due.includes(name) ? nowMs : (before.get(name) ?? nowMs)]))
}

function limitCondition({ low, isNew, ...news }: LowLimitChange, timeMs: number) {
  if (!low) return news
  const { channel, model } = news
  const { kind, remaining, resetsMs } = low
  const resets_at = resetsMs === undefined ? null : Math.ceil(resetsMs / 1000)
  const untilMs = Math.min(Math.max(timeMs + CALM_MS, resetsMs ?? 0), timeMs + MAX_LOW_MS)
  return { ...news, low: { data: { channel, model, kind, remaining, resets_at }, isNew, untilMs } }
}

/** Maximum number of alerts that wait for one receiver. Above it, the oldest ones are dropped. */
const MAX_WAITING = 16

interface StorageAlertDependencies {
  /** Name of this node, as people see it. */
  readonly nodeName: string
  /** Why the database cannot be written; undefined while it can be. */
  readonly failure: () => Error | undefined
  readonly smtp: () => SmtpOptions | undefined
  readonly onOutcome: (target: TaggedAlertReceiver, outcome: AlertOutcome) => void
}

/**
 * Informs receivers when the database cannot be written, and when it can be written again. Both alerts are
 * sent from memory, because the table of undelivered alerts is in that database. Each receiver gets them in
 * order. Alerts that are still waiting are lost when the process stops.
 */
class StorageAlerts {
  readonly #dependencies: StorageAlertDependencies
  readonly #stopping = new AbortController()
  /** Alerts that wait for each receiver, by tag; the first is being sent. */
  readonly #waiting = new Map<string, DueAlert[]>()
  #agent: Agent | undefined
  #isFailureReported = false

  constructor(dependencies: StorageAlertDependencies) {
    this.#dependencies = dependencies
  }

  /** Sends an alert if the database has become unwritable or writable again. Call it once a second. */
  tick(targets: readonly TaggedAlertReceiver[]): void {
    for (const [tag, waiting] of this.#waiting)
      if (targets.every((target) => target.tag !== tag)) waiting.length = 0
    const failure = this.#dependencies.failure()
    if ((failure !== undefined) === this.#isFailureReported) return
    this.#isFailureReported = failure !== undefined
    const { nodeName: node } = this.#dependencies
    const event: AlertEvent = failure
      ? { type: 'storage.failed', data: { node, reason: failure.message } }
      : { type: 'storage.back', data: { node } }
    const nowMs = Date.now()
    const alert: DueAlert = {
      id: `msg_${randomBytes(16).toString('hex')}`,
      type: event.type,
      data: JSON.stringify(event.data),
      createdMs: nowMs,
      attempts: 1,
      firstMs: nowMs,
    }
    for (const target of targets) if (target.types.includes(event.type)) this.#add(target, alert)
  }

  /** Aborts the attempts to deliver alerts that are in progress. */
  async close(): Promise<void> {
    this.#stopping.abort()
    await this.#agent?.destroy()
  }

  #add(target: TaggedAlertReceiver, alert: DueAlert): void {
    const waiting = this.#waiting.get(target.tag)
    if (waiting) {
      waiting.push(alert)
      if (waiting.length > MAX_WAITING) waiting.splice(1, 1)
      return
    }
    const sent = [alert]
    this.#waiting.set(target.tag, sent)
    this.#send(target, sent)
      .catch(() => {})
      .finally(() => void this.#waiting.delete(target.tag))
  }

  async #send(target: TaggedAlertReceiver, waiting: DueAlert[]): Promise<void> {
    // Imported on demand: most gateways have no receivers of alerts.
    const { MAX_CONCURRENT_ATTEMPTS, createAlertAgent, isDelivered, nextAttemptMs, sendAlert } = await import(
      './alert-sender.ts'
    )
    const { signal } = this.#stopping
    const agent = (this.#agent ??= createAlertAgent(MAX_CONCURRENT_ATTEMPTS))
    let refused: readonly string[] | undefined
    for (let [alert] = waiting; alert && !signal.aborted; [alert] = waiting) {
      const last = await sendAlert(target, alert, agent, signal, this.#dependencies.smtp(), refused)
      const { reason } = last
      if (signal.aborted) return
      const nowMs = Date.now()
      const isDone = isDelivered(last)
      const dueMs = isDone ? undefined : nextAttemptMs(alert.attempts, alert.firstMs, nowMs)
      const delivered = isDone ? 1 : 0
      const failed = dueMs === undefined ? 0 : 1
      this.#dependencies.onOutcome(target, {
        delivered,
        failed,
        givenUp: 1 - delivered - failed,
        reason,
        last,
      })
      if (dueMs === undefined) {
        refused = undefined
        waiting.shift()
        continue
      }
      refused = last.refused ?? refused
      waiting[0] = { ...alert, attempts: alert.attempts + 1 }
      await delay(dueMs - nowMs, undefined, { ref: false, signal })
    }
  }
}
