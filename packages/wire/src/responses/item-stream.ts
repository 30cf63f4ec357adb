import { type CopiedText, frameOf, type TextFrame } from '../copied-text.ts'
import type { FrameWriter } from '../frame-writer.ts'
import type { Citation } from '../citation.ts'
import type { Proof, ToolForm } from '../conversation.ts'
import type { SearchPart } from '../provider-search.ts'
import type { Logprobs, ReplyPart, ReplyText, StartedPart } from '../reply.ts'
import { isCut } from '../cut-calls.ts'
import { CustomInput } from '../custom-input.ts'
import {
  annotationsOf,
  type ItemStatus,
  itemId,
  type ItemType,
  itemType,
  refusalPart,
  summaryPart,
  textPart,
  writeItem,
} from './output-item.ts'

/** Position of an item in its stream. */
interface Place {
  readonly form: ToolForm | undefined
  /** Common suffix of the ids of the response's items. */
  readonly response: string
  readonly index: number
  /** Returns the number of the next event. */
  nextNumber(): number
}

/**
 * Events in which the text of an item grows: its deltas, and the member of its last event that contains the
 * whole text.
 */
interface Growth {
  readonly event: string
  readonly whole: 'text' | 'refusal' | 'arguments' | 'input'
  /** Position of the text in the item, as JSON members. */
  readonly place: string
  /** Whether its events contain the log probabilities of its tokens. */
  readonly hasLogprobs: boolean
  /** Events that begin and end the text within its item. */
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
 * Writes one item of a stream: `added`, the deltas of its text, `done`. Messages and thoughts begin with
 * their first text; calls whose input must be complete are written once it is.
 */
export class ItemStream {
  proof: Proof | undefined
  readonly #part: StartedPart
  readonly #place: Place
  #type: ItemType
  #id: string
  readonly #growth: Growth | undefined
  /** Extracts a custom tool's input from the arguments in which it arrives. */
  readonly #custom: CustomInput | undefined
  /** The text as it arrived, and as it was written to the client. */
  #text = ''
  #told = ''
  #isOpen = false
  #hasText = false
  readonly #citations: Citation[] = []
  /** Log probabilities of the text's tokens, and how many of them were written in deltas. */
  readonly #logprobs: unknown[] = []
  #toldLogprobs = 0
  /** Bytes before a delta's number, and between the number and the text. */
  #deltaHead = ''
  #deltaPlace = ''
  /** Beginning of a delta as bytes, and the frame around its text. */
  #delta: { readonly head: Buffer; readonly afterNumber: TextFrame } | undefined

  constructor(part: StartedPart, place: Place) {
    this.#part = part
    this.#place = place
    this.#type = itemType(part, place.form)
    this.#id = itemId(this.#type, place.response, place.index)
    this.#growth = part.kind === 'text' && part.refusal ? REFUSAL_GROWTH : GROWTHS[this.#type]
    this.#custom = this.#type === 'custom_tool_call' ? new CustomInput() : undefined
  }

  /** Adds text. Returns the frames to write. */
  add(text: string, logprobs?: Logprobs): string {
    if (logprobs) this.#logprobs.push(...logprobs)
    if (text === '') return ''
    this.#text += text
    return this.#growth ? this.#tell(this.#custom ? this.#custom.push(text) : text) : ''
  }

