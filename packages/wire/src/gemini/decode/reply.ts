import { FailedAnswer } from '../../answer-error.ts'
import { WireError } from '../../wire-error.ts'
import { ReceivedMedia } from '../../received-media.ts'
import {
  type Choice,
  combineEvents,
  type Logprobs,
  type Reply,
  type ReplyEvent,
  type StartedPart,
} from '../../reply.ts'
import { asRecord, parseRecord } from '../../json/record.ts'
import type { Fields } from '../../field.ts'
import {
  jsonTextsOfResponses,
  argumentsTextFinder,
  type FindArgumentsText,
  blockReason,
  candidateAt,
  endWords,
  errorOfAnswer,
  idAndModelOf,
  recordReceivedMedia,
  partsOfCandidate,
} from '../answer.ts'
import { citationFinderOf, type FindCitations } from '../grounding.ts'
import { logprobsOf } from '../logprobs.ts'
import { finishReasonOf, readGeminiStop } from '../stop-reasons.ts'
import { StreamUsage } from '../usage.ts'
import type { ProviderSignature } from '../../conversation.ts'
import { type CopyablePart, decodeFrameText } from '../../frame-writer.ts'
import type { FrameTextMatch } from '../../sse/frame-template.ts'
import { GEMINI_ONLY_PARTS } from './part.ts'
import { readSignature } from '../signature.ts'

/** A parsed response, and the JSON text from which it was parsed. */
interface Answer {
  readonly text: string
  readonly fields: Fields
}

/**
 * Reads a complete response with as many candidates as were requested. If the prompt was refused, there are
 * none. Throws `upstream_error` if this is not a response.
 */
export function decodeReply(bytes: Buffer, choices = 1): Reply {
  const usage = new StreamUsage()
  const answers = jsonTextsOfResponses(bytes.toString()).map((text): Answer => {
    const fields = parseRecord(text)
    if (!fields) return refuse()
    usage.read(fields)
    return { text, fields }
  })
  const error = answers.map(({ fields }) => errorOfAnswer(fields)).find((found) => found)
  const [begin] = answers
  const identity = begin && idAndModelOf(begin.fields)
  const arrived = new ReceivedMedia()
  const first = identity && read(answers, 0, identity.id, arrived)
  const others = Array.from(
    { length: choices - 1 },
    (_, i) => identity && read(answers, i + 1, `${identity.id}_${i + 1}`, arrived),
  )
  const found = others.filter((choice) => choice !== undefined)
  if (error) {
    const parts = [first, ...found].flatMap((one) => one?.parts ?? [])
    throw new FailedAnswer(error, usage.usage, parts)
  }
  if (!first) return refuse()
  return {
    ...identity,
    ...first,
    usage: usage.usage,
    ...(found.length > 0 && { others: found }),
    ...(usage.tools.uses.length > 0 && { tools: usage.tools.uses }),
    ...(!arrived.isEmpty && { arrived }),
  }
}

/** Reads a candidate; undefined if it does not exist. */
function read(
  answers: readonly Answer[],
  number: number,
  id: string,
  arrived: ReceivedMedia,
): Choice | undefined {
  const events: ReplyEvent[] = []
  const parts = new ReplyPartsDecoder((event) => events.push(event))
  parts.setAnswerId(id)
  let reason: string | undefined
  let words = ''
  for (const { text, fields } of answers) {
    const found = candidateAt(fields, number)
    words = endWords(fields, found?.candidate) || words
    if (!found && number === 0 && blockReason(fields) !== undefined) reason ??= 'SAFETY'
    if (!found) continue
    const { candidate, at } = found
    const replyParts = partsOfCandidate(candidate)
    recordReceivedMedia(replyParts, arrived)
    parts.read(
      replyParts,
      argumentsTextFinder(text, at, replyParts),
      citationFinderOf(candidate),
      logprobsOf(candidate),
    )
    reason = finishReasonOf(candidate['finishReason']) ?? reason ?? 'STOP'
  }
  if (reason === undefined) return undefined
  parts.end()
  return {
    parts: combineEvents(events),
    stop: readGeminiStop(reason, { calledTools: parts.calledTools, words }),
  }
}

function refuse(): never {
  throw new WireError('upstream_error', 'The upstream sent no answer that could be understood.')
}

/**
 * Converts the parts of a response, complete or in chunks. Consecutive texts become one part, and so do
 * consecutive thoughts. A signature becomes a separate part, before the function call or after the text that
 * it signs. Images become links that contain their data, because most clients support nothing else.
 */
