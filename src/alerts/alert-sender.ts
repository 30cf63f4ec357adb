import { createHmac } from 'node:crypto'
import { Agent, request } from 'undici'
import { type AlertTarget, mailAddresses } from '../domain/alert.ts'
import type { SmtpOptions } from '../domain/options.ts'
import type { PendingAlerts, DueAlert } from '../store/operations/alerts.ts'
import type { RowStore } from '../store/store.ts'
import { packageVersion } from '../domain/version.ts'
import { CHAT_BODIES } from './alert-formats.ts'
import { alertText } from './alert-text.ts'
import { lookupBlockingMetadata } from '../upstreams/lookup-blocking-metadata.ts'

/** Maximum number of concurrent attempts to deliver alerts to one receiver. */
export const MAX_CONCURRENT_ATTEMPTS = 16
/** Timeout of an attempt to deliver an alert. Standard Webhooks advises 15 to 30 seconds. */
const ATTEMPT_MS = 15_000
const CONNECT_MS = 5_000
/** Maximum number of response bytes that are read so that the connection can be reused. */
const MAX_RESPONSE_BYTES = 16_384
/**
 * Maximum number of events that one database write assigns to receivers. It is small, so that calls wait only
 * briefly for the database.
 */
const SPREAD = 50
/** Time after which another node takes over sending from a node that has stopped. */
const SENDER_MS = 20_000
/** Time after which an attempt to deliver an alert counts as lost if its outcome was not recorded. */
const LOST_MS = 2 * ATTEMPT_MS
/** Maximum number of mails whose refused addresses are remembered. Others are sent again to all their addresses. */
const MAX_PARTLY_REFUSED = 1_000

/** A receiver of alerts, with the tag that identifies it. */
export interface TaggedAlertReceiver extends AlertTarget {
  readonly tag: string
}

/** Outcome of a batch of attempts at one receiver. */
export interface AlertOutcome {
  readonly delivered: number
  /** Number of attempts that failed and will be repeated. */
  readonly failed: number
  /** Number of alerts whose last attempt failed, so that they are dropped. */
  readonly givenUp: number
  /** Why one of the attempts failed, entirely or for some addresses; undefined if none did. */
  readonly reason: string | undefined
  /** The last attempt of the batch. */
  readonly last: AlertAttempt
}

/** An attempt to deliver an alert. */
export interface AlertAttempt {
  readonly type: string
  /** HTTP status of the response; null without one. */
  readonly status: number | null
  /** Why the attempt failed, entirely or for some addresses; undefined if the receiver accepted the alert. */
  readonly reason: string | undefined
  /** The addresses that still need a mail that others have got; those that its server refuses for good do not. */
  readonly refused?: readonly string[]
}

/** Whether a receiver has an alert, at all addresses that can get it. */
export function isDelivered({ reason, refused }: AlertAttempt): boolean {
  return reason === undefined || refused?.length === 0
}

/** Services that the sender needs. */
interface SenderDependencies {
  readonly rows: Pick<RowStore, 'write'>
  /** Identifier of this node. */
  readonly node: string
  readonly onOutcome: (target: TaggedAlertReceiver, outcome: AlertOutcome) => void
  /** The mail server of the present configuration. */
  readonly smtp: () => SmtpOptions | undefined
  readonly onError: (error: unknown) => void
}

/**
 * Delivers alerts to their receivers while this node is the sender of the cluster. Each receiver has its own
 * queue, so that a slow one does not delay the others. Only deliveries under way are held in memory.
 */
