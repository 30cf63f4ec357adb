import { createHash, hash as digestOf } from 'node:crypto'
import { hasBytesAt, type Member, type Node, type ScannedObject } from './json/scanned-object.ts'
import type { FoundMedia, PromptLevels } from './prompt-text.ts'
import { mediaTokensBeyondBytes, MESSAGE_TOKENS } from './prompt-tokens.ts'

/** Describes how the conversations of a dialect are compared. */
export interface ConversationForm {
  readonly levels: PromptLevels
  /** Top-level members that may differ. They add at most one token for each of their bytes, which count. */
  readonly uncompared: ReadonlySet<string>
  /** Members of a top-level member that may differ, because they only control sampling. */
  readonly sampling?: { readonly of: string; readonly names: ReadonlySet<string> }
  /** Whether a text has the same meaning as a list of one text part. */
  readonly textIsPart?: true
  /**
   * Reports whether the tokens of the prompt are unpredictable, because a part of it is stored elsewhere, or
   * because the provider may leave out parts.
   */
  readonly isUnforeseeable?: (scan: ScannedObject) => boolean
  /** Tokens of a turn beyond its bytes, besides its media. */
  readonly extraTokens?: (scan: ScannedObject, turn: Node) => number
}

const DIGEST_BYTES = 32

/**
 * Digests of a conversation at the end of each of its turns, taken in one pass over its bytes. A digest covers
 * everything that the model reads up to there: system, tools, unknown members and turns as they are written,
 * without cache directives.
 */
export class ConversationDigests {
  /** Number of turns. */
  readonly turns: number
  readonly #digests: Buffer
  readonly #size: number
  /** Sums up to the end of each turn; the first is that of the head. */
  readonly #sums: readonly Sums[]

  /** `seed` separates conversations that are not compared with each other. `model`: as in `promptText`. */
  constructor(scan: ScannedObject, form: ConversationForm, seed: Uint8Array, model: string) {
    const walk = new DigestWalk(scan, form, model)
    const turns = walk.turns()
    this.turns = turns.length
    this.#size = scan.end
    this.#digests = Buffer.allocUnsafe((turns.length + 1) * DIGEST_BYTES)
    const sums: Sums[] = []
    let hash = createHash('sha256').update(seed)
    walk.head(hash)
    for (let i = 0; ; i++) {
      hash.digest().copy(this.#digests, i * DIGEST_BYTES)
      sums.push({ ...walk.sums })
      if (i === turns.length) break
      hash = createHash('sha256').update(this.digest(i))
      walk.turn(hash, turns[i] as Node)
    }
    this.#sums = sums
  }

  /** The digest at the end of this turn; turns count from 1. */
  digest(turn: number): Buffer {
    return this.#digests.subarray(turn * DIGEST_BYTES, (turn + 1) * DIGEST_BYTES)
  }

  /** Upper bound on the tokens of the prompt, if it has this many up to the end of this turn. */
  bound(turn: number, tokens: number): number {
    const known = this.#at(turn)
    const all = this.#at(this.turns)
    const appended = this.#size - known.bytes + (this.turns - turn) * MESSAGE_TOKENS
    return tokens + appended + (all.beyondBytes - known.beyondBytes) + known.elsewhere
  }

  /** Bytes of text up to the end of this turn. */
  textBytes(turn: number): number {
    const { bytes, mediaBytes } = this.#at(turn)
    return bytes - mediaBytes
  }

  #at(turn: number): Sums {
    return this.#sums[turn] as Sums
  }
}

/** Counts over the conversation up to one position. */
interface Sums {
  /** Bytes that the digest covers. */
  bytes: number
  /** Bytes of the data of media. */
  mediaBytes: number
  /** Upper bound on tokens in addition to one for each byte; negative if media have fewer. */
  beyondBytes: number
  /** Upper bound on the tokens of media given by an address, whose content may have changed since. */
  elsewhere: number
}

/** A part of the bytes. */
type Span = readonly [start: number, end: number]

/** Names of cache directives, as members, and as the only member of a block. */
const DIRECTIVES: ReadonlySet<string> = new Set(['cache_control', 'prompt_cache_breakpoint', 'cachePoint'])
const DIRECTIVE_NAMES = [...DIRECTIVES].map((name) => Buffer.from(`"${name}`))
/** Types of text parts of a client. */
const TEXT_TYPES: ReadonlySet<string> = new Set(['"text"', '"input_text"'])
/** Members with parts that may have cache directives. */
const HOLDERS: ReadonlySet<string> = new Set(['content', 'output', 'toolResult'])
/** Members that may be given as a text or as parts. */
const TEXTS: ReadonlySet<string> = new Set(['content', 'system'])
/** Top-level members other than turns that may have cache directives. */
const HEAD_HOLDERS: ReadonlySet<string> = new Set(['system', 'tools', 'toolConfig'])

