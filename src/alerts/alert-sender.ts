import type { Agent } from 'undici'
import type { AlertTarget } from '../domain/alert.ts'
import type { AlertWork, DueAlert } from '../store/operations/alerts.ts'
import type { Rows } from '../store/store.ts'
import { nextAttemptMs } from './retry-delay.ts'
import { ATTEMPT_MS, ATTEMPTS_AT_A_TIME, alertAgent, sendAlert } from './send-alert.ts'

/**
 * Maximum number of events that one write expands into deliveries, so that calls wait only briefly for the
 * database.
 */
const SPREAD = 50
/** Time after which another node takes over sending from a node that has stopped. */
const SENDER_MS = 20_000
/** Time after which an attempt without an outcome counts as lost. */
const LOST_MS = 2 * ATTEMPT_MS

/** Receiver with the tag that identifies it. */
export interface TaggedTarget extends AlertTarget {
  readonly tag: string
}

/** Outcome of a batch of attempts at one receiver. */
export interface AlertOutcome {
  readonly delivered: number
  /** Attempts that failed and will be repeated. */
  readonly failed: number
  /** Alerts that will not be tried again. */
  readonly givenUp: number
  /** Reason of a failure; undefined if there was none. */
  readonly reason: string | undefined
}

/** Services that the sender needs. */
interface SenderParts {
  readonly rows: Pick<Rows, 'write'>
  /** Identifier of this node. */
  readonly node: string
  readonly onOutcome: (target: TaggedTarget, outcome: AlertOutcome) => void
  readonly onError: (error: unknown) => void
}

/**
 * Delivers alerts to their receivers while this node is the sender of the cluster. Each receiver has its own
 * queue, so that a slow one does not delay the others. Only deliveries under way are held in memory.
 */
export class AlertSender {
  readonly #parts: SenderParts
  readonly #agent: Agent = alertAgent(ATTEMPTS_AT_A_TIME)
  readonly #stopping = new AbortController()
  /** Deliveries under way, by the tag of the receiver. */
  readonly #lanes = new Map<string, Promise<void>>()
  /** Runs the writes of this node one after the other; PostgreSQL does not allow them at the same time. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(parts: SenderParts) {
    this.#parts = parts
  }

  /** Expands new events into deliveries, and starts the deliveries that are due. */
  async work(
    { isUnspread, due, isSenderElsewhere }: AlertWork,
    targets: readonly TaggedTarget[],
  ): Promise<void> {
    if (isSenderElsewhere || (!isUnspread && due.length === 0)) return
    for (let spread = SPREAD; spread === SPREAD && !this.#stopping.signal.aborted; ) {
      const given = await this.#inTurn((rows, nowMs) =>
        rows.write('spreadAlerts', {
          node: this.#parts.node,
          nowMs,
          untilMs: nowMs + SENDER_MS,
          targets: targets.map(({ tag, types }) => ({ tag, types })),
          limit: SPREAD,
        }),
      )
      if (given === null) return
      spread = given
      for (const target of targets) this.#startLane(target)
    }
  }

  /** Aborts attempts under way; they are repeated later. */
  async close(): Promise<void> {
    this.#stopping.abort()
    await Promise.all(this.#lanes.values())
    await this.#agent.destroy()
  }

  #startLane(target: TaggedTarget): void {
    const { tag } = target
    if (this.#lanes.has(tag)) return
    const lane = this.#run(target)
      .catch(this.#parts.onError)
      .finally(() => void this.#lanes.delete(tag))
    this.#lanes.set(tag, lane)
  }

  async #run(target: TaggedTarget): Promise<void> {
    const { tag } = target
    while (!this.#stopping.signal.aborted) {
      const alerts = await this.#inTurn((rows, nowMs) =>
        rows.write('claimAlerts', {
          node: this.#parts.node,
          nowMs,
          lostMs: nowMs + LOST_MS,
          tag,
          limit: ATTEMPTS_AT_A_TIME,
        }),
      )
      if (alerts.length === 0) return
      await this.#deliver(target, alerts)
    }
  }

  async #deliver(target: TaggedTarget, alerts: readonly DueAlert[]): Promise<void> {
    const { signal } = this.#stopping
    const reasons = await Promise.all(alerts.map((alert) => sendAlert(target, alert, this.#agent, signal)))
    const nowMs = Date.now()
    const over: string[] = []
    const failed: { id: string; dueMs: number }[] = []
    let delivered = 0
    for (const [index, { id, attempts, firstMs }] of alerts.entries()) {
      const dueMs = reasons[index] === undefined ? undefined : nextAttemptMs(attempts, firstMs, nowMs)
      if (reasons[index] === undefined) delivered += 1
      if (dueMs === undefined) over.push(id)
      // An attempt that this process aborted by stopping does not count as failed.
      else if (!signal.aborted) failed.push({ id, dueMs })
    }
    const givenUp = over.length - delivered
    await this.#inTurn((rows) => rows.write('noteAlerts', { tag: target.tag, over, failed }))
    const reason = reasons.find((one) => one !== undefined)
    if (!signal.aborted) this.#parts.onOutcome(target, { delivered, failed: failed.length, givenUp, reason })
  }

  #inTurn<Result>(write: (rows: Pick<Rows, 'write'>, nowMs: number) => Promise<Result>): Promise<Result> {
    const result = this.#turn.then(() => write(this.#parts.rows, Date.now()))
    this.#turn = result.catch(() => {})
    return result
  }
}
