import { choiceOfPart, type ReplyEvent, type ReplyPart, type StartedPart } from '../reply.ts'
import { CopyableText } from '../frame-writer.ts'
import { TextBuffer } from '../text-buffer.ts'
import { callAnchor, hasRandomId, type SignedParts, type SignedElement, textAnchor } from './signed-parts.ts'
import { isSignedOpaquePart } from '../signature-envelope.ts'

/**
 * Finds what a model signed in its reply, by anchor (see `SignedParts`); empty if it signed nothing.
 * `history` computes the digest of the conversation before the reply, and is called only if needed.
 */
export function signedPartsOfReply(
  parts: readonly ReplyPart[],
  history: { readonly context: string },
): ReadonlyMap<string, SignedParts> {
  const runs = new Map<string, SignedParts>()
  if (!parts.some(isSigned)) return runs
  let slots: SignedElement[] = []
  let last: string | undefined
  for (const part of parts) {
    if (part.kind !== 'tool-call') {
      const slot = slotOf(part)
      if (slot) slots.push(slot)
      continue
    }
    last = callAnchor(part, () => history.context)
    if (slots.length > 0) runs.set(last, { before: slots, after: [] })
    slots = []
  }
  if (last === undefined) {
    const anchor = textAnchor(
      history.context,
      parts.map((part) => (part.kind === 'text' ? part.text : '')).join(''),
    )
    if (anchor !== undefined) runs.set(anchor, { before: slots, after: [] })
  } else if (slots.length > 0) runs.set(last, { before: runs.get(last)?.before ?? [], after: slots })
  return runs
}

function isSigned(part: ReplyPart): boolean {
  if (part.kind === 'thinking') return part.proof !== undefined
  return part.kind === 'opaque' && isSignedOpaquePart(part)
}

function slotOf(part: Exclude<ReplyPart, { kind: 'tool-call' }>): SignedElement | undefined {
  switch (part.kind) {
    case 'text':
      return part.text === '' ? undefined : { kind: 'said', length: part.text.length }
    case 'thinking':
      return part.proof && { kind: 'thinking', text: part.text, proof: part.proof }
    case 'search':
      return undefined
    case 'opaque':
      return isSignedOpaquePart(part) ? part : undefined
  }
}

/** Maximum number of copied bytes that are collected before they are decoded. */
const MAX_COPIED_BYTES = 1_048_576

/** Text of a part. Most texts are never read, so copied bytes are decoded only when the text is needed. */
class GrowingText {
  readonly #texts: string[] = []
  #copied: TextBuffer | undefined
  #copiedBytes = 0

  add(event: { readonly text: string } | CopyableText): void {
    if (!(event instanceof CopyableText) || event.size > MAX_COPIED_BYTES) {
      this.#decode()
      this.#texts.push(event.text)
      return
    }
    this.#copied ??= new TextBuffer()
    this.#copiedBytes += this.#copied.addCopied(event)
    if (this.#copiedBytes > MAX_COPIED_BYTES) this.#decode()
  }

  toString(): string {
    this.#decode()
    return this.#texts.join('')
  }

  #decode(): void {
    if (this.#copied) this.#texts.push(this.#copied.toString())
    this.#copied = undefined
    this.#copiedBytes = 0
  }
}

/**
 * A part of a streamed reply, to which later events may add. Inputs of tool calls are collected only where
 * their anchor depends on them.
 */
interface GrowingPart {
  readonly started: StartedPart
  readonly text: GrowingText
  readonly isCollected: boolean
  proof: Extract<ReplyEvent, { kind: 'proof' }>['proof'] | undefined
}

/** Collects the parts of a streamed reply for `signedPartsOfReply`. */
export class SignedReply {
  readonly #parts = new Map<number, GrowingPart>()
  #hasSigned = false

  /**
   * Adds an event of the stream. Only the first choice is collected, because clients send back only the first
   * choice.
   */
  add(event: ReplyEvent): void {
    if ('index' in event && choiceOfPart(event.index) > 0) return
    switch (event.kind) {
      case 'part-start':
        this.#parts.set(event.index, {
          started: event.part,
          text: new GrowingText(),
          isCollected: event.part.kind !== 'tool-call' || !hasRandomId(event.part),
          proof: undefined,
        })
        if (event.part.kind === 'opaque') this.#hasSigned ||= isSignedOpaquePart(event.part)
        return
      case 'text':
      case 'thinking':
      case 'tool-input': {
        const part = this.#parts.get(event.index)
        if (part?.isCollected) part.text.add(event)
        return
      }
      case 'proof': {
        const part = this.#parts.get(event.index)
        if (part) part.proof = event.proof
        this.#hasSigned = true
        return
      }
      case 'start':
      case 'citation':
      case 'part-end':
      case 'ping':
      case 'end':
      case 'failure':
    }
  }

  /** Parts of the reply in order; empty if nothing is signed. */
  get parts(): readonly ReplyPart[] {
    if (!this.#hasSigned) return []
    return [...this.#parts].sort(([a], [b]) => a - b).map(([, part]) => replyPart(part))
  }
}

function replyPart({ started, text, proof }: GrowingPart): ReplyPart {
  switch (started.kind) {
    case 'text':
      return { kind: 'text', text: text.toString() }
    case 'thinking':
      return { kind: 'thinking', text: text.toString(), ...(proof && { proof }) }
    case 'tool-call':
      return { ...started, input: text.toString() }
    case 'search':
    case 'opaque':
      return started
  }
}
