import { randomUUID } from 'node:crypto'
import { type ConversionProtocol, type ProtocolName, PROTOCOLS } from '@sluice/wire/protocols'
import { ENDPOINTS } from '../../domain/endpoints.ts'
import { UPSTREAM_PROTOCOLS } from '../../domain/protocols.ts'
import type { Channel } from '../../domain/records/channel.ts'
import type { Model } from '../../domain/records/model.ts'
import type { Usage } from '@sluice/wire/usage'
import { withAcceptedSampling } from '@sluice/wire/sampling'
import { FailedAnswer } from '@sluice/wire/answer-error'
import { AnswerToolDecoder, answerToolCallAsText } from '@sluice/wire/answer-tool'
import { withAcceptedCacheMarks } from '@sluice/wire/cache-marks'
import { requestedChoiceCount, type Reply, replyText, textOfParts } from '@sluice/wire/reply'
import {
  type ProviderMember,
  readProviderMember,
  providerMemberFor,
  withProviderMember,
} from '@sluice/wire/edit-request'
import type {
  DroppedFields,
  ReplyIdentity,
  StreamDecoder,
  StreamEncoder,
  StreamOptions,
  UpstreamCodec,
  UpstreamModel,
} from '@sluice/wire/codec'
import type { ReplyContext, Conversation, MediaPart, Part } from '@sluice/wire/conversation'
import { AnswerMetadata } from '@sluice/wire/answer-metadata'
import { FINISH_REASONS } from '@sluice/wire/chat'
import { withCutOffStop } from '@sluice/wire/tool-input'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { withoutThinkingSuffix, withSuffixThinking } from '@sluice/wire/messages'
import { capabilitiesOf } from '@sluice/wire/model-capabilities'
import { withReadableBlocks } from '@sluice/wire/readable-blocks'
import { withReadableResults } from '@sluice/wire/readable-results'
import { serverRulesOf } from '@sluice/wire/server-rules'
import {
  callIdsOf,
  callRestorer,
  type CallRestorer,
  restoreCalls,
  withAcceptedNames,
  withRestoredCalls,
} from '@sluice/wire/wire-names'
import type { SentRequest } from '@sluice/wire/hidden-thinking'
import type { ReplyFacts } from '@sluice/wire/reply-facts'
import { withoutRestrictedFields, withAcceptedFields } from '@sluice/wire/shared-fields'
import { mustNameStandardTier } from '@sluice/wire/upstream-settings'
import { takesAnyTier } from '../../upstreams/channel-tier.ts'
import type { EventMemory } from '@sluice/wire/sse/frame-splitter'
import { TextSignatureRemover, withoutTextSignatures } from '@sluice/wire/remove-text-signatures'
import type { MediaFetcher, MediaRequester } from '../media-fetcher.ts'
import { type ConversionDialect, type UpstreamDialect, upstreamDialect } from './conversion-dialects.ts'
import { ConvertingTap } from './converting-tap.ts'
import type { RequestReaderContext } from './dialect.ts'
import type { WholeReply } from './answer-reader.ts'
import type { AccountConversation, DecodedConversation } from './decoded-conversation.ts'
import type { AnswerKeeper, AnswerKeeping } from './references.ts'
import type { AttemptRequest, ChannelPlan, SentConversation } from '../request-stages.ts'

/** What is known, apart from its body, about a request that is to be decoded. */
interface DecodeOptions extends RequestPartsBesideBody {
  /** The maximum of output tokens to be assumed if the request cannot be decoded. */
  readonly maxTokens: number | undefined
  readonly reader: RequestReaderContext
  /** The dialects into which the request is converted for channels. */
  readonly spoken: ReadonlySet<ProtocolName>
  /** Whether the client reads its stream as one JSON array. */
  readonly jsonArray?: boolean
  /** Set if the answer is kept. */
  readonly keeping?: AnswerKeeping | undefined
}

/** A conversation adapted to one channel. */
interface AdaptedConversation {
  /** The dialect of the channel's request. */
  readonly spoken: ProtocolName
  readonly conversation: Conversation
  readonly upstream: UpstreamModel
  /** JSON text of the request's `provider` member, which is sent as the client wrote it. */
  readonly provider: string | undefined
  readonly dropped: DroppedFields
  readonly history: DecodedConversation
}

