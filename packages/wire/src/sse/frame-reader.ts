import type { StreamDecoder } from '../codec.ts'
import { type EventMemory, FrameSplitter, MAX_EVENT_BYTES } from './frame-splitter.ts'
import { FrameLoop, type FrameAction } from './frame-loop.ts'
import { type CopyablePart, CopyableText, decodeFrameText } from '../frame-writer.ts'
import type { FrameTemplate, FrameTextMatch } from './frame-template.ts'
import type { ReplyEvent } from '../reply.ts'
import type { SharedTemplates } from './shared-templates.ts'
import { StreamedInputs } from '../tool-input.ts'
import type { ReportedUsage } from '../reported-usage.ts'

/**
 * Base of stream decoders, which splits a stream into frames. A subclass for each protocol interprets the
 * data of the frames.
 */
export abstract class FrameReader extends FrameLoop implements StreamDecoder {
  /** Whether texts may be returned as `CopyableText`, which refers to the pushed bytes. */
  copiesTexts = false
  #events: ReplyEvent[] = []
  /** Whether the stream has ended, so that later bytes are ignored. */
  protected isOver = false
  readonly #inputs = new StreamedInputs()
  /** The error at which reading stopped. It is thrown after all earlier events were returned. */
  #failure: unknown

  /**
   * `memory` records the size of incomplete events. `shared` contains templates that other streams of the
   * same class have learned.
   */
  constructor(memory?: EventMemory, shared?: SharedTemplates) {
    super(new FrameSplitter(MAX_EVENT_BYTES, memory), shared)
  }

  abstract get usage(): ReportedUsage | undefined

  /** Reads a frame that matches no template. */
  protected abstract read(data: string, frame: string): void

  /**
   * Reads the text of a frame that matches a template. `index` is the index that `pieceOf` returned. The text
   * is not empty.
   */
  protected abstract readPiece(index: number, text: string): void

  /**
   * Returns the part to which the text of a matching frame is appended, so that its bytes can be copied.
   * Returns undefined if the text must be read by `readPiece` instead, because it has a further effect.
   */
  protected copyPiece(_index: number, _bytes: Buffer, _match: FrameTextMatch): CopyablePart | undefined {
    return undefined
  }

  /** Called if the upstream closed the connection before the end of the stream. */
  protected abstract handleClose(): void

  protected get progress(): number {
    return this.#events.length
  }

  protected emit(event: ReplyEvent): void {
    switch (event.kind) {
      case 'tool-input':
        return this.#emitInput(event.index, this.#inputs.add(event.index, event.text))
      case 'part-start':
        if (event.part.kind === 'tool-call') this.#inputs.begin(event.index)
        break
      case 'part-end':
        this.#emitInput(event.index, this.#inputs.end(event.index))
        break
      case 'start':
      case 'text':
      case 'thinking':
      case 'proof':
      case 'citation':
      case 'ping':
      case 'end':
      case 'failure':
    }
    this.#events.push(event)
  }

  #emitInput(index: number, text: string): void {
    if (text !== '') this.#events.push({ kind: 'tool-input', index, text })
  }

  push(chunk: Buffer): ReplyEvent[] {
    this.#throwFailure()
    try {
      const bytes = this.isOver ? undefined : this.take(chunk)
      if (bytes) {
        const at = this.readFrames(bytes, 0)
        this.frames.markRead(this.isOver ? bytes.length : at)
      }
    } catch (error) {
      this.#failure = error
      if (this.#events.length === 0) throw error
    }
    return this.#takeEvents()
  }

  end(): ReplyEvent[] {
    this.#throwFailure()
    if (this.isOver) return []
    this.readRest()
    if (!this.isOver) this.handleClose()
    this.isOver = true
    return this.#takeEvents()
  }

  protected readFrame(data: string, frame: string): FrameAction {
    if (!this.isOver) this.read(data, frame)
    return this.isOver ? 'end' : 'forward'
  }

  protected readTemplated(known: FrameTemplate, bytes: Buffer): boolean {
    if (this.isOver) return true
    if (this.copiesTexts && known.to > known.from && known.isCopyable(bytes)) {
      const part = this.copyPiece(known.index, bytes, known)
      if (part) {
        this.#emitCopied(part, bytes, known)
        return true
      }
    }
    const text = known.textIn(bytes)
    if (text === undefined) return false
    if (text !== '') this.readPiece(known.index, text)
    return true
  }

  // Consecutive texts of one part become one event. The caller takes the events after each push, so all texts
  // of an event refer to the bytes of the same push.
  #emitCopied({ kind, index }: CopyablePart, bytes: Buffer, known: FrameTemplate): void {
    const last = this.#events.at(-1)
    if (last instanceof CopyableText && last.index === index) last.add(known)
    else if (kind !== 'tool-input' || this.#inputs.passes(index))
      this.#events.push(new CopyableText(kind, index, bytes, known))
    else this.emit({ kind, index, text: decodeFrameText(bytes, known) })
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  #takeEvents(): ReplyEvent[] {
    const events = this.#events
    if (events.length > 0) this.#events = []
    return events
  }
}
