import type { Citation } from '../citation.ts'
import { type CopiedPart, textOf } from '../copied-text.ts'
import type { TextMatch } from '../sse/frame-template.ts'
import type { Logprobs, ReplyEvent, ReplyPart, ReplyText } from '../reply.ts'
import { type MemberText, readItem, textOr } from './read-item.ts'
import { CUSTOM_MEMBER } from '../custom-tool.ts'

type Item = Readonly<Record<string, unknown>>

/** Kind of part that deltas add to. */
type Kind = 'text' | 'refusal' | 'thinking' | 'tool-call' | 'custom'

/** An item that is not done. */
interface OpenItem {
  /** As it was added: calls have their names then. */
  readonly added: Item
  /** The part that grows; undefined before there is any text. */
  part: number | undefined
  /** Which of the item's texts grows, and what of it was told. */
  textIndex: number
  told: string
  /** Citations and log probabilities of that text that were told. */
  toldCitations: number
  toldLogprobs: number
  /** Texts of it that are whole. */
  finished: number
  /** The first half of a surrogate pair, whose second half is to come. */
  half: string
}

const CUSTOM_HEAD = `{"${CUSTOM_MEMBER}":"`
const BETWEEN_SUMMARIES = '\n\n'

/**
 * Assembles parts from the items of a stream. A text is a part, and so are all thoughts of an item; text that
 * no delta brought is emitted when the item is done.
 */
export class ItemParts {
  calledTools = false
  readonly #emit: (event: ReplyEvent) => void
  readonly #open = new Map<number, OpenItem>()
  readonly #done = new Set<number>()
  #parts = 0

  constructor(emit: (event: ReplyEvent) => void) {
    this.#emit = emit
  }

  /** An item that begins; a call is a part at once. */
  begin(index: number, added: Item): void {
    if (this.#done.has(index)) return
    const item = openItem(added)
    this.#open.set(index, item)
    const type = added['type']
    if (type === 'function_call') this.#startCall(item, '')
    else if (type === 'custom_tool_call') this.#startCall(item, CUSTOM_HEAD)
  }

  /** Another summary of the same thoughts. */
  beginSummary(index: number, summary: number): void {
    const item = this.#open.get(index)
    if (summary > 0 && item?.part !== undefined) this.#tell(item, 'thinking', BETWEEN_SUMMARIES)
  }

  /** More of a text; an item that nobody added begins with it. */
  grow(index: number, textIndex: number, kind: Kind, text: string, logprobs?: Logprobs): void {
    if (text === '' || this.#done.has(index)) return
    if (!this.#open.has(index)) this.begin(index, { type: ITEM_TYPES[kind] })
    const item = this.#open.get(index) as OpenItem
    const isContent = kind === 'text' || kind === 'refusal'
    if (isContent && item.part !== undefined && textIndex !== item.textIndex) this.#endText(item)
    item.textIndex = textIndex
    if (logprobs) item.toldLogprobs += logprobs.length
    this.#tell(item, kind, text, logprobs)
  }

  /** The same as it came, if it is what grows. */
  copy(
    { index, textIndex }: { readonly index: number; readonly textIndex: number },
    kind: Exclude<Kind, 'custom' | 'refusal'>,
    bytes: Buffer,
    match: TextMatch,
  ): CopiedPart | undefined {
    const item = this.#open.get(index)
    if (item?.part === undefined || item.textIndex !== textIndex) return undefined
    item.told += textOf(bytes, match)
    return { kind: kind === 'tool-call' ? 'tool-input' : kind, index: item.part }
  }

  /** Source of a text; one that comes before its text is told when the item is done. */
  cite(index: number, textIndex: number, citation: Citation): void {
    const item = this.#open.get(index)
    if (item?.part === undefined || item.textIndex !== textIndex || item.added['type'] !== 'message') return
    item.toldCitations++
    this.#emit({ kind: 'citation', index: item.part, citation })
  }

  /** An item that is done, as it is then. */
  finish(index: number, item: Item, textOf: MemberText): void {
    if (this.#done.has(index)) return
    this.#done.add(index)
    const open = this.#open.get(index) ?? openItem(item)
    this.#open.delete(index)
    const parts = readItem(item, textOf)
    for (const part of parts.slice(open.finished)) this.#complete(open, part)
    // Ends the text of an item that turns out to be of another kind.
    if (open.part !== undefined) this.#endText(open)
  }

  /** Ends what is open. */
  endAll(): void {
    for (const item of this.#open.values()) if (item.part !== undefined) this.#endText(item)
    this.#open.clear()
  }

  #complete(open: OpenItem, part: ReplyPart): void {
    switch (part.kind) {
      case 'text':
        this.#completeText(open, part)
        break
      case 'thinking':
        this.#tellRest(open, 'thinking', part.text)
        if (part.proof)
          this.#emit({ kind: 'proof', index: this.#partOf(open, 'thinking'), proof: part.proof })
        break
      case 'tool-call':
        if (open.part === undefined) this.#start(open, { kind: 'tool-call', id: part.id, name: part.name })
        this.calledTools = true
        this.#tellRest(open, 'tool-call', part.input)
        break
      case 'search':
      case 'opaque':
        this.#start(open, part)
    }
    if (open.part !== undefined) this.#endText(open)
  }

  /** Tells what no delta brought: the rest of the text, its log probabilities and its citations. */
  #completeText(open: OpenItem, { text, refusal, citations = [], logprobs = [] }: ReplyText): void {
    this.#tellRest(open, refusal ? 'refusal' : 'text', text)
    if (open.part === undefined) return
    const index = open.part
    const rest = logprobs.slice(open.toldLogprobs)
    if (rest.length > 0) this.#emit({ kind: 'text', index, text: '', logprobs: rest })
    for (const citation of citations.slice(open.toldCitations))
      this.#emit({ kind: 'citation', index, citation })
  }

  #tellRest(open: OpenItem, kind: Exclude<Kind, 'custom'>, whole: string): void {
    // Where deltas said something else, they stand.
    if (whole.length > open.told.length && whole.startsWith(open.told))
      this.#tell(open, kind, whole.slice(open.told.length))
  }

  #tell(item: OpenItem, kind: Kind, text: string, logprobs?: Logprobs): void {
    const piece = kind === 'custom' ? escaped(item, text) : text
    if (piece === '') return
    const index = this.#partOf(item, kind)
    item.told += piece
    if (kind === 'text') this.#emit({ kind, index, text: piece, ...(logprobs && { logprobs }) })
    else if (kind === 'refusal') this.#emit({ kind: 'text', index, text: piece })
    else if (kind === 'thinking') this.#emit({ kind, index, text: piece })
    else this.#emit({ kind: 'tool-input', index, text: piece })
  }

  #partOf(item: OpenItem, kind: Kind): number {
    if (item.part !== undefined) return item.part
    if (kind === 'refusal') return this.#start(item, { kind: 'text', refusal: true })
    return kind === 'text' || kind === 'thinking' ? this.#start(item, { kind }) : this.#startCall(item, '')
  }

