import { Gathered } from '../protocols/sse/gathered.ts'
import type { ReplyFacts } from '../protocols/reply-facts.ts'
import type { Call, Target } from './call.ts'
import type { ChargeBasis } from './charge.ts'
import { errorWithStatus200, type Failure, noUsableResponse } from './failure.ts'
import type { PreparedReply } from './dialects/dialect.ts'
import type { Source, ResponseHandler } from './response-handler.ts'

/** Bytes of one answer that are held until it is charged. */
const LIMIT = 64 * 1024 * 1024

/** Takes in an answer that comes in one piece: held until its charge is durable, then sent as it came. */
export class WholeResponse implements ResponseHandler {
  readonly #call: Call
  readonly #target: Target
  readonly #source: Source
  readonly #bytes = new Gathered()
  #contentType = ''
  #callerLeft = false
  #draining = false
  #over = false

  constructor(call: Call, target: Target, source: Source) {
    this.#call = call
    this.#target = target
    this.#source = source
  }

  begin(contentType: string): void {
    this.#contentType = contentType
  }

  received(chunk: Buffer): void {
    if (this.#over) return
    this.#call.noteFirstByte()
    this.#bytes.add(chunk)
    if (this.#bytes.length <= LIMIT) return
    this.#source.cancel()
    this.failed(noUsableResponse('answer too large'))
  }

  ended(): void {
    if (this.#over) return
    const bytes = this.#bytes.take()
    const reply = this.#target.prepared.reply(bytes)
    const { facts } = reply
    if (!facts.valid) {
      const { channel } = this.#target
      this.failed(facts.error ? errorWithStatus200(channel, bytes) : noUsableResponse('no answer of its protocol'))
    } else if (this.#callerLeft) this.#settleUnheard(facts)
    else {
      this.#over = true
      this.#source.conclude(this.#deliver(reply))
    }
  }

  failed(failure: Failure): void {
    if (this.#over) return
    if (this.#callerLeft) this.#settleUnheard(undefined)
    else {
      this.#over = true
      this.#source.fail(failure)
    }
  }

  left(reached: boolean): void {
    if (this.#over || this.#callerLeft) return
    this.#callerLeft = true
    this.#draining = reached && this.#target.channel.onClientGone === 'drain' && this.#call.drains.begin()
    if (this.#draining) return
    this.#source.cancel()
    if (reached) this.#settleUnheard(undefined)
    else {
      this.#over = true
      this.#call.settleForNothing(this.#target)
      this.#source.conclude(Promise.resolve())
    }
  }

  tick(): void {}

  abandon(): void {
    if (this.#over) return
    this.#over = true
    if (this.#draining) this.#call.drains.end()
  }

  // Gate two: the answer is sent once its charge is durable, and so its hold was.
  async #deliver(reply: PreparedReply): Promise<void> {
    const charged = await this.#call.settle(this.#target, answered('complete', reply.facts), true)
    const { response } = this.#call
    if (response.isAborted) return
    const body = reply.body(charged)
    const headers = this.#call.headers(this.#contentType, this.#target)
    response.writeHead(200, { ...headers, 'content-length': String(body.length) }).end(body)
  }

  // The caller is gone: what is known is charged.
  #settleUnheard(facts: ReplyFacts | undefined): void {
    this.#over = true
    if (this.#draining) this.#call.drains.end()
    this.#source.conclude(this.#call.settle(this.#target, answered('client_gone', facts), false))
  }
}

function answered(ending: 'complete' | 'client_gone', facts: ReplyFacts | undefined): ChargeBasis {
  return {
    ending,
    whole: facts !== undefined,
    reported: facts?.usage,
    hasText: () => facts !== undefined && facts.text() !== '',
    text: () => facts?.text() ?? '',
  }
}
