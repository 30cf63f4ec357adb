import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { Response } from '@sluice/http1'
import { scanObject } from '@sluice/wire/json/json-scan'
import { KnownMemberNames } from '@sluice/wire/json/known-names'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { Caller } from '../../accounts/authentication/caller.ts'
import { DISCARDING_CONNECTION, NO_TRAITS } from '../../call/answers/answer-recorder.ts'
import { composedRequest } from '../../call/composed-request.ts'
import type { LaterCalls } from '../../call/later-calls.ts'
import type { Group } from '../../domain/records/group.ts'
import type { Model } from '../../domain/records/model.ts'
import type { Settings } from '../../domain/settings.ts'
import { fitsInCodePoints } from '../../domain/text-length.ts'
import { asGatewayError, GatewayError } from '../../errors.ts'
import type { Headers } from '../../http/request.ts'
import { type BatchApi, LINE_ENDPOINTS, type LinePath, type BatchLine } from './batch.ts'
import type { RawLine } from './piece-reader.ts'
import { settingsForBatches } from './providers/provider-batches.ts'

/** Number of wrong lines that a refusal lists. */
const MAX_ERRORS = 100
/** Milliseconds of work after which other requests have a turn. */
const TURN_MS = 5
/** Bytes of a line in addition to its body. */
const LINE_OVERHEAD = 65_536
const MAX_LINES: Readonly<Record<BatchApi, number>> = { openai: 50_000, messages: 100_000 }
/** Names beside the request, whose own names are checked like those of a call. */
const LINE_NAMES: Readonly<Record<BatchApi, KnownMemberNames>> = {
  openai: new KnownMemberNames(['custom_id', 'method', 'url', 'body']),
  messages: new KnownMemberNames(['custom_id', 'params']),
}
/** Pattern of `custom_id` in message batches. */
const MESSAGES_CUSTOM_ID = /^[a-zA-Z0-9_-]{1,64}$/
const MAX_CUSTOM_ID = 512
/** Custom ids up to this length are remembered as they are, longer ones by their digest. */
const SHORT_ID = 44
const NOTHING = Buffer.alloc(0)

/** What is known of lines before they are read. */
export interface LinesToCheck {
  readonly api: BatchApi
  readonly path: LinePath
  readonly headers: Headers
  readonly caller: Caller
  readonly settings: Settings
  /** Whether lines that no channel can batch may be made as calls. */
  readonly mayBeLocal: boolean
  /** Whether the client has left. */
  readonly isLeft: () => boolean
}

/** What is known of a checked line. */
interface MeasuredLine {
  readonly name: string
  readonly isBatched: boolean
  readonly amount: number
  readonly groups: readonly Group[]
  /** The models that may answer the line, the one that it names first. */
  readonly models: readonly [Model, ...Model[]]
}

/** Codes of errors of requests that no channel serves. */
const UNSERVED: ReadonlySet<string> = new Set([
  'model_not_found',
  'unsupported_endpoint',
  'batch_unsupported',
])

function isUnserved(error: unknown): boolean {
  const known = asGatewayError(error)
  return known !== undefined && UNSERVED.has(known.code)
}

/** A wrong line, as a refusal lists it. */
interface LineError {
  readonly code: string
  readonly message: string
  readonly param: string | null
  readonly line: number
}

/** The refusal of a batch for its wrong lines. */
export class WrongLines extends GatewayError {
  /** The first wrong line, whose words the message may repeat; empty if it was too large to be read. */
  readonly line: Buffer

  constructor(errors: readonly LineError[], line: Buffer) {
    const [first] = errors
    const members = { line: first?.line, errors: { object: 'list', data: errors } }
    super('invalid_batch', first?.message ?? '', { members })
    this.line = line
  }
}

/** Maximum size of a line. */
export function maxLineBytes({ options }: Settings): number {
  return options.body_limit + LINE_OVERHEAD
}