export class AlertSender {
  readonly #dependencies: SenderDependencies
  readonly #agent: Agent = createAlertAgent(MAX_CONCURRENT_ATTEMPTS)
  readonly #stopping = new AbortController()
  /** The delivery in progress for each receiver, by the receiver's tag. */
  readonly #lanes = new Map<string, Promise<void>>()
  /** The addresses that still need a mail that others have got, by receiver and alert. */
  readonly #refused = new Map<string, readonly string[]>()
  /** Runs the writes of this node one after the other; PostgreSQL does not allow them at the same time. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(dependencies: SenderDependencies) {
    this.#dependencies = dependencies
  }

  /** Expands new events into deliveries, and starts the deliveries that are due. */
  async work(
    { hasUnassigned, due, isSenderElsewhere }: PendingAlerts,
    targets: readonly TaggedAlertReceiver[],
  ): Promise<void> {
    if (isSenderElsewhere || (!hasUnassigned && due.length === 0)) return
    for (let spread = SPREAD; spread === SPREAD && !this.#stopping.signal.aborted; ) {
      const given = await this.#inTurn((rows, nowMs) =>
        rows.write('assignAlerts', {
          node: this.#dependencies.node,
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

  /** Aborts the attempts in progress; they are repeated later. */
  async close(): Promise<void> {
    this.#stopping.abort()
    await Promise.all(this.#lanes.values())
    await this.#agent.destroy()
  }

  #startLane(target: TaggedAlertReceiver): void {
    const { tag } = target
    if (this.#lanes.has(tag)) return
    const lane = this.#run(target)
      .catch(this.#dependencies.onError)
      .finally(() => void this.#lanes.delete(tag))
    this.#lanes.set(tag, lane)
  }

  async #run(target: TaggedAlertReceiver): Promise<void> {
    const { tag } = target
    while (!this.#stopping.signal.aborted) {
      const alerts = await this.#inTurn((rows, nowMs) =>
        rows.write('claimAlerts', {
          node: this.#dependencies.node,
          nowMs,
          lostMs: nowMs + LOST_MS,
          tag,
          limit: MAX_CONCURRENT_ATTEMPTS,
        }),
      )
      if (alerts.length === 0) return
      await this.#deliver(target, alerts)
    }
  }

  async #deliver(target: TaggedAlertReceiver, alerts: readonly DueAlert[]): Promise<void> {
    const { signal } = this.#stopping
    const attempts = await Promise.all(
      alerts.map(async (alert) => {
        const key = `${target.tag} ${alert.id}`
        const smtp = this.#dependencies.smtp()
        const attempt = await sendAlert(target, alert, this.#agent, signal, smtp, this.#refused.get(key))
        if (isDelivered(attempt)) this.#refused.delete(key)
        else if (attempt.refused) this.#refused.set(key, attempt.refused)
        const [oldest] = this.#refused.keys()
        if (this.#refused.size > MAX_PARTLY_REFUSED && oldest !== undefined) this.#refused.delete(oldest)
        return attempt
      }),
    )
    const done = attempts.map(isDelivered)
    const nowMs = Date.now()
    const over: string[] = []
    const failed: { id: string; dueMs: number }[] = []
    const delivered = done.filter(Boolean).length
    for (const [index, { id, attempts, firstMs }] of alerts.entries()) {
      const dueMs = done[index] ? undefined : nextAttemptMs(attempts, firstMs, nowMs)
      if (dueMs === undefined) over.push(id)
      // An attempt aborted because this process stops is not counted as failed.
      else if (!signal.aborted) failed.push({ id, dueMs })
    }
    const givenUp = over.length - delivered
    await this.#inTurn((rows) => rows.write('recordAlertResults', { tag: target.tag, over, failed }))
    const reason = attempts.find((one) => one.reason !== undefined)?.reason
    const last = attempts.at(-1)
    if (!signal.aborted && last)
      this.#dependencies.onOutcome(target, { delivered, failed: failed.length, givenUp, reason, last })
  }

  #inTurn<Result>(write: (rows: Pick<RowStore, 'write'>, nowMs: number) => Promise<Result>): Promise<Result> {
    const result = this.#turn.then(() => write(this.#dependencies.rows, Date.now()))
    this.#turn = result.catch(() => {})
    return result
  }
}

/**
 * HTTP agent for receivers of alerts, with at most `connections` connections to each. Addresses may be
 * private, because gateway.yaml names them. Addresses of metadata services are refused, whichever name
 * resolves to them.
 */
export function createAlertAgent(connections: number): Agent {
  return new Agent({
    allowH2: false,
    connections,
    maxHeaderSize: 16_384,
    headersTimeout: ATTEMPT_MS,
    bodyTimeout: ATTEMPT_MS,
    connect: { timeout: CONNECT_MS, lookup: lookupBlockingMetadata },
  })
}

/**
 * Makes one attempt to deliver an alert: signed as Standard Webhooks describes, as a message of a chat, or as
 * a mail, which goes only to the addresses of `rest` if others have got it. Never rejects. A redirect counts as a failure
 * and is not followed, because it could lead to any address.
 */
export async function sendAlert(
  target: AlertTarget,
  alert: DueAlert,
  agent: Agent,
  signal: AbortSignal,
  smtp: SmtpOptions | undefined,
  rest?: readonly string[],
): Promise<AlertAttempt> {
  const { type } = alert
  const addresses = rest ?? mailAddresses(target.url)
  const attempt = AbortSignal.any([signal, AbortSignal.timeout(ATTEMPT_MS)])
  try {
    if (addresses) return await sendMail(addresses, rest !== undefined, alert, smtp, attempt)
    const response = await request(target.url, {
      method: 'POST',
      dispatcher: agent,
      signal: attempt,
      ...messageOf(target, alert),
    })
    response.body.on('error', () => {})
    await response.body.dump({ limit: MAX_RESPONSE_BYTES }).catch(() => {})
    const { statusCode: status } = response
    const reason = status >= 200 && status < 300 ? undefined : `it responded ${status}`
    return { type, status, reason }
  } catch (error) {
    return { type, status: null, reason: reasonOf(error) }
  }
}

async function sendMail(
  addresses: readonly string[],
  haveOthersGotIt: boolean,
  { id, type, data }: DueAlert,
  smtp: SmtpOptions | undefined,
  signal: AbortSignal,
): Promise<AlertAttempt> {
  if (smtp === undefined) return { type, status: null, reason: 'options.smtp names no mail server' }
  // Imported on demand, because few receivers are mail addresses.
  const { sendAlertMail } = await import('./alert-mail.ts')
  const refusals = await sendAlertMail(addresses, id, alertText(type, data), smtp, signal)
  if (refusals.length === 0) return { type, status: null, reason: undefined }
  const reason = `it refused ${refusals.length} of ${addresses.length} addresses`
  // Until an address has got the mail, every refusal may be a mistake of the server.
  if (!haveOthersGotIt && refusals.length === addresses.length) return { type, status: null, reason }
  const gone = refusals.flatMap(({ permanent, recipient }) => (permanent && recipient ? [recipient] : []))
  const refused = refusals.flatMap(({ recipient }) =>
    recipient && !gone.includes(recipient) ? [recipient] : [],
  )
  const forGood = gone.length === 0 ? '' : `, ${gone.join(', ')} for good`
  return { type, status: null, reason: reason + forGood, refused }
}

function messageOf(
  { format, secret }: AlertTarget,
  alert: DueAlert,
): { headers: Record<string, string>; body: string } {
  const headers = { 'content-type': 'application/json', 'user-agent': `sluice/${packageVersion()}` }
  if (format !== 'standard')
    return { headers, body: JSON.stringify(CHAT_BODIES[format](alertText(alert.type, alert.data))) }
  const body = bodyOf(alert)
  const sent = new Date()
  const seconds = Math.floor(sent.getTime() / 1000)
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const signature = createHmac('sha256', key).update(`${alert.id}.${seconds}.${body}`).digest('base64')
  const signed = {
    'webhook-id': alert.id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': `v1,${signature}`,
  }
  return { headers: { ...headers, ...signed }, body }
}

function bodyOf({ type, createdMs, data }: DueAlert): string {
  const [written, at] = [JSON.stringify(type), JSON.stringify(new Date(createdMs).toISOString())]
  return `{"type":${written},"timestamp":${at},"data":${data}}`
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'it cannot be reached'
  if (error.name === 'TimeoutError') return `it did not answer within ${ATTEMPT_MS / 1000} seconds`
  return `it cannot be reached (${'code' in error ? String(error.code) : error.name})`
}

/** Delay before the second attempt to deliver an alert. It doubles before each further attempt. */
const FIRST_MS = 5_000
/** Maximum delay between two attempts to deliver an alert. */
const MAX_MS = 3_600_000
/** Maximum time from the first attempt to deliver an alert to the last one. */
const GIVE_UP_MS = 86_400_000

/**
 * Time of the next attempt, in Unix milliseconds; undefined if the last attempt was made. `attempts` is the
 * number of failed attempts.
 */
export function nextAttemptMs(attempts: number, firstMs: number, nowMs: number): number | undefined {
  const endMs = firstMs + GIVE_UP_MS
  if (nowMs >= endMs) return undefined
  const delayMs = Math.min(FIRST_MS * 2 ** (attempts - 1), MAX_MS)
  return Math.min(nowMs + delayMs, endMs)
}
