import type { UpstreamCodec } from './codec.ts'
import type { MediaPart, SearchPart, TextPart, ThinkingPart, ToolCallPart } from './conversation.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'
import type { PromptRules } from './prompt-text.ts'
import { combineChoices, type ReplyEvent, type ReplyPart } from './reply.ts'
import { indexOf, kindOfCode, type Outline, outlineOf, ownerOfCode, tableOfCode } from './shape/outline.ts'
import { KIND, OWNER } from './shape/vocabulary.ts'

/** Consecutive messages of the same author in a readable form: without marks, signatures, ids and bytes of media. */
export interface ReadableTurn {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly parts: readonly ReadablePart[]
}

/** A part of a turn, in the words of `Conversation`. */
export type ReadablePart =
  | Pick<TextPart, 'kind' | 'text'>
  | Pick<ThinkingPart, 'kind' | 'text'>
  | Pick<ToolCallPart, 'kind' | 'name' | 'input'>
  | { readonly kind: 'tool-result'; readonly parts: readonly ReadableResultPart[] }
  | Pick<SearchPart, 'kind' | 'query' | 'pages'>
  | ReadableMedia
  | ReadableJson

export type ReadableResultPart = Pick<TextPart, 'kind' | 'text'> | ReadableMedia | ReadableJson

/** An image, a document or a recording. `url` is absent if the request contains the bytes. */
export interface ReadableMedia extends Pick<MediaPart, 'kind'> {
  /** The media type, or the type of the part if no media type is stated. */
  readonly type: string
  readonly url?: string
}

/** The JSON of a part that only one dialect has. */
export interface ReadableJson {
  readonly kind: 'opaque'
  readonly json: string
}

/** Searches by the provider. In requests, they are tool calls. */
type RequestPart = Exclude<ReadablePart, { kind: 'search' }>

type Rules = Pick<PromptRules, 'shape' | 'media'>

/** Returns the turns of a request. Values that its shape does not describe are `opaque`. */
export function turnsOfRequest(scan: ScannedObject, rules: Rules): readonly ReadableTurn[] {
  return new RequestTurns(scan, rules).turns
}

const ROLES: Readonly<Record<number, ReadableTurn['role']>> = {
  [OWNER.system]: 'system',
  [OWNER.user]: 'user',
  [OWNER.model]: 'assistant',
  [OWNER.tool]: 'tool',
}

class RequestTurns {
  readonly turns: { readonly role: ReadableTurn['role']; readonly parts: ReadablePart[] }[] = []
  readonly #scan: ScannedObject
  readonly #rules: Rules
  readonly #outline: Outline
  /** The parts of the result that is being read. */
  #result: ReadableResultPart[] | undefined
  /** Number of parts so far. */
  #added = 0

