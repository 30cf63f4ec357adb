import { NO_USAGE } from '@sluice/wire/usage'
import { asGatewayError } from '../../src/errors.ts'
import { chatCodec, readChatRequest } from '@sluice/wire/chat'
import type { Codec, ReplyIdentity } from '@sluice/wire/codec'
import type { PairedProtocol } from '../samples/paired-protocol.ts'
import { scanObject } from '@sluice/wire/json/json-scan'
import { messagesCodec, readMessagesRequest } from '@sluice/wire/messages'
import { type ErrorContent, readUpstreamError } from '@sluice/wire/upstream-error'
import { type MediaRequester, MediaFetcher } from '../../src/call/media-fetcher.ts'
import { chatConversion, messagesConversion } from '../../src/call/dialects/conversion-dialects.ts'
import { Conversions } from '../../src/call/dialects/conversions.ts'
import { ConvertingTap } from '../../src/call/dialects/converting-tap.ts'
import type { RequestReaderContext } from '../../src/call/dialects/dialect.ts'
import { ReadingFeatures } from '../../src/call/reading-features.ts'
import type { Channel } from '../../src/domain/records/channel.ts'
import { MODEL_SETTINGS, type Model } from '../../src/domain/records/model.ts'
import type { DeclaredCapabilities } from '@sluice/wire/model-capabilities'
import { channelOf } from '../samples/channel.ts'

/** Both dialects, for tests that apply to each. */
export const PROTOCOLS = ['chat', 'messages'] as const satisfies readonly PairedProtocol[]

export const CODECS: Record<PairedProtocol, Codec> = { chat: chatCodec, messages: messagesCodec }

export const OTHER: Record<PairedProtocol, PairedProtocol> = { chat: 'messages', messages: 'chat' }

const DIALECTS = { chat: chatConversion, messages: messagesConversion } as const

/** The request check of each dialect. */
export const CHECKERS = { chat: readChatRequest, messages: readMessagesRequest } as const

/** Fixed values in place of clock and random id. */
export const MINTED: ReplyIdentity = {
  created: 1_700_000_000,
  id: '00000000000000000000000000000000',
  upstream: 'messages',
}

/** A converted request, or the reason for its refusal. */
export type ConvertedRequest =
  | { readonly dropped: readonly string[]; readonly body: Buffer }
  | { readonly refused: string }

/** Media fetched from anywhere, this machine included. */
export const anyMedia = (): MediaFetcher =>
  new MediaFetcher(
    () => ({ allow_private_networks: true, max_bytes: 1_000_000, timeout: 5_000 }),
    () => performance.now(),
  )

const READER = {
  holdCopies: () => undefined,
  features: new ReadingFeatures([]),
} as unknown as RequestReaderContext

/** A client that stays connected. */
const ASKER: MediaRequester = { client: 1, takeMemory: () => {}, onClientGone: () => () => {} }

/**
 * Converts a request of the dialect `from` for a channel of the other dialect, by the gateway's own path,
 * request check included.
 */
export async function convertRequest(
  from: PairedProtocol,
  bytes: Buffer,
  media: MediaFetcher,
  channel: Partial<Channel> = {},
  capabilities: DeclaredCapabilities = {},
): Promise<ConvertedRequest> {
  try {
    const scan = scanObject(bytes)
    const request = CHECKERS[from](scan)
    const conversions = new Conversions(media)
    const given = { maxTokens: request.maxTokens, reader: READER, spoken: new Set([OTHER[from]]) }
    const requestFor = await conversions.decode(DIALECTS[from], scan, given)
    const model: Model = {
      ...MODEL_SETTINGS.defaults,
      ...capabilities,
      name: request.model,
      contextTokens: 200_000,
      isContextKnown: false,
    }
    const [made] = requestFor(channelOf({ protocol: [OTHER[from]], ...channel }), OTHER[from], model)
    if (!made) throw new Error('no request was made')
    const { body, dropped } = await made.prepare(false, ASKER)
    return { body: body as Buffer, dropped }
  } catch (error) {
    const known = asGatewayError(error)
    if (known?.kind.status === 400) return { refused: known.message }
    throw error
  }
}

/** Runs the dialect's request check, which throws where it refuses. */
export function check(protocol: PairedProtocol, body: Buffer): void {
  CHECKERS[protocol](scanObject(body))
}

/** Converts a whole reply of a `from` upstream for a client of the other dialect. */
export function convertReply(from: PairedProtocol, bytes: Buffer): Buffer {
  return CODECS[OTHER[from]].encodeReply(CODECS[from].decodeReply(bytes), MINTED)
}

/**
 * Converts a stream of a `from` upstream for a client of the other dialect. Returns the gateway's writes;
 * nothing is counted.
 */
export function convertStream(
  from: PairedProtocol,
  chunks: Iterable<Buffer>,
  options: { readonly includeUsage: boolean } = { includeUsage: true },
): { readonly writes: string[]; readonly complete: boolean; readonly tap: ConvertingTap } {
  const to = OTHER[from]
  const tap = new ConvertingTap(CODECS[from].streamDecoder(), CODECS[to].streamEncoder(MINTED, options), {
    model: '',
    promptTokens: () => 0,
  })
  const writes: string[] = []
  for (const chunk of chunks) {
    const { forward, terminal } = tap.push(chunk)
    if (forward) writes.push(forward.toString())
    if (terminal) break
  }
  const { complete } = tap.end()
  if (complete) writes.push(tap.finalBytes(tap.usage ?? NO_USAGE).toString())
  else writes.push(tap.failureFrame({ type: 'api_error', code: 'upstream_error', ...said(tap) }).toString())
  return { writes, complete, tap }
}

function said({ error }: ConvertingTap): Partial<ErrorContent> & { message: string } {
  const { type, code, message } = readUpstreamError(Buffer.from(error?.data ?? ''))
  return {
    ...(error && { hasOwnCode: code !== undefined }),
    message: message ?? 'the upstream broke off before the response was complete',
    ...(type !== undefined && { type }),
    ...(code !== undefined && { code }),
  }
}
