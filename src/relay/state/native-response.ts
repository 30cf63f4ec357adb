import { rateText } from '../../domain/price.ts'
import type { StoredResponse } from '../../domain/stored-response.ts'
import { promptTokens, type Usage } from '../../domain/usage.ts'
import { RenamedIds, type ResponseFacts } from '../../protocols/responses/index.ts'
import type { ReportedUsage } from '../../protocols/reported-usage.ts'
import type { Call, Target } from '../call.ts'
import type { PreparedReply } from '../dialects/dialect.ts'
import type { BackgroundCalls } from './background-calls.ts'
import { NATIVE_RETENTION_MS, ResponseStore } from './response-store.ts'

/** Facts that a response told of itself. */
interface Told {
  /** Id at the upstream. */
  readonly id: string
  readonly encrypted: readonly string[]
  readonly usage: ReportedUsage | undefined
}

/** Facts of the request that a native response belongs to. */
export interface NativeRequest {
  /** Whether the upstream stores the response. */
  readonly isStored: boolean
  readonly isBackground: boolean
  /** Response that is continued. */
  readonly previous: StoredResponse | undefined
}

/** Services for native responses. */
export interface NativeParts {
  readonly responses: ResponseStore
  readonly background: BackgroundCalls
}

/** Statuses of a response that is not finished. */
const UNFINISHED: ReadonlySet<string | undefined> = new Set(['queued', 'in_progress'])

/** One native response on its way to the client: its ids, and what is stored of it. */
export class NativeResponse {
  readonly ids = new RenamedIds()
  readonly #id = ResponseStore.newId()
  readonly #parts: NativeParts
  readonly #request: NativeRequest

  constructor(parts: NativeParts, request: NativeRequest) {
    this.#parts = parts
    this.#request = request
    const { previous } = request
    if (previous) this.ids.add(previous.upstreamId, previous.id)
  }

  get isBackground(): boolean {
    return this.#request.isBackground
  }

  /** Learns the upstream's id. */
  learn(upstreamId: string): void {
    this.ids.add(upstreamId, this.#id)
  }

  /** The reply of a response that came whole. */
  reply(bytes: Buffer, facts: ResponseFacts): PreparedReply {
    this.learn(facts.id)
    const goesOn = this.isBackground && facts.valid && facts.id !== '' && UNFINISHED.has(facts.status)
    return {
      facts,
      body: () => this.ids.whole(bytes),
      keep: (target, call, charged) => this.keep(facts, target, call, charged),
      goOn: goesOn ? (target, call) => this.goOn(target, call, facts.id) : undefined,
    }
  }

  /** Stores the response that goes on, and parks its hold. */
  goOn(target: Target, call: Call, upstreamId: string): Promise<boolean> {
    const response = {
      ...this.#row(target, call, upstreamId, call.expectedPrompt),
      callId: call.id,
      rate: rateText(call.rate),
    }
    return this.#parts.background.begin(call, response)
  }

  /** Stores what a client may refer to after the call. */
  async keep(told: Told, target: Target, call: Call, charged: Promise<Usage>): Promise<void> {
    const { responses } = this.#parts
    const { encrypted } = told
    const origins =
      encrypted.length > 0
        ? responses.keepOrigins(call.hold.account.user.id, encrypted, target.channel.name, target.key.value)
        : undefined
    if (this.#request.isStored && told.id !== '') {
      const usage = told.usage ?? (await charged)
      const tokens = promptTokens(usage) + usage.output
      await responses.keep(this.#row(target, call, told.id, tokens))
    }
    await origins
  }

  #row({ channel, key }: Target, call: Call, upstreamId: string, tokens: number): StoredResponse {
    const createdMs = Date.now()
    return {
      id: this.#id,
      userId: call.hold.account.user.id,
      model: call.model,
      group: call.hold.facts.group,
      channel: channel.name,
      keyTag: this.#parts.responses.keyTag(key.value),
      upstreamId,
      tokens,
      previousId: this.#request.previous?.id ?? null,
      createdMs,
      expiresMs: createdMs + NATIVE_RETENTION_MS,
      content: null,
      callId: null,
      rate: null,
    }
  }
}
