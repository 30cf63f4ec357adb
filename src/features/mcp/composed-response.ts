import type { EarlyHead, Response, ResponseHeaders } from '@sluice/http1'
import { applyEdits } from '@sluice/wire/json/json-edit'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { asRecord, parseRecord } from '@sluice/wire/json/record'
import { gatewayItemId } from '@sluice/wire/responses'
import { randomBytes } from 'node:crypto'
import { MAX_SILENCE_MS } from '../../call/streamed-response.ts'
import { asFields, type Fields } from './protocol.ts'

/** How a response ends. */
export interface ResponseEnd {
  readonly status: 'completed' | 'incomplete' | 'failed'
  /** JSON texts, in place of those of the last round. */
  readonly error?: string
  readonly incompleteDetails?: string
}

/** Members of the client's request that its answer states, with their defaults, as JSON texts. */
const REPEATED = [
  ['max_output_tokens', 'null'],
  ['max_tool_calls', 'null'],
  ['previous_response_id', 'null'],
  ['tool_choice', '"auto"'],
] as const

/** The answer to a client, made of the answers of several rounds: a stream of events, or one JSON object. */
export class ComposedResponse {
  readonly #key = randomBytes(16).toString('hex')
  /** Id of the response, as the client knows it. */
  readonly id = `resp_${this.#key}`
  readonly #response: Response
  readonly isStream: boolean
  readonly #repeated: ReadonlyMap<string, string>
  readonly #more: Readonly<Record<string, string>>
  /** The complete items, as JSON texts. */
  readonly #output: (string | undefined)[] = []
  readonly #usages: Fields[] = []
  #sequence = 0
  #headers: ResponseHeaders = {}
  #hasBegun = false
  /** The last response object of a round. */
  #last = '{}'
  #createdAt: string | undefined
  #silence: NodeJS.Timeout | undefined
  /** Whether the client has to read before it gets further events. */
  #isBehind = false
  /** Called when the client is no longer behind. */
  onDrained: () => void = () => {}

