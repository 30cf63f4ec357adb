import process from 'node:process'
import { bodyOf } from '../../load/requests.ts'
import type { Behaviour } from '../../load/wire.ts'
import { type ClientName, CLIENTS, type MeasuredClient } from './clients.ts'

/** A measurement of one client against an upstream. */
export interface DriveOrder {
  readonly client: ClientName
  readonly port: number
  readonly behaviour: Behaviour
  /** Approximate size of each request in bytes. */
  readonly bytes: number
  readonly connections: number
  /** Total number of requests; for lasting streams, the milliseconds of the measurement instead. */
  readonly requests?: number
  readonly windowMs?: number
}

/** The result of an order. */
export interface Driven {
  /** CPU time of this process. */
  readonly cpuMicros: number
  /** Requests that were answered completely, or pieces of streams that arrived. */
  readonly units: number
  readonly failed: number
}

let client: MeasuredClient | undefined

/** Sends each request when the previous one is answered. */
function saturate(to: MeasuredClient, order: DriveOrder, body: Buffer): Promise<Driven> {
  const { requests = 0, connections } = order
  const { promise, resolve } = Promise.withResolvers<Driven>()
  const before = process.cpuUsage()
  let sent = 0
  let ended = 0
  let failed = 0
  const end = (isWhole: boolean): void => {
    ended += 1
    if (!isWhole) failed += 1
    if (sent < requests) next()
    else if (ended === requests) resolve({ cpuMicros: spentSince(before), units: requests, failed })
  }
  const next = (): void => {
    sent += 1
    let status = 0
    let bytes = 0
    to.post(body, {
      onHead: (head) => void (status = head.status),
      onData: (chunk) => void (bytes += chunk.length),
      onEnd: () => end(status === 200 && bytes > 0),
      onError: () => end(false),
    })
  }
  for (let i = 0; i < connections; i++) next()
  return promise
}

/** Counts the pieces of streams for some time; the upstream ends the streams afterwards. */
async function observe(to: MeasuredClient, order: DriveOrder, body: Buffer): Promise<Driven> {
  let pieces = 0
  let failed = 0
  let ended = 0
  const begun = Promise.withResolvers<void>()
  const over = Promise.withResolvers<void>()
  let heads = 0
  for (let i = 0; i < order.connections; i++)
    to.post(body, {
      onHead: () => void (++heads === order.connections && begun.resolve()),
      onData: () => void (pieces += 1),
      onEnd: () => void (++ended === order.connections && over.resolve()),
      onError: () => void (failed += 1),
    })
  await begun.promise
  const before = process.cpuUsage()
  const piecesBefore = pieces
  await new Promise((resolve) => setTimeout(resolve, order.windowMs))
  const driven = { cpuMicros: spentSince(before), units: pieces - piecesBefore, failed }
  process.send?.('observed')
  await over.promise
  return driven
}

function spentSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return user + system
}

async function drive(order: DriveOrder): Promise<void> {
  const { behaviour, bytes } = order
  client ??= CLIENTS[order.client](`http://127.0.0.1:${order.port}`)
  const body = Buffer.from(
    bodyOf({ method: 'POST', client: 'chat', upstream: 'chat', behaviour, bytes }, 'chat'),
  )
  const driven = await (order.requests === undefined ? observe : saturate)(client, order, body)
  process.send?.(driven)
}

process.on('message', (order) => void drive(order as DriveOrder))
process.on('disconnect', () => process.exit())
process.send?.('ready')
