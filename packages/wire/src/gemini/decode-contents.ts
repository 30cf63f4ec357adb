import type { Dropped } from '../codec.ts'
import type { Part, TextPart, ThinkingPart, ToolCallPart, ToolResultPart, Turn } from '../conversation.ts'
import { refuse } from '../field-check.ts'
import { type Fields, fieldsAt, kindOf, textAt } from '../field.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import { decodeMedia, decodePlainPart } from './decode/part.ts'
import { drop } from './dropped-fields.ts'
import { readSignature } from './signature.ts'
import { either, nodeOf, topMember } from './spelling.ts'

/** Roles of contents, including older names of the role of function responses. */
const ROLES: ReadonlyMap<unknown, Turn['role']> = new Map<unknown, Turn['role']>([
  ['user', 'user'],
  ['function', 'user'],
  ['tool', 'user'],
  ['model', 'assistant'],
])

/** A part and its path. */
interface Place {
  readonly node: Node
  readonly path: string
}

/**
 * Reads `contents`. A content without a role is the user's. Calls without an id get one derived from their
 * number, so that the same history always has the same ids. A response belongs to the call with its id, or
 * else to the first unanswered call of its name. Throws `invalid_request` with the path of an unreadable
 * value, and for a response without its call.
 */
export class ContentsReader {
  readonly #scan: ScannedObject
  readonly #dropped: Dropped
  /** Calls without a response, in order. */
  readonly #open: { readonly id: string; readonly name: string }[] = []
  /** Ids of calls that are already used. */
  readonly #ids = new Set<string>()
  #calls = 0

  constructor(scan: ScannedObject, dropped: Dropped) {
    this.#scan = scan
    this.#dropped = dropped
  }

  /** Reads all turns that are not empty. */
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

  /** The signature of a call becomes a part before it. */
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

  /** Finds the call to which a response belongs. A call is answered only once. */
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
 * Joins thoughts that arrived in pieces, of which the last has the signature: another provider has signed the
 * whole text. Gemini itself does not sign thoughts, but the parts after them.
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

/** Elements of a list. Servers also accept a single element in place of the list. */
function elementsOf(scan: ScannedObject, node: Node): readonly Node[] {
  return scan.kindOf(node) === 'array' ? scan.elements(node) : [node]
}

/** Members of a response that by convention contain a tool's output. */
const OUTPUT = 'output'
const ERROR = 'error'

/**
 * Finds the output of a tool: the text in one of the two members above, or else the whole response as it was
 * written.
 */
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