  /** `more`: further headers. */
  constructor(
    response: Response,
    scan: ScannedObject,
    isStored: boolean,
    more: Readonly<Record<string, string>>,
  ) {
    this.#response = response
    this.isStream = scan.kind('stream') === 'true'
    this.#more = more
    this.#repeated = new Map([
      ['id', JSON.stringify(this.id)],
      ['store', String(isStored)],
      ['tools', toolsShown(scan)],
      ...REPEATED.map(([name, usual]) => {
        const member = scan.span(name)
        return [name, member ? scan.textOf(member.node) : usual] as const
      }),
    ])
  }

  /** Whether something was sent. */
  get hasBegun(): boolean {
    return this.#hasBegun
  }

  /** Tokens that the rounds so far have generated. */
  get outputTokens(): number {
    return this.#usages.reduce((sum, usage) => sum + (Number(usage['output_tokens']) || 0), 0)
  }

  /** Passes a keep-alive of the first round on until the response has begun. Returns whether the head was sent early. */
  wait(keepAlive: Buffer, head: EarlyHead): boolean {
    if (!this.#hasBegun)
      this.#response.keepAlive(keepAlive, { ...head, headers: { ...head.headers, ...this.#more } })
    return this.#response.early !== undefined
  }

  /** Begins with the head of the first round, and the response object of its first event. */
  begin(headers: ResponseHeaders, object: string): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    this.#headers = headers
    this.#last = object
    if (!this.isStream) return
    const { 'content-length': _, ...others } = headers
    this.#response.writeHead(200, { ...others, ...this.#more, 'content-type': 'text/event-stream' })
    this.#sendProgress('created')
    this.#sendProgress('in_progress')
    // The rounds' own keep-alives end with them, and none comes while tools run.
    this.#silence = setInterval(() => {
      if (!this.#isBehind) this.#sendProgress('in_progress')
    }, MAX_SILENCE_MS).unref()
    this.#response.onClosed(() => clearInterval(this.#silence))
  }

  #sendProgress(state: 'created' | 'in_progress'): void {
    const changes = { status: '"in_progress"', completed_at: 'null', output: '[]', usage: 'null' }
    this.send(`response.${state}`, { response: this.#object(changes) })
  }

  /** Notes the response object at the end of a round. */
  endRound(object: string): void {
    this.#last = object
    const usage = asRecord(parseRecord(object)?.['usage'])
    if (usage) this.#usages.push(usage)
  }

  /** The position of a further item. */
  newIndex(): number {
    return this.#output.push(undefined) - 1
  }

  idAt(index: number, like: string): string {
    return gatewayItemId(this.#key, index, like)
  }

  setItem(index: number, item: string): void {
    this.#output[index] = item
  }

  /** Sends an event with members in JSON. Returns false if the client is behind. */
  send(type: string, members: Readonly<Record<string, string>>): boolean {
    if (!this.isStream) return true
    const rest = Object.entries(members).map(([name, text]) => `,"${name}":${text}`)
    return this.#sendData(type, `{"type":"${type}","sequence_number":${this.#sequence}${rest.join('')}}`)
  }

  /** Sends an event of a round at its place in the whole. */
  pass(type: string, bytes: Buffer, scan: ScannedObject, changes: ReadonlyMap<string, string>): boolean {
    if (!this.isStream) return true
    const replace = new Map([...changes, ['sequence_number', String(this.#sequence)]])
    return this.#sendData(type, applyEdits(bytes, scan, { remove: [], replace }).toString())
  }

  #sendData(type: string, data: string): boolean {
    this.#sequence += 1
    this.#silence?.refresh()
    this.#isBehind = !this.#response.write(Buffer.from(`event: ${type}\ndata: ${data}\n\n`))
    if (this.#isBehind)
      this.#response.whenDrained(() => {
        this.#isBehind = false
        this.onDrained()
      })
    return !this.#isBehind
  }

  /** The whole response at its end. */
  final({ status, error, incompleteDetails }: ResponseEnd): string {
    const output = this.#output.filter((item) => item !== undefined)
    const usage = this.#usages.length === 0 ? 'null' : JSON.stringify(sumOf(this.#usages))
    return this.#object({
      status: JSON.stringify(status),
      // A response that failed is not kept.
      store: status === 'failed' ? 'false' : undefined,
      output: `[${output.join(',')}]`,
      usage,
      error: error ?? (status === 'failed' ? undefined : 'null'),
      incomplete_details: incompleteDetails ?? (status === 'incomplete' ? undefined : 'null'),
    })
  }

  /** Ends with what `final` has returned. */
  end({ status }: ResponseEnd, final: string): void {
    if (this.#response.isAborted || this.#response.hasEnded) return
    if (this.isStream) {
      this.send(`response.${status}`, { response: final })
      this.#response.end()
      return
    }
    const body = Buffer.from(final)
    const headers = { ...this.#headers, ...this.#more, 'content-length': String(body.length) }
    this.#response.writeHead(200, headers).end(body)
  }

  #object(changes: Readonly<Record<string, string | undefined>>): string {
    const bytes = Buffer.from(this.#last)
    const scan = scanObject(bytes, RESPONSE_LIMITS)
    const created = scan.span('created_at')
    this.#createdAt ??= created && scan.textOf(created.node)
    const replace = new Map(this.#repeated)
    if (this.#createdAt !== undefined) replace.set('created_at', this.#createdAt)
    for (const [name, text] of Object.entries(changes)) if (text !== undefined) replace.set(name, text)
    return applyEdits(bytes, scan, { remove: [], replace }).toString()
  }
}

/** The tools of the request, without the credentials in them. */
function toolsShown(scan: ScannedObject): string {
  const tools = scan.value('tools') as readonly unknown[]
  const secret = (tool: unknown): boolean => {
    const { type, authorization, headers } = asFields(tool)
    return type === 'mcp' && (authorization !== undefined || headers !== undefined)
  }
  if (!tools.some(secret)) return scan.textOf(scan.span('tools')?.node ?? scan.root)
  return JSON.stringify(
    tools.map((tool) => {
      if (!secret(tool)) return tool
      const { authorization: _, headers: _headers, ...shown } = asFields(tool)
      return shown
    }),
  )
}

/** Adds up all counts of several usage objects. */
function sumOf(usages: readonly Fields[]): Fields {
  const sum = new Map<string, unknown>()
  for (const usage of usages)
    for (const [name, value] of Object.entries(usage)) {
      const before = sum.get(name)
      if (typeof value === 'number') sum.set(name, (typeof before === 'number' ? before : 0) + value)
      else if (asRecord(value)) sum.set(name, sumOf([asFields(before), asFields(value)]))
      else if (before === undefined) sum.set(name, value)
    }
  return Object.fromEntries(sum)
}
