import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { CountedLimit } from '../../src/limits/limit-counter.ts'
import type { Peers } from '../../src/limits/peers.ts'
import { type PeerTimes, RedisPeers } from '../../src/limits/redis-peers.ts'
import { SharedCounter } from '../../src/limits/shared-counter.ts'

/**
 * Timeouts of nodes that wait for Redis however slow this machine is, so that counts are exact. They do not
 * wait for a killed server, because its connections end.
 */
export const PATIENT: PeerTimes = { exchangeMs: 60_000, connectionMs: 60_000, refillingMs: 3_000 }

/** A node that only has rate limits. */
export interface CountingNode {
  readonly peers: RedisPeers
  readonly counts: SharedCounter
}

/**
 * Shares of the clients in percent: nine in ten at one node, half of the others at each of the other nodes.
 */
const SPLIT = [90, 5, 5] as const

/** An admitted call: the limit counted it at some moment between these two times in milliseconds. */
export interface AdmittedCall {
  readonly askedMs: number
  readonly admittedMs: number
}

/** The result of many calls against a limit. */
export interface LimitStorm {
  readonly admitted: readonly AdmittedCall[]
  readonly longestWaitMs: number
}

/**
 * Runs this number of clients, each calling repeatedly, for this number of milliseconds or until the event.
 */
export async function limitStorm(
  nodes: readonly CountingNode[],
  counted: CountedLimit,
  clients: number,
  until: number | Promise<unknown>,
): Promise<LimitStorm> {
  const admitted: AdmittedCall[] = []
  let longestWaitMs = 0
  const storm = { isOver: false }
  const end = typeof until === 'number' ? sleep(until) : until
  const ended = end.finally(() => (storm.isOver = true))
  const client = async ({ counts }: CountingNode): Promise<void> => {
    while (!storm.isOver) {
      const askedMs = performance.now()
      const { allowed, waitMs } = await counts.take(counted)
      const admittedMs = performance.now()
      longestWaitMs = Math.max(longestWaitMs, admittedMs - askedMs)
      if (allowed) admitted.push({ askedMs, admittedMs })
      await sleep(allowed ? 5 : Math.max(5, Math.min(25, waitMs)))
    }
  }
  const all = nodes.flatMap((node, i) =>
    Array.from({ length: Math.round((clients * (SPLIT[i] ?? 0)) / 100) }, () => client(node)),
  )
  await Promise.all([ended, ...all])
  return { admitted, longestWaitMs }
}

/** The largest number of calls that were certainly counted within one interval of this length. */
export function maxWithin(admitted: readonly AdmittedCall[], windowMs: number): number {
  const starts = admitted.map(({ askedMs }) => askedMs).toSorted((a, b) => a - b)
  const ends = admitted.map(({ admittedMs }) => admittedMs).toSorted((a, b) => a - b)
  let max = 0
  let within = 0
  for (const [earlier, startMs] of starts.entries()) {
    while ((ends[within] ?? Number.POSITIVE_INFINITY) < startMs + windowMs) within += 1
    max = Math.max(max, within - earlier)
  }
  return max
}

/**
 * Three nodes that share their limits through this server, with patient timeouts or those of the program.
 * `nowMs` is their clock.
 */
export async function threeNodes(
  url: string,
  { isPatient = true, nowMs = () => performance.now() } = {},
): Promise<CountingNode[]> {
  const namespace = `test:${randomUUID()}`
  const names = [0, 1, 2].map((i) => `node ${i}`)
  const nodes = names.map((_, i) => {
    const options = { url, namespace, node: `node ${i}`, names: () => names, onReachability: () => {} }
    const peers = new RedisPeers(isPatient ? { ...options, times: PATIENT } : options)
    return { peers, counts: isPatient ? patientCounter(peers, nowMs) : new SharedCounter(peers) }
  })
  await untilConnected(nodes)
  return nodes
}

/** A counter whose calls wait for the other nodes however slow this machine is. */
export function patientCounter(peers: Peers, nowMs = () => performance.now()): SharedCounter {
  return new SharedCounter(peers, () => {}, nowMs, PATIENT.exchangeMs)
}

/** Resolves when each node knows all others. */
export function untilConnected(nodes: readonly CountingNode[]): Promise<void> {
  const isMet = (): boolean =>
    nodes.every(({ peers }) => peers.isReachable && !peers.isRefilling && peers.nodes === nodes.length)
  return expect.poll(isMet).toBe(true)
}

/** Stops the nodes; the server may already have stopped. */
export async function stopNodes(nodes: readonly CountingNode[]): Promise<void> {
  for (const { counts } of nodes) await counts.close()
  for (const { peers } of nodes) await peers.close()
}

/** A limit that no other test uses. */
export function uniqueLimit(max: number, windowMs: number): CountedLimit {
  return { name: 'key requests', subject: randomUUID(), max, windowMs }
}
