import { BILLING_HEADER } from './billing-header.ts'
import { hasBytesAt } from './json/bytes.ts'
import { type Member, type Node, ROOT, type ScannedObject } from './json/scanned-object.ts'
import { eachMedia, type FoundMedia, type PromptRules } from './prompt-text.ts'
import { extraMediaTokens } from './prompt-tokens.ts'

/**
 * Describes which members of a request are compared, to recognize that two requests of a protocol have the
 * same beginning.
 */
export interface ConversationComparisonRules {
  readonly prompt: PromptRules
  /**
   * Top-level members in which compared conversations may differ. For the maximum number of tokens, each of
   * their bytes counts as one token.
   */
  readonly uncompared: ReadonlySet<string>
  /**
   * A top-level member (`of`), and those of its members that may differ between compared conversations,
   * because they only control sampling. In all spellings.
   */
  readonly sampling?: { readonly of: ReadonlySet<string>; readonly names: ReadonlySet<string> }
  /** Whether a text means the same as a list with one text part. */
  readonly textIsPart?: true
  /**
   * Whether the number of tokens of the prompt cannot be predicted, because a part of it is stored elsewhere
   * or the provider may leave parts out.
   */
  readonly isUnforeseeable?: (scan: ScannedObject) => boolean
  /** Maximum number of tokens of a turn in addition to one per byte, without its media. */
  readonly extraTokens?: (scan: ScannedObject, turn: Node) => number
}

/** Byte and token counts of a conversation from its beginning to some position. */
interface Sums {
  /** Number of bytes that the digest covers. */
  bytes: number
  /** Number of bytes of media data. */
  mediaBytes: number
  /**
   * Maximum number of tokens that the prompt can have above one token per byte; negative if media have fewer
   * tokens than bytes.
   */
  beyondBytes: number
  /**
   * Maximum number of tokens of media given by URL or id. Their content may have changed since an earlier
   * request.
   */
  elsewhere: number
}

/** Byte and token counts of a conversation from its beginning to the end of a turn. */
export interface TurnEndCounts extends Readonly<Sums> {
  /**
   * Length of `DigestSpans.offsets` at the end of the turn. `end` is the offset in the body at which the last
   * part ends.
   */
  readonly spans: number
  readonly end: number
}

/** The parts of a request body that a digest covers. */
export class DigestSpans {
  /** Offsets at which parts begin and end, alternating. */
  readonly offsets: number[] = []

  add(start: number, end: number): void {
    const { offsets } = this
    const last = offsets.length - 1
    if (start === end) return
    if (offsets[last] === start) offsets[last] = end
    else offsets.push(start, end)
  }
}

/**
 * Returns the parts of the body between the first `count` offsets, at which parts begin and end, alternating.
 */
export function bytePartsAt(bytes: Buffer, offsets: readonly number[], count = offsets.length): Buffer[] {
  const parts: Buffer[] = []
  for (let i = 0; i < count; i += 2) parts.push(bytes.subarray(offsets[i], offsets[i + 1]))
  return parts
}

/** The parts of a conversation of which short digests (a fingerprint) are made. */
export interface ConversationParts {
  readonly tools: DigestSpans
  /** The system prompt, with the turns at the beginning that contain instructions. */
  readonly system: DigestSpans
  readonly turns: DigestSpans
  /** For each turn, the number of offsets in `turns` up to its end. */
  readonly ends: readonly number[]
}

/** A range of the request's bytes. */
type Span = readonly [start: number, end: number]

