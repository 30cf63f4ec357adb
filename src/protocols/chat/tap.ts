import type { Usage } from '../../domain/usage.ts'
import { dataOf, eventOf, FrameSplitter, MAX_EVENT_BYTES } from '../sse.ts'
import { type ChunkFacts, readChunk } from './chunk.ts'
import { EmittedText } from './emitted-text.ts'
import { type FrameTemplate, learnTemplate } from './frame-template.ts'

/** What to do with the bytes that were pushed. */
export interface TapStep {
  /** To be sent now; undefined where nothing is. The pushed chunk itself where it can go whole. */
  readonly forward: Buffer | undefined
  /** The stream said its last word ([DONE] or an error): it and what follows are in `ending`. */
  readonly terminal: boolean
}

/** An error that upstream sent as a frame. */
export interface StreamError {
  /** The frame's data, as it came. */
  readonly data: string
  /** Whether generated text was forwarded before it. */
  readonly afterContent: boolean
}

/** How a stream stood when upstream ended. */
export interface TapEnd {
  /** [DONE], or an error frame, and all after it; empty where upstream sent neither. Sent, or replaced, after settling. */
  readonly ending: Buffer
  /** Bytes of a frame that never became whole; not forwarded. */
  readonly cutBytes: number
  /** [DONE] or a finish reason for every choice was seen, and no error. */
  readonly complete: boolean
}

/** How `ChatTap` is made. */
export interface TapOptions {
  /** The gateway asked for usage on its own account: the chunk that brings it is not forwarded. */
  readonly swallowUsage: boolean
  readonly maxEventBytes?: number
}

/** What happens to a frame. */
type Verdict = 'forward' | 'swallow' | 'end'

const BYTE_ORDER_MARK = '\ufeff'
const MAX_TEMPLATES = 4
/** So many attempts in a row that helped with no frame, and no more are made: this stream's frames differ too much. */
const MAX_UNPROVEN = 8
/** Bytes after the last word that are kept. */
const MAX_ENDING = 65_536

/**
 * Watches a native chat stream go by: tells which bytes go on now, holds back the end, swallows the usage chunk that the
 * gateway asked for, and gathers what a settlement needs. Forwarded, swallowed, held and cut bytes together are the
 * stream; how the network cut it changes neither them nor the facts.
 */
export class ChatTap {
  /** The last valid usage. */
  usage: Usage | undefined
  /** [DONE] was seen. */
  done = false
  error: StreamError | undefined
  /** UTF-8 bytes of generated text in forwarded frames. */
  emittedBytes = 0
  /** Forwarded frames with generated text. */
  contentFrames = 0
  readonly #swallowUsage: boolean
  readonly #frames: FrameSplitter
  readonly #templates: FrameTemplate[] = []
  #unproven = 0
  /** Text by choice, so that tokens of one do not join those of another. */
  readonly #texts = new Map<number, EmittedText>()
  readonly #finished = new Map<number, boolean>()
  readonly #ending: Buffer[] = []
  #endingBytes = 0
  #isFirst = true

  constructor(options: TapOptions) {
    this.#swallowUsage = options.swallowUsage
    this.#frames = new FrameSplitter(options.maxEventBytes ?? MAX_EVENT_BYTES)
  }

  /** Every choice that was seen has a finish reason. */
  get sawFinish(): boolean {
    return this.#finished.size > 0 && [...this.#finished.values()].every(Boolean)
  }

