import { randomBytes } from 'node:crypto'
import { open } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { setImmediate } from 'node:timers/promises'
import { directiveMembers } from '../directive.ts'
import { replyWithFaults } from '../faults.ts'
import { type Fields, asFields, asString } from '../fields.ts'
import { malformed, Refusal, REFUSAL_STATUS } from '../refusal.ts'
import type { ReplyTimeAndIds, Upstream } from '../upstream.ts'
import { BatchControl, type Behaviour, type StepFault, withMembers } from './behaviour.ts'
import { billedTokens, NO_TOKENS } from './invoice.ts'
import {
  type AnsweredLine,
  type BatchError,
  isGood,
  type MadeBatch,
  SimulatedBatch,
} from './simulated-batch.ts'
import { type StoredContent, StoredContents } from './stored-contents.ts'

/** Time in milliseconds for which lines are answered without a pause. */
const TURN_MS = 10
/** Code of the error of a batch for which the account has no tokens left. */
const TOKEN_LIMIT = 'token_limit_exceeded'
/** What precedes the name of a behaviour in a directive. */
const PREFIX = 'batch_'

/** A request in a line. */
export interface LineRequest {
  readonly customId: string
  readonly body: Fields
}

/** An answer to a line. */
export interface LineAnswer extends LineRequest {
  readonly status: number
  readonly answer: Fields
}

/** How an API reads lines and writes results. */
export interface LineFormat {
  /** Maximum number of lines. */
  readonly maxLines: number
  /** The upstream that answers the lines of an endpoint. */
  readonly upstreamOf: (endpoint: string) => Upstream | undefined
  /** Throws a `LineError` if the whole batch fails because of the line. */
  readonly readLine: (line: Fields, made: MadeBatch) => LineRequest
  readonly answered: (line: LineAnswer) => Fields
  readonly unanswered: (customId: string, how: 'expired' | 'cancelled') => Fields
  /** Whether all lines must have the same model. */
  readonly hasOneModel?: true
  /** Whether the batch fails if an id is used twice. */
  readonly hasUniqueIds?: true
}

/** A line because of which a whole batch fails. */
export class LineError extends Error {
  readonly code: string
  readonly param: string | null

  constructor(code: string, message: string, param: string | null = null) {
    super(message)
    this.code = code
    this.param = param
  }
}

/** Services of a provider that batches need. */
export interface BatchWorkServices {
  readonly format: LineFormat
  readonly behaviour: Behaviour
  readonly now: () => number
}

/** The batches of a provider, and how their lines are answered. */
export class BatchWork {
  readonly control: BatchControl
  readonly contents = new StoredContents()
  readonly now: () => number
  readonly #format: LineFormat
  readonly #batches = new Map<string, SimulatedBatch>()
  readonly #running = new Set<Promise<void>>()
  #isClosing = false

  constructor({ format, behaviour, now }: BatchWorkServices) {
    this.#format = format
    this.control = new BatchControl(behaviour)
    this.now = now
  }

