import { type CopyableText, textFrameOf, type FrameWriter, type TextFrame } from '../../frame-writer.ts'
import type { ProviderSignature, SearchPart, ClientTool } from '../../conversation.ts'
import {
  type Citation,
  codePointsIn,
  type Logprobs,
  placedCitation,
  type ReplyPart,
  type ReplyText,
  type StartedPart,
} from '../../reply.ts'
import {
  annotationsOf,
  itemId,
  type ItemStatus,
  type ItemType,
  itemType,
  refusalPart,
  summaryPart,
  textPart,
  writeItem,
} from '../encode/reply.ts'
import { isCutOff } from '../../tool-input.ts'
import { CustomInputDecoder } from '../../openai-tools.ts'

/** The position of an item in the stream. */
interface Place {
  readonly form: ClientTool | undefined
  /** The part that the ids of all items of the response have in common. */
  readonly response: string
  readonly index: number
  /** Returns the number of the next event. */
  nextNumber(): number
}

/**
 * Names of the events for the text of an item, and of the member that contains the whole text in the last of
 * these events.
 */
interface Growth {
  readonly event: string
  readonly whole: 'text' | 'refusal' | 'arguments' | 'input'
  /** Members of an event that state the position of the text within the item, as JSON. */
  readonly place: string
  /** Whether the events contain the log probabilities of the text's tokens. */
  readonly hasLogprobs: boolean
  /** The events that begin and end a text within its item. */
  readonly frame?: { readonly event: string; part(text: Omit<ReplyText, 'kind'>): object }
}

const GROWTHS: Partial<Record<ItemType, Growth>> = {
  message: {
    event: 'response.output_text',
    whole: 'text',
    place: ',"content_index":0',
    hasLogprobs: true,
    frame: { event: 'response.content_part', part: textPart },
  },
  reasoning: {
    event: 'response.reasoning_summary_text',
    whole: 'text',
    place: ',"summary_index":0',
    hasLogprobs: false,
    frame: { event: 'response.reasoning_summary_part', part: summaryPart },
  },
  function_call: {
    event: 'response.function_call_arguments',
    whole: 'arguments',
    place: '',
    hasLogprobs: false,
  },
  custom_tool_call: {
    event: 'response.custom_tool_call_input',
    whole: 'input',
    place: '',
    hasLogprobs: false,
  },
}

const REFUSAL_GROWTH: Growth = {
  event: 'response.refusal',
  whole: 'refusal',
  place: ',"content_index":0',
  hasLogprobs: false,
  frame: { event: 'response.content_part', part: refusalPart },
}

const NO_LOGPROBS = ',"logprobs":[]'

/**
 * Writes one item of a stream: its `added` event, the deltas of its text, and its `done` event. Messages and
 * thoughts begin with their first text. A tool call whose input is needed as a whole is written at its end.
 */
export class ItemStream {
  proof: ProviderSignature | undefined
  readonly #part: StartedPart
  readonly #place: Place
  #type: ItemType
  #id: string
  readonly #growth: Growth | undefined
  /** Extracts the input of a custom tool from the JSON arguments that the model writes. */
  readonly #custom: CustomInputDecoder | undefined
  /** The text as the upstream sent it, and as it was written to the client. */
  #text = ''
  #written = ''
  #isOpen = false
  #hasText = false
  /** Citations of the texts that have ended, and those of the text that grows. */
  readonly #citations: Citation[] = []
  #latestCitations: Citation[] = []
  /** Where the text that grows begins in the text of the item, in UTF-16 code units and in code points. */
  #textFrom = 0
  #base = 0
  /** Log probabilities of the tokens, and how many of them were written in deltas. */
  readonly #logprobs: unknown[] = []
  #sentLogprobs = 0
  /**
   * The beginning of a delta event up to its sequence number, and what is between this number and the text.
   */
  #deltaHead = ''
  #deltaPlace = ''
  /** The beginning of a delta event up to its sequence number, and the bytes before and after its text. */
  #delta: { readonly head: Buffer; readonly afterNumber: TextFrame } | undefined

