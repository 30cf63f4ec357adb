import { BILLING_HEADER } from './billing-header.ts'
import { hasBytesAt } from './json/bytes.ts'
import { type Member, type Node, ROOT, type ScannedObject } from './json/scanned-object.ts'
import { eachMedia, type FoundMedia, type PromptRules } from './prompt-text.ts'
import { extraMediaTokens } from './prompt-tokens.ts'
import { hasKind, indexOf, kindOfCode, type Outline, outlineOf, ownerOfCode } from './shape/outline.ts'
import { KIND, OWNER } from './shape/vocabulary.ts'

/**
 * Describes which members of a request are compared, to recognize that two requests of a protocol have the
 * same beginning.
 */
export interface ConversationComparisonRules {
  readonly prompt: PromptRules
  /** Top-level members that contain tools, in all spellings. */
  readonly tools: readonly string[]
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

/** Types of text parts in requests. */
const TEXT_TYPES: ReadonlySet<string> = new Set(['"text"', '"input_text"'])
const BILLING_LINE = Buffer.from(`"${BILLING_HEADER}`)
const BACKSLASH = 0x5c
const COLON = 0x3a
const COMMA = 0x2c
const LETTER_N = 0x6e
/** Minimum size in bytes of media data. Anything shorter may be an address or an id. */
const MIN_DATA_BYTES = 512
/** Number of bytes at the beginning of media in which a colon shows that they are a URL and not base64. */
const ADDRESS_BYTES = 24
const DATA_URL = Buffer.from('"data:')

const NO_MARKS: readonly number[] = []

function marksOf(outline: Outline): readonly number[] {
  const marks: number[] = []
  for (let index = 0; index < outline.length; index++)
    if (kindOfCode(outline[index] as number) === KIND.mark) marks.push(index)
  return marks
}

/** Goes through a conversation, and collects the parts of it that a digest covers. */
export class DigestWalk {
  readonly #sums: Sums = { bytes: 0, mediaBytes: 0, beyondBytes: 0, elsewhere: 0 }
  readonly #scan: ScannedObject
  readonly #form: ConversationComparisonRules
  readonly #model: string
  readonly #outline: Outline
  /** Positions of the cache marks in the outline. */
  readonly #marks: readonly number[]
  /** The member that contains the turns. */
  readonly #turns: Member | undefined
  #hasMedia = false
  /** Whether all turns so far are instructions. */
  #isBeginning = true

  constructor(scan: ScannedObject, form: ConversationComparisonRules, model: string) {
    this.#scan = scan
    this.#form = form
    this.#model = model
    this.#outline = outlineOf(scan, form.prompt.shape)
    this.#marks = hasKind(scan, form.prompt.shape, KIND.mark) ? marksOf(this.#outline) : NO_MARKS
    this.#turns = [...scan.members.values()].find(({ key }) => key === form.prompt.turns)
  }

  turns(): readonly Node[] {
    const node = this.#turns?.node
    if (node === undefined) return []
    return this.#scan.kindOf(node) === 'array' ? this.#scan.elements(node) : [node]
  }

  /** The byte and token counts of the conversation up to the part that was added last to `offsets`. */
  endAt({ offsets }: DigestSpans): TurnEndCounts {
    const { bytes, mediaBytes, beyondBytes, elsewhere } = this.#sums
    return { bytes, mediaBytes, beyondBytes, elsewhere, spans: offsets.length, end: offsets.at(-1) ?? 0 }
  }

  /** Adds everything before the turns to `spans`, in the order of the members' names. */
  head(spans: DigestSpans): void {
    const { uncompared } = this.#form
    this.#addMembers(spans, (member) => member !== this.#turns && !uncompared.has(member.key))
  }

  /** The size of tools, system prompt and turns as received, in bytes. */
  receivedBytes(): number {
    let bytes = 0
    for (const member of this.#scan.members.values())
      if (member === this.#turns || this.#isSystem(member) || this.#isTools(member))
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
    this.#addMembers(spans, (member) => member.key === 'tools' || this.#isSystem(member))
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
    this.#addMembers(parts.tools, (member) => this.#isTools(member))
    this.#addMembers(parts.system, (member) => this.#isSystem(member))
    let isBeginning = true
    for (const turn of this.turns()) {
      isBeginning &&= this.#isInstruction(turn)
      if (isBeginning) this.#addTurn(parts.system, turn, true)
      this.#addTurn(parts.turns, turn, isBeginning)
      parts.ends.push(parts.turns.offsets.length)
    }
    return parts
  }

  /** Adds some of the top-level members to `spans`, in the order of the names. */
  #addMembers(spans: DigestSpans, isAdded: (member: Member) => boolean): void {
    const { sampling } = this.#form
    const members: Member[] = []
    for (const member of this.#scan.members.values()) if (isAdded(member)) members.push(member)
    if (members.length > 1) members.sort((one, other) => (one.key < other.key ? -1 : 1))
    for (const member of members) {
      const { key, keyStart, end, node } = member
      const left: Span[] = []
      if (sampling?.of.has(key))
        this.#leaveOutMembers(node, (value) => sampling.names.has(this.#scan.keyText(value - 3)), left)
      else {
        if (this.#isSystem(member)) this.#leaveOutBilling(node, left)
        this.#leaveOutMarks(node, left)
      }
      this.#add(spans, keyStart, end, left)
      this.#findMedia(node)
    }
  }

  /** Whether a top-level member contains the system prompt. */
  #isSystem(member: Member): boolean {
    return member !== this.#turns && this.#ownerOf(member.node) === OWNER.system
  }

  #isTools({ key }: Member): boolean {
    return this.#form.tools.includes(key)
  }

  #isInstruction(turn: Node): boolean {
    return this.#scan.kindOf(turn) === 'object' && this.#ownerOf(turn) === OWNER.system
  }