/** A conversation encoded as a request for the channel. */
interface Encoded {
  /** The conversation as it was sent: with all media, and with names that the provider accepts. */
  readonly sent: Conversation
  /** The client's name of a tool that the provider calls; undefined if no name was changed. */
  readonly toolName: ((wire: string) => string) | undefined
  readonly body: Buffer
  readonly dropped: ReadonlySet<string>
}

/** Properties of the client's dialect on which its responses depend. */
interface Client extends Pick<ConversionDialect, 'codec' | 'beginsWithPrompt' | 'endsWithAnswer'> {
  readonly jsonArray: boolean
  readonly keeping: AnswerKeeping | undefined
}

/**
 * Creates a channel's requests, in a dialect that the channel speaks, from a client's request: one for each
 * account of the channel that receives a different conversation.
 */
export interface ConversionPlanner {
  (channel: Channel, spoken: ProtocolName, model: Model): readonly ChannelPlan[]
  /** Channel whose model signed the latest turn; undefined if unknown. */
  readonly origin?: string | undefined
}

/** Conversion between two dialects, of requests in one direction and replies in the other. */
export class Conversions {
  readonly #media: MediaFetcher

  constructor(media: MediaFetcher) {
    this.#media = media
  }

  /**
   * Decodes a request of the dialect `from` for all channels that speak another one. If decoding fails, the error is thrown only when a channel's request is
   * prepared, because a channel that speaks `from` may still serve the call.
   */
  async decode(
    from: ConversionDialect,
    scan: ScannedObject,
    options: DecodeOptions,
  ): Promise<ConversionPlanner> {
    const { maxTokens, reader, spoken, jsonArray = false, keeping } = options
    const { codec, beginsWithPrompt, endsWithAnswer } = from
    const client = { codec, beginsWithPrompt, endsWithAnswer, jsonArray, keeping }
    const waiting = reader.holdCopies(scan.bytes.length)
    if (waiting) await waiting
    const decoded = decodeRequest(from, scan, options)
    if ('refusal' in decoded) return (channel) => [refused(channel, maxTokens, decoded.refusal)]
    const history = await reader.features.decoded(decoded.conversation, spoken, reader)
    return Object.assign(
      (channel: Channel, name: ProtocolName, model: Model) =>
        history.conversationsFor(channel, name).map(({ conversation, isOfKey }): ChannelPlan => {
          try {
            const fitted = fit({ ...decoded, conversation }, channel, name, model)
            return this.#planFor(client, channel, { ...fitted, history }, isOfKey)
          } catch (refusal) {
            return refused(channel, maxTokens, refusal)
          }
        }),
      { origin: history.origin },
    )
  }