  constructor(scan: ScannedObject, rules: Rules) {
    this.#scan = scan
    this.#rules = rules
    this.#outline = outlineOf(scan, rules.shape)
    const values = [...scan.members.values()].map(({ node }) => node)
    const isSystem = (node: Node): boolean => ownerOfCode(this.#codeOf(node)) === OWNER.system
    // Instructions come first, even if they follow the messages in the JSON.
    for (const node of values) if (isSystem(node)) this.#value(node, scan.root)
    for (const node of values) if (!isSystem(node)) this.#value(node, scan.root)
  }

  /** `object` is the object around the value. */
  #value(node: Node, object: Node): void {
    const code = this.#codeOf(node)
    const owner = ownerOfCode(code)
    if (this.#scan.kindOf(node) === 'null') return
    // Settings may contain texts of a turn, such as the variables of a stored prompt.
    if (ROLES[owner] === undefined && kindOfCode(code) !== KIND.structure) return
    if (owner !== OWNER.tool || this.#result) return this.#content(node, object, code)
    this.#result = []
    this.#content(node, object, code)
    const parts = this.#result
    this.#result = undefined
    this.#add(owner, { kind: 'tool-result', parts })
  }

  #content(node: Node, object: Node, code: number): void {
    const scan = this.#scan
    const owner = ownerOfCode(code)
    switch (kindOfCode(code)) {
      case KIND.structure:
        if (scan.kindOf(node) === 'array') for (const one of scan.elements(node)) this.#value(one, object)
        else this.#object(node, code)
        return
      case KIND.text:
      case KIND.result:
        if (scan.isContainer(node)) return this.#add(owner, this.#json(node))
        return this.#add(owner, { kind: 'text', text: this.#text(node) })
      case KIND.reasoning:
        return this.#add(owner, { kind: 'thinking', text: this.#text(node) })
      case KIND.arguments:
      case KIND.input: {
        // Calls of a provider's tool have a type instead of a name.
        const name = this.#nameIn(object) ?? this.#member(object, TYPE) ?? ''
        return this.#add(owner, { kind: 'tool-call', name, input: this.#text(node) })
      }
      case KIND.media:
      case KIND.address:
        return this.#add(owner, this.#media(node, object))
      case KIND.undescribed:
        if (this.#isUnknown(node)) this.#add(owner, this.#json(node))
    }
  }

  #object(node: Node, code: number): void {
    const scan = this.#scan
    const owner = ownerOfCode(code)
    const found = this.#rules.media[tableOfCode(code)]?.(scan, node)
    if (found) return this.#add(owner, this.#media(found.data, node))
    const before = this.#added
    const values = scan.values(node)
    for (const value of values) if (!this.#isUnknown(value)) this.#value(value, node)
    if (this.#added > before) return
    const name = owner === OWNER.model ? this.#nameIn(node) : undefined
    if (name !== undefined) this.#add(owner, { kind: 'tool-call', name, input: '' })
    else if (values.some((value) => this.#isUnknown(value))) this.#add(owner, this.#json(node))
  }

  /** Whether a value is not described. Numbers, true and false do not count. */
  #isUnknown(node: Node): boolean {
    const isRead = this.#scan.kindOf(node) === 'string' || this.#scan.isContainer(node)
    return isRead && kindOfCode(this.#codeOf(node)) === KIND.undescribed
  }

  #media(data: Node | undefined, object: Node): ReadableMedia {
    const scan = this.#scan
    const written = data !== undefined && scan.kindOf(data) === 'string' ? (scan.parse(data) as string) : ''
    const [, typeOfData] = DATA_URL.exec(written.slice(0, MAX_MEDIA_TYPE)) ?? []
    const type = this.#mediaType(object) ?? typeOfData ?? this.#member(object, TYPE) ?? ''
    return { kind: 'media', type, ...(URL.test(written) && { url: written }) }
  }

  /** The media type that an object states. */
  #mediaType(object: Node): string | undefined {
    const scan = this.#scan
    const end = indexOf(scan.tape[object + 2] as number)
    for (let index = indexOf(object); index < end; index += 1) {
      const node = index * 3
      if (kindOfCode(this.#outline[index] as number) !== KIND.term || scan.kindOf(node) !== 'string') continue
      const term = this.#text(node)
      if (MEDIA_TYPE.test(term)) return term
    }
    return undefined
  }

  /** The name of the tool that is called in an object. */
  #nameIn(object: Node): string | undefined {
    return this.#member(object, (node) => kindOfCode(this.#codeOf(node)) === KIND.name)
  }

  /** A member of an object that is a string. */
  #member(object: Node, wanted: string | ((node: Node) => boolean)): string | undefined {
    const scan = this.#scan
    const isWanted = typeof wanted === 'string' ? (node: Node) => scan.isKey(node - 3, wanted) : wanted
    const node = scan.values(object).find((one) => isWanted(one) && scan.kindOf(one) === 'string')
    return node === undefined ? undefined : (scan.parse(node) as string)
  }

  #text(node: Node): string {
    const scan = this.#scan
    return scan.kindOf(node) === 'string' ? (scan.parse(node) as string) : scan.textOf(node)
  }

  #json(node: Node): ReadableJson {
    return { kind: 'opaque', json: this.#scan.textOf(node) }
  }

  #codeOf(node: Node): number {
    return this.#outline[indexOf(node)] as number
  }

  #add(owner: number, part: RequestPart): void {
    const role = ROLES[owner]
    if (role === undefined || !isSaid(part)) return
    this.#added += 1
    if (this.#result && part.kind !== 'tool-result') {
      this.#result.push(resultPart(part))
      return
    }
    const last = this.turns.at(-1)
    if (last?.role === role) last.parts.push(part)
    else this.turns.push({ role, parts: [part] })
  }
}

const TYPE = 'type'
const URL = /^(?!data:)[a-z][\w+.-]*:/i
const MEDIA_TYPE = /^[\w.+-]+\/[\w.+*-]+$/
const DATA_URL = /^data:([^,;]+)/i
/** Maximum number of characters of a `data:` URL that are searched for its media type. */
const MAX_MEDIA_TYPE = 256

function isSaid(part: ReadablePart): boolean {
  return !('text' in part) || part.text !== ''
}

/** A part of a tool result. Protocols do not allow thoughts or calls there, so they are shown as texts. */
function resultPart(part: Exclude<RequestPart, { kind: 'tool-result' }>): ReadableResultPart {
  if (part.kind === 'thinking') return { kind: 'text', text: part.text }
  return part.kind === 'tool-call' ? { kind: 'text', text: part.input } : part
}

