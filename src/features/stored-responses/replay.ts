import { type IdReplacer, responsesFieldNames } from '@sluice/wire/responses'
import type { ReportedUsage } from '@sluice/wire/reported-usage'
import type { EventMemory } from '@sluice/wire/sse/frame-splitter'
import type { DialectFacts } from '../../call/dialects/dialect-facts.ts'
import { type LastingResponse, throwNoStreams } from '../../call/dialects/answer-reader.ts'
import type { ResponseAccount } from './response-account.ts'
import type { StreamReadSoFar } from './stream-progress.ts'
import { RenamingTap } from './renaming-tap.ts'
import type { ChannelPlan, ParsedRequest } from '../../call/request-stages.ts'

/** A stored response whose stream is sent to the client again: its source and its ids. */
export interface Replay {
  readonly account: ResponseAccount
  /** Model name that the client requested. */
  readonly model: string
  /** Path and query, relative to the channel's base URL. */
  readonly path: string
  readonly ids: IdReplacer
  /** Id, as the client knows it, of the response that this one continues; null if it continues none. */
  readonly previousId: string | null
  /**
   * Begins to record how much of the stream was read. The returned function must be called when the stream
   * has ended.
   */
  note(stream: StreamReadSoFar): () => void
  /** Called with the final status and usage of the stream. */
  onEnd(status: string, usage: ReportedUsage | undefined): Promise<void>
}

/** The dialect of a stream that is sent again. */
export const REPLAY_DIALECT: DialectFacts = {
  name: 'responses',
  endpoint: 'responses',
  names: responsesFieldNames,
  mayBeUnserved: true,
}

/** The request to stream a stored response again. Only the channel that created the response can serve it. */
export function replayRequest(replay: Replay): ParsedRequest {
  const { channel, key } = replay.account
  const request: ChannelPlan = {
    channel,
    outputMaximum: 0,
    choices: 1,
    isOfKey: ({ value }) => value === key.value,
    prepare: () => ({
      method: 'GET',
      protocol: 'responses',
      path: replay.path,
      headers: [],
      body: Buffer.alloc(0),
      upstreamModel: replay.model,
      dropped: [],
      errorBody: (bytes) => replay.ids.inProse(bytes),
      tap: (_, memory) => new ReplayTap(memory, replay),
      reply: throwNoStreams,
    }),
  }
  return {
    model: replay.model,
    stream: true,
    maxTokens: 0,
    promptBound: 0,
    charging: 'free',
    forChannels: () => [request],
  }
}

/** Reads a stored response that is streamed again. Its tokens were already charged when it was generated. */
class ReplayTap extends RenamingTap {
  readonly #replay: Replay
  readonly #endNote: () => void

  constructor(memory: EventMemory, replay: Replay) {
    super(memory, replay.ids)
    this.#replay = replay
    this.#endNote = replay.note(this)
  }

  get lasting(): LastingResponse {
    return { keep: () => this.#noteEnd() }
  }

  async #noteEnd(): Promise<void> {
    const { status, usage } = this
    if (status !== undefined) await this.#replay.onEnd(status, usage)
  }

  override release(): void {
    super.release()
    this.#endNote()
  }

  // The previous response may have been deleted from the store, together with its upstream's id. The stream
  // contains that id, so it is taken from there.
  protected learn(): void {
    const { ids, previousId } = this.#replay
    if (previousId !== null) ids.add(this.previousId, previousId)
  }
}
