import type { Changes } from './changes.ts'
import type { Counts } from '../limits/counts.ts'
import { OwnCounts } from '../limits/own-counts.ts'

/** What a node has in common with others. */
export interface Nodes {
  /** What limits count. */
  readonly counts: Counts
  /** What others change; undefined where there are none. */
  readonly changes: Changes | undefined
  /** Whether the Redis server answers; undefined where none is named. */
  readonly isRedisThere: (() => boolean) | undefined
  close(): Promise<void>
}

/** How nodes find each other. */
export interface NodesOptions {
  readonly redisUrl: string | undefined
  /** Of the database that nodes share; undefined where this one has its own. */
  readonly postgresUrl: string | undefined
  /** What this node and the others have in common, and nobody else. */
  readonly namespace: string
  /** This node. */
  readonly node: string
  readonly log: { info(sentence: string): void; warn(sentence: string): void }
  /** Hears of each request that was counted without the others, though they should have been asked. */
  readonly onAlone: () => void
}

/**
 * Joins the others: through Redis, else through the database that they share, else there are none. Resolves
 * when it is known whether they can be reached.
 */
export async function joinNodes(options: NodesOptions): Promise<Nodes> {
  const { redisUrl, postgresUrl } = options
  // Most gateways are alone, and should not carry what they never use.
  if (redisUrl !== undefined) {
    const { joinThroughRedis } = await import('./through-redis.ts')
    return joinThroughRedis(redisUrl, options)
  }
  if (postgresUrl !== undefined) {
    const { joinThroughPostgres } = await import('./through-postgres.ts')
    return joinThroughPostgres(postgresUrl, options)
  }
  return { counts: new OwnCounts(), changes: undefined, isRedisThere: undefined, close: async () => {} }
}
