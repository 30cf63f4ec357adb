import { type CopyablePart, decodeFrameText } from '../../frame-writer.ts'
import type { Fields } from '../../field.ts'
import { asRecord, parseRecord } from '../../json/record.ts'
import type { ReplyEvent } from '../../reply.ts'
import type { ThinkingPart } from '../../conversation.ts'
import { readCallSignature } from '../reasoning-details.ts'
import type { FrameTextMatch } from '../../sse/frame-template.ts'
import { RESPONSE_LIMITS, scanObject } from '../../json/json-scan.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'

/** A tool call whose arguments are not complete yet. */
interface GrowingCall {
  readonly id: string
  name: string
  /**
   * Number of the call's part. Undefined until the call has a name, because the part begins with the name.
   */
  part: number | undefined
  /** The arguments received before the name. */
  pendingArguments: string
  readonly json: JsonEndDetector
  ended: boolean
}

/** What a piece of a call states; a missing text is empty. */
interface CallPiece {
  readonly id: string
  readonly name: string
  /** A part of the arguments. */
  readonly text: string
}

/** What receives the decoded tool calls: the decoder of the whole reply. */
export interface ToolCallSink {
  emit(event: ReplyEvent): void
  /** Begins a part, which ends the text before it. Returns the number of the part. */
  begin(): number
  /** Creates an id for a call that has none. */
  mintId(part: number): string
}

/**
 * Decodes the tool calls of one reply, complete or in pieces, in every form that providers send: with an
 * index, an id or neither; with the id and the name once or in each piece; with several calls under one
 * index or id; with the name after the arguments. A call ends when its arguments are complete JSON and something
 * else begins, so that the next call need not wait for the end of the reply.
 */
export class ToolCallDecoder {
  readonly #sink: ToolCallSink
  readonly #byIndex = new Map<number, GrowingCall>()
  readonly #byId = new Map<string, GrowingCall>()
  readonly #open = new Set<GrowingCall>()
  /** The open calls whose arguments are complete; undefined before the first. */
  #complete: Set<GrowingCall> | undefined
  #latest: GrowingCall | undefined
  /** Whether any call has begun. */
  hasCalls = false

  constructor(sink: ToolCallSink) {
    this.#sink = sink
  }

  /** Reads a piece of a call, `{index?, id?, function: {name?, arguments?}}`, whose arguments are text. */
  read(piece: Fields): void {
    const definition = asRecord(piece['function'])
    if (!definition) return
    const id = textOr(piece['id'])
    const name = textOr(definition['name'])
    const text = textOr(definition['arguments'])
    const call = this.#find(piece['index'], { id, name, text })
    this.#latest = call
    if (call.part === undefined && name !== '') this.#start(call, name, readCallSignature(piece))
    this.#add(call, text)
  }

  /** Reads more of the arguments of the call with this index, from a piece without other fields. */
  readArguments(index: number, text: string): void {
    const call = this.#byIndex.get(index)
    if (!call) return
    this.#latest = call
    this.#add(call, text)
  }

  /**
   * Returns the part of the call with this index, so that its arguments can be copied as bytes. Undefined if
   * the call has not begun.
   */
  copyArguments(index: number, bytes: Buffer, match: FrameTextMatch): CopyablePart | undefined {
    const call = this.#byIndex.get(index)
    if (call?.part === undefined || call.ended) return undefined
    this.#latest = call
    this.#feed(call, decodeFrameText(bytes, match))
    return { kind: 'tool-input', index: call.part }
  }

  /** Ends the calls whose arguments are complete; called when something else begins. */
  endComplete(): void {
    if (this.#complete) for (const call of this.#complete) this.#end(call)
  }

  endAll(): void {
    for (const call of this.#open) this.#end(call)
  }

  #find(index: unknown, piece: CallPiece): GrowingCall {
    const { id, name } = piece
    const place = Number.isSafeInteger(index) ? (index as number) : undefined
    const known = place === undefined ? this.#findWithoutIndex(id, name) : this.#byIndex.get(place)
    if (known && !isOther(known, piece)) return known
    const call: GrowingCall = {
      id,
      name: '',
      part: undefined,
      pendingArguments: '',
      json: new JsonEndDetector(),
      ended: false,
    }
    if (place !== undefined) this.#byIndex.set(place, call)
    if (id !== '') this.#byId.set(id, call)
    return call
  }

  /**
   * Finds the call of a piece without an index: the call with its id, otherwise the latest call. A piece with
   * a name belongs to the latest call only if it has no id and the same name, and the arguments are not
   * complete.
   */
  #findWithoutIndex(id: string, name: string): GrowingCall | undefined {
    const known = this.#byId.get(id)
    if (known || !this.#latest) return known
    if (name === '') return this.#latest
    const goesOn = id === '' && name === this.#latest.name && !this.#latest.json.isComplete
    return goesOn ? this.#latest : undefined
  }

  #start(call: GrowingCall, name: string, signed: readonly ThinkingPart[]): void {
    this.endComplete()
    for (const { proof } of signed) {
      const index = this.#sink.begin()
      this.#sink.emit({ kind: 'part-start', index, part: { kind: 'thinking' } })
      if (proof) this.#sink.emit({ kind: 'proof', index, proof })
      this.#sink.emit({ kind: 'part-end', index })
    }
    call.name = name
    const index = this.#sink.begin()
    call.part = index
    this.hasCalls = true
    this.#open.add(call)
    const id = call.id || this.#sink.mintId(index)
    this.#sink.emit({ kind: 'part-start', index, part: { kind: 'tool-call', id, name } })
    const { pendingArguments } = call
    call.pendingArguments = ''
    this.#add(call, pendingArguments)
  }