  #planFor(
    client: Client,
    channel: Channel,
    fitted: AdaptedConversation,
    isOfKey: AccountConversation['isOfKey'],
  ): ChannelPlan {
    const { spoken, conversation, upstream } = fitted
    const search = upstreamDialect(spoken).search(conversation, upstream.name)
    let encoded: Encoded | undefined
    return {
      channel,
      outputMaximum: upstreamDialect(spoken).outputMaximum(conversation, upstream),
      choices: PROTOCOLS[spoken].hasChoices ? requestedChoiceCount(conversation) : 1,
      sent: sentThinking(spoken, conversation, upstream),
      ...(search && { tools: { tools: [search], dialect: spoken, model: upstream.name } }),
      ...(isOfKey && { isOfKey }),
      conversation: async () => {
        if (hasFiles(conversation, (part) => upstreamDialect(spoken).codec.mustFetch(part))) return undefined
        encoded = await this.#encode(fitted, NOBODY).catch(() => undefined)
        return encoded && sentConversation(upstreamDialect(spoken), encoded.body, upstream.name)
      },
      prepare: async (_passThrough, requester) => {
        const made = encoded ?? (await this.#encode(fitted, requester))
        // The body can be large and must not be kept by the plan.
        encoded = undefined
        return this.#prepare(client, fitted, made)
      },
    }
  }

  async #encode(
    { spoken, conversation, upstream, provider, dropped: before }: AdaptedConversation,
    requester: MediaRequester,
  ): Promise<Encoded> {
    const { codec } = upstreamDialect(spoken)
    const dropped: DroppedFields = new Set(before)
    const inline = await this.#media.inline(conversation, (part) => codec.mustFetch(part), requester)
    const protocol = spoken as ConversionProtocol
    const readable = withReadableResults(withReadableBlocks(inline, protocol), protocol)
    const { conversation: sent, toolName } = withAcceptedNames(readable, protocol, upstream.server)
    return {
      sent,
      toolName,
      body: withProviderMember(codec.encodeRequest(sent, upstream, dropped), provider),
      dropped,
    }
  }

  #prepare(
    client: Client,
    { spoken, conversation, upstream, history }: AdaptedConversation,
    { sent, toolName, body, dropped }: Encoded,
  ): AttemptRequest {
    const { codec, path, mustStream, headers, prompt } = upstreamDialect(spoken)
    const answerTool = codec.answerTool(sent, upstream.capabilities)
    // The turns can be large and must not be kept in memory during the whole response.
    const replyContext: ReplyContext = {
      tools: conversation.tools,
      ...(conversation.repeated && { repeated: conversation.repeated }),
    }
    const callIds = callIdsOf(conversation)
    // Without tools and calls there is nothing to restore.
    const mayCall = callIds.length > 0 || conversation.tools.length > 0 || toolName !== undefined
    const restorer = mayCall ? (): CallRestorer => callRestorer(callIds, toolName) : undefined
    const keeper = client.keeping?.begin()
    return {
      protocol: spoken,
      path: path(upstream.name, conversation.stream || mustStream?.(conversation, upstream) === true),
      headers,
      body,
      prompt,
      upstreamModel: upstream.name,
      dropped: [...dropped],
      beginsWithPrompt: client.beginsWithPrompt,
      tap: (promptTokens, memory) =>
        new ConvertingTap(
          streamDecoder(codec, memory, { answerTool, restorer, choices: requestedChoiceCount(conversation) }),
          streamEncoder(client, replyIdentity(spoken), {
            includeUsage: conversation.includeUsage,
            replyContext,
          }),
          { model: upstream.name, promptTokens },
          history.streamed?.(spoken),
          keeper,
        ),
      reply: (bytes) =>
        convertedReply(codec, client, bytes, {
          spoken,
          choices: requestedChoiceCount(conversation),
          model: upstream.name,
          answerTool,
          restorer,
          replyContext,
          history,
          keeper,
        }),
    }
  }
}

/** Stands for the client when a conversation without files to fetch is encoded. */
const NOBODY: MediaRequester = { client: 0, takeMemory: () => {}, onClientGone: () => () => {} }

/** Whether a conversation has files that must be fetched. */
function hasFiles({ turns }: Conversation, mustFetch: (part: MediaPart) => boolean): boolean {
  const isFile = (part: Part): boolean =>
    part.kind === 'media' ? mustFetch(part) : part.kind === 'tool-result' && part.parts.some(isFile)
  return turns.some(({ parts }) => parts.some(isFile))
}

function sentConversation(
  { name, conversation: form }: UpstreamDialect,
  body: Buffer,
  upstreamModel: string,
): SentConversation {
  return { dialect: name, scan: scanObject(body, RESPONSE_LIMITS), form, upstreamModel, headers: NO_HEADERS }
}

const NO_HEADERS: readonly string[] = []

const ANY_TURN: Conversation['turns'] = [{ role: 'user', parts: [{ kind: 'text', text: '.' }] }]

/**
 * Reads the thinking settings of a converted request. To read them, the request is encoded without its turns
 * when they are first needed.
 */
function sentThinking(
  spoken: ProtocolName,
  conversation: Conversation,
  upstream: UpstreamModel,
): SentRequest {
  let scan: ScannedObject | undefined
  const encoded = (): ScannedObject => {
    const { codec } = upstreamDialect(spoken)
    const short = { ...conversation, system: [], turns: ANY_TURN, tools: [] }
    return (scan ??= scanObject(codec.encodeRequest(short, upstream, new Set())))
  }
  return {
    dialect: spoken,
    model: upstream.name,
    value: (name) => encoded().value(name),
    names: () => encoded().members.keys(),
    isObject: (name) => encoded().kind(name) === 'object',
  }
}