/** Beginning of a line that Claude Code writes into each request with another value. */
const BILLING_LINE = Buffer.from('"x-anthropic-billing-header:')
const BACKSLASH = 0x5c
const COLON = 0x3a
const LETTER_N = 0x6e
/** Shorter data may be an address or an id. */
const MIN_DATA_BYTES = 512
/** Number of leading bytes that distinguish an address from data. */
const ADDRESS_BYTES = 24
const DATA_URL = Buffer.from('"data:')

/** Top-level members that come before the turns of a conversation, in all dialects. */
const OPENING_MEMBERS: ReadonlySet<string> = new Set([
  'instructions',
  'system',
  'systemInstruction',
  'system_instruction',
  'tools',
])
/** Roles of turns that are instructions. */
const INSTRUCTION_ROLES: ReadonlySet<string> = new Set(['"system"', '"developer"'])

/**
 * Digest of the beginning of a conversation: tools, system texts, and the first turn that is not an instruction,
 * without cache directives. A text and a list of one text part are equal. Undefined for a conversation without such a turn.
 */
export function openingDigest(scan: ScannedObject, form: ConversationForm): Buffer | undefined {
  return new DigestWalk(scan, form, '').opening()
}

/** Receives the bytes that a digest covers. */
interface Sink {
  update(data: Buffer | string): unknown
}

class DigestWalk {
  readonly sums: Sums = { bytes: 0, mediaBytes: 0, beyondBytes: 0, elsewhere: 0 }
  readonly #scan: ScannedObject
  readonly #form: ConversationForm
  readonly #model: string
  readonly #hasDirectives: boolean
  /** The member with the turns. */
  readonly #turns: Member | undefined
  readonly #turnLevel: string

  constructor(scan: ScannedObject, form: ConversationForm, model: string) {
    const { turns, levels } = form.levels
    this.#scan = scan
    this.#form = form
    this.#model = model
    this.#hasDirectives = DIRECTIVE_NAMES.some((name) => scan.hasStringFrom(name))
    this.#turns = [...scan.members.values()].find(({ key }) => this.#spelled(key) === turns)
    this.#turnLevel = levels.request.read[turns] ?? ''
  }

  turns(): readonly Node[] {
    const node = this.#turns?.node
    if (node === undefined) return []
    return this.#scan.kindOf(node) === 'array' ? this.#scan.elements(node) : [node]
  }