  /**
   * Copies more of the item's text as bytes. Returns false for the first text and for any that must be
   * changed.
   */
  copy(event: CopiedText, out: FrameWriter): boolean {
    if (!this.#delta || this.#custom || this.#logprobs.length > this.#toldLogprobs) return false
    const { text, bytes, spans } = event
    this.#text += text
    this.#told += text
    for (let i = 0; i < spans.length; i += 2) {
      out.bytes(this.#delta.head)
      out.text(String(this.#place.nextNumber()))
      out.copiedAt(this.#delta.afterNumber, bytes, spans, i)
    }
    return true
  }

  /** Records a source of the item's text. It is written at the end of the item, when the text is complete. */
  cite(citation: Citation): void {
    this.#citations.push(citation)
  }

  /**
   * Returns the frames that end the item, and the item itself; none for an empty item. A call whose arguments
   * were cut off is always incomplete.
   */
  close(given: Exclude<ItemStatus, 'in_progress'>): {
    readonly frames: string
    readonly item: string | undefined
  } {
    const part = this.#whole()
    if (!part) return { frames: '', item: undefined }
    const status = part.kind === 'tool-call' && isCut(part.input) ? 'incomplete' : given
    this.#settleType()
    let frames = this.#growth ? this.#tell(this.#custom?.end() ?? '') : ''
    const isFunction = this.#type === 'function_call'
    if (isFunction && this.#told === '') frames += this.#tell('{}')
    frames += this.#open()
    if (part.kind === 'search') frames += this.#searchFrames(part)
    if (this.#growth && (this.#hasText || this.#custom)) frames += this.#endText(this.#growth)
    const item = writeItem(part, { id: this.#id, type: this.#type, status, form: this.#place.form })
    frames += this.#frame('response.output_item.done', `,"output_index":${this.#place.index},"item":${item}`)
    return { frames, item }
  }

  /**
   * If nothing of a call was written yet, its complete input may show that it must be written as another
   * type.
   */
  #settleType(): void {
    if (this.#isOpen || this.#growth) return
    this.#type = itemType(this.#part, this.#place.form, this.#text)
    this.#id = itemId(this.#type, this.#place.response, this.#place.index)
  }

  /** The complete part that the item contains. */
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

  #tell(text: string): string {
    if (text === '' || !this.#growth) return ''
    const opening = this.#hasText ? '' : this.#open() + this.#beginText(this.#growth)
    this.#told += text
    return `${opening}${this.#deltaHead}${this.#place.nextNumber()}${this.#deltaPlace}${JSON.stringify(text)}${this.#growth.hasLogprobs ? this.#nextLogprobs() : ''}}\n\n`
  }

  #nextLogprobs(): string {
    if (this.#logprobs.length === this.#toldLogprobs) return NO_LOGPROBS
    const next = JSON.stringify(this.#logprobs.slice(this.#toldLogprobs))
    this.#toldLogprobs = this.#logprobs.length
    return `,"logprobs":${next}`
  }

  /** Writes `added` with the item before it has any text. */
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
    // A call without deltas is already complete when it is first written.
    if (part.kind === 'tool-call') return { ...part, input: this.#growth ? '' : this.#text }
    return { kind: part.kind, text: '' }
  }

  #beginText({ event, place, hasLogprobs, frame }: Growth): string {
    this.#hasText = true
    const where = this.#where(place)
    this.#deltaHead = `event: ${event}.delta\ndata: {"type":"${event}.delta","sequence_number":`
    this.#deltaPlace = `${where},"delta":`
    const after = frameOf(this.#deltaPlace, `${hasLogprobs ? NO_LOGPROBS : ''}}\n\n`)
    this.#delta = { head: Buffer.from(this.#deltaHead), afterNumber: after }
    return frame
      ? this.#frame(`${frame.event}.added`, `${where},"part":${JSON.stringify(frame.part({ text: '' }))}`)
      : ''
  }

  #endText({ event, whole, place, hasLogprobs, frame }: Growth): string {
    const where = this.#where(place)
    const text = JSON.stringify(this.#told)
    const rest = hasLogprobs ? `,"logprobs":${JSON.stringify(this.#logprobs)}` : ''
    const annotations = annotationsOf(this.#told, this.#citations)
      .map((annotation, index) =>
        this.#frame(
          `${event}.annotation.added`,
          `${where},"annotation_index":${index},"annotation":${JSON.stringify(annotation)}`,
        ),
      )
      .join('')
    const done = this.#frame(`${event}.done`, `${where},"${whole}":${text}${rest}`)
    if (!frame) return done
    const part = frame.part({ text: this.#told, citations: this.#citations, logprobs: this.#logprobs })
    return annotations + done + this.#frame(`${frame.event}.done`, `${where},"part":${JSON.stringify(part)}`)
  }

  /** Progress events of a search, which is already finished when they are written. */
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
