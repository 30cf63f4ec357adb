import { readUpstreamError } from '@sluice/wire/upstream-error'
import { randomUUIDv7 } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { OperatorHold } from '../../accounts/ledger/operator-hold.ts'
import { requestWholeResponse } from '../../upstreams/exchange.ts'
import type { WireRequest } from '../../upstreams/provider.ts'
import type { Channel, ProviderName } from '../../domain/records/channel.ts'
import { redact } from '../../upstreams/redact.ts'
import { type Actor, roleCeiling } from '../authority.ts'
import type { AdministrationServices } from '../services.ts'
import { validateDraftChannel, draftChannelSchema } from './change-channels.ts'
import { entriesOfList, nameOfEntry } from './read-model-list.ts'
import { modelsRequest } from './test-request.ts'

/** Maximum size of a model list in bytes; the lists of public vendors have less than a million. */
const MAX_BODY_BYTES = 4_194_304

/** Maximum number of names in a model list. */
const MAX_NAMES = 2000

/** Placeholder for the name of a model, for a channel that does not list any yet. */
const NO_MODEL = 'none'

/** Input with a saved or unsaved channel whose upstream's models are to be listed. */
export const listModelsBody = z.object(
  { channel: draftChannelSchema },
  { error: 'expected an object with a channel' },
)

/** The names of an upstream's models; `time` is in seconds. */
export const upstreamModels = z.object({
  success: z.boolean(),
  message: z.string(),
  time: z.number(),
  data: z.array(z.string()),
})

/** Lists the models of a channel's upstream, sorted by name; nothing is stored. */
export async function listUpstreamModels(
  services: Pick<AdministrationServices, 'store' | 'liveConfig' | 'upstreams' | 'nowMs' | 'endReads'>,
  { channel: given }: z.output<typeof listModelsBody>,
  by: Actor,
): Promise<z.output<typeof upstreamModels>> {
  const { channel } = await validateDraftChannel(services, given, NO_MODEL, by)
  if (channel.provider !== 'generic')
    return { success: false, message: noList(channel.provider), time: 0, data: [] }
  const question = {
    request: modelsRequest(channel),
    maxBytes: MAX_BODY_BYTES,
    read: modelNames,
    unread: 'the answer is not a list of models',
  }
  const { answer, message, tookMs } = await requestUpstream(services, channel, question, by)
  return { success: answer !== undefined, message, time: tookMs / 1000, data: answer ?? [] }
}

function noList(provider: ProviderName): string {
  const name = { azure: 'Azure', bedrock: 'Bedrock', vertex: 'Vertex' }[provider]
  return `channels of ${name} cannot list models: enter their names`
}

/**
 * The names in an upstream's model list, whatever its protocol; undefined if the body is not a model list.
 */
function modelNames(body: Buffer): string[] | undefined {
  const list = entriesOfList(body)
  if (!list) return undefined
  const names = new Set<string>()
  for (const entry of list) {
    const name = nameOfEntry(entry)
    if (name !== undefined) names.add(name)
    if (names.size === MAX_NAMES) break
  }
  return [...names].sort()
}

/**
 * Timeout in milliseconds of requests that root makes; the channel's own timeout applies if it is shorter.
 */
const ROOT_TIMEOUT_MS = 30_000

/**
 * Timeout in milliseconds of requests that other users make. A request that does not find a model server
 * always takes this long and ends with the same message, so that it cannot be used to scan ports.
 */
const TIMEOUT_MS = 10_000
const NO_SERVER = 'no model server answered'
const MAX_MESSAGE_LENGTH = 1000

/** A failed request. */
interface Failure {
  /** The upstream's error message, without the channel's key and address. */
  readonly message: string
  /** The HTTP status, if the response was a JSON error as model servers send it; otherwise undefined. */
  readonly status?: number
}

/** A request to an upstream, and how its response is read. */
export interface ChannelRequest<Answer> {
  readonly request: WireRequest
  /** Maximum number of response bytes that are read. */
  readonly maxBytes: number
  /** Reads the body of a successful response; returns undefined if it is not what was expected. */
  readonly read: (body: Buffer, contentType: string) => Answer | undefined
  /** The error message if `read` returns undefined. */
  readonly unread: string
}

/** The result of a request. If it failed, `answer` is undefined and `message` states the reason. */
interface Outcome<Answer> {
  readonly answer: Answer | undefined
  readonly message: string
  readonly tookMs: number
}

/**
 * Sends a request to a channel's upstream with the channel's first key; nobody is charged. Only root sees the
 * upstream's message. Other administrators may set any address, and could otherwise read responses of
 * internal services or find out which ones exist.
 */
export async function requestUpstream<Answer>(
  { upstreams, endReads }: Pick<AdministrationServices, 'upstreams' | 'endReads'>,
  channel: Channel,
  { request, maxBytes, read, unread }: ChannelRequest<Answer>,
  by: Actor,
): Promise<Outcome<Answer>> {
  endReads()
  const isRoot = roleCeiling(by) === undefined
  const timeoutMs = Math.min(isRoot ? ROOT_TIMEOUT_MS : TIMEOUT_MS, channel.timeouts.total)
  const startedMs = performance.now()
  const hold = new OperatorHold(randomUUIDv7())
  const key = { value: channel.keys[0] ?? '' }
  const came = await requestWholeResponse(upstreams, { hold, channel, key }, request, { maxBytes, timeoutMs })
  hold.settle()
  const isAnswer = !('failure' in came) && came.status >= 200 && came.status <= 299
  const answer = isAnswer ? read(came.body, came.contentType) : undefined
  if (answer !== undefined) return { answer, message: '', tookMs: Math.round(performance.now() - startedMs) }
  const failure = 'failure' in came ? { message: noAnswer(came.failure) } : failureIn(channel, came, unread)
  const isHidden = !isRoot && failure.status === undefined
  if (isHidden) await sleep(Math.max(0, startedMs + timeoutMs - performance.now()))
  const tookMs = isHidden ? timeoutMs : Math.round(performance.now() - startedMs)
  return { answer: undefined, message: isRoot ? failure.message : publicMessage(failure), tookMs }
}

/** The message for users below root, which contains no text from the response. */
function publicMessage({ status }: Failure): string {
  return status === undefined ? NO_SERVER : `the upstream answered ${status}`
}

function noAnswer(failure: string): string {
  return failure.startsWith('no answer') ? failure : `no answer: ${failure}`
}

function failureIn(
  channel: Channel,
  { status, body }: { readonly status: number; readonly body: Buffer },
  unread: string,
): Failure {
  if (status >= 200 && status <= 299) return { message: unread }
  const upstreamMessage = readUpstreamError(body).message
  const message = `the upstream answered ${status}${upstreamMessage === undefined ? '' : `: ${redact(upstreamMessage, channel)}`}`
  return { message: message.slice(0, MAX_MESSAGE_LENGTH), ...(isJsonBody(body) && { status }) }
}

export function isJsonBody(body: Buffer): boolean {
  try {
    const value: unknown = JSON.parse(body.toString())
    return typeof value === 'object' && value !== null
  } catch {
    return false
  }
}