  constructor(part: StartedPart, place: Place) {
    this.#part = part
    this.#place = place
    this.#type = itemType(part, place.form)
    this.#id = itemId(this.#type, place.response, place.index)
    this.#growth = part.kind === 'text' && part.refusal ? REFUSAL_GROWTH : GROWTHS[this.#type]
    this.#custom = this.#type === 'custom_tool_call' ? new CustomInputDecoder() : undefined
  }

  /** Adds a piece of text. Returns the frames to write. */
  add(text: string, logprobs?: Logprobs): string {
    if (logprobs) this.#logprobs.push(...logprobs)
    if (text === '') return ''
    this.#text += text
    return this.#growth ? this.#append(this.#custom ? this.#custom.push(text) : text) : ''
  }

  /**
   * Copies a text as bytes. Returns false if that is not possible: for the first text of an item, and for a
   * text that must be changed.
   */
  copy(event: CopyableText, out: FrameWriter): boolean {
    if (!this.#delta || this.#custom || this.#logprobs.length > this.#sentLogprobs) return false
    const { text, bytes, spans } = event
    this.#text += text
    this.#written += text
    for (let i = 0; i < spans.length; i += 2) {
      out.bytes(this.#delta.head)
      out.text(String(this.#place.nextNumber()))
      out.copiedAt(this.#delta.afterNumber, bytes, spans, i)
    }
    return true
  }

  /**
   * Records a page that the text cites. Citations are written at the end of the item, when the text is
   * complete.
   */
  cite(citation: Citation): void {
    this.#latestCitations.push(citation)
  }

  /**
   * Begins the next part in this item, if both are texts: clients show each message separately, and take the last
   * one as the answer. Returns false if the part needs another item.
   */
  continueWith(part: StartedPart): boolean {
    if (part.kind !== 'text' || this.#part.kind !== 'text' || part.refusal !== this.#part.refusal)
      return false
    this.#endPart()
    return true
  }

  #endPart(): void {
    const length = codePointsIn(this.#text.slice(this.#textFrom))
    for (const citation of this.#latestCitations)
      this.#citations.push(placedCitation(citation, length, this.#base))
    this.#latestCitations = []
    this.#textFrom = this.#text.length
    this.#base += length
  }

  /**
   * Returns the frames that end the item, and the JSON of the item; no frames if the item is empty. A tool
   * call whose arguments were cut off is always marked as incomplete.
   */
  close(given: Exclude<ItemStatus, 'in_progress'>): {
    readonly frames: string
    readonly item: string | undefined
  } {
    this.#endPart()
    const part = this.#whole()
    if (!part) return { frames: '', item: undefined }
    const status = part.kind === 'tool-call' && isCutOff(part.input) ? 'incomplete' : given
    this.#settleType()
    let frames = this.#growth ? this.#append(this.#custom?.end() ?? '') : ''
    const isFunction = this.#type === 'function_call'
    if (isFunction && this.#written === '') frames += this.#append('{}')
    frames += this.#open()
    if (part.kind === 'search') frames += this.#searchFrames(part)
    if (this.#growth && (this.#hasText || this.#custom)) frames += this.#endText(this.#growth)
    const item = writeItem(part, { id: this.#id, type: this.#type, status, form: this.#place.form })
    frames += this.#frame('response.output_item.done', `,"output_index":${this.#place.index},"item":${item}`)
    return { frames, item }
  }

  /**
   * Decides the item type of a tool call from its complete input, if no event of the item was written yet.
   */
  #settleType(): void {
    if (this.#isOpen || this.#growth) return
    this.#type = itemType(this.#part, this.#place.form, this.#text)
    this.#id = itemId(this.#type, this.#place.response, this.#place.index)
  }

  /** The part for this item with its complete content. */
  #whole(): ReplyPart | undefined {
    const part = this.#part
    switch (part.kind) {
      case 'text':
        if (this.#text === '') return undefined
        return { ...part, text: this.#text, citations: this.#citations, logprobs: this.#logprobs }
      case 'thinking':
        if (this.#text === '' && !this.proof) return undefined
        return { kind: 'thinking', text: this.#text, ...(this.proof && { proof: this.proof }) }
      case 'tool-call':
        return { ...part, input: this.#text }
      case 'search':
      case 'opaque':
        return part
    }
  }

  #append(text: string): string {
    if (text === '' || !this.#growth) return ''
    const opening = this.#hasText ? '' : this.#open() + this.#beginText(this.#growth)
    this.#written += text
    return `${opening}${this.#deltaHead}${this.#place.nextNumber()}${this.#deltaPlace}${JSON.stringify(text)}${this.#growth.hasLogprobs ? this.#nextLogprobs() : ''}}\n\n`
  }

  #nextLogprobs(): string {
    if (this.#logprobs.length === this.#sentLogprobs) return NO_LOGPROBS
    const next = JSON.stringify(this.#logprobs.slice(this.#sentLogprobs))
    this.#sentLogprobs = this.#logprobs.length
    return `,"logprobs":${next}`
  }

  /** Writes the `added` event. The item in it has no text yet. */
  #open(): string {
    if (this.#isOpen) return ''
    this.#isOpen = true
    const part = this.#started()
    const item = writeItem(part, {
      id: this.#id,
      type: this.#type,
      status: 'in_progress',
      form: this.#place.form,
    })
    return this.#frame('response.output_item.added', `,"output_index":${this.#place.index},"item":${item}`)
  }

  #started(): ReplyPart {
    const part = this.#part
    if (part.kind === 'opaque' || part.kind === 'search') return part
    // A tool call that has no deltas is complete in its `added` event.
    if (part.kind === 'tool-call') return { ...part, input: this.#growth ? '' : this.#text }
    return { kind: part.kind, text: '' }
  }

  #beginText({ event, place, hasLogprobs, frame }: Growth): string {
    this.#hasText = true
    const where = this.#where(place)
    this.#deltaHead = `event: ${event}.delta\ndata: {"type":"${event}.delta","sequence_number":`
    this.#deltaPlace = `${where},"delta":`
    const after = textFrameOf(this.#deltaPlace, `${hasLogprobs ? NO_LOGPROBS : ''}}\n\n`)
    this.#delta = { head: Buffer.from(this.#deltaHead), afterNumber: after }
    return frame
      ? this.#frame(`${frame.event}.added`, `${where},"part":${JSON.stringify(frame.part({ text: '' }))}`)
      : ''
  }

  #endText({ event, whole, place, hasLogprobs, frame }: Growth): string {
    const where = this.#where(place)
    const text = JSON.stringify(this.#written)
    const rest = hasLogprobs ? `,"logprobs":${JSON.stringify(this.#logprobs)}` : ''
    const annotations = annotationsOf(this.#written, this.#citations)
      .map((annotation, index) =>
        this.#frame(
          `${event}.annotation.added`,
          `${where},"annotation_index":${index},"annotation":${JSON.stringify(annotation)}`,
        ),
      )
      .join('')
    const done = this.#frame(`${event}.done`, `${where},"${whole}":${text}${rest}`)
    if (!frame) return done
    const part = frame.part({ text: this.#written, citations: this.#citations, logprobs: this.#logprobs })
    return annotations + done + this.#frame(`${frame.event}.done`, `${where},"part":${JSON.stringify(part)}`)
  }

  /** Events for a search. The search is already finished when they are written. */
  #searchFrames({ isFailed }: SearchPart): string {
    const states = ['in_progress', 'searching', ...(isFailed ? [] : ['completed'])]
    return states.map((state) => this.#frame(`response.web_search_call.${state}`, this.#where(''))).join('')
  }

  #where(place: string): string {
    return `,"item_id":"${this.#id}","output_index":${this.#place.index}${place}`
  }

  #frame(type: string, members: string): string {
    return `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.#place.nextNumber()}${members}}\n\n`
  }
}
