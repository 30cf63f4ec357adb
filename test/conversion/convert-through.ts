import type { ClientProtocol, ConversionProtocol } from '@sluice/wire/protocols'
import { asGatewayError } from '../../src/errors.ts'
import { withAcceptedSampling } from '@sluice/wire/sampling'
import { chatCodec, readChatRequest } from '@sluice/wire/chat'
import type { Codec, ReplyIdentity, UpstreamCodec } from '@sluice/wire/codec'
import type { ReplyContext, Conversation, MediaPart, Part } from '@sluice/wire/conversation'
import { scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { converseCodec } from '@sluice/wire/converse'
import { geminiCodec, readGeminiRequest } from '@sluice/wire/gemini'
import { messagesCodec, readMessagesRequest } from '@sluice/wire/messages'
import { withAcceptedFields } from '@sluice/wire/shared-fields'
import { withAcceptedCacheMarks } from '@sluice/wire/cache-marks'
import { takesSharedField, upstreamDialect } from '../../src/call/dialects/conversion-dialects.ts'
import { withReadableResults } from '@sluice/wire/readable-results'
import { withAcceptedNames } from '@sluice/wire/wire-names'
import { readResponsesRequest, responsesCodec } from '@sluice/wire/responses'
import { UPSTREAM_INTERRUPTED } from '../../src/call/error-frames.ts'
import { streamErrorText } from '../../src/call/failure.ts'
import { channelOf } from '../samples/channel.ts'
import { upstreamOf } from '../samples/conversation.ts'
import { converseError } from '../fixtures/providers/converse-check.ts'

/** All protocols that are converted. */
export const ALL_PROTOCOLS = [
  'chat',
  'messages',
  'responses',
  'gemini',
] as const satisfies readonly ClientProtocol[]

export const ALL_CODECS: Readonly<Record<ClientProtocol, Codec>> = {
  chat: chatCodec,
  messages: messagesCodec,
  responses: responsesCodec,
  gemini: geminiCodec,
}

/** Codecs of upstreams: one dialect more, which no client speaks. */
const UPSTREAM_CODECS: Readonly<Record<ConversionProtocol, UpstreamCodec>> = {
  ...ALL_CODECS,
  converse: converseCodec,
}

/** The request check of each protocol. */
export const ALL_CHECKERS = {
  chat: readChatRequest,
  messages: readMessagesRequest,
  responses: readResponsesRequest,
  gemini: (scan: ScannedObject) => readGeminiRequest(scan, 'm'),
} as const

/** Pairs of a protocol with each protocol before it in the list, in both directions. */
export function pairsOf(protocol: ClientProtocol): readonly {
  readonly from: ClientProtocol
  readonly to: ClientProtocol
}[] {
  return ALL_PROTOCOLS.slice(0, ALL_PROTOCOLS.indexOf(protocol)).flatMap((other) => [
    { from: protocol, to: other },
    { from: other, to: protocol },
  ])
}

/** Fixed values in place of clock and random id. */
export const IDENTITY: ReplyIdentity = { created: 1_700_000_000, id: '00000000000000000000000000000000' }

/** Media that replace those that would be fetched. */
const FETCHED = { kind: 'inline', mediaType: 'image/png', data: 'cGljdHVyZQ==' } as const

/**
 * A request converted to another protocol, or the reason for its refusal; both as JSON text. `model` replaces
 * the name in the request. `hasMarks`: whether the upstream accepts cache marks; by default, if the request has some.
 */
export function requestAs(
  from: ClientProtocol,
  to: ConversionProtocol,
  bytes: Buffer,
  model?: string,
  { hasMarks = mentionsMarks(bytes) }: { readonly hasMarks?: boolean } = {},
): string {
  try {
    const scan = scanObject(bytes)
    ALL_CHECKERS[from](scan)
    const dropped = new Set<string>()
    const decoded = ALL_CODECS[from].decodeRequest(scan, dropped)
    const upstream = upstreamOf(model ?? decoded.model)
    const { capabilities } = upstream
    const taken =
      to === 'chat'
        ? withAcceptedFields(
            decoded,
            (field) => takesSharedField(field, channelOf({}), capabilities),
            dropped,
          )
        : decoded
    const conversation = withAcceptedSampling(
      inlined(taken, UPSTREAM_CODECS[to]),
      upstream.capabilities,
      dropped,
    )
    const marks = upstreamDialect(to).cacheMarks(
      channelOf({ allow: new Set(['cache_control'] as const) }),
      capabilities,
    )
    const marked = withAcceptedCacheMarks(conversation, hasMarks ? marks : undefined, dropped)
    const named = withAcceptedNames(withReadableResults(marked, to), to, upstream.server)
    const body = UPSTREAM_CODECS[to].encodeRequest(named.conversation, upstream, dropped)
    checkUpstream(to, upstream.name, body)
    return `{"dropped":${JSON.stringify([...dropped].sort())},"request":${body.toString()}}`
  } catch (error) {
    const known = asGatewayError(error)
    if (known?.kind.status === 400) return JSON.stringify({ refused: known.message })
    throw error
  }
}

function mentionsMarks(bytes: Buffer): boolean {
  return bytes.includes('"cache_control"') || bytes.includes('"prompt_cache_breakpoint"')
}

/** A whole reply converted to another protocol, or that it is invalid. */
export function replyAs(
  from: ConversionProtocol,
  to: ClientProtocol,
  bytes: Buffer,
  asked?: ReplyContext,
): string {
  try {
    return ALL_CODECS[to]
      .encodeReply(UPSTREAM_CODECS[from].decodeReply(bytes), { ...IDENTITY, upstream: from }, asked)
      .toString()
  } catch (error) {
    const known = asGatewayError(error)
    if (known) return JSON.stringify({ refused: known.code })
    throw error
  }
}

/** A stream converted to another protocol, and whether it was complete. */
export function streamAs(
  from: ConversionProtocol,
  to: ClientProtocol,
  chunks: Iterable<Buffer>,
  asked?: ReplyContext,
  { jsonArray = false }: { readonly jsonArray?: boolean } = {},
): { readonly text: string; readonly complete: boolean } {
  const decoder = UPSTREAM_CODECS[from].streamDecoder()
  const encoder = ALL_CODECS[to].streamEncoder(
    { ...IDENTITY, upstream: from },
    {
      includeUsage: true,
      jsonArray,
      ...(asked && { asked }),
    },
  )
  const events = []
  let text = ''
  for (const chunk of chunks) {
    const read = decoder.push(chunk)
    events.push(...read)
    text += encoder.push(read)
  }
  const rest = decoder.end()
  events.push(...rest)
  text += encoder.push(rest)
  const failure = events.find((event) => event.kind === 'failure')
  const complete = !failure && events.some((event) => event.kind === 'end')
  if (complete) return { text: text + encoder.finalFrames(), complete }
  const upstream = { channel: channelOf({}), client: to, request: { protocol: from } }
  const error = failure
    ? streamErrorText(upstream, JSON.stringify({ error: failure }))
    : { ...UPSTREAM_INTERRUPTED, message: 'the upstream broke off before the response was complete' }
  return { text: text + encoder.failureFrame(error), complete }
}

function checkUpstream(protocol: ConversionProtocol, model: string, body: Buffer): void {
  if (protocol !== 'converse') return void ALL_CHECKERS[protocol](scanObject(body))
  const wrong = converseError(model, JSON.parse(body.toString()))
  // A history without a call or a result is the client's error: the upstream says what is missing.
  if (wrong !== undefined && !/no toolUse with its id|Expected toolResult/.test(wrong)) throw new Error(wrong)
}

function inlined(conversation: Conversation, codec: UpstreamCodec): Conversation {
  const one = (part: MediaPart): MediaPart => (codec.mustFetch(part) ? { ...part, source: FETCHED } : part)
  const partOf = (part: Part): Part => {
    if (part.kind === 'media') return one(part)
    if (part.kind !== 'tool-result') return part
    return { ...part, parts: part.parts.map((inner) => (inner.kind === 'media' ? one(inner) : inner)) }
  }
  const turns = conversation.turns.map((turn) => ({ ...turn, parts: turn.parts.map(partOf) }))
  return { ...conversation, turns }
}
