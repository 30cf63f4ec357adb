import { plainConfiguration } from '../equipment/configuration.ts'
import { databaseOf } from '../equipment/database.ts'
import { startGateway } from '../equipment/gateway.ts'
import { residentBytes } from '../equipment/resident-memory.ts'
import { metricsOf } from '../operations/metrics-text.ts'
import { nextMessage, start } from './child.ts'
import type { ReadersOrder, ReadersResult } from './stream-readers.ts'

/** Number, rate and duration of the streams. */
export interface StreamsPlan {
  readonly streams: number
  readonly eventsPerSecond: number
  readonly seconds: number
}

/** The result of the streams. */
export interface StreamsReport extends ReadersResult {
  /** Peak of the resident memory samples, in megabytes. */
  readonly residentMb: number
  /** Calls that were charged as their upstream reported. */
  readonly charged: number
  /** Delay of the event loop, in milliseconds. */
  readonly loopLateMs: { readonly p99: number; readonly max: number }
}

/** Runs many paced streams at once through one gateway; upstream and readers are processes of their own. */
export async function runStreams({ streams, eventsPerSecond, seconds }: StreamsPlan): Promise<StreamsReport> {
  const paceMs = 1000 / eventsPerSecond
  const events = Math.round(seconds * eventsPerSecond)
  const upstream = start(new URL('./paced-upstream.ts', import.meta.url), String(paceMs), String(events))
  const readers = start(new URL('./stream-readers.ts', import.meta.url))
  const port = await nextMessage<number>(upstream)
  const gateway = await startGateway({
    config: plainConfiguration(`http://127.0.0.1:${port}/v1`),
    env: { LOG_LEVEL: 'warn' },
  })
  let residentMb = 0
  const look = setInterval(() => {
    residentMb = Math.max(residentMb, residentBytes(gateway.pid) / 1e6)
  }, 500)
  try {
    const order: ReadersOrder = {
      port: gateway.port,
      key: 'ann',
      streams,
      rampMs: Math.min(Math.max(5_000, 2 * streams), seconds * 250),
      paceMs,
    }
    const result = nextMessage<ReadersResult>(readers)
    readers.send(order)
    const seen = await result
    const page = await metricsOf(gateway.url)
    const late = (which: string): number =>
      Math.round(page.sum(`sluice_event_loop_delay_${which}_seconds`) * 1000)
    const charged = databaseOf(gateway.dataDir)
      .usage()
      .filter(({ quota, reason }) => reason === 'complete' && quota === 5 + 4 * events).length
    return {
      ...seen,
      residentMb: Math.round(residentMb),
      charged,
      loopLateMs: { p99: late('p99'), max: late('max') },
    }
  } finally {
    clearInterval(look)
    upstream.kill()
    readers.kill()
    await gateway.discard()
  }
}
