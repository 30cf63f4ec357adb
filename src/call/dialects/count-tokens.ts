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
import { ruleOf } from '../failure-table.ts'
import { finalError, type Failure } from '../failure.ts'
import type { Dialect, RequestReaderContext } from './dialect.ts'
import { throwNoStreams } from './answer-reader.ts'
import { type ResolvedReferences, UNRESOLVED } from './references.ts'
import type { AttemptRequest, ParsedRequest } from '../request-stages.ts'

/** Thrown if no channel of the model counts tokens; the gateway then counts them itself. */
export class CountingUnsupported extends Error {
  /** The request with references replaced by the content that the gateway keeps; absent if it keeps none of it. */
  readonly composed: ScannedObject | undefined
  /** Whether an upstream was called, which may know what other references mean. */
  readonly wasAsked: boolean

  /** `cause`: the error for the client if the request does not contain all that the gateway would have to count. */
  constructor(composed: ScannedObject | undefined, wasAsked: boolean, cause?: Error) {
    super('no channel of this model counts tokens', { cause })
    this.name = 'CountingUnsupported'
    this.composed = composed
    this.wasAsked = wasAsked
  }
}

/** An endpoint of a protocol at which clients have the tokens of a request counted. */
export interface CountTokensEndpoint {
  readonly protocol: ClientProtocol
  /** The model, if the path of the request names it. */
  readonly pathModel?: string
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
  /** Name of the member with the id of the answer that a request continues; absent if requests refer to none. */
  readonly previousId?: string
  /**
   * Returns the text whose tokens the gateway counts. Throws if the request does not contain all of its text.
   * `isComposed`: whether references were already replaced by their content. `mayRefer`: whether others may remain,
   * which are not counted.
   */
  countable(scan: ScannedObject, isComposed: boolean, mayRefer: boolean): PromptText
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
    ...(counting.pathModel !== undefined && { pathModel: counting.pathModel }),
    names: counting.names,
    shape: counting.shape,
    mayBeUnserved: true,
    isCount: true,
    hasNoFallbacks: true,
    async read(scan, headers, reader) {
      const model = counting.model(scan)
      const upstreamHeaders = counting.upstreamHeaders(headers)
      const referred = await referredIn(counting, scan, reader)
      return relayed(counting, { scan, model, headers: upstreamHeaders, referred })
    },
  }
}

function referredIn(
  { previousId: member }: CountTokensEndpoint,
  scan: ScannedObject,
  reader: RequestReaderContext,
): ResolvedReferences | Promise<ResolvedReferences> {
  if (member === undefined) return UNRESOLVED
  const id = scan.value(member)
  const previousId = typeof id === 'string' ? id : undefined
  const referring = { scan, previousId, isCompaction: false, isStored: false, isBackground: false }
  return reader.features.refer(referring, reader)
}

/** A checked request to count tokens. */
interface CountedRequest {
  readonly scan: ScannedObject
  readonly model: string
  /** Headers for the upstream; names and values alternate. */
  readonly headers: readonly string[]
  readonly referred: ResolvedReferences
}

function relayed(counting: CountTokensEndpoint, request: CountedRequest): ParsedRequest {
  const { model, referred } = request
  return {
    model,
    stream: false,
    maxTokens: 0,
    promptBound: 0,
    charging: 'free',
    ...(referred.composed && { composed: referred.composed }),
    ...(!referred.continues && { forModel: (name) => relayed(counting, { ...request, model: name }) }),
    channelsFor: (channels) => referred.channelsFor(channels),
    forChannels: (channels) =>
      channels.map((channel) => ({
        channel,
        outputMaximum: 0,
        choices: 1,
        ...referred.accountAt(channel),
        prepare() {
          if (!channelProtocols(channel, model).includes(counting.protocol))
            throw new CountingUnsupported(referred.composed ?? request.scan, false)
          return prepared(counting, request, channel)
        },
      })),
  }
}

function prepared(
  counting: CountTokensEndpoint,
  { scan, model, headers, referred }: CountedRequest,
  channel: Channel,
): AttemptRequest {
  const upstreamModel = channel.model_mapping.get(model) ?? model
  const answer = referred.answerFrom(channel)
  return {
    protocol: counting.protocol,
    path: counting.path(upstreamModel),
    headers,
    body: counting.body?.(scan, upstreamModel) ?? withModel(scan, upstreamModel, referred),
    upstreamModel,
    dropped: referred.dropped,
    ...(answer && { errorBody: answer.errorBody }),
    tap: throwNoStreams,
    reply(bytes) {
      const reply = parseRecord(bytes.toString())
      const valid = typeof reply?.[counting.countedIn] === 'number'
      const error = errorInAnswer(reply, valid)
      return { facts: { valid, usage: NO_USAGE, error, text: () => '' }, body: () => bytes }
    },
  }
}

function withModel(scan: ScannedObject, upstreamModel: string, referred: ResolvedReferences): Buffer {
  const replace = new Map(referred.replace)
  if (scan.value('model') !== upstreamModel) replace.set('model', JSON.stringify(upstreamModel))
  return applyEdits(scan.bytes, scan, { remove: [], replace })
}

/**
 * Throws `CountingUnsupported` if an upstream has failed to count this request; not if the request is wrong or was ended.
 */
export function throwIfUncounted(failure: Failure, { composed }: ParsedRequest): void {
  const { blames, client } = ruleOf(failure)
  if (blames === 'request' || client === 'own' || client === 'nothing') return
  const isMissing = failure.kind === 'endpoint_missing'
  const cause = isMissing ? undefined : finalError([failure], () => undefined)
  throw new CountingUnsupported(composed, true, cause)
}