/** Names of cache marks. A cache mark is a member of a block with other content, or the only member of a separate block. */
const DIRECTIVES: ReadonlySet<string> = new Set(['cache_control', 'prompt_cache_breakpoint', 'cachePoint'])
/** Types of text parts in requests. */
const TEXT_TYPES: ReadonlySet<string> = new Set(['"text"', '"input_text"'])
/** Members that contain parts with possible cache marks. */
const HOLDERS = ['content', 'output', 'toolResult'] as const
const TOOL_CONFIG_HOLDERS = [...HOLDERS, 'tools'] as const
/** Members whose value may be a text or a list of parts. */
const TEXTS: ReadonlySet<string> = new Set(['content', 'system'])
/** Top-level members besides the turns that may contain cache marks. */
const HEAD_HOLDERS: ReadonlySet<string> = new Set(['system', 'tools', 'toolConfig'])

const BILLING_LINE = Buffer.from(`"${BILLING_HEADER}`)
/** Members of a system prompt or an instruction that contain its text, or parts with texts. */
const TEXT_HOLDERS = ['text', 'content', 'parts'] as const
const BACKSLASH = 0x5c
const COLON = 0x3a
const COMMA = 0x2c
const LETTER_N = 0x6e
/** Minimum size in bytes of media data. Anything shorter may be an address or an id. */
const MIN_DATA_BYTES = 512
/** Number of bytes at the beginning of media in which a colon shows that they are a URL and not base64. */
const ADDRESS_BYTES = 24
const DATA_URL = Buffer.from('"data:')

/** Top-level members that contain the system prompt, in all protocols. */
const SYSTEM_MEMBERS: ReadonlySet<string> = new Set([
  'instructions',
  'system',
  'systemInstruction',
  'system_instruction',
])
/** Top-level members that contain tools. */
const TOOL_MEMBERS: ReadonlySet<string> = new Set(['functions', 'toolConfig', 'tools'])
/** Top-level members that are part of the beginning of a conversation. */
const OPENING_MEMBERS: ReadonlySet<string> = new Set([...SYSTEM_MEMBERS, 'tools'])
/** Roles of turns that contain instructions. */
const INSTRUCTION_ROLES: ReadonlySet<string> = new Set(['"system"', '"developer"'])

/** Goes through a conversation, and collects the parts of it that a digest covers. */
export class DigestWalk {
  readonly #sums: Sums = { bytes: 0, mediaBytes: 0, beyondBytes: 0, elsewhere: 0 }
  readonly #scan: ScannedObject
  readonly #form: ConversationComparisonRules
  readonly #model: string
  readonly #hasDirectives: boolean
  /** The member that contains the turns. */
  readonly #turns: Member | undefined
  #hasMedia = false
  /** Whether all turns so far are instructions. */
  #isBeginning = true

  constructor(scan: ScannedObject, form: ConversationComparisonRules, model: string) {
    this.#scan = scan
    this.#form = form
    this.#model = model
    this.#hasDirectives = scan.notes.directive
    this.#turns = [...scan.members.values()].find(({ key }) => key === form.prompt.turns)
  }

  turns(): readonly Node[] {
    const node = this.#turns?.node
    if (node === undefined) return []
    return this.#scan.kindOf(node) === 'array' ? this.#scan.elements(node) : [node]
  }