/** Checks the lines of a batch, each like a call. */
export class LineChecks {
  /** Number of lines, the sum of what they hold, and what they have in common. */
  count = 0
  sum = 0
  readonly groups = new Map<string, Group>()
  readonly models = new Set<string>()
  /** The models of the lines that go to batches of providers, by the names that the lines have. */
  readonly batched = new Map<string, Model>()
  /** The models that may answer local lines. */
  readonly local = new Map<string, Model>()
  readonly #calls: Pick<LaterCalls, 'measure'>
  readonly #lines: LinesToCheck
  readonly #errors: LineError[] = []
  #firstWrong: Buffer = NOTHING
  readonly #ids = new Set<string>()

  constructor(calls: Pick<LaterCalls, 'measure'>, lines: LinesToCheck) {
    this.#calls = calls
    this.#lines = lines
  }

  /** Yields the checked lines. Throws `invalid_batch` after the first wrong ones were found. */
  async *check(lines: AsyncIterable<RawLine>): AsyncGenerator<BatchLine, void, undefined> {
    const { api, isLeft } = this.#lines
    let turnAt = performance.now()
    for await (const raw of lines) {
      if (performance.now() - turnAt > TURN_MS) {
        await setImmediate()
        turnAt = performance.now()
        if (isLeft()) throw new GatewayError('invalid_request', 'the client has left')
      }
      this.count += 1
      try {
        if (this.count > MAX_LINES[api]) throw invalid(`a batch has at most ${MAX_LINES[api]} lines`)
        const line = await this.#read(raw)
        if (this.#errors.length === 0) yield line
      } catch (error) {
        if (this.#errors.length === 0) this.#firstWrong = raw.bytes ?? NOTHING
        this.#note(raw.line, error)
        if (this.#errors.length === MAX_ERRORS || this.count > MAX_LINES[api]) break
      }
    }
    if (this.count === 0) throw new GatewayError('invalid_batch', 'expected at least one line')
    if (this.#errors.length > 0) throw new WrongLines(this.#errors, this.#firstWrong)
  }

  async #read({ bytes }: RawLine): Promise<BatchLine> {
    const { api, path, settings } = this.#lines
    const limit = settings.options.body_limit
    const tooLarge = new GatewayError('request_too_large', `the request is larger than ${limit} bytes`)
    if (!bytes) throw tooLarge
    const scan = scanObject(bytes)
    LINE_NAMES[api].check(scan)
    const customId = customIdIn(scan, api)
    const place = api === 'openai' ? 'body' : 'params'
    if (api === 'openai') {
      if (scan.value('method') !== 'POST') throw new FieldError('method', 'expected "POST"')
      if (scan.value('url') !== path) throw new FieldError('url', `expected ${JSON.stringify(path)}`)
    }
    const body = scan.span(place)
    if (!body || scan.kindOf(body.node) !== 'object') throw new FieldError(place, 'expected an object')
    refuseFields(scan, body.node, place)
    this.#remember(customId)
    const request = bytes.subarray(body.start, body.end)
    if (request.length > limit) throw tooLarge
    const { name, isBatched, amount, groups, models } = await this.#measure(request)
    for (const group of groups) this.groups.set(group.name, group)
    if (this.models.size < 2) this.models.add(name)
    if (isBatched) this.batched.set(name, models[0])
    else for (const model of models) this.local.set(model.name, model)
    this.sum += amount
    return { number: this.count, customId, amount, body: request, ...(isBatched && { model: name }) }
  }

  /** What a line holds: at the batch price if a channel can batch it, else as a call. */
  async #measure(request: Buffer): Promise<MeasuredLine> {
    const { path, headers, caller, settings, mayBeLocal } = this.#lines
    const measure = (by: Settings, inBatch: boolean): Promise<MeasuredLine> => {
      const record: { model?: string } = {}
      const incoming = {
        id: '',
        request: composedRequest(path, headers, request, { remoteAddress: '', bytesRead: 0 }),
        response: new Response(DISCARDING_CONNECTION, NO_TRAITS),
        record,
        startedMs: Date.now(),
        startedAt: performance.now(),
        ...(inBatch && ({ inBatch: 'request' } as const)),
      }
      return this.#calls
        .measure(LINE_ENDPOINTS[path], incoming, caller, by)
        .then(({ amount, plans: [plan, ...others] }) => {
          // Lines at providers go to no other model.
          const rest = inBatch ? [] : others
          const groups = [plan, ...rest].flatMap(({ group }) => settings.groups.get(group.name) ?? [])
          const models = [plan.model, ...rest.map(({ model }) => model)] as const
          return { name: record.model ?? '', isBatched: inBatch, amount, groups, models }
        })
    }
    const batching = settingsForBatches(settings, path)
    if (batching.channels.length > 0)
      try {
        return await measure(batching, true)
      } catch (error) {
        if (!isUnserved(error) && !mayBeLocal) throw error
      }
    const local = await measure(settings, false)
    if (!mayBeLocal) throw unsupported(local.name)
    return local
  }

  #remember(customId: string): void {
    const known =
      customId.length <= SHORT_ID ? customId : createHash('sha256').update(customId).digest('base64')
    if (this.#ids.has(known)) throw new FieldError('custom_id', 'the same custom_id is in an earlier line')
    this.#ids.add(known)
  }

  #note(line: number, error: unknown): void {
    const known = error instanceof FieldError ? invalid(error.message) : asGatewayError(error)
    if (!known) throw error
    const param = error instanceof FieldError ? error.param : null
    const code = known.kind.code ?? known.code
    this.#errors.push({ code, message: this.#place(line, known.message, param), param, line })
  }

  #place(line: number, message: string, param: string | null): string {
    if (this.#lines.api === 'messages')
      return `requests.${line - 1}${param === null ? '' : `.${param}`}: ${message}`
    return `line ${line}: ${param === null ? '' : `${param}: `}${message}`
  }
}

/** An error of one field of a line. */
class FieldError extends Error {
  readonly param: string

