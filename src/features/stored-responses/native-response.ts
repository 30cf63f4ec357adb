import type { ReportedUsage } from '@sluice/wire/reported-usage'
import { IdReplacer, type ResponseFacts } from '@sluice/wire/responses'
import type { EventMemory } from '@sluice/wire/sse/frame-splitter'
import { promptTokens, type Usage } from '@sluice/wire/usage'
import { priceSetText } from '../../domain/price.ts'
import { NATIVE_RETENTION_MS, type Provenance, type StoredResponse } from '../../domain/stored-response.ts'
import type {
  AnswerOrigin,
  ContinuedCall,
  LastingResponse,
  WholeReply,
} from '../../call/dialects/answer-reader.ts'
import type { BackgroundCalls } from './background-calls.ts'
import { RenamingTap } from './renaming-tap.ts'
import { newResponseId } from '../../call/response-id.ts'
import type { ResponseStore } from './response-store.ts'
import type { StreamReadSoFar } from './stream-progress.ts'

/** Facts that a response states about itself. */
interface ReportedResponse {
  /** The upstream's id of the response. */
  readonly id: string
  readonly encrypted: readonly string[]
  readonly itemIds: readonly string[]
  readonly usage: ReportedUsage | undefined
}

/** Facts of the request to which a native response belongs. */
export interface NativeRequest {
  /** Whether the upstream stores the response, so that later requests may refer to it. */
  readonly isStored: boolean
  readonly isBackground: boolean
  /** The earlier response that the request continues. */
  readonly previous: StoredResponse | undefined
}

/** Services for native responses. */
export interface NativeResponseServices {
  readonly responses: ResponseStore
  readonly background: BackgroundCalls
}

/** Maximum length of an upstream's id that is stored, in UTF-16 units. */
const MAX_ID_LENGTH = 1_024

/** Statuses of a response that is still being generated. */
const UNFINISHED: ReadonlySet<string | undefined> = new Set(['queued', 'in_progress'])

/** A native (not converted) response on its way to the client: its ids, and what is stored about it. */
export class NativeResponse {
  readonly ids = new IdReplacer()
  /** Id that the client knows; '' until the upstream has sent its own. */
  #id = ''
  #upstreamId = ''
  readonly #services: NativeResponseServices
  readonly #request: NativeRequest

  constructor(services: NativeResponseServices, request: NativeRequest) {
    this.#services = services
    this.#request = request
    const { previous } = request
    if (previous) this.ids.add(previous.upstreamId, previous.id)
  }

  get isBackground(): boolean {
    return this.#request.isBackground
  }

  /** Records the upstream's id. The first time, it creates the id for the client. Called for each chunk. */
  learn(upstreamId: string): void {
    if (upstreamId === this.#upstreamId) return
    this.#upstreamId = upstreamId
    this.#id ||= newResponseId(upstreamId.length)
    this.ids.add(upstreamId, this.#id)
  }

  /** Returns the reply for the client to a request that is not streamed. */
  reply(bytes: Buffer, facts: ResponseFacts): WholeReply {
    this.learn(facts.id)
    const goesOn = this.isBackground && facts.valid && facts.id !== '' && UNFINISHED.has(facts.status)
    return {
      facts,
      body: () => this.ids.whole(bytes),
      lasting: {
        provenance: (origin, charged) => this.provenance(facts, origin, charged),
        continueInBackground: goesOn ? (call) => this.continueInBackground(call, facts.id) : undefined,
      },
    }
  }

  /**
   * Records what is streamed of the response. The returned function must be called when the stream has ended.
   */
  note(stream: StreamReadSoFar): () => void {
    return this.#services.background.streamed.begin(this.#id, stream)
  }

  /**
   * Stores a response that continues without its client, with its counted prompt, and keeps the call's hold
   * (reserved quota) until the end is known.
   */
  continueInBackground(call: ContinuedCall, upstreamId: string): Promise<boolean> {
    const response = {
      ...this.#row(call.origin, upstreamId, call.promptTokens),
      callId: call.incoming.id,
      rate: priceSetText(call.rate, call.sent),
      priceIncomplete: call.isPriceIncomplete,
    }
    return this.#services.background.begin(call, response)
  }

  /** Where the response and its encrypted reasoning come from, for later requests that refer to them. */
  provenance(
    reported: ReportedResponse,
    { userId, key }: AnswerOrigin,
    charged: Usage,
  ): Provenance | undefined {
    const { id: upstreamId, encrypted, itemIds, usage } = reported
    const isReferable = this.#request.isStored && isStorable(upstreamId)
    if (!isReferable && encrypted.length === 0) return undefined
    // Tokens that the gateway counted itself are too inexact to serve as an upper bound.
    const isReported = usage !== undefined && !usage.promptIsUnknown && !usage.outputIsUnknown
    const tokens = isReported ? promptTokens(charged) + charged.output : 0
    const previousId = this.#request.previous?.id ?? null
    const response = isReferable ? { id: this.#id, upstreamId, tokens, previousId } : null
    const { responses } = this.#services
    if (response) responses.rememberItems(userId, itemIds, this.#id)
    return responses.provenance(userId, key.value, response, encrypted)
  }

  #row(
    { userId, model, group, channel, key }: AnswerOrigin,
    upstreamId: string,
    tokens: number,
  ): StoredResponse {
    const createdMs = Date.now()
    return {
      id: this.#id,
      userId,
      model,
      group,
      channel,
      keyTag: this.#services.responses.keyTag(key.value),
      upstreamId,
      tokens,
      previousId: this.#request.previous?.id ?? null,
      createdMs,
      expiresMs: createdMs + NATIVE_RETENTION_MS,
      callId: null,
      rate: null,
    }
  }
}

/** Reports whether an upstream's id can be stored: databases refuse NUL, and ids have a maximum length. */
function isStorable(upstreamId: string): boolean {
  return upstreamId !== '' && upstreamId.length <= MAX_ID_LENGTH && !upstreamId.includes('\0')
}

/** Reads the stream of a native (not converted) response on its way to the client. */
export class NativeTap extends RenamingTap {
  readonly #response: NativeResponse
  /** Must be called at the end of the stream: ends the record of what is streamed. */
  #endNote: (() => void) | undefined
  #isReleased = false
  readonly #referable: LastingResponse = {
    provenance: (origin, charged) => this.#provenance(origin, charged),
  }

  constructor(memory: EventMemory, response: NativeResponse) {
    super(memory, response.ids)
    this.#response = response
  }

  get lasting(): LastingResponse {
    const { responseId } = this
    if (!this.#response.isBackground || responseId === '') return this.#referable
    // A background stream continues without its client once it has an id by which it can be retrieved.
    return {
      ...this.#referable,
      continueInBackground: (call) => this.#continueInBackground(call, responseId),
    }
  }

  async #continueInBackground(call: ContinuedCall, upstreamId: string): Promise<boolean> {
    const goesOn = await this.#response.continueInBackground(call, upstreamId)
    if (goesOn) this.#endNote = this.#response.note(this)
    if (this.#isReleased) this.#endNote?.()
    return goesOn
  }

  override release(): void {
    this.#isReleased = true
    super.release()
    this.#endNote?.()
  }

  #provenance(origin: AnswerOrigin, charged: Usage): Provenance | undefined {
    const { responseId: id, encrypted, itemIds, usage } = this
    return this.#response.provenance({ id, encrypted, itemIds, usage }, origin, charged)
  }

  protected learn(): void {
    this.#response.learn(this.responseId)
  }
}