  /**
   * Adds a piece of its arguments to a call. Nothing is added to a call that has ended: only white space
   * could follow its complete arguments.
   */
  #add(call: GrowingCall, text: string): void {
    if (text === '' || call.ended) return
    if (call.part === undefined) {
      call.pendingArguments += text
      return
    }
    this.#feed(call, text)
    this.#sink.emit({ kind: 'tool-input', index: call.part, text })
  }

  #feed(call: GrowingCall, text: string): void {
    call.json.feed(text)
    if (call.json.isComplete) (this.#complete ??= new Set()).add(call)
  }

  #end(call: GrowingCall): void {
    this.#open.delete(call)
    this.#complete?.delete(call)
    call.ended = true
    if (call.part !== undefined) this.#sink.emit({ kind: 'part-end', index: call.part })
  }
}

/**
 * Whether a piece with the same index, or without an index and with the same id, begins another call: it must
 * have a name, and another id than the known call. If one of them has no id or both ids are equal, the arguments
 * of the known call must be complete, and the piece must have another name or more arguments.
 */
function isOther(known: GrowingCall, { id, name, text }: CallPiece): boolean {
  if (known.part === undefined || name === '') return false
  const hasOtherId = id !== '' && id !== known.id
  if (hasOtherId && known.id !== '') return true
  return known.json.isComplete && (hasOtherId || name !== known.name || text.trim() !== '')
}

function textOr(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** Detects the end of a JSON object or array that is received in pieces. */
export class JsonEndDetector {
  /** Whether the bracket that ends the object or array was received. */
  isComplete = false
  #depth = 0
  #inString = false
  #isEscaped = false

  /** Reads a piece. The total time is linear in the length of the text, no matter how it is split. */
  feed(text: string): void {
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i)
      if (this.#isEscaped) this.#isEscaped = false
      else if (this.#inString) {
        if (code === QUOTE) this.#inString = false
        else if (code === BACKSLASH) this.#isEscaped = true
      } else if (code === QUOTE) this.#inString = true
      else if (code === OPEN_OBJECT || code === OPEN_ARRAY) this.#depth++
      else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) this.isComplete = --this.#depth <= 0
    }
  }
}

/** The members of a choice that contain its content, in complete replies and in chunks. */
const MESSAGES = ['message', 'delta'] as const

/**
 * Parses a reply or a chunk. Undefined if it is not a JSON object. If a server sends arguments as an object,
 * they are replaced by their text as the server wrote it.
 */
export function parseChatReply(text: string): Fields | undefined {
  const answer = parseRecord(text)
  return answer && hasObjectArguments(answer['choices']) ? withTexts(answer, text) : answer
}

/** Whether any call has an object as arguments. Allocates nothing, because it is called for every reply. */
function hasObjectArguments(choices: unknown): boolean {
  if (!Array.isArray(choices)) return false
  for (const choice of choices) {
    for (const key of MESSAGES) {
      const message = asRecord(asRecord(choice)?.[key])
      if (hasObject(message?.['function_call'])) return true
      const calls = message?.['tool_calls']
      if (!Array.isArray(calls)) continue
      for (const call of calls) if (hasObject(asRecord(call)?.['function'])) return true
    }
  }
  return false
}

function hasObject(definition: unknown): definition is Record<string, unknown> {
  return asRecord(asRecord(definition)?.['arguments']) !== undefined
}

function withTexts(answer: Fields, text: string): Fields {
  const scan = scanned(text)
  const choices = answer['choices'] as readonly unknown[]
  const nodes = elementsAt(scan, scan?.span('choices')?.node)
  for (const [i, choice] of choices.entries()) {
    for (const key of MESSAGES) {
      const message = asRecord(asRecord(choice)?.[key])
      if (message) writeArguments(message, scan, memberAt(scan, nodes[i], key))
    }
  }
  return answer
}

/** Replaces the arguments in a message that are objects. `node` is the message in the scanned reply. */
function writeArguments(message: Fields, scan: ScannedObject | undefined, node: Node | undefined): void {
  const write = (definition: unknown, at: Node | undefined): void => {
    if (!hasObject(definition)) return
    const found = memberAt(scan, at, 'arguments')
    // For replies that exceed the scanner's limits, the object is written anew: the order of numeric keys and
    // long digits may be lost.
    definition['arguments'] =
      scan && found !== undefined ? scan.textOf(found) : JSON.stringify(definition['arguments'])
  }
  write(message['function_call'], memberAt(scan, node, 'function_call'))
  const calls = message['tool_calls']
  if (!Array.isArray(calls)) return
  const nodes = elementsAt(scan, memberAt(scan, node, 'tool_calls'))
  for (const [n, call] of (calls as readonly unknown[]).entries())
    write(asRecord(call)?.['function'], memberAt(scan, nodes[n], 'function'))
}

function memberAt(scan: ScannedObject | undefined, node: Node | undefined, key: string): Node | undefined {
  return node === undefined ? undefined : scan?.memberOf(node, key)
}

function elementsAt(scan: ScannedObject | undefined, node: Node | undefined): readonly Node[] {
  return scan && node !== undefined ? scan.elements(node) : []
}

function scanned(text: string): ScannedObject | undefined {
  try {
    return scanObject(Buffer.from(text), RESPONSE_LIMITS)
  } catch {
    return undefined
  }
}
