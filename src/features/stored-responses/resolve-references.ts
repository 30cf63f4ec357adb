import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import {
  hasThoughtsOfOtherDialects,
  IdReplacer,
  inputForProvider,
  usageOfCompaction,
  usageOfResponse,
} from '@sluice/wire/responses'
import type { Channel } from '../../domain/records/channel.ts'
import type { Options } from '../../domain/options.ts'
import type { StoredResponse } from '../../domain/stored-response.ts'
import { GatewayError } from '../../errors.ts'
import type { RequestReaderContext } from '../../call/dialects/dialect.ts'
import { throwNoStreams } from '../../call/dialects/answer-reader.ts'
import type {
  AnswerKeeping,
  ReferableAnswer,
  ReferringRequest,
  ResolvedReferences,
} from '../../call/dialects/references.ts'
import type { ChannelPlan } from '../../call/request-stages.ts'
import { newResponseId } from '../../call/response-id.ts'
import { findReferences, type ResponseReferences } from './item-references.ts'
import { NativeResponse, type NativeResponseServices, NativeTap } from './native-response.ts'
import { channelsOfReasoningAccount, type ReasoningAccount } from './reasoning-origin.ts'
import { channelsToContinue } from './resolve-previous-response.ts'
import { RetainedResponse } from './retained-response.ts'

/** Members that are stated in a converted response if the gateway keeps the response. */
const KEPT = new Map([['store', 'true']])
const NONE: readonly StoredResponse[] = []
const UNCHANGED: ReadonlyMap<string, string> = new Map()
const NOTHING_DROPPED: readonly string[] = []
const FOREIGN_REASONING = ['input.reasoning']

/** Finds what a request refers to. Rejects like `findReferences`. */
export async function resolveReferences(
  request: ReferringRequest,
  reader: RequestReaderContext,
  services: NativeResponseServices,
): Promise<ResolvedReferences> {
  const found = await findReferences(request.scan, request.previousId, reader, services.responses)
  return new FoundReferences(request, found, reader.settings.options, services)
}

/** What a request refers to, among the caller's responses. */
class FoundReferences implements ResolvedReferences {
  readonly replace: ReadonlyMap<string, string> = UNCHANGED
  readonly dropped: readonly string[] = NOTHING_DROPPED
  readonly #request: ReferringRequest
  readonly #found: ResponseReferences
  readonly #retentionMs: number
  readonly #services: NativeResponseServices

  constructor(
    request: ReferringRequest,
    found: ResponseReferences,
    { keep_responses }: Options,
    services: NativeResponseServices,
  ) {
    this.#request = request
    this.#found = found
    this.#retentionMs = keep_responses
    this.#services = services
    if (found.isPlain) return
    const whole = found.composed ?? request.scan
    const isForeign = hasThoughtsOfOtherDialects(whole)
    this.replace = this.#replaced(whole, isForeign)
    if (isForeign) this.dropped = FOREIGN_REASONING
  }

  get isKnown(): boolean {
    const { composed, continued, account } = this.#found
    return composed !== undefined || continued !== undefined || account !== undefined
  }

  get continues(): ResolvedReferences['continues'] {
    const { continued } = this.#found
    return continued && (continued.kind === 'native' ? 'at provider' : 'at gateway')
  }

  get composed(): ScannedObject | undefined {
    return this.#found.composed
  }

  /** The gateway keeps the answer unless the client or the operator does not want it. */
  get keeping(): AnswerKeeping | undefined {
    const { scan, isStored } = this.#request
    const retentionMs = this.#retentionMs
    if (retentionMs === 0 || !isStored) return undefined
    const { continued } = this.#found
    const previousId = continued?.kind === 'kept' ? continued.response.id : null
    const { responses } = this.#services
    return {
      repeats: KEPT,
      begin: () => new RetainedResponse({ responses, scan, previousId, retentionMs }),
    }
  }

