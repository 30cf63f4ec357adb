import type { Usage } from '../../../domain/usage.ts'
import type { ReplyIdentity, StreamEncoder } from '../../codec.ts'
import { type CopiedText, frameOf, type TextFrame } from '../../copied-text.ts'
import type { FrameWriter } from '../../frame-writer.ts'
import type { ReplyEvent } from '../../reply.ts'
import { chatErrorFrame } from '../errors.ts'
import { FINISH_REASONS } from '../stop-reasons.ts'
import type { ErrorParts } from '../../upstream-error.ts'
import { usageOut } from '../usage-out.ts'

const DONE = 'data: [DONE]\n\n'
/** End of a chunk after its text. */
const CHOICE_TAIL = ',"index":0,"logprobs":null,"finish_reason":null}]}\n\n'

/**
 * Encodes a stream for a client of completions: `docs/api.md: Completions`. Everything but text is left out.
 */
export class CompletionStreamEncoder implements StreamEncoder {
  readonly #identity: ReplyIdentity
  readonly #includeUsage: boolean
  /** Beginning of every chunk, up to the choices. */
  #chunk: string
  #textFrame: TextFrame | undefined
  #isComplete = false
  #usage: Usage | undefined

  constructor(identity: ReplyIdentity, options: { readonly includeUsage: boolean }) {
    this.#identity = identity
    this.#includeUsage = options.includeUsage
    this.#chunk = this.#chunkStart('', '')
  }

  push(events: readonly ReplyEvent[]): string {
    let text = ''
    for (const event of events) {
      if (event.kind === 'start') {
        this.#chunk = this.#chunkStart(event.id, event.model)
        this.#textFrame = undefined
      } else if (event.kind === 'text') text += this.#choice(event.text, null)
      else if (event.kind === 'end') {
        this.#isComplete = true
        this.#usage = event.usage
        text += this.#choice('', FINISH_REASONS[event.stop.reason])
      }
    }
    return text
  }

  copy(event: CopiedText, out: FrameWriter): boolean {
    if (event.kind === 'text')
      out.copied((this.#textFrame ??= frameOf(`${this.#chunk}{"text":`, CHOICE_TAIL)), event)
    return true
  }

  finalFrames(charged = this.#usage): string {
    if (!this.#isComplete) return ''
    if (!this.#includeUsage || !charged) return DONE
    return `${this.#chunk}],"usage":${JSON.stringify(usageOut(charged, this.#identity))}}\n\n${DONE}`
  }

  /** Completions have no chunk without content. */
  keepAliveFrame(): string {
    return ''
  }

  failureFrame(error: ErrorParts): string {
    return chatErrorFrame(error).toString()
  }

  #choice(text: string, reason: string | null): string {
    const choice = { text, index: 0, logprobs: null, finish_reason: reason }
    return `${this.#chunk}${JSON.stringify(choice)}]}\n\n`
  }

  #chunkStart(id: string, model: string): string {
    const { created, id: minted } = this.#identity
    const common = JSON.stringify({ id: id || `cmpl-${minted}`, object: 'text_completion', created, model })
    return `data: ${common.slice(0, -1)},"choices":[`
  }
}
