import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Agent } from 'undici'
import type { AlertEvent } from '../domain/alert.ts'
import type { DueAlert } from '../store/operations/alert-outbox.ts'
import type { AlertOutcome, TaggedTarget } from './alert-sender.ts'
import { nextAttemptMs } from './retry-delay.ts'

/** Maximum number of alerts that wait for one receiver; beyond it the oldest are dropped. */
const MAX_WAITING = 16

/** Dependencies of `StorageAlerts`. */
interface StorageAlertsParts {
  /** Name of this node, as people see it. */
  readonly nodeName: string
  /** Error of a storage that cannot be written; undefined while it can be. */
  readonly failure: () => Error | undefined
  readonly onOutcome: (target: TaggedTarget, outcome: AlertOutcome) => void
}

/**
 * Informs receivers when the storage cannot be written, and when it can again. Both alerts are sent from
 * memory, because the outbox is in the storage. Each receiver gets them in order. Waiting alerts are lost
 * when the process stops.
 */
export class StorageAlerts {
  readonly #parts: StorageAlertsParts
  readonly #stopping = new AbortController()
  /** Alerts that wait for each receiver, by tag; the first is being sent. */
  readonly #waiting = new Map<string, DueAlert[]>()
  #agent: Agent | undefined
  #isFailureTold = false

  constructor(parts: StorageAlertsParts) {
    this.#parts = parts
  }

  /** Checks the storage. Call it once a second. */
  tick(targets: readonly TaggedTarget[]): void {
    for (const [tag, waiting] of this.#waiting)
      if (targets.every((target) => target.tag !== tag)) waiting.length = 0
    const failure = this.#parts.failure()
    if ((failure !== undefined) === this.#isFailureTold) return
    this.#isFailureTold = failure !== undefined
    const { nodeName: node } = this.#parts
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

  /** Aborts attempts under way. */
  async close(): Promise<void> {
    this.#stopping.abort()
    await this.#agent?.destroy()
  }

  #add(target: TaggedTarget, alert: DueAlert): void {
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

  async #send(target: TaggedTarget, waiting: DueAlert[]): Promise<void> {
    // Imported on demand: most gateways have no receivers.
    const { ATTEMPTS_AT_A_TIME, alertAgent, sendAlert } = await import('./send-alert.ts')
    const { signal } = this.#stopping
    const agent = (this.#agent ??= alertAgent(ATTEMPTS_AT_A_TIME))
    for (let [alert] = waiting; alert && !signal.aborted; [alert] = waiting) {
      const reason = await sendAlert(target, alert, agent, signal)
      if (signal.aborted) return
      const nowMs = Date.now()
      const dueMs = reason === undefined ? undefined : nextAttemptMs(alert.attempts, alert.firstMs, nowMs)
      const delivered = reason === undefined ? 1 : 0
      const failed = dueMs === undefined ? 0 : 1
      this.#parts.onOutcome(target, { delivered, failed, givenUp: 1 - delivered - failed, reason })
      if (dueMs === undefined) {
        waiting.shift()
        continue
      }
      waiting[0] = { ...alert, attempts: alert.attempts + 1 }
      await delay(dueMs - nowMs, undefined, { ref: false, signal })
    }
  }
}