export class ReplyPartsDecoder {
  calledTools = false
  readonly #emit: (event: ReplyEvent) => void
  #answerId = ''
  #next = 0
  /** The part with text or thoughts to which the next chunk may add. */
  #growing: { readonly kind: 'text' | 'thinking'; readonly index: number } | undefined
  /** The text of the part in `#growing` so far. Positions of citations refer to it. */
  #text = ''
  /** Finds the citations of the text in `#text`; undefined if it has none, or if they were emitted. */
  #citationsOf: FindCitations | undefined
  /** Log probabilities for the text that is emitted next. */
  #logprobs: Logprobs | undefined
  /** The call whose arguments arrive in pieces. */
  #call: { readonly index: number; readonly args: PartialArgs } | undefined

  constructor(emit: (event: ReplyEvent) => void) {
    this.#emit = emit
  }

  /**
   * Sets the id of the response. Function calls without an id get one that is derived from it, so that the
   * ids in two responses differ.
   */
  setAnswerId(id: string): void {
    this.#answerId = id.replaceAll(/[^\w-]/g, '_')
  }

  /** Reads the parts of a candidate, with the sources and the log probabilities of its text. */
  read(
    parts: readonly unknown[],
    textOf: FindArgumentsText,
    citationsOf: FindCitations | undefined,
    logprobs: Logprobs | undefined,
  ): void {
    this.#citationsOf = citationsOf
    this.#logprobs = logprobs
    for (const [number, value] of parts.entries()) {
      const part = asRecord(value)
      if (part) this.#readPart(part, () => textOf(number))
    }
    if (this.#logprobs) this.grow('text', '')
    this.#cite()
  }

  /** Adds a piece to the current text or thought, or begins a new one. */
  grow(kind: 'text' | 'thinking', text: string, isMedia = false): void {
    this.#endCall()
    if (this.#growing?.kind !== kind) {
      this.#endGrowing()
      this.#growing = { kind, index: this.#start({ kind }) }
      this.#text = ''
    }
    if (kind === 'text') this.#text += text
    const { index } = this.#growing
    const logprobs = kind === 'text' ? this.#logprobs : undefined
    if (logprobs) this.#logprobs = undefined
    if (kind === 'thinking') this.#emit({ kind, index, text })
    else this.#emit({ kind, index, text, ...(isMedia && { isMedia }), ...(logprobs && { logprobs }) })
  }

  /**
   * Returns the current part if it is of this kind, so that the text can be copied as bytes; otherwise
   * undefined.
   */
  copy(kind: 'text' | 'thinking', bytes: Buffer, match: FrameTextMatch): CopyablePart | undefined {
    if (this.#call || this.#growing?.kind !== kind) return undefined
    if (kind === 'text') this.#text += decodeFrameText(bytes, match)
    return { kind, index: this.#growing.index }
  }

  /** Ends all open parts. */
  end(): void {
    this.#endGrowing()
    this.#endCall()
  }

  #readPart(part: Fields, argumentsText: () => string | undefined): void {
    const signature = typeof part['thoughtSignature'] === 'string' ? part['thoughtSignature'] : ''
    const call = asRecord(part['functionCall'])
    if (call) return this.#readCall(call, signature, argumentsText)
    if (GEMINI_ONLY_PARTS.some((name) => asRecord(part[name]))) {
      this.#whole({ kind: 'opaque', protocol: 'gemini', value: part })
      return undefined
    }
    const text = typeof part['text'] === 'string' ? part['text'] : ''
    const isThought = part['thought'] === true
    if (text !== '') this.grow(isThought ? 'thinking' : 'text', text)
    const media = asRecord(part['inlineData'])
    if (media && !isThought) this.grow('text', linkTo(media), true)
    if (signature !== '') this.#sign(signature, isThought ? undefined : 'text')
    return undefined
  }

  /** Emits a signature. It belongs to the current thought, or with `signs` to a function call or a text. */
  #sign(signature: string, signs: ProviderSignature['signs']): void {
    const read = readSignature(signature, '', signs)
    this.#endCall()
    if (read.kind === 'opaque') {
      this.#whole(read)
      return
    }
    if (signs === 'text' || this.#growing?.kind !== 'thinking') {
      this.#endGrowing()
      this.#growing = { kind: 'thinking', index: this.#start({ kind: 'thinking' }) }
    }
    if (read.proof) this.#emit({ kind: 'proof', index: this.#growing.index, proof: read.proof })
    this.#endGrowing()
  }

  #readCall(call: Fields, signature: string, argumentsText: () => string | undefined): void {
    const name = typeof call['name'] === 'string' ? call['name'] : ''
    const pieces = Array.isArray(call['partialArgs']) ? (call['partialArgs'] as readonly unknown[]) : []
    if (name === '') {
      this.#call?.args.add(pieces)
      if (call['willContinue'] !== true) this.#endCall()
      return
    }
    if (signature !== '') this.#sign(signature, 'call')
    this.end()
    const given = call['id']
    const id = typeof given === 'string' && given !== '' ? given : `call_${this.#answerId}_${this.#next}`
    const index = this.#start({ kind: 'tool-call', id, name })
    this.calledTools = true
    if (call['willContinue'] === true || pieces.length > 0) {
      this.#call = { index, args: new PartialArgs() }
      this.#call.args.add(pieces)
      if (call['willContinue'] !== true) this.#endCall()
      return
    }
    this.#emit({ kind: 'tool-input', index, text: argumentsText() ?? '{}' })
    this.#emit({ kind: 'part-end', index })
  }