  #startCall(item: OpenItem, head: string): number {
    const { added } = item
    this.calledTools = true
    const id = textOr(added['call_id']) || textOr(added['id'])
    const index = this.#start(item, { kind: 'tool-call', id, name: textOr(added['name']) })
    if (head !== '') this.#emit({ kind: 'tool-input', index, text: head })
    item.told = head
    return index
  }

  #start(item: OpenItem, part: Extract<ReplyEvent, { kind: 'part-start' }>['part']): number {
    const index = this.#parts++
    item.part = index
    this.#emit({ kind: 'part-start', index, part })
    return index
  }

  #endText(item: OpenItem): void {
    if (item.part !== undefined) this.#emit({ kind: 'part-end', index: item.part })
    item.part = undefined
    item.told = ''
    item.toldCitations = 0
    item.toldLogprobs = 0
    item.finished++
  }
}

function openItem(added: Item): OpenItem {
  return {
    added,
    part: undefined,
    textIndex: 0,
    told: '',
    toldCitations: 0,
    toldLogprobs: 0,
    finished: 0,
    half: '',
  }
}

/** Plain text as it stands in the JSON text of arguments. */
function escaped(item: OpenItem, text: string): string {
  const whole = item.half + text
  item.half = /[\ud800-\udbff]$/.test(whole) ? whole.slice(-1) : ''
  return JSON.stringify(whole.slice(0, whole.length - item.half.length)).slice(1, -1)
}

/** The type of an item that begins with a text of this kind. */
const ITEM_TYPES: Readonly<Record<Kind, string>> = {
  text: 'message',
  refusal: 'message',
  thinking: 'reasoning',
  'tool-call': 'function_call',
  custom: 'custom_tool_call',
}
