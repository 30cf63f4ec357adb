import type { Dropped } from '../codec.ts'
import type { Part, TextPart, ThinkingPart, ToolCallPart, ToolResultPart, Turn } from '../conversation.ts'
import { refuse } from '../field-check.ts'
import { type Fields, fieldsAt, kindOf, textAt } from '../field.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import { decodeMedia, decodePlainPart } from './decode-part.ts'
import { drop } from './dropped.ts'
import { readSignature } from './signature.ts'
import { either, nodeOf, topMember } from './spelling.ts'

/** Sides by their role; the older names of a user who brings results are known too. */
const ROLES: ReadonlyMap<unknown, Turn['role']> = new Map<unknown, Turn['role']>([
  ['user', 'user'],
  ['function', 'user'],
  ['tool', 'user'],
  ['model', 'assistant'],
])

/** A part, and where it is. */
interface Place {
  readonly node: Node
  readonly path: string
}

/**
 * Reads `contents`. A turn without a role is the user's. Calls without an id get one from their number, so
 * that the same history has the same ids; a response belongs to the call with its id, else to the first
 * unanswered call of its name. Throws `invalid_request` naming the path of what cannot be read, and for a
 * response without its call.
 */
export class ContentsReader {
  readonly #scan: ScannedObject
  readonly #dropped: Dropped
  /** Calls without a response, in their order. */
  readonly #open: { readonly id: string; readonly name: string }[] = []
  /** Ids that calls have. */
  readonly #ids = new Set<string>()
  #calls = 0

  constructor(scan: ScannedObject, dropped: Dropped) {
    this.#scan = scan
    this.#dropped = dropped
  }