  /** Everything but the turns, in the order of the names. */
  head(hash: Sink): void {
    const { uncompared, sampling } = this.#form
    const members = [...this.#scan.members.values()]
      .filter((member) => member !== this.#turns && !uncompared.has(member.key))
      .toSorted((one, other) => (one.key < other.key ? -1 : 1))
    for (const { key, keyStart, end, node } of members) {
      const left: Span[] = []
      if (sampling && this.#spelled(key) === sampling.of)
        this.#leaveOutMembers(node, (name) => sampling.names.has(this.#spelled(name)), left)
      else if (HEAD_HOLDERS.has(key)) {
        if (key === 'system') this.#leaveOutBilling(node, left)
        this.#visit(key, node, left)
      }
      this.#add(hash, keyStart, end, left)
      hash.update(',')
      this.#findMedia(this.#form.levels.levels.request.read[this.#spelled(key)] ?? '', node)
    }
  }

  opening(): Buffer | undefined {
    // One digest of all parts costs less than a digest that gets them one by one.
    const parts: Buffer[] = []
    const hash: Sink = {
      update: (data) => parts.push(typeof data === 'string' ? Buffer.from(data) : data),
    }
    const members = [...this.#scan.members.values()]
      .filter(({ key }) => OPENING_MEMBERS.has(key))
      .toSorted((one, other) => (one.key < other.key ? -1 : 1))
    for (const { key, node } of members) {
      const left: Span[] = []
      if (key === 'system') this.#leaveOutBilling(node, left)
      if (this.#hasDirectives || key !== 'tools') this.#visit(key, node, left)
      hash.update(key)
      this.#add(hash, this.#scan.startOf(node), this.#scan.endOf(node), left)
      hash.update(',')
    }
    for (const turn of this.turns()) {
      const isInstruction = this.#isInstruction(turn)
      const text = isInstruction ? undefined : this.#onlyTextOf(turn)
      if (text === undefined) this.turn(hash, turn)
      else this.#add(hash, this.#scan.startOf(text), this.#scan.endOf(text), [])
      if (!isInstruction) return digestOf('sha256', Buffer.concat(parts), 'buffer')
      hash.update(',')
    }
    return undefined
  }

  #isInstruction(turn: Node): boolean {
    const scan = this.#scan
    const role = scan.kindOf(turn) === 'object' ? scan.memberOf(turn, 'role') : undefined
    return role !== undefined && INSTRUCTION_ROLES.has(scan.textOf(role))
  }

  /** The text of a turn that consists of one text. */
  #onlyTextOf(turn: Node): Node | undefined {
    const scan = this.#scan
    if (scan.kindOf(turn) !== 'object') return scan.kindOf(turn) === 'string' ? turn : undefined
    const content = scan.memberOf(turn, 'content')
    if (content === undefined) return undefined
    if (scan.kindOf(content) === 'array') return this.#onlyText(content)
    return scan.kindOf(content) === 'string' ? content : undefined
  }

  turn(hash: Sink, node: Node): void {
    const scan = this.#scan
    const left: Span[] = []
    if (scan.kindOf(node) === 'object') this.#visit('', node, left)
    this.#add(hash, scan.startOf(node), scan.endOf(node), left)
    this.sums.beyondBytes += this.#form.extraTokens?.(scan, node) ?? 0
    this.#findMedia(this.#turnLevel, node)
  }

  #add(hash: Sink, start: number, end: number, left: readonly Span[]): void {
    const { bytes } = this.#scan
    if (left.length === 0) return this.#update(hash, bytes.subarray(start, end))
    let from = start
    for (const [leftStart, leftEnd] of left.toSorted(([one], [other]) => one - other)) {
      this.#update(hash, bytes.subarray(from, leftStart))
      from = leftEnd
    }
    this.#update(hash, bytes.subarray(from, end))
  }

  #update(hash: Sink, bytes: Buffer): void {
    if (bytes.length === 0) return
    hash.update(bytes)
    this.sums.bytes += bytes.length
  }

  /** Collects what is left out of a value: cache directives, and the brackets around a single text. */
  #visit(key: string, node: Node, left: Span[]): void {
    const scan = this.#scan
    const kind = scan.kindOf(node)
    if (kind === 'array') {
      const text = this.#form.textIsPart && TEXTS.has(key) ? this.#onlyText(node) : undefined
      if (text !== undefined) {
        left.push([scan.startOf(node), scan.startOf(text)], [scan.endOf(text), scan.endOf(node)])
        return
      }
      const elements = scan.elements(node)
      if (this.#hasDirectives)
        this.#leaveOut(
          elements.map((one) => [one, one, this.#isDirective(one)]),
          left,
        )
      for (const one of elements)
        if (scan.kindOf(one) === 'object' && !this.#isDirective(one)) this.#visit('', one, left)
    } else if (kind === 'object') {
      if (this.#hasDirectives) this.#leaveOutMembers(node, (name) => DIRECTIVES.has(name), left)
      for (let at = scan.firstKey(node); at !== undefined; at = scan.nextKey(at, node)) {
        const name = scan.keyText(at)
        if (HOLDERS.has(name) || (name === 'tools' && key === 'toolConfig'))
          this.#visit(name, scan.valueOf(at), left)
      }
    }
  }

  #leaveOutMembers(object: Node, isLeftOut: (name: string) => boolean, left: Span[]): void {
    const scan = this.#scan
    if (scan.kindOf(object) !== 'object') return
    this.#leaveOut(
      scan.values(object).map((value) => [value - 3, value, isLeftOut(scan.keyText(value - 3))]),
      left,
    )
  }

  /** Leaves out children of a value, each together with one comma. */
  #leaveOut(
    children: readonly (readonly [first: Node, last: Node, isLeftOut: boolean])[],
    left: Span[],
  ): void {
    const scan = this.#scan
    let keptEnd: number | undefined
    for (const [index, [first, last, isLeftOut]] of children.entries()) {
      const end = scan.endOf(last)
      if (!isLeftOut) keptEnd = end
      else if (keptEnd !== undefined) {
        left.push([keptEnd, end])
        keptEnd = end
      } else {
        const next = children[index + 1]
        left.push([scan.startOf(first), next ? scan.startOf(next[0]) : end])
      }
    }
  }

  /** Whether a block consists of a cache directive only. */
  #isDirective(node: Node): boolean {
    const scan = this.#scan
    if (!this.#hasDirectives || scan.kindOf(node) !== 'object') return false
    const key = scan.firstKey(node)
    return key !== undefined && scan.nextKey(key, node) === undefined && DIRECTIVES.has(scan.keyText(key))
  }

  /** The text of a list that consists of one text part, apart from cache directives. */
  #onlyText(list: Node): Node | undefined {
    const scan = this.#scan
    const parts = scan.elements(list)
    const [part] = parts
    if (parts.length !== 1 || part === undefined || scan.kindOf(part) !== 'object') return undefined
    let text: Node | undefined
    let hasType = false
    for (const value of scan.values(part)) {
      const name = scan.keyText(value - 3)
      if (DIRECTIVES.has(name)) continue
      if (name === 'type' && !hasType && TEXT_TYPES.has(scan.textOf(value))) hasType = true
      else if (name === 'text' && text === undefined && scan.kindOf(value) === 'string') text = value
      else return undefined
    }
    return hasType ? text : undefined
  }