  /** The byte and token counts of the conversation up to the part that was added last to `offsets`. */
  endAt({ offsets }: DigestSpans): TurnEndCounts {
    return { ...this.#sums, spans: offsets.length, end: offsets.at(-1) ?? 0 }
  }

  /** Adds everything before the turns to `spans`, in the order of the members' names. */
  head(spans: DigestSpans): void {
    const { uncompared, sampling } = this.#form
    const members = [...this.#scan.members.values()]
      .filter((member) => member !== this.#turns && !uncompared.has(member.key))
      .toSorted((one, other) => (one.key < other.key ? -1 : 1))
    for (const { key, keyStart, end, node } of members) {
      const left: Span[] = []
      if (sampling?.of.has(key)) this.#leaveOutMembers(node, (name) => sampling.names.has(name), left)
      else {
        if (SYSTEM_MEMBERS.has(key)) this.#leaveOutBilling(node, left)
        if (HEAD_HOLDERS.has(key)) this.#visit(key, node, left)
      }
      this.#add(spans, keyStart, end, left)
      this.#findMedia(node)
    }
  }

  /** The size of tools, system prompt and turns as received, in bytes. */
  receivedBytes(): number {
    let bytes = 0
    for (const member of this.#scan.members.values())
      if (member === this.#turns || SYSTEM_MEMBERS.has(member.key) || TOOL_MEMBERS.has(member.key))
        bytes += this.#scan.endOf(member.node) - this.#scan.startOf(member.node)
    return bytes
  }

  /** Whether a turn or the head has media or a file, as data, by address or by id. */
  hasMedia(): boolean {
    this.#findMedia(ROOT)
    return this.#hasMedia
  }

  opening(): DigestSpans | undefined {
    const spans = new DigestSpans()
    this.#addMembers(spans, OPENING_MEMBERS)
    for (const turn of this.turns()) {
      const isInstruction = this.#isInstruction(turn)
      const text = isInstruction ? undefined : this.#onlyTextOf(turn)
      if (text === undefined) this.#addTurn(spans, turn, isInstruction)
      else spans.add(this.#scan.startOf(text), this.#scan.endOf(text))
      if (!isInstruction) return spans
    }
    return undefined
  }

  parts(): ConversationParts {
    const parts = {
      tools: new DigestSpans(),
      system: new DigestSpans(),
      turns: new DigestSpans(),
      ends: [] as number[],
    }
    this.#addMembers(parts.tools, TOOL_MEMBERS)
    this.#addMembers(parts.system, SYSTEM_MEMBERS)
    let isBeginning = true
    for (const turn of this.turns()) {
      isBeginning &&= this.#isInstruction(turn)
      if (isBeginning) this.#addTurn(parts.system, turn, true)
      this.#addTurn(parts.turns, turn, isBeginning)
      parts.ends.push(parts.turns.offsets.length)
    }
    return parts
  }

  /** Adds the top-level members with these names to `spans`, in the order of the names. */
  #addMembers(spans: DigestSpans, names: ReadonlySet<string>): void {
    const members = [...this.#scan.members.values()]
      .filter(({ key }) => names.has(key))
      .toSorted((one, other) => (one.key < other.key ? -1 : 1))
    for (const { key, keyStart, end, node } of members) {
      const left: Span[] = []
      if (SYSTEM_MEMBERS.has(key)) this.#leaveOutBilling(node, left)
      if (this.#hasDirectives || key !== 'tools') this.#visit(key, node, left)
      this.#add(spans, keyStart, end, left)
    }
  }

  #isInstruction(turn: Node): boolean {
    const scan = this.#scan
    const role = scan.kindOf(turn) === 'object' ? scan.memberOf(turn, 'role') : undefined
    return role !== undefined && INSTRUCTION_ROLES.has(scan.textOf(role))
  }

  /** Returns the text of a turn that consists of a single text; otherwise undefined. */
  #onlyTextOf(turn: Node): Node | undefined {
    const scan = this.#scan
    if (scan.kindOf(turn) !== 'object') return scan.kindOf(turn) === 'string' ? turn : undefined
    const content = scan.memberOf(turn, 'content')
    if (content === undefined) return undefined
    if (scan.kindOf(content) === 'array') return this.#onlyText(content)
    return scan.kindOf(content) === 'string' ? content : undefined
  }

  /** Adds a turn to `spans`, and the comma between it and the previous turn. */
  turn(spans: DigestSpans, node: Node, previous: Node | undefined): void {
    if (previous !== undefined) {
      let comma = this.#scan.endOf(previous)
      while (this.#scan.bytes[comma] !== COMMA) comma++
      spans.add(comma, comma + 1)
    }
    // Only the instructions at the beginning are looked at, so that a long conversation costs no more.
    if (previous === undefined) this.#isBeginning = true
    this.#isBeginning &&= this.#isInstruction(node)
    this.#addTurn(spans, node, this.#isBeginning)
    if (this.#form.extraTokens) this.#sums.beyondBytes += this.#form.extraTokens(this.#scan, node)
    this.#findMedia(node)
  }

  #addTurn(spans: DigestSpans, node: Node, isInstruction: boolean): void {
    const scan = this.#scan
    const left: Span[] = []
    if (isInstruction) this.#leaveOutBilling(node, left)
    if (scan.kindOf(node) === 'object') this.#visit('', node, left)
    this.#add(spans, scan.startOf(node), scan.endOf(node), left)
  }

  #add(spans: DigestSpans, start: number, end: number, left: readonly Span[]): void {
    let from = start
    const inOrder = left.length > 1 ? left.toSorted(([one], [other]) => one - other) : left
    for (const [leftStart, leftEnd] of inOrder) {
      spans.add(from, leftStart)
      this.#sums.bytes += leftStart - from
      from = leftEnd
    }
    spans.add(from, end)
    this.#sums.bytes += end - from
  }

  /**
   * Collects the ranges of a value that a digest does not cover: cache marks, and the brackets around a
   * single text.
   */
  #visit(key: string, node: Node, left: Span[]): void {
    if (!this.#hasDirectives && !this.#form.textIsPart) return
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
        const value = scan.valueOf(at)
        if (!scan.isContainer(value)) continue
        const holders = key === 'toolConfig' ? TOOL_CONFIG_HOLDERS : HOLDERS
        for (const name of holders) if (scan.isKey(at, name)) this.#visit(name, value, left)
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

  /**
   * Collects the ranges of children that a digest does not cover. Each range includes one comma beside the
   * child.
   */
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

  /** Whether a block consists only of a cache mark. */
  #isDirective(node: Node): boolean {
    const scan = this.#scan
    if (!this.#hasDirectives || scan.kindOf(node) !== 'object') return false
    const key = scan.firstKey(node)
    return key !== undefined && scan.nextKey(key, node) === undefined && DIRECTIVES.has(scan.keyText(key))
  }

  /** Returns the text of a list that consists of one text part, ignoring cache marks; otherwise undefined. */
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

  /** Excludes the first line of each text from the digest if the text begins with the billing header. */
  #leaveOutBilling(system: Node, left: Span[]): void {
    const scan = this.#scan
    const kind = scan.kindOf(system)
    if (kind === 'array') for (const element of scan.elements(system)) this.#leaveOutBilling(element, left)
    else if (kind === 'object')
      for (const name of TEXT_HOLDERS) {
        const member = scan.memberOf(system, name)
        if (member !== undefined) this.#leaveOutBilling(member, left)
      }
    else if (kind === 'string' && hasBytesAt(scan.bytes, scan.startOf(system), BILLING_LINE)) {
      const start = scan.startOf(system) + 1
      left.push([start, this.#endOfLine(start, scan.endOf(system) - 1)])
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

  #findMedia(node: Node): void {
    eachMedia(this.#scan, this.#form.prompt, node, (media) => this.#addMedia(media))
  }

  #addMedia(media: FoundMedia): void {
    const scan = this.#scan
    const { data } = media
    this.#hasMedia = true
    const beyond = extraMediaTokens(scan, media, this.#model)
    const bytes = data === undefined ? 0 : scan.endOf(data) - scan.startOf(data)
    this.#sums.beyondBytes += beyond
    if (data !== undefined && this.#isHere(data)) this.#sums.mediaBytes += bytes
    else this.#sums.elsewhere += Math.max(0, beyond + bytes)
  }

  /** Whether media data is in the request itself, as base64 or a `data:` URL, and not at an address. */
  #isHere(data: Node): boolean {
    const { bytes } = this.#scan
    const start = this.#scan.startOf(data)
    if (hasBytesAt(bytes, start, DATA_URL)) return true
    if (this.#scan.endOf(data) - start < MIN_DATA_BYTES) return false
    return !bytes.subarray(start, start + ADDRESS_BYTES).includes(COLON)
  }
}
