import type { ChangeFeed } from './change-feed.ts'
import type { LimitCounter } from '../limits/limit-counter.ts'
import { LocalCounter } from '../limits/local-counter.ts'

/** What a node has in common with others. */
export interface Cluster {
  /** What limits count. */
  readonly limitCounter: LimitCounter
  /** What others change; undefined where there are none. */
  readonly changes: ChangeFeed | undefined
  /** Whether the Redis server answers; undefined where none is named. */
  readonly isRedisReachable: (() => boolean) | undefined
  close(): Promise<void>
}

/** How nodes find each other. */
export interface ClusterOptions {
  readonly redisUrl: string | undefined
  /** Of the database that nodes share; undefined where this one has its own. */
  readonly postgresUrl: string | undefined
  /** What this node and the others have in common, and nobody else. */
  readonly namespace: string
  /** This node. */
  readonly node: string
  readonly log: { info(sentence: string): void; warn(sentence: string): void }
  /** Hears of each request that was counted without the others, though they should have been asked. */
  readonly onIsolated: () => void
}

/**
 * Joins the others: through Redis, else through the database that they share, else there are none. Resolves
 * when it is known whether they can be reached.
 */
export async function joinCluster(options: ClusterOptions): Promise<Cluster> {
  const { redisUrl, postgresUrl } = options
  // Most gateways are alone, and should not carry what they never use.
  if (redisUrl !== undefined) {
    const { joinThroughRedis } = await import('./join-through-redis.ts')
    return joinThroughRedis(redisUrl, options)
  }
  if (postgresUrl !== undefined) {
    const { joinThroughPostgres } = await import('./join-through-postgres.ts')
    return joinThroughPostgres(postgresUrl, options)
  }
  return { limitCounter: new LocalCounter(), changes: undefined, isRedisReachable: undefined, close: async () => {} }
}
