import type { Announcer, ChangeFeed } from './change-feed.ts'
import type { Workers } from './join-through-owner.ts'
import { type Semaphore, LocalSemaphore } from '../limits/semaphore.ts'
import type { NodeReports } from './node-reports.ts'
import { type RateCounter, LocalRateCounter } from '../limits/rate-counter.ts'
import type { NodeMessages } from '../store/node-messages.ts'

/** Services that a node shares with the other nodes of its cluster. */
export interface Cluster {
  /** Counter of the rate limits. */
  readonly rateCounter: RateCounter
  /** Counter of calls under way. */
  readonly semaphore: Semaphore
  /** Changes made by other nodes; undefined if there cannot be any. */
  readonly changes: ChangeFeed | undefined
  /** Reports of the other nodes, on request; undefined if there cannot be any. */
  readonly reports: NodeReports | undefined
  /** Announces limits of providers; undefined where the nodes do not share them. */
  readonly limitAnnouncer: Announcer | undefined
  /** Whether the Redis server answers; undefined if none is configured. */
  readonly isRedisReachable: (() => boolean) | undefined
  close(): Promise<void>
}

/** Nodes that borrow from one bank. */
export interface BankNodes {
  /** Names of the running nodes, by their reports to the bank. */
  readonly names: () => readonly string[]
}

/** Input of `joinCluster`. */
export interface ClusterOptions {
  readonly redisUrl: string | undefined
  readonly databaseUrl: string
  /** Nodes on the shared database, or workers of this machine; undefined if this process is alone. */
  readonly others: BankNodes | Workers | undefined
  readonly messages: NodeMessages
  /** Identifier of the cluster, the same on all of its nodes. */
  readonly namespace: string
  /** Identifier of this node: its name in the bank, if there is one. */
  readonly node: string
  readonly log: { info(sentence: string): void; warn(sentence: string): void }
  /** Called for each request counted without the other nodes because Redis did not answer. */
  readonly onIsolated: () => void
}

/**
 * Joins the workers of this machine, or the cluster through Redis, or else through the shared database;
 * without any of them, the node is alone. Resolves once it is known whether the other nodes can be reached.
 */
export async function joinCluster(options: ClusterOptions): Promise<Cluster> {
  const { redisUrl, databaseUrl, others } = options
  if (others && 'link' in others) {
    const { joinThroughOwner } = await import('./join-through-owner.ts')
    return joinThroughOwner(others, options.node)
  }
  // Loaded on demand: most gateways run alone and should not load the other modules.
  if (redisUrl !== undefined) {
    const { joinThroughRedis } = await import('./join-through-redis.ts')
    return joinThroughRedis(redisUrl, options, others)
  }
  if (others) {
    const { joinThroughPostgres } = await import('./join-through-postgres.ts')
    return joinThroughPostgres(databaseUrl, options, others)
  }
  return {
    rateCounter: new LocalRateCounter(),
    semaphore: new LocalSemaphore(),
    changes: undefined,
    reports: undefined,
    limitAnnouncer: undefined,
    isRedisReachable: undefined,
    close: async () => {},
  }
}
