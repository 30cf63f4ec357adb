import { randomUUIDv7 } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { Channel } from '../../domain/channel.ts'
import { GatewayError } from '../../errors.ts'
import { OperatorHold } from '../../ledger/operator-hold.ts'
import { readUpstreamError } from '../../protocols/upstream-error.ts'
import { exchangeWhole } from '../../upstreams/exchange-whole.ts'
import type { UpstreamClient } from '../../upstreams/upstream-client.ts'
import { redact } from '../../upstreams/redact.ts'
import { type Actor, roleCeiling } from '../authority.ts'
import { findChannel } from './find-channel.ts'
import type { AdministrationParts } from '../parts.ts'
import { testRequest } from './test-request.ts'

/** The timeout of root's tests; a channel's own timeout counts where it is shorter. */
const ROOT_TIMEOUT_MS = 30_000
/**
 * The timeout of other tests. A test that finds no model server takes exactly this long and ends with the
 * same message, so that it does not serve as a port scan.
 */
const TIMEOUT_MS = 10_000
const NO_SERVER = 'no model server answered'
/** Maximum bytes that are read of a response. */
const MAX_BODY_BYTES = 65_536
const MAX_MESSAGE_LENGTH = 1000

/** A failed test. */
interface Failure {
  /** The upstream's own message, with the channel's key and address redacted. */
  readonly message: string
  /** The status of a JSON error, as model servers send; undefined where no such response came. */
  readonly status?: number
}

/** The result of a test; `time` is in seconds. */
export const testResult = z.object({ success: z.boolean(), message: z.string(), time: z.number() })

/** The model that a test uses. */
export const testQuery = z.object({
  model: z.string().max(200, { error: 'expected at most 200 characters' }).optional(),
})

/**
 * Requests one token from a channel's upstream with the channel's first key, enabled or not, and charges
 * nobody. Time and duration are stored with a stored channel. Only root sees the upstream's message: others
 * may set any address, and could read responses of internal services, or find out which exist.
 */
export async function testChannel(
  parts: Pick<AdministrationParts, 'store' | 'liveConfig' | 'upstreams' | 'nowMs'>,
  { id, model }: { readonly id: number; readonly model: string | undefined },
  by: Actor,
): Promise<z.output<typeof testResult>> {
  const { store, liveConfig, upstreams, nowMs } = parts
  const found = await findChannel(parts, id)
  const channel = 'stored' in found ? liveConfig.storedChannel(found.stored.name) : found.declared
  if (!channel) {
    throw new GatewayError('invalid_request', 'this channel cannot be in force beside gateway.yaml')
  }
  const preferred = 'stored' in found ? found.stored.family['test_model'] : undefined
  const testModel = model || (typeof preferred === 'string' && preferred) || channel.models[0] || ''
  const isRoot = roleCeiling(by) === undefined
  const timeoutMs = Math.min(isRoot ? ROOT_TIMEOUT_MS : TIMEOUT_MS, channel.timeouts.totalMs)
  const startedMs = performance.now()
  const failure = await failureOf(upstreams, channel, testModel, nowMs(), timeoutMs)
  const isHidden = !isRoot && failure !== undefined && failure.status === undefined
  if (isHidden) await sleep(Math.max(0, startedMs + timeoutMs - performance.now()))
  const tookMs = isHidden ? timeoutMs : Math.round(performance.now() - startedMs)
  if ('stored' in found) {
    const testTime = Math.floor(nowMs() / 1000)
    await store.write('noteChannelTest', { id, testTime, responseMs: tookMs })
  }
  const message = isRoot ? failure?.message : publicMessage(failure)
  return { success: failure === undefined, message: message ?? '', time: tookMs / 1000 }
}

/** A message for users below root, without any text of the response. */
function publicMessage(failure: Failure | undefined): string | undefined {
  return failure?.status === undefined ? failure && NO_SERVER : `the upstream answered ${failure.status}`
}

/** The failure of a test request; undefined if it succeeds. */
async function failureOf(
  upstreams: UpstreamClient,
  channel: Channel,
  model: string,
  startedMs: number,
  timeoutMs: number,
): Promise<Failure | undefined> {
  const hold = new OperatorHold({
    id: randomUUIDv7(),
    model,
    requestedModel: model,
    channel: channel.name,
    group: '',
    stream: false,
    priceVersion: '',
    kind: '',
    startedMs,
    promptAmount: 0,
  })
  const key = { value: channel.keys[0] ?? '' }
  const sent = testRequest(channel, model)
  const bounds = { maxBytes: MAX_BODY_BYTES, timeoutMs }
  const came = await exchangeWhole(upstreams, { hold, channel, key }, sent, bounds)
  hold.settle()
  if (!('failure' in came)) return failureIn(channel, came.status, came.body)
  const { failure } = came
  return { message: failure.startsWith('no answer') ? failure : `no answer: ${failure}` }
}

function failureIn(channel: Channel, status: number, body: Buffer): Failure | undefined {
  const isJson = isObject(body)
  if (status >= 200 && status <= 299) return isJson ? undefined : { message: 'the answer is not JSON' }
  const upstreamMessage = readUpstreamError(body).message
  const message = `the upstream answered ${status}${upstreamMessage === undefined ? '' : `: ${redact(upstreamMessage, channel)}`}`
  return { message: message.slice(0, MAX_MESSAGE_LENGTH), ...(isJson && { status }) }
}

function isObject(body: Buffer): boolean {
  try {
    const value: unknown = JSON.parse(body.toString())
    return typeof value === 'object' && value !== null
  } catch {
    return false
  }
}