  /** All batches of an account, the newest first; those of all accounts if none is given. */
  batches(account?: string): SimulatedBatch[] {
    const all = [...this.#batches.values()].toReversed()
    return account === undefined ? all : all.filter(({ made }) => made.account === account)
  }

  /** The batch with this id. Throws `Refusal` if the account has none. */
  find(account: string, id: string): SimulatedBatch {
    const batch = this.#batches.get(id)
    if (batch?.made.account !== account) throw new Refusal('unknown_object', `No batch with the id ${id}`)
    return batch
  }

  /** Whether a further batch with so many tokens would exceed the account's maximum for unfinished batches. */
  exceedsTokens(account: string, tokens: number): boolean {
    const { enqueued_tokens: limit } = this.control.behaviour
    const unfinished = this.batches(account).filter(({ isOver }) => !isOver)
    return unfinished.reduce((sum, { made }) => sum + made.tokens, tokens) > limit
  }

  /** Makes a batch, whose lines are then read and answered. */
  make(made: MadeBatch, input: StoredContent, fault?: StepFault): SimulatedBatch {
    const batch = new SimulatedBatch(made, this.control.behaviour, this.now)
    const fails = fault?.fails ?? (this.exceedsTokens(made.account, made.tokens) ? TOKEN_LIMIT : undefined)
    this.#batches.set(made.id, batch)
    const work = this.#answerLines(batch, input, fails)
      .catch((error: unknown) => {
        if (!this.#isClosing) throw error
      })
      .finally(() => this.#running.delete(work))
    this.#running.add(work)
    return batch
  }

  async forget(batch: SimulatedBatch): Promise<void> {
    this.#batches.delete(batch.made.id)
    if (batch.results) await this.contents.remove(batch.results)
  }

  /** The results of a batch, a line each. */
  async *results(batch: SimulatedBatch, which: 'all' | 'good' | 'bad' = 'all'): AsyncGenerator<Buffer> {
    const { results } = batch
    if (!results) return
    const file = await open(results.path)
    try {
      for (const result of batch.resultsInOrder()) {
        if (which !== 'all' && isGood(result) !== (which === 'good')) continue
        const { kind, line } = result
        if (kind === 'expired' || kind === 'cancelled') {
          yield asLine(this.#format.unanswered(line.customId, kind))
          continue
        }
        const { buffer } = await file.read(Buffer.alloc(line.bytes), 0, line.bytes, line.at)
        // Like the ids of numbered lines, but above the number of lines that a batch can have.
        const id = JSON.stringify(`${line.customId}99999`)
        yield kind === 'answered'
          ? buffer
          : Buffer.from(buffer.toString().replace(JSON.stringify(line.customId), () => id))
      }
    } finally {
      await file.close()
    }
  }

  async close(): Promise<void> {
    this.#isClosing = true
    await Promise.all(this.#running)
    await this.contents.close()
  }

  async #answerLines(batch: SimulatedBatch, input: StoredContent, fails: string | undefined): Promise<void> {
    const { made } = batch
    const path = await this.contents.newPath()
    const results = await open(path, 'w')
    const lines: AnsweredLine[] = []
    const errors: BatchError[] = fails === undefined ? [] : [failure(fails)]
    const ids = new Set<string>()
    let { behaviour } = this.control
    let model: string | undefined
    let at = 0
    let number = 0
    let turnAt = performance.now()
    try {
      const texts = createInterface({ input: this.contents.read(input), crlfDelay: Infinity })
      for await (const text of texts) {
        number += 1
        if (text.trim() === '') continue
        if (performance.now() - turnAt > TURN_MS) {
          await setImmediate()
          if (this.#isClosing) return
          turnAt = performance.now()
        }
        try {
          const request = this.#format.readLine(parsed(text), made)
          behaviour = withDirective(behaviour, request.body)
          this.#refuseLine(request, ids, model)
          if (this.#format.hasOneModel) model ??= asString(request.body.model)
          const answered = this.#answer(request, made)
          const line = asLine(this.#format.answered(answered))
          await results.write(line)
          const isError = answered.status !== 200
          lines.push({
            customId: request.customId,
            model: asString(request.body.model),
            at,
            bytes: line.length,
            isError,
            billed: isError ? NO_TOKENS : billedTokens(answered.answer),
          })
          at += line.length
        } catch (error) {
          if (!(error instanceof LineError)) throw error
          errors.push({ code: error.code, message: error.message, line: number, param: error.param })
        }
      }
    } finally {
      await results.close()
    }
    if (number === 0) errors.push({ ...failure('empty_file'), message: 'The input file is empty.' })
    if (behaviour.end === 'failed') errors.push(failure(behaviour.code))
    batch.setLines({ lines, errors, behaviour, results: { path, bytes: at }, readyMs: this.now() })
  }

  #refuseLine({ customId, body }: LineRequest, ids: Set<string>, model: string | undefined): void {
    const { maxLines, hasUniqueIds } = this.#format
    if (hasUniqueIds && ids.has(customId))
      throw new LineError(
        'duplicate_custom_id',
        'The custom_id for this request is a duplicate.',
        'custom_id',
      )
    ids.add(customId)
    if (ids.size > maxLines) throw new LineError('too_many_tasks', `A batch has at most ${maxLines} lines.`)
    if (model !== undefined && body.model !== model)
      throw new LineError(
        'mismatched_model',
        `The model does not match the first one, ${model}.`,
        'body.model',
      )
  }

  #answer({ customId, body }: LineRequest, made: MadeBatch): LineAnswer {
    const upstream = this.#format.upstreamOf(made.endpoint)
    if (!upstream) throw new LineError('invalid_url', 'The endpoint has no batches.', 'url')
    const stamp = { created: Math.floor(this.now() / 1_000), id: newId }
    try {
      return { customId, body, ...replyToLine(upstream, made, body, stamp) }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      const answer = asFields(upstream.refuse(error, stamp))
      return { customId, body, status: REFUSAL_STATUS[error.kind], answer }
    }
  }
}

function replyToLine(
  upstream: Upstream,
  { endpoint, account }: MadeBatch,
  { stream: _stream, ...body }: Fields,
  stamp: ReplyTimeAndIds,
): Pick<LineAnswer, 'status' | 'answer'> {
  const model = asString(body.model)
  if (!upstream.models.includes(model)) throw new Refusal('unknown_model', model.slice(0, 200))
  const path = endpoint.replace(/^\/v1/, '')
  const call = { method: 'POST', path, query: new URLSearchParams(), headers: {}, body, account }
  const reply = (asked: Fields) => upstream.reply(asked, model, stamp, call)
  const made = upstream.faults ? replyWithFaults(upstream.faults, body, reply) : reply(body)
  if (made.kind !== 'whole') throw malformed('Lines of a batch are not streamed')
  return { status: made.status ?? 200, answer: asFields(made.body) }
}

function withDirective(behaviour: Behaviour, body: Fields): Behaviour {
  const members = [...directiveMembers(body)].filter(([name]) => name.startsWith(PREFIX))
  if (members.length === 0) return behaviour
  try {
    return withMembers(
      behaviour,
      members.map(([name, value]) => [name.slice(PREFIX.length), value]),
    )
  } catch (error) {
    throw error instanceof Refusal ? new LineError('invalid_directive', error.message, 'body') : error
  }
}

function failure(code: string): BatchError {
  const message =
    code === TOKEN_LIMIT
      ? 'Enqueued token limit reached. Please try again once some in_progress batches have been completed.'
      : 'The simulated provider fails as requested.'
  return { code, message, line: null, param: null }
}

function parsed(text: string): Fields {
  try {
    return asFields(JSON.parse(text))
  } catch {
    throw new LineError('invalid_json_line', 'This line is not parseable as valid JSON.')
  }
}

function asLine(value: Fields): Buffer {
  return Buffer.from(`${JSON.stringify(value)}\n`)
}

export function newId(prefix: string): string {
  return prefix + randomBytes(12).toString('hex')
}