  /** Reads all turns that say something. */
  read(): Turn[] {
    const contents = topMember(this.#scan, 'contents')
    if (!contents) return []
    const nodes = elementsOf(this.#scan, contents.node)
    return nodes
      .map((node, index) => this.#readTurn(node, `contents[${index}]`))
      .filter(({ parts }) => parts.length > 0)
  }

  #readTurn(node: Node, path: string): Turn {
    const content = fieldsAt(this.#scan.parse(node), path)
    const role = ROLES.get(content['role'] ?? 'user')
    if (!role) refuse(`${path}.role`, `'user' or 'model'`, 'another role')
    const parts = nodeOf(this.#scan, node, 'parts')
    if (parts === undefined) return { role, parts: [] }
    return {
      role,
      parts: withWholeThoughts(
        elementsOf(this.#scan, parts).flatMap((part, index) =>
          this.#readPart({ node: part, path: `${path}.parts[${index}]` }),
        ),
      ),
    }
  }

  #readPart(place: Place): Part[] {
    const part = fieldsAt(this.#scan.parse(place.node), place.path)
    const call = either(part, 'functionCall')
    if (call !== undefined) return this.#readCall(part, fieldsAt(call, `${place.path}.functionCall`), place)
    const response = either(part, 'functionResponse')
    if (response === undefined) return decodePlainPart(part, place.path, this.#dropped)
    const path = `${place.path}.functionResponse`
    const node = nodeOf(this.#scan, place.node, 'functionResponse') as Node
    return [this.#readResponse(fieldsAt(response, path), { node, path })]
  }

  /** The signature of a call is a part of its own in front of it. */
  #readCall(part: Fields, call: Fields, { node, path }: Place): Part[] {
    const args = nodeOf(this.#scan, nodeOf(this.#scan, node, 'functionCall'), 'args')
    if (args !== undefined && this.#scan.kindOf(args) !== 'object')
      refuse(`${path}.functionCall.args`, 'an object', kindOf(this.#scan.parse(args)))
    const name = textAt(call['name'], `${path}.functionCall.name`)
    const given = either(call, 'id')
    const id = given === undefined ? this.#nextId() : textAt(given, `${path}.functionCall.id`)
    this.#ids.add(id)
    this.#open.push({ id, name })
    const read: ToolCallPart = {
      kind: 'tool-call',
      id,
      name,
      input: args === undefined ? '{}' : this.#scan.textOf(args),
    }
    const signature = either(part, 'thoughtSignature')
    if (signature === undefined || signature === '') return [read]
    return [readSignature(textAt(signature, `${path}.thoughtSignature`), '', 'call'), read]
  }

  #readResponse(given: Fields, { node, path }: Place): ToolResultPart {
    const name = textAt(given['name'], `${path}.name`)
    const response = nodeOf(this.#scan, node, 'response')
    if (response !== undefined && this.#scan.kindOf(response) !== 'object')
      refuse(`${path}.response`, 'an object', kindOf(this.#scan.parse(response)))
    const { text, isError } = saidIn(this.#scan, response)
    const media = either(given, 'parts') ?? []
    if (!Array.isArray(media)) refuse(`${path}.parts`, 'an array', kindOf(media))
    const parts = media.flatMap((part: unknown, index) => {
      const at = `${path}.parts[${index}]`
      const read = decodeMedia(fieldsAt(part, at), at, this.#dropped)
      if (!read) drop(this.#dropped, 'parts')
      return read ? [read] : []
    })
    const said: TextPart[] = text === '' ? [] : [{ kind: 'text', text }]
    return {
      kind: 'tool-result',
      callId: this.#answered(given, name, path),
      parts: [...said, ...parts],
      isError,
    }
  }

  /** Finds the call that a response belongs to; the same call is not answered twice. */
  #answered(response: Fields, name: string, path: string): string {
    const id = either(response, 'id')
    const byId = id === undefined ? -1 : this.#open.findIndex((call) => call.id === id)
    const at = byId >= 0 ? byId : this.#open.findIndex((call) => call.name === name)
    const call = this.#open[at]
    if (!call) return refuse(path, 'the response to a call in an earlier turn', 'one without its call')
    this.#open.splice(at, 1)
    return call.id
  }

  #nextId(): string {
    let id: string
    do id = `call_${++this.#calls}`
    while (this.#ids.has(id))
    return id
  }
}

/**
 * Puts the thoughts together that a stream brought in pieces, the last of which has the signature: another
 * provider signed all of the text. Gemini itself signs no thoughts, but what follows them.
 */
function withWholeThoughts(parts: readonly Part[]): Part[] {
  const whole: Part[] = []
  let pieces: ThinkingPart[] = []
  for (const part of parts) {
    if (part.kind === 'thinking' && !part.proof) {
      pieces.push(part)
      continue
    }
    const isEnd = part.kind === 'thinking' && part.proof?.protocol !== 'gemini'
    if (isEnd) whole.push({ ...part, text: [...pieces, part].map(({ text }) => text).join('') })
    else whole.push(...pieces, part)
    pieces = []
  }
  return [...whole, ...pieces]
}

/** A list, or its only element in place of it, which servers accept too. */
function elementsOf(scan: ScannedObject, node: Node): readonly Node[] {
  return scan.kindOf(node) === 'array' ? scan.elements(node) : [node]
}

/** Names that a response has by convention for what a tool said. */
const OUTPUT = 'output'
const ERROR = 'error'

/** Finds what a tool said: the text under one of the two usual names, else the response as it was written. */
function saidIn(
  scan: ScannedObject,
  response: Node | undefined,
): { readonly text: string; readonly isError: boolean } {
  if (response === undefined) return { text: '', isError: false }
  const whole = scan.parse(response) as Fields
  const [name, ...others] = Object.keys(whole)
  if (name === undefined) return { text: '', isError: false }
  if (others.length > 0 || (name !== OUTPUT && name !== ERROR))
    return {
      text: scan.textOf(response),
      isError: Object.hasOwn(whole, ERROR) && !Object.hasOwn(whole, OUTPUT),
    }
  const value = scan.memberOf(response, name) as Node
  const isText = scan.kindOf(value) === 'string'
  return { text: isText ? (whole[name] as string) : scan.textOf(value), isError: name === ERROR }
}