  constructor(param: string, message: string) {
    super(message)
    this.param = param
  }
}

function customIdIn(scan: ScannedObject, api: BatchApi): string {
  const id = scan.value('custom_id')
  if (api === 'messages') {
    if (typeof id !== 'string' || !MESSAGES_CUSTOM_ID.test(id))
      throw new FieldError('custom_id', 'expected 1 to 64 letters, digits, "_" and "-"')
  } else if (typeof id !== 'string' || id === '' || !fitsInCodePoints(id, MAX_CUSTOM_ID) || id.includes('\0'))
    throw new FieldError('custom_id', `expected 1 to ${MAX_CUSTOM_ID} characters`)
  return id
}

/** Fields that make no sense in a batch, where they are neither absent, null nor false. */
const REFUSED = ['stream', 'background', 'previous_response_id'] as const

function refuseFields(scan: ScannedObject, body: number, place: string): void {
  for (const name of REFUSED) {
    const node = scan.memberOf(body, name)
    if (node === undefined) continue
    const kind = scan.kindOf(node)
    if (kind !== 'null' && kind !== 'false')
      throw new FieldError(`${place}.${name}`, 'a line of a batch must not have this field')
  }
  const maximum = scan.memberOf(body, 'max_tokens')
  if (maximum !== undefined && scan.kindOf(maximum) === 'number' && scan.parse(maximum) === 0)
    throw new FieldError(`${place}.max_tokens`, 'expected at least 1')
}

function unsupported(model: string): GatewayError {
  return new GatewayError(
    'batch_unsupported',
    `no channel can batch the model ${model.slice(0, 200)}: the operator can set "batches: true" for a channel whose ` +
      'provider has batches. Its lines can be made as calls at their full price, if metadata.allow_local is "true" ' +
      '(not in message batches) or the operator sets options.local_batches',
  )
}

function invalid(message: string): GatewayError {
  return new GatewayError('invalid_request', message)
}