  #kindOf(node: Node): number {
    return kindOfCode(this.#outline[indexOf(node)] as number)
  }

  #ownerOf(node: Node): number {
    return ownerOfCode(this.#outline[indexOf(node)] as number)
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
    if (scan.kindOf(node) === 'object') this.#leaveOutMarks(node, left)
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
  #leaveOutMarks(node: Node, left: Span[]): void {
    const scan = this.#scan
    const hasMarks = this.#hasMarkIn(node)
    // The definitions of tools have no lists of parts.
    const mayHaveText = this.#form.textIsPart && this.#ownerOf(node) !== OWNER.program
    if ((!hasMarks && !mayHaveText) || this.#kindOf(node) !== KIND.structure) return
    if (scan.kindOf(node) === 'array') {
      const text = mayHaveText ? this.#onlyText(node) : undefined
      if (text !== undefined) {
        left.push([scan.startOf(node), scan.startOf(text)], [scan.endOf(text), scan.endOf(node)])
        return
      }
      const elements = scan.elements(node)
      if (hasMarks)
        this.#leaveOut(
          elements.map((one) => [one, one, this.#isOnlyMark(one)]),
          left,
        )
      for (const one of elements)
        if (scan.kindOf(one) === 'object' && !this.#isOnlyMark(one)) this.#leaveOutMarks(one, left)
    } else {
      if (hasMarks) this.#leaveOutMembers(node, (value) => this.#kindOf(value) === KIND.mark, left)
      for (let key = scan.firstKey(node); key !== undefined; key = scan.nextKey(key, node))
        if (scan.isContainer(scan.valueOf(key))) this.#leaveOutMarks(scan.valueOf(key), left)
    }
  }

  #hasMarkIn(node: Node): boolean {
    const marks = this.#marks
    const start = indexOf(node)
    let low = 0
    let high = marks.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((marks[middle] as number) < start) low = middle + 1
      else high = middle
    }
    return low < marks.length && (marks[low] as number) < indexOf(this.#scan.tape[node + 2] as number)
  }

  #leaveOutMembers(object: Node, isLeftOut: (value: Node) => boolean, left: Span[]): void {
    const scan = this.#scan
    if (scan.kindOf(object) !== 'object') return
    this.#leaveOut(
      scan.values(object).map((value) => [value - 3, value, isLeftOut(value)]),
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
  #isOnlyMark(node: Node): boolean {
    const scan = this.#scan
    if (this.#marks.length === 0 || scan.kindOf(node) !== 'object') return false
    const key = scan.firstKey(node)
    return (
      key !== undefined &&
      scan.nextKey(key, node) === undefined &&
      this.#kindOf(scan.valueOf(key)) === KIND.mark
    )
  }

  /** Returns the text of a list that consists of one text part, ignoring cache marks; otherwise undefined. */
  #onlyText(list: Node): Node | undefined {
    const scan = this.#scan
    const part = list + 3
    const isOnly = scan.tape[part + 2] === scan.tape[list + 2]
    if (!isOnly || scan.kindOf(part) !== 'object') return undefined
    let text: Node | undefined
    let hasType = false
    for (let key = scan.firstKey(part); key !== undefined; key = scan.nextKey(key, part)) {
      const value = scan.valueOf(key)
      if (this.#kindOf(value) === KIND.mark) continue
      if (!hasType && scan.isKey(key, 'type') && TEXT_TYPES.has(scan.textOf(value))) hasType = true
      else if (text === undefined && scan.isKey(key, 'text') && this.#isText(value)) text = value
      else return undefined
    }
    return hasType ? text : undefined
  }

  #isText(node: Node): boolean {
    const kind = this.#kindOf(node)
    return this.#scan.kindOf(node) === 'string' && (kind === KIND.text || kind === KIND.result)
  }

  /** Excludes the first line of each text from the digest if the text begins with the billing header. */
  #leaveOutBilling(system: Node, left: Span[]): void {
    const scan = this.#scan
    const { tape } = scan
    const next = tape[system + 2] as number
    for (let node = system; node < next; node += 3) {
      if (this.#kindOf(node) !== KIND.text || !hasBytesAt(scan.bytes, tape[node] as number, BILLING_LINE))
        continue
      const start = scan.startOf(node) + 1
      left.push([start, this.#endOfLine(start, scan.endOf(node) - 1)])
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
