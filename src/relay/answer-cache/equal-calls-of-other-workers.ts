import type { Link } from '../../ipc/link.ts'
import type { AnswerHead } from '../answers/kept-answers.ts'
import { AnswerRecorder } from '../answers/answer-recorder.ts'
import { responseDrained } from '../answers/response-drained.ts'
import type { RequestedBodyForm } from './answer-bodies.ts'
import type { AnswerFacts } from './answer-facts.ts'
import type { SharedAnswer } from './shared-answer.ts'

/** Bytes of an answer that may wait to be read by another process; one further piece may exceed this. */
const MAX_UNREAD_BYTES = 262_144

/**
 * Identifies an answer, or a reader of an answer: a worker process, and the number that this worker gave it.
 */
interface AnswerId {
  readonly worker: string
  readonly number: number
}

/** A request for the next part of another worker's answer. */
interface Reading {
  readonly lookup: string
  readonly answer: AnswerId
  readonly reader: AnswerId
}

/** The part of an answer that arrived since the last request. */
type ReadPart =
  /** There is nothing to read: the answer comes from the store, or its call is over. */
  | { readonly kind: 'nothing' }
  | {
      readonly kind: 'part'
      readonly given: RequestedBodyForm
      readonly head: AnswerHead | undefined
      readonly bytes: Uint8Array
      /** Set with the last part. If `facts` is undefined, the answer cannot be given to other calls. */
      readonly end: { readonly facts: AnswerFacts | undefined } | undefined
    }

const NOTHING: ReadPart = { kind: 'nothing' }

/** The answer of a call that another worker is making. */
export interface AnswerOfOtherWorker {
  /**
   * Copies the answer into `into` as it arrives. Resolves to false if there is no such answer. `onUseless` is
   * called before other calls learn that the answer cannot be used. Never rejects.
   */
  takeOver(into: SharedAnswer, onUseless: () => void): Promise<boolean>
}

/** Finds equal calls that other workers of this machine are making, and passes answers between workers. */
export class EqualCallsOfOtherWorkers {
  readonly #link: Link
  readonly #worker: string
  /** Answers of calls that this worker is making, by number. */
  readonly #own = new Map<number, SharedAnswer>()
  readonly #numbers = new Map<SharedAnswer, number>()
  readonly #readers = new Map<string, AnswerReader>()
  #lastNumber = 0

  /** `worker`: name of this worker. */
  constructor(link: Link, worker: string) {
    this.#link = link
    this.#worker = worker
    link.answer('read equal', (reading: Reading) => this.#read(reading))
    link.on('leave equal', (reader: AnswerId) => this.#leave((name) => name === nameOf(reader)))
    link.on('drop equal', (lost: string) => this.#leave((name) => name.startsWith(`${lost} `)))
  }

  /**
   * Announces that this worker is about to ask an upstream. If another worker is already doing so for an
   * equal call, resolves to its answer; otherwise to undefined.
   */
  async enter(lookup: string, answer: SharedAnswer): Promise<AnswerOfOtherWorker | undefined> {
    const id = this.#next()
    this.#own.set(id.number, answer)
    this.#numbers.set(answer, id.number)
    const first = await this.#link
      .request<AnswerId | undefined>('enter equal', [lookup, id])
      .catch(() => undefined)
    if (!first) return undefined
    this.#forget(answer)
    const reading = { lookup, answer: first, reader: this.#next() }
    return { takeOver: (into, onUseless) => this.#takeOver(reading, into, onUseless) }
  }

  /** Announces that a call of this worker is over. */
  leave(lookup: string, answer: SharedAnswer): void {
    const number = this.#forget(answer)
    if (number !== undefined) this.#link.send('end equal', [lookup, { worker: this.#worker, number }])
  }

  #next(): AnswerId {
    return { worker: this.#worker, number: (this.#lastNumber += 1) }
  }

  #forget(answer: SharedAnswer): number | undefined {
    const number = this.#numbers.get(answer)
    this.#numbers.delete(answer)
    if (number !== undefined) this.#own.delete(number)
    return number
  }

  async #takeOver(reading: Reading, into: SharedAnswer, onUseless: () => void): Promise<boolean> {
    const first = await this.#ask(reading)
    if (first.kind === 'nothing') return false
    into.given = first.given
    void this.#follow(reading, first, into, onUseless)
    return true
  }

  async #follow(reading: Reading, first: ReadPart, into: SharedAnswer, onUseless: () => void): Promise<void> {
    const { recorder } = into.answer
    recorder.onClosed(() => {
      if (recorder.isAborted) this.#link.send('leave equal', reading)
    })
    let facts: AnswerFacts | undefined
    for (let part = first; part.kind === 'part' && !recorder.isAborted; ) {
      const { head, bytes, end } = part
      if (head && !recorder.headersSent) recorder.writeHead(head.status, head.headers)
      // A copy, because `bytes` is a view of a larger received message.
      if (bytes.length > 0 && !recorder.write(Buffer.from(bytes))) await responseDrained(recorder)
      facts = end?.facts
      if (end || recorder.isAborted) break
      part = await this.#ask(reading)
    }
    if (!facts) onUseless()
    into.endedAs(facts)
    if (facts) recorder.end()
    else recorder.destroy()
  }

  /** Requests the next part of an answer; if the other worker has gone, resolves to `NOTHING`. */
  async #ask(reading: Reading): Promise<ReadPart> {
    return this.#link.request<ReadPart>('read equal', reading).catch(() => NOTHING)
  }

  async #read({ answer, reader }: Reading): Promise<ReadPart> {
    const name = nameOf(reader)
    const known = this.#readers.get(name) ?? (await this.#begin(answer))
    if (!known) return NOTHING
    this.#readers.set(name, known)
    const part = await known.read()
    if (part.end) this.#readers.delete(name)
    return part
  }