function refused(channel: Channel, outputMaximum: number | undefined, refusal: unknown): ChannelPlan {
  return {
    channel,
    outputMaximum,
    choices: 1,
    prepare() {
      throw refusal
    },
  }
}

/** Adapts the decoded request to what the channel and its model accept. */
function fit(
  { conversation: decoded, plainName, provider: given, dropped: before }: Decoded,
  channel: Channel,
  spoken: ProtocolName,
  model: Model,
): Omit<AdaptedConversation, 'history'> {
  const dropped: DroppedFields = new Set(before)
  const upstream = upstreamDialect(spoken)
  const requestedName = decoded.model
  const plain = upstream.hasThinkingField ? plainName : undefined
  const wanted = plain ?? requestedName
  const name = channel.model_mapping.get(requestedName) ?? channel.model_mapping.get(wanted) ?? wanted
  const capabilities = capabilitiesOf(name, requestedName, model)
  const thinking = plain === undefined ? decoded : withSuffixThinking(decoded, capabilities)
  const allowed = withoutRestrictedFields(thinking, channel, dropped)
  const { takesSharedField } = upstream
  const taken = takesSharedField
    ? withAcceptedFields(allowed, (field) => takesSharedField(field, channel, capabilities), dropped)
    : allowed
  const accepted = withAcceptedSampling(taken, capabilities, dropped, upstream.thinks?.(capabilities))
  const marked = withAcceptedCacheMarks(accepted, upstream.cacheMarks(channel, capabilities), dropped)
  const hasTiers = UPSTREAM_PROTOCOLS[spoken].vendor === 'openai'
  const stated =
    hasTiers && mustNameStandardTier(channel) ? { ...marked, isStandardTier: true as const } : marked
  const conversation = takesAnyTier(channel, spoken) ? { ...stated, takesAnyTier: true as const } : stated
  const provider = providerMemberFor(given, channel, dropped)
  const server = serverRulesOf(channel, name)
  return {
    spoken,
    conversation,
    upstream: { name, capabilities, server },
    provider,
    dropped,
  }
}

function streamDecoder(
  upstream: UpstreamCodec,
  memory: EventMemory,
  { answerTool, restorer, choices }: Pick<ReplyTo, 'answerTool' | 'restorer' | 'choices'>,
): StreamDecoder {
  const plain = upstream.streamDecoder(memory, choices)
  const decoder = restorer ? restoreCalls(plain, restorer()) : plain
  return answerTool === undefined ? decoder : new AnswerToolDecoder(decoder, answerTool)
}

function streamEncoder(
  { codec, endsWithAnswer, jsonArray }: Client,
  identity: ReplyIdentity,
  options: Omit<StreamOptions, 'jsonArray'>,
): StreamEncoder {
  const encoder = codec.streamEncoder(identity, { ...options, jsonArray })
  return endsWithAnswer ? new TextSignatureRemover(encoder) : encoder
}

/** Facts about the request that are needed to convert its reply. */
interface ReplyTo {
  /** The upstream's dialect. */
  readonly spoken: ProtocolName
  /** Number of choices requested. */
  readonly choices: number
  /** The upstream's name for the model, used if its response does not name it. */
  readonly model: string
  readonly answerTool: string | undefined
  readonly restorer: (() => CallRestorer) | undefined
  readonly replyContext: ReplyContext
  readonly history: DecodedConversation
  readonly keeper: AnswerKeeper | undefined
}

