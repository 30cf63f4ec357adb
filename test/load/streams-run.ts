import { call } from '../fixtures/client.ts'
import { channel, plainConfiguration, priced } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { askStream } from '../fixtures/fixture.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { residentBytes } from '../fixtures/resident-memory.ts'
import { metricsOf } from '../operations/metrics-text.ts'
import { nextMessage, start } from './child.ts'
import type { ReadersOrder, ReadersResult } from './stream-readers.ts'

/** The number of earlier streams at once. */
const AT_ONCE = 50

/** Number, rate and duration of the streams. */
export interface StreamsPlan {
  readonly streams: number
  readonly eventsPerSecond: number
  readonly seconds: number
  /** Streams of one event that are sent before the measurement, so that the heap has grown; 0 by default. */
  readonly earlier?: number
}

/** The result of the streams. */
export interface StreamsReport extends ReadersResult {
  /** Peak of the resident memory samples, in megabytes. */
  readonly residentMb: number
  /** Kilobytes for each stream: the median of the second half of the time, minus the memory before. */
  readonly streamKb: number
  /** Calls that were charged as their upstream reported. */
  readonly charged: number
  /** Delay of the event loop, in milliseconds. */
  readonly loopLateMs: { readonly p99: number; readonly max: number }
}

/** Runs many paced streams at once through one gateway; upstream and readers are separate processes. */
export async function runStreams({
  streams,
  eventsPerSecond,
  seconds,
  earlier = 0,
}: StreamsPlan): Promise<StreamsReport> {
  const paceMs = 1000 / eventsPerSecond
  const events = Math.round(seconds * eventsPerSecond)
  const upstream = start(new URL('./paced-upstream.ts', import.meta.url), String(paceMs), String(events))
  const brief = start(new URL('./paced-upstream.ts', import.meta.url), '1', '1')
  const readers = start(new URL('./stream-readers.ts', import.meta.url))
  const baseUrlOf = async (child: typeof upstream): Promise<string> =>
    `http://127.0.0.1:${await nextMessage<number>(child)}/v1`
  const config = plainConfiguration(await baseUrlOf(upstream))
  const gateway = await startGateway({
    config: {
      ...config,
      models: { ...config.models, ...priced(['brief']) },
      channels: [...config.channels, channel('brief', await baseUrlOf(brief))],
    },
    env: { LOG_LEVEL: 'warn' },
  })
  const residentMbs: number[] = []
  let look: NodeJS.Timeout | undefined
  try {
    await inTurn(earlier, () => call(gateway.url, askStream('brief'), { key: 'ann' }))
    const beforeMb = residentBytes(gateway.pid) / 1e6
    look = setInterval(() => residentMbs.push(residentBytes(gateway.pid) / 1e6), 500)
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
      residentMb: Math.round(Math.max(...residentMbs)),
      streamKb: Math.round(((steadyMb(residentMbs) - beforeMb) * 1000) / streams),
      charged,
      loopLateMs: { p99: late('p99'), max: late('max') },
    }
  } finally {
    clearInterval(look)
    upstream.kill()
    brief.kill()
    readers.kill()
    await gateway.discard()
  }
}

/** Makes calls, a few at once. */
async function inTurn(count: number, one: () => Promise<unknown>): Promise<void> {
  for (let done = 0; done < count; done += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, one))
}

/** The median over the second half of the time. */
function steadyMb(samples: readonly number[]): number {
  const later = samples.slice(Math.floor(samples.length / 2)).toSorted((a, b) => a - b)
  return later[Math.floor(later.length / 2)] ?? 0
}
