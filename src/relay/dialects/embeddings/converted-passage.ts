import { addedUsage, NO_USAGE, type Usage } from '../../../domain/usage.ts'
import type { ReplyFacts } from '../../../protocols/reply-facts.ts'
import { ChunkList } from '../../../protocols/sse/chunk-list.ts'
import type { EmbedForm, VectorsReading, VectorsWriting } from '../../../protocols/texts-to-embed.ts'
import type { StreamError } from '../../../protocols/sse/stream-tap.ts'
import type { Measure, MeasuredCall, PassedBytes, Passage } from '../passage.ts'
import { HeldStart } from './held-start.ts'
import { measureEmbeddings } from './responses.ts'

/** Vectors in an upstream's form, which come in as many responses as the texts need, written as one. */
export class ConvertedPassage implements Passage {
  readonly #form: EmbedForm
  readonly #writer: VectorsWriting
  readonly #texts: number
  /** Bodies of the requests that are still to be sent. */
  readonly #more: Buffer[]
  readonly #held = new HeldStart()
  readonly #written = new ChunkList()
  #reply: VectorsReading
  #facts: ReplyFacts | undefined
  #vectors = 0
  /** Undefined where a response told none. */
  #usage: Usage | undefined = NO_USAGE
  #charged = NO_USAGE

  constructor(form: EmbedForm, writer: VectorsWriting, texts: number, more: readonly Buffer[]) {
    this.#form = form
    this.#writer = writer
    this.#texts = texts
    this.#more = [...more]
    this.#reply = this.#nextReply()
  }

  get hasBegun(): boolean {
    return this.#held.isLarge
  }

  get hasContent(): boolean {
    return this.#held.isLarge
  }

  get error(): StreamError | undefined {
    return this.#facts?.error ? { data: this.#reply.outline, afterContent: this.hasBegun } : undefined
  }

  push(chunk: Buffer): PassedBytes {
    this.#reply.push(chunk)
    const forward = this.#written.length === 0 ? undefined : this.#held.push(this.#written.take())
    return { forward, isOver: false }
  }

  end(): boolean {
    this.#facts = this.#reply.end()
    const { usage } = this.#facts
    this.#usage = this.#usage && usage && addedUsage(this.#usage, usage)
    return this.#facts.valid && (this.#more.length > 0 || this.#vectors === this.#texts)
  }

  next(): Buffer | undefined {
    const body = this.#more.shift()
    if (body) this.#reply = this.#nextReply()
    return body
  }

  rest(): Buffer {
    // Some responses are read at their end.
    return Buffer.concat([this.#held.rest(), this.#written.take(), this.#writer.end(this.#charged)])
  }

  async measure(call: MeasuredCall, isComplete: boolean): Promise<Measure> {
    const measure = await measureEmbeddings(call, isComplete ? this.#usage : undefined)
    this.#charged = measure.usage
    return measure
  }

  #nextReply(): VectorsReading {
    return this.#form.reading((vector) => {
      this.#vectors += 1
      this.#written.add(this.#writer.write(vector))
    })
  }
}