function convertedReply(
  upstream: UpstreamCodec,
  client: Client,
  bytes: Buffer,
  { spoken, choices, model, answerTool, restorer, replyContext, history, keeper }: ReplyTo,
): WholeReply {
  let decoded: Reply
  try {
    decoded = upstream.decodeReply(bytes, choices)
    if (answerTool !== undefined) decoded = answerToolCallAsText(decoded, answerTool)
    if (restorer) decoded = withRestoredCalls(decoded, restorer())
  } catch (failure) {
    const { error, usage, parts } = failure instanceof FailedAnswer ? failure : NO_ERROR
    return { facts: { valid: false, error, usage, text: () => textOfParts(parts) }, body: () => bytes }
  }
  const signed = withCutOffStop(decoded)
  const reply = client.endsWithAnswer ? withoutTextSignatures(signed) : signed
  const { arrived } = reply
  const facts: ReplyFacts = {
    valid: true,
    error: undefined,
    hasUnknownEnd: [reply, ...(reply.others ?? [])].some(({ stop }) => stop.isUnknown),
    usage: reply.usage,
    served: reply.served,
    diagnosis: { id: reply.id, verdict: reply.cacheVerdict },
    ...(reply.tools && { tools: reply.tools }),
    names: () => namesOfReply(decoded),
    text: () => replyText(reply),
    ...(arrived && { arrived: () => arrived }),
  }
  const answer = { ...reply, model: reply.model || model, served: reply.served ?? reply.usage?.served }
  let body: Buffer | undefined
  // The body is created only once, because it contains a new id.
  const encoded = (charged: Usage): Buffer =>
    (body ??= client.codec.encodeReply({ ...answer, usage: charged }, replyIdentity(spoken), replyContext))
  return {
    facts,
    body: encoded,
    preview: () => client.codec.encodeReply(answer, replyIdentity(spoken), replyContext),
    ...(signed !== decoded && { note: 'cut_arguments' }),
    lasting: {
      async keep(origin, charging, form) {
        const keepingParts = history.keep?.(signed.parts, origin)
        if (!keeper) return keepingParts
        const charged = await charging
        await keepingParts
        const kept = encoded(charged)
        await keeper.keep((form?.(kept) ?? kept).toString(), charged, origin)
      },
    },
  }
}

/**
 * The id, model and finish reasons that a converted reply states; the reasons are those of the chat protocol.
 */
function namesOfReply({ id, model, stop, others = [] }: Reply): AnswerMetadata {
  const names = new AnswerMetadata()
  names.note(id, model)
  for (const [choice, { reason }] of [stop, ...others.map((other) => other.stop)].entries())
    names.finish(choice, FINISH_REASONS[reason])
  return names
}

const NO_ERROR = { error: undefined, usage: undefined, parts: [] }

function unixNow(): number {
  return Math.floor(Date.now() / 1000)
}

/** A new id and the time, for an answer of an upstream of this protocol. */
export function replyIdentity(upstream: ProtocolName): ReplyIdentity {
  return { created: unixNow(), now: unixNow, id: randomUUID().replaceAll('-', ''), upstream }
}

/** Parts of a request that are not in its body. */
interface RequestPartsBesideBody {
  /** Values from the request's path, in a dialect whose bodies do not contain them. */
  readonly target?: Pick<Conversation, 'model' | 'stream'>
  readonly keeping?: Pick<AnswerKeeping, 'repeats'> | undefined
}

/** A decoded request of a client. */
interface Decoded {
  readonly conversation: Conversation
  /** The model's name without the suffix that asks for thinking; undefined if it has none. */
  readonly plainName: string | undefined
  readonly provider: ProviderMember | undefined
  readonly dropped: ReadonlySet<string>
}

/** Decodes a request of a dialect, or returns the error. */
function decodeRequest(
  { name, codec }: ConversionDialect,
  scan: ScannedObject,
  { target, keeping }: RequestPartsBesideBody,
): Decoded | { readonly refusal: unknown } {
  const dropped: DroppedFields = new Set()
  try {
    const decoded = { ...codec.decodeRequest(scan, dropped), ...target }
    const conversation = keeping
      ? { ...decoded, repeated: new Map([...(decoded.repeated ?? []), ...keeping.repeats]) }
      : decoded
    const { hasThinkingSuffix } = ENDPOINTS[name]
    const plainName = hasThinkingSuffix ? withoutThinkingSuffix(conversation.model) : undefined
    return { conversation, plainName, provider: readProviderMember(scan), dropped }
  } catch (refusal) {
    return { refusal }
  }
}
