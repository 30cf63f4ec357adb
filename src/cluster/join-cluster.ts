import type { Announcer, ChangeFeed } from './change-feed.ts'
import { type Semaphore, LocalSemaphore } from '../limits/semaphore.ts'
import type { NodeReports } from './node-reports.ts'
import { type RateCounter, LocalRateCounter } from '../limits/rate-counter.ts'
import type { NodeMessages } from '../store/node-messages.ts'

/** Services that a node shares with the other nodes of its cluster. */
export interface Cluster {
  /** Counter of the rate limits. */
  readonly rateCounter: RateCounter
  /** Counter of concurrent calls. */
  readonly semaphore: Semaphore
  /** Changes made by other nodes; undefined if this process is alone. */
  readonly changes: ChangeFeed | undefined
  /** Requests reports from the other nodes; undefined if this process is alone. */
  readonly reports: NodeReports | undefined
  /** Announces what providers state about their rate limits; undefined if the nodes do not share that. */
  readonly limitAnnouncer: Announcer | undefined
  /** Returns whether the Redis server answers; undefined if no Redis server is configured. */
  readonly isRedisReachable: (() => boolean) | undefined
  close(): Promise<void>
}

/** Nodes that share one database and borrow quota from it. */
export interface BankNodes {
  /** Names of the nodes that have recently reported to the database. */
  readonly names: () => readonly string[]
}

export interface ClusterOptions {
  readonly redisUrl: string | undefined
  readonly databaseUrl: string
  /** Nodes on the shared database; undefined if this process is alone. */
  readonly others: BankNodes | undefined
  readonly messages: NodeMessages
  /** Identifier of the cluster, the same on all of its nodes. */
  readonly namespace: string
  /** Identifier of this node; on a shared database, its name there. */
  readonly node: string
  readonly log: { info(sentence: string): void; warn(sentence: string): void }
  /** Called for each request that only this node counted because Redis did not answer. */
  readonly onIsolated: () => void
}

/**
 * Connects this process with the others through Redis, or else through the shared database. Without both, it
 * works alone. Resolves once it is known whether the others can be reached.
 */
export async function joinCluster(options: ClusterOptions): Promise<Cluster> {
  const { redisUrl, databaseUrl, others } = options
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