  #leaveOutBilling(system: Node, left: Span[]): void {
    const scan = this.#scan
    const blocks = scan.kindOf(system) === 'array' ? scan.elements(system) : [system]
    for (const block of blocks) {
      const text = scan.kindOf(block) === 'object' ? scan.memberOf(block, 'text') : block
      if (text === undefined || scan.kindOf(text) !== 'string') continue
      const start = scan.startOf(text)
      if (!hasBytesAt(scan.bytes, start, BILLING_LINE)) continue
      left.push([start + 1, this.#endOfLine(start + 1, scan.endOf(text) - 1)])
    }
  }

  #endOfLine(start: number, end: number): number {
    const { bytes } = this.#scan
    for (let at = start; at < end; at++) {
      if (bytes[at] !== BACKSLASH) continue
      if (bytes[at + 1] === LETTER_N) return at
      at++
    }
    return end
  }

  #findMedia(reading: string, node: Node): void {
    const scan = this.#scan
    if (scan.kindOf(node) === 'array') {
      for (const element of scan.elements(node)) this.#findMedia(reading, element)
      return
    }
    const level = this.#form.levels.levels[reading]
    if (!level || scan.kindOf(node) !== 'object') return
    const media = level.media?.(scan, node)
    if (media) this.#addMedia(media)
    for (const value of scan.values(node)) {
      const kind = scan.kindOf(value)
      if (kind !== 'object' && kind !== 'array') continue
      const read = level.read[this.#spelled(scan.keyText(value - 3))]
      if (read !== undefined) this.#findMedia(read, value)
    }
  }

  #addMedia(media: FoundMedia): void {
    const scan = this.#scan
    const { data } = media
    const beyond = mediaTokensBeyondBytes(scan, media, this.#model)
    const bytes = data === undefined ? 0 : scan.endOf(data) - scan.startOf(data)
    this.sums.beyondBytes += beyond
    if (data !== undefined && this.#isHere(data)) this.sums.mediaBytes += bytes
    else this.sums.elsewhere += Math.max(0, beyond + bytes)
  }

  /** Whether data are base64 or a `data:` URL, rather than an address. */
  #isHere(data: Node): boolean {
    const { bytes } = this.#scan
    const start = this.#scan.startOf(data)
    if (hasBytesAt(bytes, start, DATA_URL)) return true
    if (this.#scan.endOf(data) - start < MIN_DATA_BYTES) return false
    return !bytes.subarray(start, start + ADDRESS_BYTES).includes(COLON)
  }

  #spelled(key: string): string {
    return this.#form.levels.spelled?.(key) ?? key
  }
}

/** Reports whether one of these members is given. */
export function hasAny(scan: ScannedObject, names: readonly string[]): boolean {
  return names.some((name) => {
    const member = scan.span(name)
    return member !== undefined && scan.kindOf(member.node) !== 'null'
  })
}

/** Reports whether a provider may replace a part of the prompt by a summary of it. */
export function compacts(scan: ScannedObject): boolean {
  const member = scan.span('context_management')
  return member !== undefined && scan.textOf(member.node).includes('compact')
}

/** Returns the names without the excluded ones. */
export function without(names: Iterable<string>, except: readonly string[]): ReadonlySet<string> {
  const others = new Set(names)
  for (const name of except) others.delete(name)
  return others
}