/** Maximum number of choices that are read: the maximum that can be requested. */
const MAX_CHOICES = 128

/** Reads a part that only the answer's dialect has, such as the result of a provider's tool. */
export type ReadOpaque = (json: string) => readonly ReadableTurn[]

/**
 * Returns the turn of each choice of an answer, which may be incomplete. An error is `opaque`. Throws if the bytes are not an
 * answer of the codec's protocol.
 */
export function turnsOfAnswer(
  codec: UpstreamCodec,
  bytes: Buffer,
  readOpaque: ReadOpaque,
): readonly ReadableTurn[] {
  const failures: ReadablePart[] = []
  const onFailure = (event: ReplyEvent): void => {
    const { kind, ...error } = event
    if (kind === 'failure') failures.push({ kind: 'opaque', json: JSON.stringify(error) })
  }
  const choices = choicesOfAnswer(codec, bytes, MAX_CHOICES, onFailure)
  const said = choices.flatMap((parts) => joined(parts.flatMap((part) => readableTurns(part, readOpaque))))
  return failures.length > 0 ? [...said, { role: 'assistant', parts: failures }] : said
}

/** Joins consecutive turns of the same side, and leaves out empty ones. */
function joined(turns: readonly ReadableTurn[]): readonly ReadableTurn[] {
  const all: { readonly role: ReadableTurn['role']; readonly parts: ReadablePart[] }[] = []
  for (const { role, parts } of turns) {
    const some = parts.filter(isSaid)
    const last = all.at(-1)
    if (last?.role === role) last.parts.push(...some)
    else if (some.length > 0) all.push({ role, parts: some })
  }
  return all
}

/** Returns the parts of each choice of an answer, whole or streamed. `onEvent` is called with the events of a stream. */
export function choicesOfAnswer(
  codec: UpstreamCodec,
  bytes: Buffer,
  choices: number,
  onEvent: (event: ReplyEvent) => void = () => {},
): readonly (readonly ReplyPart[])[] {
  const isObject = BEGINS_OBJECT.test(bytes.toString('latin1', 0, MAX_SPACE))
  if (isObject && !bytes.includes(BETWEEN_EVENTS)) {
    const reply = codec.decodeReply(bytes, choices)
    return [reply, ...(reply.others ?? [])].map(({ parts }) => parts)
  }
  const events = streamEvents(codec, bytes, choices)
  for (const event of events) onEvent(event)
  return combineChoices(events)
}

const BEGINS_OBJECT = /^\s*\{/
/** What is between two events that stand one a line, and nowhere in one JSON text. */
const BETWEEN_EVENTS = '}\n{'
const BEGINS_LIST = /^\s*\[/
/** Maximum number of white-space characters before the JSON of an answer. */
const MAX_SPACE = 1_024

function streamEvents(codec: UpstreamCodec, bytes: Buffer, choices: number): ReplyEvent[] {
  const decoder = codec.streamDecoder(undefined, choices)
  try {
    return [...decoder.push(asEvents(bytes)), ...decoder.end()]
  } finally {
    decoder.release()
  }
}

/**
 * Converts a JSON array of chunks, which Gemini may send instead of a stream of events, or the events of a turn over
 * WebSocket, one a line, to a stream of events.
 */
function asEvents(bytes: Buffer): Buffer {
  if (bytes.includes(BETWEEN_EVENTS))
    return Buffer.from(bytes.toString().replaceAll(/^\{.*$/gm, 'data: $&\n'))
  if (!BEGINS_LIST.test(bytes.toString('latin1', 0, MAX_SPACE))) return bytes
  const list = JSON.parse(bytes.toString()) as readonly unknown[]
  return Buffer.from(list.map((one) => `data: ${JSON.stringify(one)}\n\n`).join(''))
}

function readableTurns(part: ReplyPart, readOpaque: ReadOpaque): readonly ReadableTurn[] {
  return part.kind === 'opaque'
    ? readOpaque(JSON.stringify(part.value))
    : [{ role: 'assistant', parts: readableParts(part) }]
}

function readableParts(part: Exclude<ReplyPart, { kind: 'opaque' }>): readonly ReadablePart[] {
  switch (part.kind) {
    case 'text':
      return [{ kind: 'text', text: part.withoutMedia ?? part.text }]
    case 'thinking':
      return [{ kind: 'thinking', text: part.text }]
    case 'tool-call':
      return [{ kind: 'tool-call', name: part.name, input: part.input }]
    case 'search':
      // Answers of messages have the blocks of the search as well.
      return part.protocol === 'messages' ? [] : [{ kind: 'search', query: part.query, pages: part.pages }]
  }
}