  #whole(part: StartedPart): void {
    this.end()
    this.#emit({ kind: 'part-end', index: this.#start(part) })
  }

  #start(part: StartedPart): number {
    const index = this.#next++
    this.#emit({ kind: 'part-start', index, part })
    return index
  }

  /** Emits the citations of the current text. */
  #cite(): void {
    const { index, kind } = this.#growing ?? {}
    if (!this.#citationsOf || index === undefined || kind !== 'text') return
    for (const citation of this.#citationsOf(this.#text)) this.#emit({ kind: 'citation', index, citation })
    this.#citationsOf = undefined
  }

  #endGrowing(): void {
    this.#cite()
    if (this.#growing) this.#emit({ kind: 'part-end', index: this.#growing.index })
    this.#growing = undefined
  }

  #endCall(): void {
    if (!this.#call) return
    const { index, args } = this.#call
    this.#call = undefined
    this.#emit({ kind: 'tool-input', index, text: args.toString() })
    this.#emit({ kind: 'part-end', index })
  }
}

/** Writes media as a Markdown link that contains the data. */
function linkTo(media: Fields): string {
  const type = typeof media['mimeType'] === 'string' ? media['mimeType'] : 'application/octet-stream'
  const data = typeof media['data'] === 'string' ? media['data'] : ''
  const isImage = type.startsWith('image/')
  return `${isImage ? '![image]' : '[file]'}(data:${type};base64,${data})`
}

/**
 * An object or array that is being assembled: its members by key or index, in the order in which they
 * arrived.
 */
type Branch = { readonly isList: boolean; readonly members: Map<string, Branch | Leaf> }
/** A string, number, boolean or null as JSON text. Later pieces may extend a string. */
type Leaf = { text: string; readonly isString: boolean }

const STEP = /\.([^.[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/gy
/** Maximum number of steps in the path of a piece; longer paths are ignored. */
const MAX_STEPS = 128

/** Assembles the arguments of a call from pieces, each with a path such as `$.list[0].name`. */
export class PartialArgs {
  readonly #root: Branch = { isList: false, members: new Map() }

  /** Adds the pieces of the arguments that a chunk contains. Invalid pieces are ignored. */
  add(pieces: readonly unknown[]): void {
    for (const value of pieces) {
      const piece = asRecord(value)
      const path = piece?.['jsonPath']
      const steps = typeof path === 'string' ? stepsOf(path) : undefined
      if (piece && steps) this.#put(steps, piece)
    }
  }

  /** Returns the arguments as JSON text. */
  toString(): string {
    return jsonOf(this.#root)
  }

  #put(steps: readonly Step[], piece: Fields): void {
    let branch = this.#root
    for (const [at, { key }] of steps.entries()) {
      const next = steps[at + 1]
      const found = branch.members.get(key)
      if (!next) {
        branch.members.set(key, grown(found, piece))
        return
      }
      const inner: Branch = found && 'members' in found ? found : { isList: next.isIndex, members: new Map() }
      branch.members.set(key, inner)
      branch = inner
    }
  }
}

interface Step {
  readonly key: string
  readonly isIndex: boolean
}

function stepsOf(path: string): Step[] | undefined {
  if (!path.startsWith('$')) return undefined
  const steps: Step[] = []
  STEP.lastIndex = 1
  let end = 1
  for (let match = STEP.exec(path); match && steps.length < MAX_STEPS; match = STEP.exec(path)) {
    const [, name, index, single, double] = match
    steps.push({ key: name ?? index ?? single ?? double ?? '', isIndex: index !== undefined })
    end = STEP.lastIndex
  }
  return end === path.length && steps.length > 0 ? steps : undefined
}

function grown(found: Branch | Leaf | undefined, piece: Fields): Leaf {
  const text = piece['stringValue']
  if (typeof text === 'string') {
    const before = found && 'text' in found && found.isString ? found.text : ''
    return { text: before + text, isString: true }
  }
  const value = piece['numberValue'] ?? piece['boolValue'] ?? null
  return { text: JSON.stringify(value), isString: false }
}

function jsonOf(value: Branch | Leaf): string {
  if ('text' in value) return value.isString ? JSON.stringify(value.text) : value.text
  const members = [...value.members]
  if (value.isList) return `[${members.map(([, member]) => jsonOf(member)).join(',')}]`
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${jsonOf(member)}`).join(',')}}`
}
