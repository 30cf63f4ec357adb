import type { AnswerOrigin } from '../../call/dialects/answer-reader.ts'
import { randomBytes } from 'node:crypto'
import { promptTokens, type Usage } from '@sluice/wire/usage'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { inputItems } from '@sluice/wire/responses'
import { frameData } from '@sluice/wire/sse/frame-splitter'
import type { AnswerKeeper } from '../../call/dialects/references.ts'
import type { KeptResponse, ResponseStore } from './response-store.ts'

/** What is needed to keep the response to a converted request. */
export interface RetentionOptions {
  readonly responses: ResponseStore
  /** The request, without the items of the response that it continues. */
  readonly scan: ScannedObject
  readonly previousId: string | null
  readonly retentionMs: number
}

/** A converted response that the gateway keeps, because no provider does. */
export class RetainedResponse implements AnswerKeeper {
  readonly #keeping: RetentionOptions
  /** The items of the request, each with an id, as JSON. */
  readonly #input: string

  constructor(keeping: RetentionOptions) {
    this.#keeping = keeping
    this.#input = inputItems(keeping.scan, (prefix) => `${prefix}_${randomBytes(16).toString('hex')}`)
  }

  /** Stores the response of a stream. The stream's last frame contains the whole response. */
  keepStream(finalBytes: Buffer, charged: Usage, origin: AnswerOrigin): Promise<void> {
    return this.#keeping.responses.keep(() => {
      const last = finalBytes.toString().trimEnd().split('\n\n').at(-1) ?? ''
      const event = scanObject(Buffer.from(frameData(`${last}\n\n`) ?? '{}'), RESPONSE_LIMITS)
      const node = event.span('response')?.node
      return node === undefined ? undefined : this.#made(event.textOf(node), charged, origin)
    })
  }

  /** Stores a response as the client receives it. */
  keep(response: string, charged: Usage, origin: AnswerOrigin): Promise<void> {
    return this.#keeping.responses.keep(() => this.#made(response, charged, origin))
  }

  #made(
    response: string,
    charged: Usage,
    { userId, model, group, channel, key }: AnswerOrigin,
  ): KeptResponse {
    const { responses, previousId, retentionMs } = this.#keeping
    const createdMs = Date.now()
    return {
      response: {
        id: String(scanObject(Buffer.from(response), RESPONSE_LIMITS).value('id')),
        userId,
        model,
        group,
        channel,
        keyTag: responses.keyTag(key.value),
        upstreamId: '',
        tokens: promptTokens(charged) + charged.output,
        previousId,
        createdMs,
        expiresMs: createdMs + retentionMs,
        callId: null,
        rate: null,
      },
      content: { input: this.#input, response },
    }
  }
}
