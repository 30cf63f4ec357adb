import { errorInAnswer } from '@sluice/wire/answer-error'
import type { ClientProtocol } from '@sluice/wire/protocols'
import type { Channel } from '../../domain/records/channel.ts'
import { NO_USAGE } from '@sluice/wire/usage'
import { channelProtocols } from './choose-dialect.ts'
import { applyEdits } from '@sluice/wire/json/json-edit'
import { parseRecord } from '@sluice/wire/json/record'
import type { KnownMemberNames } from '@sluice/wire/json/known-names'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { Shape } from '@sluice/wire/shape/define-shape'
import type { PromptText } from '@sluice/wire/prompt-tokens'
import type { Headers } from '../../http/request.ts'
import type { UpstreamKey } from '../../upstreams/key-ring.ts'
import { UpstreamRefusal } from '../failure.ts'
import { type Dialect, type RequestReaderContext, throwNoStreams } from './dialect.ts'
import type { AttemptRequest, ParsedRequest } from '../request-stages.ts'

/** Thrown if no channel of the model can count tokens; the gateway then counts them itself. */
export class CountingUnsupported extends Error {
  /** The request in which references are replaced by the content that the gateway keeps. */
  readonly composed: ScannedObject

  constructor(composed: ScannedObject) {
    super('no channel of this model counts tokens')
    this.name = 'CountingUnsupported'
    this.composed = composed
  }
}

/** Earlier responses to which a request to count tokens refers. */
export interface CountingContext {
  /**
   * The request in which references are replaced by the content that the gateway keeps; undefined if it keeps
   * none of it.
   */
  readonly composed: ScannedObject | undefined
  /** Members that are changed for the upstream, as JSON texts. */
  readonly replace: ReadonlyMap<string, string>
  /** Names of members that are not sent to the upstream. */
  readonly dropped: readonly string[]
  /** Returns the channels that can resolve the request's references. Throws if there are none. */
  channelsFor(channels: readonly Channel[]): readonly Channel[]
  /** Whether the request may be sent with this key of a channel that can resolve its references. */
  isOfKey(key: UpstreamKey, channel: Channel): boolean
  /** Returns the body of an upstream's error, in which ids are replaced by those that the client knows. */
  errorBody(body: Buffer): Buffer
}

/** An endpoint of a protocol at which clients have the tokens of a request counted. */
export interface CountTokensEndpoint {
  readonly protocol: ClientProtocol
  /** Names of the fields that requests to the endpoint may have. */
  readonly names: KnownMemberNames
  readonly shape: Shape
  /** Path of the upstream's endpoint, relative to a channel's base URL. */
  path(upstreamModel: string): string
  /** Checks a request and returns the model for which tokens are counted. */
  model(scan: ScannedObject): string
  /** Renders the request with the upstream's name for the model, if the name is not in the member `model`. */
  body?(scan: ScannedObject, upstreamModel: string): Buffer
  /** Name of the member of the upstream's response that contains the count. */
  readonly countedIn: string
  /** Headers for the upstream; names and values alternate. */
  upstreamHeaders(headers: Headers): readonly string[]
  /** Finds the earlier responses to which a checked request refers; absent if the protocol has none. */
  contextOf?(scan: ScannedObject, reader: RequestReaderContext): Promise<CountingContext>
  /**
   * Returns the text whose tokens the gateway counts. Throws if the request does not contain all of its text.
   * `isComposed`: whether references were already replaced by their content.
   */
  countable(scan: ScannedObject, isComposed: boolean): PromptText
  /** Creates the response that contains the number of tokens. */
  response(tokens: number): object
}

/**
 * Creates the dialect of a token-counting endpoint, for channels that speak its protocol. Its calls are free.
 */
export function countingDialect(counting: CountTokensEndpoint): Dialect {
  return {
    name: counting.protocol,
    endpoint: counting.protocol,
    names: counting.names,
    shape: counting.shape,
    async read(scan, headers, reader) {
      const model = counting.model(scan)
      const upstreamHeaders = counting.upstreamHeaders(headers)
      const context = await counting.contextOf?.(scan, reader)
      return relayed(counting, { scan, model, headers: upstreamHeaders, context })
    },
  }
}

/** A checked request to count tokens. */
interface CountedRequest {
  readonly scan: ScannedObject
  readonly model: string
  /** Headers for the upstream; names and values alternate. */
  readonly headers: readonly string[]
  readonly context: CountingContext | undefined
}

function relayed(counting: CountTokensEndpoint, request: CountedRequest): ParsedRequest {
  const { model, context } = request
  return {
    model,
    stream: false,
    maxTokens: 0,
    promptBound: 0,
    isFree: true,
    mayBeUnserved: true,
    channelsFor: (channels) => context?.channelsFor(channels) ?? channels,
    forChannels: (channels) =>
      channels.map((channel) => ({
        channel,
        outputMaximum: 0,
        choices: 1,
        ...(context && { isOfKey: (key: UpstreamKey) => context.isOfKey(key, channel) }),
        prepare() {
          if (!channelProtocols(channel, model).includes(counting.protocol))
            throw new CountingUnsupported(context?.composed ?? request.scan)
          return prepared(counting, request, channel.model_mapping.get(model) ?? model)
        },
      })),
  }
}

function prepared(
  counting: CountTokensEndpoint,
  { scan, headers, context }: CountedRequest,
  upstreamModel: string,
): AttemptRequest {
  return {
    protocol: counting.protocol,
    path: counting.path(upstreamModel),
    headers,
    body: counting.body?.(scan, upstreamModel) ?? withModel(scan, upstreamModel, context),
    upstreamModel,
    dropped: context?.dropped ?? [],
    ...(context && { errorBody: (bytes: Buffer) => context.errorBody(bytes) }),
    tap: throwNoStreams,
    reply(bytes) {
      const reply = parseRecord(bytes.toString())
      const valid = typeof reply?.[counting.countedIn] === 'number'
      const error = errorInAnswer(reply, valid)
      return { facts: { valid, usage: NO_USAGE, error, text: () => '' }, body: () => bytes }
    },
  }
}

function withModel(scan: ScannedObject, upstreamModel: string, context: CountingContext | undefined): Buffer {
  const replace = new Map(context?.replace)
  if (scan.value('model') !== upstreamModel) replace.set('model', JSON.stringify(upstreamModel))
  return applyEdits(scan.bytes, scan, { remove: [], replace })
}

/**
 * Whether an error means that an upstream of the messages protocol cannot count tokens; the endpoint is
 * optional.
 */
export function isCountingUnsupported(error: unknown): boolean {
  return (
    error instanceof CountingUnsupported || (error instanceof UpstreamRefusal && error.facts.status === 404)
  )
}