  async #begin({ number }: AnswerId): Promise<AnswerReader | undefined> {
    const answer = this.#own.get(number)
    if (!answer || (await answer.source) !== 'call') return undefined
    return answer.answer.hasEnded && !(await answer.facts) ? undefined : AnswerReader.of(answer)
  }

  /** Ends those readers of other workers whose names match. */
  #leave(isMeant: (name: string) => boolean): void {
    for (const [name, reader] of this.#readers) {
      if (!isMeant(name)) continue
      this.#readers.delete(name)
      reader.leave()
    }
  }
}

/** Reads an answer, like a client, on behalf of another worker. */
class AnswerReader {
  readonly #answer: SharedAnswer
  readonly #recorder: AnswerRecorder
  #head: AnswerHead | undefined
  #pieces: Buffer[] = []
  #bytes = 0
  #state: 'under way' | 'complete' | 'broken' = 'under way'
  #wake: (() => void) | undefined
  /** Finishes the recorded response; set once the answer is complete. */
  #finished: (() => void) | undefined

  private constructor(answer: SharedAnswer) {
    this.#answer = answer
    this.#recorder = new AnswerRecorder({
      begin: (head) => (this.#head = head),
      write: (piece) => this.#add(piece),
      complete: (finished) => {
        this.#finished = finished
        this.#over('complete')
      },
      breakOff: () => this.#over('broken'),
      needsUpstream() {},
      // The clients of the other worker wait without a head, because only bytes of the answer pass the link.
      keepAlive() {},
    })
  }

  /** Begins to read an answer; undefined if its beginning is no longer in memory. */
  static of(answer: SharedAnswer): AnswerReader | undefined {
    const reader = new AnswerReader(answer)
    const attached = answer.answer.attach(reader.#recorder)
    attached?.then(
      (isServed) => !isServed && reader.#over('broken'),
      () => reader.#over('broken'),
    )
    return attached && reader
  }

  /** Resolves to the part that arrived since the last call, waiting if there is none yet. */
  async read(): Promise<Extract<ReadPart, { kind: 'part' }>> {
    if (this.#pieces.length === 0 && this.#state === 'under way')
      await new Promise<void>((resolve) => (this.#wake = resolve))
    const bytes = Buffer.concat(this.#pieces)
    const state = this.#state
    this.#pieces = []
    this.#bytes = 0
    const end =
      state === 'under way'
        ? undefined
        : { facts: state === 'complete' ? await this.#answer.facts : undefined }
    this.#recorder.onDrain()
    if (end) this.#finished?.()
    return { kind: 'part', given: this.#answer.given, head: this.#head, bytes, end }
  }

  /** Ends the reading, because the other worker no longer has clients for the answer. */
  leave(): void {
    this.#recorder.onConnectionEnd('aborted')
    this.#over('broken')
  }

  #add(piece: Buffer): boolean {
    this.#pieces.push(piece)
    this.#bytes += piece.length
    this.#wakeUp()
    return this.#bytes <= MAX_UNREAD_BYTES
  }

  #over(state: 'complete' | 'broken'): void {
    if (this.#state === 'under way') this.#state = state
    this.#wakeUp()
  }

  #wakeUp(): void {
    this.#wake?.()
    this.#wake = undefined
  }
}

/**
 * Records which worker is making which call, and passes answers between workers. Runs in the process that the
 * workers are connected to.
 */
export class EqualCallRegistry {
  readonly #links = new Map<string, Link>()
  /** The running call for each lookup key, whose answer equal calls get. */
  readonly #first = new Map<string, AnswerId>()

  /** Registers a worker that has started, and answers its requests. */
  add(worker: string, link: Link): void {
    this.#links.set(worker, link)
    void link.closed.then(() => this.#drop(worker))
    link.answer('enter equal', ([lookup, id]: [string, AnswerId]) => {
      const first = this.#first.get(lookup)
      if (!first) this.#first.set(lookup, id)
      return first
    })
    link.on('end equal', ([lookup, id]: [string, AnswerId]) => this.#end(lookup, id))
    link.answer('read equal', (reading: Reading) => this.#read(reading))
    link.on('leave equal', ({ answer, reader }: Reading) =>
      this.#links.get(answer.worker)?.send('leave equal', reader),
    )
  }

  async #read(reading: Reading): Promise<ReadPart> {
    const { lookup, answer } = reading
    const link = this.#links.get(answer.worker)
    const part = await link?.request<ReadPart>('read equal', reading).catch(() => undefined)
    if (!part || part.kind === 'nothing' || (part.end && !part.end.facts)) this.#end(lookup, answer)
    return part ?? NOTHING
  }

  #end(lookup: string, answer: AnswerId): void {
    const first = this.#first.get(lookup)
    if (first && nameOf(first) === nameOf(answer)) this.#first.delete(lookup)
  }

  #drop(worker: string): void {
    this.#links.delete(worker)
    for (const [lookup, first] of this.#first) if (first.worker === worker) this.#first.delete(lookup)
    for (const link of this.#links.values()) link.send('drop equal', worker)
  }
}

function nameOf({ worker, number }: AnswerId): string {
  return `${worker} ${number}`
}