  channelsFor(channels: readonly Channel[]): readonly Channel[] {
    const { continued, account } = this.#found
    const able = continued ? channelsToContinue(continued, channels) : channels
    const ready = this.#request.isBackground ? channelsThatStore(able) : able
    return account ? channelsOfReasoningAccount(ready, account) : ready
  }

  accountAt({ name }: Channel): Pick<ChannelPlan, 'isOfKey'> {
    const { continued, account } = this.#found
    const origin: ReasoningAccount | undefined = continued?.response ?? account
    if (origin?.channel !== name) return {}
    return { isOfKey: ({ value }) => this.#services.responses.keyTag(value) === origin.keyTag }
  }

  /**
   * Counts the reported tokens of the responses that the request continues or whose items it uses. Together, items count
   * at most as much as a prompt can have: the model's context, or the largest of these responses.
   */
  promptSize(modelContext: number): { readonly tokens: number; readonly hasUnknown: boolean } {
    const { items } = this.#found
    const previous = this.#previous
    const others = items?.responses.filter(({ id }) => id !== previous?.id) ?? NONE
    const tokens = others.map((response) => response.tokens)
    const ofItems = Math.min(
      tokens.reduce((sum, each) => sum + each, 0),
      Math.max(modelContext, ...tokens),
    )
    const known = previous ? [previous, ...others] : others
    return {
      tokens: (previous?.tokens ?? 0) + ofItems,
      hasUnknown: items?.hasUnknown === true || known.some(isUnreported),
    }
  }

  answerFrom(channel: Channel): ReferableAnswer {
    const { isCompaction, isStored, isBackground } = this.#request
    if (isCompaction) return this.#compaction()
    const response = new NativeResponse(this.#services, {
      isStored: isStored && !channel.disable_store,
      isBackground,
      previous: this.#previous,
    })
    return {
      errorBody: (bytes) => response.ids.inProse(bytes),
      tap: (_, memory) => new NativeTap(memory, response),
      reply: (bytes) => response.reply(bytes, usageOfResponse(bytes)),
    }
  }

  /** The response that the request continues, if its provider stores it. */
  get #previous(): StoredResponse | undefined {
    const { continued } = this.#found
    return continued?.kind === 'native' ? continued.response : undefined
  }

  #replaced(whole: ScannedObject, isForeign: boolean): ReadonlyMap<string, string> {
    const replace = new Map<string, string>()
    const previous = this.#previous
    if (previous) replace.set('previous_response_id', JSON.stringify(previous.upstreamId))
    else if (this.#found.continued) replace.set('previous_response_id', 'null')
    if (this.composed || isForeign) replace.set('input', inputForProvider(whole))
    return replace
  }

  #compaction(): ReferableAnswer {
    const ids = new IdReplacer()
    const previous = this.#previous
    if (previous) ids.add(previous.upstreamId, previous.id)
    const { responses } = this.#services
    return {
      errorBody: (bytes) => ids.inProse(bytes),
      tap: throwNoStreams,
      reply(bytes) {
        const facts = usageOfCompaction(bytes)
        ids.add(facts.id, newResponseId(facts.id.length))
        return {
          facts,
          body: () => ids.whole(bytes),
          lasting: {
            // Only the provider account that compacted a conversation can read the result.
            provenance: ({ userId, key }) => responses.provenance(userId, key.value, null, facts.encrypted),
          },
        }
      },
    }
  }
}

// The tokens are unknown for a background response, which is stored before its end, and for a response whose
// upstream reported none.
function isUnreported({ callId, tokens }: StoredResponse): boolean {
  return callId !== null || tokens === 0
}

// Returns the channels that can continue a response after its client has left: those that store it upstream.
// Throws if there are none.
function channelsThatStore(channels: readonly Channel[]): readonly Channel[] {
  const able = channels.filter(
    ({ protocol: protocols, disable_store }) => protocols.includes('responses') && !disable_store,
  )
  if (able.length > 0) return able
  throw new GatewayError(
    'invalid_request',
    `Invalid 'background': expected false, got true: no channel of this model stores responses itself.`,
  )
}
