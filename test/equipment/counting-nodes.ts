import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { CountedLimit } from '../../src/limits/limit-counter.ts'
import { RedisPeers } from '../../src/limits/redis-peers.ts'
import { SharedCounter } from '../../src/limits/shared-counter.ts'

/** A node, reduced to its rate limits. */
export interface CountingNode {
  readonly peers: RedisPeers
  readonly counts: SharedCounter
}

/** Shares of the clients: nine in ten at one node, half of the rest at each of the others. */
const SPLIT = [90, 5, 5] as const

/** The result of many calls against a limit. */
export interface LimitStorm {
  /** When calls were admitted, ascending. */
  readonly admitted: number[]
  readonly longestWaitMs: number
}

/** Runs so many clients that call again and again, for so long. */
export async function limitStorm(
  nodes: readonly CountingNode[],
  counted: CountedLimit,
  clients: number,
  lastMs: number,
): Promise<LimitStorm> {
  const through: number[] = []
  let longestWaitMs = 0
  const endMs = performance.now() + lastMs
  const client = async ({ counts }: CountingNode): Promise<void> => {
    while (performance.now() < endMs) {
      const askedMs = performance.now()
      const { allowed, waitMs } = await counts.take(counted)
      const nowMs = performance.now()
      longestWaitMs = Math.max(longestWaitMs, nowMs - askedMs)
      if (allowed) through.push(nowMs)
      await sleep(allowed ? 5 : Math.max(5, Math.min(25, waitMs)))
    }
  }
  const all = nodes.flatMap((node, i) =>
    Array.from({ length: Math.round((clients * (SPLIT[i] ?? 0)) / 100) }, () => client(node)),
  )
  await Promise.all(all)
  return { admitted: through.toSorted((a, b) => a - b), longestWaitMs }
}

/** The largest number of calls within any interval of that length. */
export function maxWithin(through: readonly number[], windowMs: number): number {
  let max = 0
  let from = 0
  for (const [i, at] of through.entries()) {
    while (at - (through[from] ?? at) >= windowMs) from += 1
    max = Math.max(max, i - from + 1)
  }
  return max
}

/**
 * Three nodes that share their limits through this server; `onIsolated` is called for each call that is
 * counted without the others.
 */
export async function threeNodes(url: string, onIsolated: () => void): Promise<CountingNode[]> {
  const namespace = `test:${randomUUID()}`
  const nodes = [0, 1, 2].map((i) => {
    const peers = new RedisPeers({ url, namespace, node: `node ${i}`, onReachability: () => {} })
    return { peers, counts: new SharedCounter(peers, onIsolated) }
  })
  await untilConnected(nodes)
  return nodes
}

/** Resolves when each node knows of all others. */
export function untilConnected(nodes: readonly CountingNode[]): Promise<void> {
  const isMet = (): boolean =>
    nodes.every(({ peers }) => peers.isReachable && !peers.isRefilling && peers.nodes === nodes.length)
  return expect.poll(isMet).toBe(true)
}

/** Stops the nodes; the server may already be gone. */
export async function stopNodes(nodes: readonly CountingNode[]): Promise<void> {
  for (const { counts } of nodes) await counts.close()
  for (const { peers } of nodes) await peers.close()
}

/** A limit that no other test uses. */
export function uniqueLimit(max: number, windowMs: number): CountedLimit {
  return { name: 'key requests', subject: randomUUID(), max, windowMs }
}
