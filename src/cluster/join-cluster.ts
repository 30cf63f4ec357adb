import type { ChangeFeed } from './change-feed.ts'
import type { Workers } from './join-through-owner.ts'
import { type CallPlaces, LocalPlaces } from '../limits/call-places.ts'
import type { NodeReports } from './node-reports.ts'
import type { LimitCounter } from '../limits/limit-counter.ts'
import { LocalCounter } from '../limits/local-counter.ts'

/** Services that a node shares with the other nodes of its cluster. */
export interface Cluster {
  /** Counter of the rate limits. */
  readonly limitCounter: LimitCounter
  /** Counter of the calls under way. */
  readonly callPlaces: CallPlaces
  /** Changes by other nodes; undefined where there can be none. */
  readonly changes: ChangeFeed | undefined
  /** Texts of the other nodes, on request; undefined where there can be none. */
  readonly reports: NodeReports | undefined
  /** Whether the Redis server answers; undefined where none is configured. */
  readonly isRedisReachable: (() => boolean) | undefined
  close(): Promise<void>
}

/** Input of `joinCluster`. */
export interface ClusterOptions {
  readonly redisUrl: string | undefined
  /** Shared database; undefined where this node has its own. */
  readonly postgresUrl: string | undefined
  /** Workers of this machine, of which this process is one. */
  readonly workers?: Workers | undefined
  /** Identifies the cluster: the same on all of its nodes. */
  readonly namespace: string
  /** Identifies this node. */
  readonly node: string
  readonly log: { info(sentence: string): void; warn(sentence: string): void }
  /** Called for each request that was counted without the other nodes because Redis did not answer. */
  readonly onIsolated: () => void
}

/**
 * Joins the workers of this machine, or the cluster through Redis, else through the shared database; without
 * any of them, the node is alone. Resolves when it is known whether the other nodes can be reached.
 */
export async function joinCluster(options: ClusterOptions): Promise<Cluster> {
  const { redisUrl, postgresUrl, workers } = options
  if (workers) {
    const { joinThroughOwner } = await import('./join-through-owner.ts')
    return joinThroughOwner(workers, options.node)
  }
  // Most gateways run alone, and should not load what they never use.
  if (redisUrl !== undefined) {
    const { joinThroughRedis } = await import('./join-through-redis.ts')
    return joinThroughRedis(redisUrl, options)
  }
  if (postgresUrl !== undefined) {
    const { joinThroughPostgres } = await import('./join-through-postgres.ts')
    return joinThroughPostgres(postgresUrl, options)
  }
  return {
    limitCounter: new LocalCounter(),
    callPlaces: new LocalPlaces(),
    changes: undefined,
    reports: undefined,
    isRedisReachable: undefined,
    close: async () => {},
  }
}
