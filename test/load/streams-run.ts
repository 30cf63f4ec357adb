import { readFileSync } from 'node:fs'
import { plainConfiguration } from '../equipment/configuration.ts'
import { databaseOf } from '../equipment/database.ts'
import { startGateway } from '../equipment/gateway.ts'
import { said, start } from './child.ts'
import type { ReadersOrder, ReadersResult } from './stream-readers.ts'

/** How many streams, for how long. */
export interface StreamsPlan {
  readonly streams: number
  readonly eventsPerSecond: number
  readonly seconds: number
}

/** What they came to. */
export interface StreamsReport extends ReadersResult {
  /** The most that was resident at any look, in megabytes. */
  readonly residentMb: number
  /** Calls that were charged what their upstream reported. */
  readonly charged: number
}

/** Many paced streams at once through one gateway; upstream and readers are processes of their own. */
export async function runStreams({ streams, eventsPerSecond, seconds }: StreamsPlan): Promise<StreamsReport> {
  const paceMs = 1000 / eventsPerSecond
  const events = Math.round(seconds * eventsPerSecond)
  const upstream = start(new URL('./paced-upstream.ts', import.meta.url), String(paceMs), String(events))
  const readers = start(new URL('./stream-readers.ts', import.meta.url))
  const port = await said<number>(upstream)
  const gateway = await startGateway({
    config: plainConfiguration(`http://127.0.0.1:${port}/v1`),
    env: { LOG_LEVEL: 'warn' },
  })
  let residentMb = 0
  const look = setInterval(() => {
    residentMb = Math.max(residentMb, residentOf(gateway.pid))
  }, 500)
  try {
    const order: ReadersOrder = {
      port: gateway.port,
      key: 'ann',
      streams,
      rampMs: Math.min(5_000, seconds * 250),
      paceMs,
    }
    const result = said<ReadersResult>(readers)
    readers.send(order)
    const seen = await result
    const charged = databaseOf(gateway.dataDir)
      .usage()
      .filter(({ quota, reason }) => reason === 'complete' && quota === 5 + 4 * events).length
    return { ...seen, residentMb, charged }
  } finally {
    clearInterval(look)
    upstream.kill()
    readers.kill()
    await gateway.discard()
  }
}

function residentOf(pid: number): number {
  try {
    return (Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024) / 1e6
  } catch {
    return 0
  }
}
