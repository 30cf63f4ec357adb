import type { Logger } from 'pino'
import { alertThresholds, type AlertType } from '../domain/alert.ts'
import type { Settings } from '../domain/settings.ts'
import type { AlertSubscriptions } from '../store/operations/alert-subscriptions.ts'
import type { Rows } from '../store/store.ts'
import type { AlertOutcome, AlertSender, TaggedTarget } from './alert-sender.ts'
import { ConditionWatch, type ConditionSources } from './condition-watch.ts'
import { StorageAlerts } from './storage-alerts.ts'

/** Interval at which the outbox is read. */
const TICK_MS = 1_000
/** Interval at which failures of one receiver are logged. */
const LOG_MS = 60_000

/** Services that alerts need. */
interface AlertParts extends ConditionSources {
  readonly rows: Pick<Rows, 'read' | 'write'>
  readonly settings: () => Settings
  /** Identifies this node; a node that has the database to itself keeps its name over restarts. */
  readonly node: string
  /** Name of this node, for people. */
  readonly nodeName: string
  /** Error of a storage that cannot be written; always undefined in processes that do not report it. */
  readonly storageFailure: () => Error | undefined
  /** Tags the URL of a receiver. */
  readonly tag: (url: string) => string
  readonly count: (result: 'delivered' | 'failed' | 'given_up', count: number) => void
  readonly log: Pick<Logger, 'warn'>
}

/**
 * Tells the receivers of gateway.yaml what happens: finds conditions of this node, and delivers what the
 * outbox contains. Without receivers it does nothing. `docs/operations.md: Alerts`.
 */
export class Alerts {
  readonly #parts: AlertParts
  readonly #watch: ConditionWatch
  readonly #storage: StorageAlerts
  readonly #timer: NodeJS.Timeout
  /** Subscriptions that the database knows; undefined before they were compared. */
  #subscribed: string | undefined
  #sender: AlertSender | undefined
  #ticking: Promise<void> | undefined
  #hasFailed = false
  #isClosed = false
  readonly #loggedMs = new Map<string, number>()

  private constructor(parts: AlertParts) {
    this.#parts = parts
    this.#watch = new ConditionWatch(parts)
    this.#storage = new StorageAlerts({
      nodeName: parts.nodeName,
      failure: parts.storageFailure,
      onOutcome: (target, outcome) => this.#note(target, outcome),
    })
    this.#timer = setInterval(() => {
      this.#storage.tick(this.#targets)
      void this.#tickOnce()
    }, TICK_MS).unref()
  }

  /** Starts; resolves when the database finds events of calls from now on. */
  static async open(parts: AlertParts): Promise<Alerts> {
    const alerts = new Alerts(parts)
    if (parts.settings().alerts.length > 0) await alerts.#tickOnce()
    return alerts
  }

  /** Stops; attempts under way are broken off, and repeated by whoever sends next. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    await Promise.all([this.#sender?.close(), this.#storage.close()])
    await this.#ticking
  }

  #tickOnce(): Promise<void> {
    return (this.#ticking ??= this.#tick().finally(() => (this.#ticking = undefined)))
  }

  get #targets(): TaggedTarget[] {
    const { settings, tag } = this.#parts
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

  async #subscribe(targets: readonly TaggedTarget[]): Promise<void> {
    const { rows } = this.#parts
    const wanted = subscriptionsOf(targets, this.#parts.settings())
    const text = JSON.stringify(wanted)
    if (text === this.#subscribed) return
    // A gateway that never had receivers leaves the database alone.
    if (targets.length > 0 || (await rows.read('hasAlertState'))) await rows.write('subscribeAlerts', wanted)
    this.#subscribed = text
  }

  async #work(targets: readonly TaggedTarget[]): Promise<void> {
    const { rows, node, settings } = this.#parts
    const channels = settings().channels.map(({ name }) => name)
    const told = new Set<AlertType>(targets.flatMap(({ types }) => types))
    await this.#report((type) => told.has(type), new Set(channels))
    const tags = targets.map(({ tag }) => tag)
    const work = await rows.read('alertWork', { node, nowMs: Date.now(), tags })
    if (work.isConditionOver) await rows.write('endConditions', { nowMs: Date.now(), channels })
    if (this.#isClosed) return
    const sender = (this.#sender ??= await this.#openSender())
    await sender.work(work, targets)
  }

  async #report(isTold: (type: AlertType) => boolean, channels: ReadonlySet<string>): Promise<void> {
    const news = this.#watch.news(isTold, channels, performance.now(), Date.now())
    if (!news) return
    try {
      await this.#parts.rows.write('reportConditions', news)
    } catch (error) {
      this.#watch.forget()
      throw error
    }
  }

  // Imported late: most gateways have no receivers.
  async #openSender(): Promise<AlertSender> {
    const { AlertSender } = await import('./alert-sender.ts')
    return new AlertSender({
      rows: this.#parts.rows,
      node: this.#parts.node,
      onOutcome: (target, outcome) => this.#note(target, outcome),
      onError: (error) => this.#failed(error),
    })
  }

  #note({ url, tag }: TaggedTarget, { delivered, failed, givenUp, reason }: AlertOutcome): void {
    const { count, log } = this.#parts
    if (delivered > 0) count('delivered', delivered)
    if (failed > 0) count('failed', failed)
    if (givenUp > 0) count('given_up', givenUp)
    const nowMs = performance.now()
    if (reason === undefined || nowMs - (this.#loggedMs.get(tag) ?? Number.NEGATIVE_INFINITY) < LOG_MS) return
    this.#loggedMs.set(tag, nowMs)
    const receiver = new URL(url).host
    if (givenUp > 0) log.warn({ receiver, reason, alerts: givenUp }, 'alerts were given up after a day')
    else
      log.warn({ receiver, reason, alerts: failed }, 'alerts could not be delivered; tried again for a day')
  }

  #failed(error: unknown): void {
    if (!this.#hasFailed && !this.#isClosed)
      this.#parts.log.warn({ err: error }, 'alerts wait: the database cannot be used')
    this.#hasFailed = true
  }
}

function subscriptionsOf(targets: readonly TaggedTarget[], { options }: Settings): AlertSubscriptions {
  const types = new Set(targets.flatMap((target) => target.types))
  return { tags: targets.map(({ tag }) => tag).sort(), thresholds: alertThresholds(types, options) }
}
