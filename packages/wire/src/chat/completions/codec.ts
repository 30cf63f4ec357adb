import type { Usage } from '../../usage.ts'
import { WireError } from '../../wire-error.ts'
import type { Codec, DroppedFields, ReplyIdentity, StreamEncoder } from '../../codec.ts'
import type { Conversation } from '../../conversation.ts'
import { type CopyableText, textFrameOf, type FrameWriter, type TextFrame } from '../../frame-writer.ts'
import { applyEdits } from '../../json/json-edit.ts'
import { scanObject } from '../../json/json-scan.ts'
import type { ScannedObject } from '../../json/scanned-object.ts'
import type { Reply, ReplyEvent } from '../../reply.ts'
import type { ErrorContent } from '../../upstream-error.ts'
import { chatCodec } from '../codec.ts'
import { chatErrorFrame } from '../errors.ts'
import { FINISH_REASONS } from '../stop-reasons.ts'
import { writeUsage } from '../usage.ts'

const DONE = 'data: [DONE]\n\n'
/** End of a chunk, after its text. */
const CHOICE_TAIL = ',"index":0,"logprobs":null,"finish_reason":null}]}\n\n'

/**
 * Encodes a stream for a client of completions: `docs/api.md: Completions`. Parts of a reply other than text
 * are left out.
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

  copy(event: CopyableText, out: FrameWriter): boolean {
    if (event.kind === 'text')
      out.copied((this.#textFrame ??= textFrameOf(`${this.#chunk}{"text":`, CHOICE_TAIL)), event)
    return true
  }

  finalFrames(charged = this.#usage): string {
    if (!this.#isComplete) return ''
    if (!this.#includeUsage || !charged) return DONE
    return `${this.#chunk}],"usage":${JSON.stringify(writeUsage(charged, this.#identity))}}\n\n${DONE}`
  }

  /** Returns '', because completions have no chunk without content. */
  keepAliveFrame(): string {
    return ''
  }

  failureFrame(error: ErrorContent): string {
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

/**
 * Fields of completions requests without an equivalent in the neutral form, each with a test for the values
 * at which it has no effect.
 */
const WITHOUT_EQUIVALENT: readonly (readonly [string, (value: unknown) => boolean])[] = [
  ['echo', (value) => value === false],
  ['suffix', (value) => value === ''],
  ['best_of', (value) => value === 1],
  ['n', (value) => value === 1],
  ['logprobs', () => false],
]

/**
 * Codec for completions of one prompt, used for upstreams that only offer conversations: the prompt is sent
 * as a user message.
 */
export const completionsCodec: Codec = {
  ...chatCodec,
  decodeRequest,
  encodeReply,
  streamEncoder: (identity, options) => new CompletionStreamEncoder(identity, options),
}

/**
 * Refuses what the neutral form cannot express: several prompts, token ids, and fields without an equivalent.
 */
export function checkConvertibleCompletion(scan: ScannedObject): void {
  checkFields(scan)
  onlyPrompt(scan)
}

function checkFields(scan: ScannedObject): void {
  for (const [field, isNeutral] of WITHOUT_EQUIVALENT) {
    const value = scan.value(field)
    if (value !== undefined && value !== null && !isNeutral(value)) throw unconverted(field)
  }
}

function decodeRequest(scan: ScannedObject, dropped: DroppedFields): Conversation {
  checkFields(scan)
  const messages = JSON.stringify([{ role: 'user', content: onlyPrompt(scan) }])
  const body = applyEdits(scan.bytes, scan, {
    remove: ['prompt', ...WITHOUT_EQUIVALENT.map(([field]) => field)],
    replace: new Map([['messages', messages]]),
  })
  return chatCodec.decodeRequest(scanObject(body), dropped)
}

function onlyPrompt(scan: ScannedObject): string {
  const prompt = scan.value('prompt')
  const one: unknown = Array.isArray(prompt) && prompt.length === 1 ? prompt[0] : prompt
  if (typeof one === 'string') return one
  throw unconverted('prompt', ' but as one text')
}

function unconverted(field: string, exception = ''): WireError {
  return new WireError(
    'invalid_request',
    `'${field}' is not supported${exception}: the channels of this model have no completions, only conversations.`,
  )
}

function encodeReply(reply: Reply, identity: ReplyIdentity): Buffer {
  const { id, model, parts, stop, usage } = reply
  return Buffer.from(
    JSON.stringify({
      id: id || `cmpl-${identity.id}`,
      object: 'text_completion',
      created: identity.created,
      model,
      choices: [
        {
          text: parts.map((part) => (part.kind === 'text' ? part.text : '')).join(''),
          index: 0,
          logprobs: null,
          finish_reason: FINISH_REASONS[stop.reason],
        },
      ],
      ...(usage && { usage: writeUsage(usage, identity) }),
    }),
  )
}
