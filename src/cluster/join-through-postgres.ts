import { withTimeout } from '../domain/with-timeout.ts'
import { peersWithoutExchange, type SlotPeers, type SlotReport } from '../limits/peers.ts'
import { SharedRateCounter } from '../limits/shared-rate-counter.ts'
import { SharedSemaphore } from '../limits/semaphore.ts'
import { Announcements } from '../store/postgres/announcements.ts'
import { BankConnection } from '../store/postgres/bank-connection.ts'
import { ChangeFeed } from './change-feed.ts'
import type { BankNodes, Cluster, ClusterOptions } from './join-cluster.ts'
import { NodeReports } from './node-reports.ts'

/**
 * Connects the nodes on one PostgreSQL database. They receive each other's changes and count concurrent calls
 * together. Every other limit is divided equally among the nodes.
 */
export async function joinThroughPostgres(
  url: string,
  { node, messages }: ClusterOptions,
  { names }: BankNodes,
): Promise<Cluster> {
  const announcements = new Announcements(url, messages)
  const changes = new ChangeFeed(node, announcements)
  const rateCounter = new SharedRateCounter(peersWithoutExchange(() => names().length))
  const reports = new NodeReports(node, announcements, names)
  const slotPeers = new PostgresSlotPeers({ url, node, nodes: () => names().length })
  const semaphore = new SharedSemaphore(slotPeers)
  await announcements.firstAttempt
  return {
    rateCounter,
    semaphore,
    changes,
    reports,
    // Not announced through PostgreSQL, because that would take a statement for almost every call.
    limitAnnouncer: undefined,
    isRedisReachable: undefined,
    async close() {
      await Promise.all([rateCounter.close(), semaphore.close()])
      await slotPeers.close()
      changes.close()
      reports.close()
      await announcements.close()
    },
  }
}

/**
 * Interval of heartbeats. The database counts a node as running for three seconds after its last heartbeat.
 */
const HEARTBEAT_MS = 750
/**
 * Timeout for reserving slots of concurrent calls in the database. A call waits until the slot is reserved.
 */
const EXCHANGE_TIMEOUT_MS = 1_000
/**
 * Time in which all nodes report their concurrent calls again after the counts in the database were lost (a
 * new generation).
 */
const REFILLING_MS = 3_000

/** Settings for counting concurrent calls together with other nodes in PostgreSQL. */
interface PostgresSlotOptions {
  readonly url: string
  /** Name of this node. */
  readonly node: string
  /** Number of nodes, this one included. */
  readonly nodes: () => number
}

/**
 * Counts concurrent calls in tables of the shared database, over a separate connection. Connects at the first
 * call that has a limit of concurrent calls.
 */
class PostgresSlotPeers implements SlotPeers {
  readonly refreshMs = 20_000
  readonly #options: PostgresSlotOptions
  readonly #connection: BankConnection
  #generation: string | undefined
  #refillingUntilMs = Number.NEGATIVE_INFINITY
  #isReachable = true
  #heartbeat: NodeJS.Timeout | undefined
  #isSending = false

  constructor(options: PostgresSlotOptions) {
    this.#options = options
    this.#connection = new BankConnection(options.url, { hasRole: false })
  }

  get isReachable(): boolean {
    return this.#isReachable
  }

  get isRefilling(): boolean {
    return performance.now() < this.#refillingUntilMs
  }

  get nodes(): number {
    return Math.max(1, this.#options.nodes())
  }

  get generation(): string | undefined {
    return this.#generation
  }

  async exchangeSlots(subject: string, { held, want, max }: SlotReport): Promise<number | 'stale'> {
    this.#heartbeat ??= setInterval(() => void this.#beat(), HEARTBEAT_MS).unref()
    try {
      if (this.#generation === undefined) await this.#see()
      const values = [subject, this.#options.node, held, want, max, this.#generation]
      const granted = await this.#ask(
        'select call_places_take($1, $2, $3, $4, $5, $6)::text as value',
        values,
        'slots',
      )
      if (granted === null) {
        await this.#see()
        return 'stale'
      }
      return Number(granted)
    } catch (error) {
      // Later calls do not wait for the server again until it has answered a heartbeat.
      this.#isReachable = false
      throw error
    }
  }

  /** Removes this node from the list of nodes and closes the connection. */
  async close(): Promise<void> {
    clearInterval(this.#heartbeat)
    if (this.#heartbeat && this.#isReachable)
      await this.#ask('select call_node_gone($1)::text as value', [this.#options.node]).catch(() => {})
    await this.#connection.close()
  }

  async #beat(): Promise<void> {
    if (this.#isSending) return
    this.#isSending = true
    try {
      await this.#see()
      this.#isReachable = true
    } catch {
      this.#isReachable = false
    } finally {
      this.#isSending = false
    }
  }

  async #see(): Promise<void> {
    const generation =
      (await this.#ask('select call_node_seen($1) as value', [this.#options.node], 'seen')) ?? undefined
    if (this.#generation !== undefined && generation !== this.#generation)
      this.#refillingUntilMs = performance.now() + REFILLING_MS
    this.#generation = generation
  }

  async #ask(text: string, values: readonly unknown[], name?: string): Promise<string | null> {
    const rows = this.#connection.query<{ value: string | null }>(text, values, name)
    return (await withTimeout(rows, EXCHANGE_TIMEOUT_MS))[0]?.value ?? null
  }
}
