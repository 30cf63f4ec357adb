import { randomUUIDv7 } from 'node:crypto'
import { z } from 'zod'
import type { Channel } from '../domain/channel.ts'
import { GatewayError } from '../errors.ts'
import { OperatorHold } from '../ledger/operator-hold.ts'
import { readUpstreamError } from '../protocols/upstream-error.ts'
import type { Upstreams } from '../upstreams/http.ts'
import { redact } from '../upstreams/redact.ts'
import { findChannel } from './find-channel.ts'
import type { AdministrationParts } from './parts.ts'
import { testRequest } from './test-request.ts'

/** The longest that a test may take; a channel's own time-out, where that is shorter. */
const PATIENCE_MS = 30_000
/** Of an answer, what is read. */
const MOST_BYTES = 65_536
const LONGEST_MESSAGE = 1000

/** How a test went; `time` is in seconds. */
export const testResult = z.object({ success: z.boolean(), message: z.string(), time: z.number() })

/** The model that a test asks for. */
export const testQuery = z.object({
  model: z.string().max(200, { error: 'expected at most 200 characters' }).optional(),
})

/**
 * Asks a channel's upstream for one token with the channel's first key, whether or not the channel is enabled. Nobody is
 * charged. How long it took, and when, is kept with a channel that was set over HTTP.
 */
export async function testChannel(
  parts: AdministrationParts,
  { id, model }: { readonly id: number; readonly model: string | undefined },
): Promise<z.output<typeof testResult>> {
  const { store, inForce, upstreams, nowMs } = parts
  const found = await findChannel(parts, id)
  const channel = 'stored' in found ? inForce.storedChannel(found.stored.name) : found.declared
  if (!channel) {
    throw new GatewayError('invalid_request', 'this channel cannot be in force beside gateway.yaml')
  }
  const preferred = 'stored' in found ? found.stored.family['test_model'] : undefined
  const asked = model || (typeof preferred === 'string' && preferred) || channel.models[0] || ''
  const startedMs = performance.now()
  const failure = await failureOf(upstreams, channel, asked, nowMs())
  const tookMs = Math.round(performance.now() - startedMs)
  if ('stored' in found) {
    const testTime = Math.floor(nowMs() / 1000)
    await store.write('noteChannelTest', { id, testTime, responseMs: tookMs })
  }
  return { success: failure === undefined, message: failure ?? '', time: tookMs / 1000 }
}

/** What is wrong with the upstream, in words that tell neither its key nor its address; undefined if it answers. */
function failureOf(
  upstreams: Upstreams,
  channel: Channel,
  model: string,
  startedMs: number,
): Promise<string | undefined> {
  const hold = new OperatorHold({
    id: randomUUIDv7(),
    model,
    channel: channel.name,
    group: '',
    stream: false,
    priceVersion: '',
    startedMs,
    promptAmount: 0,
  })
  const { path, headers, body } = testRequest(channel, model)
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  let status = 0
  const chunks: Buffer[] = []
  let length = 0
  const ended = (): void => resolve(verdict(channel, status, Buffer.concat(chunks)))
  const exchange = upstreams.post(hold, channel, { value: channel.keys[0] ?? '' }, path, headers, body, {
    started: (head) => void (status = head.status),
    received(chunk) {
      chunks.push(chunk)
      length += chunk.length
      if (length <= MOST_BYTES) return
      exchange.cancel()
      ended()
    },
    ended,
    failed: ({ message }) => resolve(`no answer: ${message}`),
  })
  const patienceMs = Math.min(PATIENCE_MS, channel.timeouts.totalMs)
  const patience = setTimeout(() => {
    exchange.cancel()
    resolve(`no answer within ${patienceMs / 1000} s`)
  }, patienceMs)
  return promise.finally(() => {
    hold.settle()
    clearTimeout(patience)
  })
}

function verdict(channel: Channel, status: number, body: Buffer): string | undefined {
  if (status >= 200 && status <= 299) return isJson(body) ? undefined : 'the answer is not JSON'
  const said = readUpstreamError(body).message
  const words = said === undefined ? '' : `: ${redact(said, channel)}`
  return `the upstream answered ${status}${words}`.slice(0, LONGEST_MESSAGE)
}

function isJson(body: Buffer): boolean {
  try {
    return typeof JSON.parse(body.toString()) === 'object'
  } catch {
    return false
  }
}