  /** The generated text so far, choice by choice, for counting; of very long text the beginning. */
  get text(): string {
    return [...this.#texts.values()].join('\n')
  }

  /** Throws `upstream_error` where one event is larger than the cap. */
  push(chunk: Buffer): TapStep {
    if (this.#isTerminal) {
      this.#hold(chunk)
      return { forward: undefined, terminal: true }
    }
    const bytes = this.#frames.take(chunk)
    if (!bytes) return { forward: undefined, terminal: false }
    return { forward: this.#walk(bytes), terminal: this.#isTerminal }
  }

  end(): TapEnd {
    const { bytes, ends } = this.#frames.end()
    let cutBytes = 0
    if (ends.length > 0 || isDone(dataOf(bytes.toString()))) {
      // A last frame without its blank line is only taken where it says [DONE].
      if (this.#read(bytes) !== 'swallow') this.#hold(bytes)
    } else {
      cutBytes = bytes.length
    }
    return {
      ending: Buffer.concat(this.#ending),
      cutBytes,
      complete: this.error === undefined && (this.done || this.sawFinish),
    }
  }

  get #isTerminal(): boolean {
    return this.done || this.error !== undefined
  }

  /** Reads the whole frames in `bytes`; what of them goes on. */
  #walk(bytes: Buffer): Buffer | undefined {
    const kept: Buffer[] = []
    let keptFrom = 0
    let at = 0
    while (at < bytes.length) {
      const known = this.#readKnown(bytes, at)
      if (known > 0) {
        at = known
        continue
      }
      const end = this.#frames.next(at)
      if (end < 0) break
      const verdict = this.#read(bytes.subarray(at, end))
      if (verdict !== 'forward') {
        if (at > keptFrom) kept.push(bytes.subarray(keptFrom, at))
        keptFrom = end
      }
      if (verdict === 'end') {
        this.#hold(bytes.subarray(at))
        at = bytes.length
        keptFrom = at
        break
      }
      at = end
    }
    this.#frames.keep(at)
    if (at > keptFrom) kept.push(keptFrom === 0 && at === bytes.length ? bytes : bytes.subarray(keptFrom, at))
    return kept.length > 1 ? Buffer.concat(kept) : kept[0]
  }

  /** Reads a frame that is like an earlier one but for its text; the offset after it, or 0 where it is not. */
  #readKnown(bytes: Buffer, at: number): number {
    for (let i = 0; i < this.#templates.length; i++) {
      const template = this.#templates[i] as FrameTemplate
      const end = template.match(bytes, at)
      if (end === 0) continue
      const { from, to } = template
      if (template.escaped) {
        const text = unescaped(bytes.toString('utf8', from - 1, to + 1))
        if (text === undefined) return 0
        this.#emit(template.index, Buffer.from(text))
      } else if (to > from) {
        this.emittedBytes += to - from
        this.#textOf(template.index).append(bytes, from, to)
      }
      if (to > from) this.contentFrames++
      this.#unproven = 0
      return end
    }
    return 0
  }

  #read(frame: Buffer): Verdict {
    const text = frame.toString()
    const data = dataOf(this.#isFirst && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text)
    this.#isFirst = false
    if (data === undefined) return 'forward'
    if (isDone(data)) {
      this.done = true
      return 'end'
    }
    const facts = readChunk(data)
    const saysNothing = facts === undefined || facts.choices.length === 0
    if (facts?.isError || (saysNothing && eventOf(text) === 'error')) {
      this.error = { data, afterContent: this.contentFrames > 0 }
      return 'end'
    }
    if (!facts) return 'forward'
    return this.#take(frame, facts)
  }

  #take(frame: Buffer, facts: ChunkFacts): Verdict {
    if (facts.usage) this.usage = facts.usage
    if (facts.isUsageChunk && this.#swallowUsage) return 'swallow'
    let hasText = false
    for (const { index, pieces, finished } of facts.choices) {
      this.#finished.set(index, finished || this.#finished.get(index) === true)
      for (const piece of pieces) this.#emit(index, Buffer.from(piece))
      hasText ||= pieces.length > 0
    }
    if (hasText) this.contentFrames++
    if (hasText && this.#unproven < MAX_UNPROVEN) this.#learn(frame, facts)
    return 'forward'
  }

  #learn(frame: Buffer, facts: ChunkFacts): void {
    const template = learnTemplate(frame, facts)
    this.#unproven++
    if (template) this.#templates.unshift(template)
    if (this.#templates.length > MAX_TEMPLATES) this.#templates.pop()
    if (this.#unproven === MAX_UNPROVEN) this.#templates.length = 0
  }

  #emit(index: number, text: Buffer): void {
    this.emittedBytes += text.length
    this.#textOf(index).append(text, 0, text.length)
  }

  #textOf(index: number): EmittedText {
    let text = this.#texts.get(index)
    if (!text) this.#texts.set(index, (text = new EmittedText()))
    return text
  }

  #hold(bytes: Buffer): void {
    const room = MAX_ENDING - this.#endingBytes
    if (room <= 0) return
    this.#endingBytes += bytes.length
    this.#ending.push(Buffer.from(bytes.subarray(0, room)))
  }
}

function isDone(data: string | undefined): boolean {
  return data?.trim() === '[DONE]'
}

/** A string literal's value; undefined where an escape is wrong. */
function unescaped(literal: string): string | undefined {
  try {
    return JSON.parse(literal) as string
  } catch {
    return undefined
  }
}
