import { applyEdits } from './json/json-edit.ts'
import { scanObject } from './json/json-scan.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'
import { type StreamKind, TRANSCRIPT_TEXT } from './event-texts.ts'
import type { ServedProtocol } from './protocols.ts'
import { promptTokens, type Usage } from './usage.ts'

/**
 * Replaces the content of a complete response by a refusal in the protocol of the response: `content_filter`,
 * `refusal`, an incomplete response, or `SAFETY`; a ranking has no results. All other members stay unchanged.
 */
export function replaceAnswerByRefusal(scan: ScannedObject, dialect: ServedProtocol): Buffer {
  const replace = new Map<string, string>()
  if (dialect === 'rerank') replace.set('results', '[]')
  else if (scan.kind('choices') === 'array') replace.set('choices', refusedChoices(scan))
  else if (scan.kind('candidates') === 'array') replace.set('candidates', refusedCandidates(scan))
  else if (scan.has('stop_reason'))
    for (const [name, text] of [
      ['content', '[]'],
      ['stop_reason', '"refusal"'],
      ['stop_sequence', 'null'],
    ] as const)
      replace.set(name, text)
  else
    for (const [name, text] of [
      ['status', '"incomplete"'],
      ['incomplete_details', '{"reason":"content_filter"}'],
      ['output', '[]'],
    ] as const)
      replace.set(name, text)
  return applyEdits(scan.bytes, scan, { remove: scan.has('output_text') ? ['output_text'] : [], replace })
}

/** A complete response with a refusal, used if there is no answer whose other members could be kept. */
export function refusalInDialect(dialect: ServedProtocol): Buffer {
  return replaceAnswerByRefusal(scanObject(Buffer.from(EMPTY[dialect])), dialect)
}

const EMPTY: Readonly<Record<ServedProtocol, string>> = {
  chat: '{"object":"chat.completion","choices":[{}]}',
  messages: '{"type":"message","role":"assistant","stop_reason":null}',
  responses: '{"object":"response"}',
  gemini: '{"candidates":[{}]}',
  rerank: '{}',
}

function refusedChoices(scan: ScannedObject): string {
  const choices = elementsOf(scan, 'choices').map((choice, index) => {
    const content =
      scan.memberOf(choice, 'text') === undefined
        ? '"message":{"role":"assistant","content":null,"refusal":null}'
        : '"text":""'
    return `{"index":${indexOf(scan, choice, index)},${content},"logprobs":null,"finish_reason":"content_filter"}`
  })
  return `[${choices.join(',')}]`
}

function refusedCandidates(scan: ScannedObject): string {
  const candidates = elementsOf(scan, 'candidates').map(
    (one, index) => `{"index":${indexOf(scan, one, index)},"finishReason":"SAFETY"}`,
  )
  return `[${candidates.join(',')}]`
}

function elementsOf(scan: ScannedObject, name: string): Node[] {
  const member = scan.span(name)
  if (!member || scan.kindOf(member.node) !== 'array') return []
  return scan.elements(member.node).filter((node) => scan.kindOf(node) === 'object')
}

function indexOf(scan: ScannedObject, object: Node, otherwise: number): number {
  const node = scan.memberOf(object, 'index')
  const index = node === undefined ? otherwise : Number(scan.textOf(node))
  return Number.isSafeInteger(index) ? index : otherwise
}

/**
 * Remembers which choices, blocks or items of a stream have begun, so that the stream can be ended by a
 * refusal at any time.
 */
export interface RefusableStream {
  /** Records an event that is sent to the client. */
  note(scan: ScannedObject): void
  /**
   * Records an event that is not sent to the client. The choices that begin with this event must be ended
   * too.
   */
  noteBlocked?(scan: ScannedObject): void
  /** Records a piece of a text that is sent to the client, by the key of the text. */
  noteText?(key: string, text: string): void
  /** Length of the texts that are remembered, in characters; absent if none are. */
  readonly textLength?: number
  /**
   * Returns the events that end the stream with a refusal. `sequence` is the `sequence_number` of the next
   * event.
   */
  refusal(usage: Usage, sequence: number): string
}

/** The indexes of the choices or candidates that have begun; if none has, index 0. */
function indexesOf(begun: ReadonlySet<number>): readonly number[] {
  return begun.size === 0 ? [0] : [...begun]
}

class BegunChat implements RefusableStream {
  /** The members that all chunks have in common, as JSON. */
  #head = ''
  #isText = false
  readonly #indexes = new Set<number>()

  note(scan: ScannedObject): void {
    if (this.#head === '')
      for (const name of ['id', 'object', 'created', 'model']) {
        const member = scan.span(name)
        if (member) this.#head += `${JSON.stringify(name)}:${scan.textOf(member.node)},`
      }
    for (const choice of elementsOf(scan, 'choices')) {
      this.#indexes.add(indexOf(scan, choice, 0))
      this.#isText ||= scan.memberOf(choice, 'text') !== undefined
    }
  }

  noteBlocked(scan: ScannedObject): void {
    this.note(scan)
  }

  refusal(): string {
    const content = this.#isText ? '"text":""' : '"delta":{}'
    const choices = indexesOf(this.#indexes).map(
      (index) => `{"index":${index},${content},"logprobs":null,"finish_reason":"content_filter"}`,
    )
    return `data: {${this.#head}"choices":[${choices.join(',')}]}\n\ndata: [DONE]\n\n`
  }
}

/** Members of a message without text that clients read from the first event. */
const MESSAGE_HEAD = ['id', 'type', 'role', 'model', 'usage'] as const

class BegunMessage implements RefusableStream {
  readonly #openBlocks = new Set<number>()
  /** The first event, if it was not sent to the client. */
  #start = ''

  note(scan: ScannedObject): void {
    const index = Number(scan.value('index'))
    if (scan.value('type') === 'content_block_start') this.#openBlocks.add(index)
    if (scan.value('type') === 'content_block_stop') this.#openBlocks.delete(index)
  }

  noteBlocked(scan: ScannedObject): void {
    const message = scan.value('type') === 'message_start' ? scan.span('message') : undefined
    if (!message || scan.kindOf(message.node) !== 'object') return
    const members = MESSAGE_HEAD.flatMap((name) => {
      const node = scan.memberOf(message.node, name)
      return node === undefined ? [] : [`${JSON.stringify(name)}:${scan.textOf(node)},`]
    })
    const rest = '"content":[],"stop_reason":null,"stop_sequence":null'
    this.#start = `event: message_start\ndata: {"type":"message_start","message":{${members.join('')}${rest}}}\n\n`
  }

  refusal({ output }: Usage): string {
    const stops = [...this.#openBlocks].map(
      (index) => `event: content_block_stop\ndata: {"type":"content_block_stop","index":${index}}\n\n`,
    )
    const delta = '{"stop_reason":"refusal","stop_sequence":null}'
    return (
      this.#start +
      stops.join('') +
      `event: message_delta\ndata: {"type":"message_delta","delta":${delta},"usage":{"output_tokens":${output}}}\n\n` +
      'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    )
  }
}

class BegunResponse implements RefusableStream {
  /** The response object in the first event. */
  #response: string | undefined

  note(scan: ScannedObject): void {
    const response = scan.span('response')
    if (response && this.#response === undefined) this.#response = scan.textOf(response.node)
  }

  refusal(usage: Usage, sequence: number): string {
    const begun = this.#response === undefined ? {} : (JSON.parse(this.#response) as object)
    const input = promptTokens(usage)
    const response = {
      ...begun,
      status: 'incomplete',
      incomplete_details: { reason: 'content_filter' },
      output: [],
      usage: {
        input_tokens: input,
        input_tokens_details: { cached_tokens: usage.cacheRead },
        output_tokens: usage.output,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: input + usage.output,
      },
    }
    const event = { type: 'response.incomplete', sequence_number: sequence, response }
    return `event: response.incomplete\ndata: ${JSON.stringify(event)}\n\n`
  }
}

class BegunCandidates implements RefusableStream {
  readonly #indexes = new Set<number>()

  note(scan: ScannedObject): void {
    for (const one of elementsOf(scan, 'candidates')) this.#indexes.add(indexOf(scan, one, 0))
  }

  noteBlocked(scan: ScannedObject): void {
    this.note(scan)
  }

  refusal(usage: Usage): string {
    const candidates = indexesOf(this.#indexes).map((index) => ({ index, finishReason: 'SAFETY' }))
    const prompt = promptTokens(usage)
    const usageMetadata = {
      promptTokenCount: prompt,
      candidatesTokenCount: usage.output,
      totalTokenCount: prompt + usage.output,
    }
    return `data: ${JSON.stringify({ candidates, usageMetadata })}\n\n`
  }
}

/** A transcript ends as usual, with the text that was sent. */
class BegunTranscript implements RefusableStream {
  #text = ''

  get textLength(): number {
    return this.#text.length
  }

  note(): void {}

  noteText(key: string, text: string): void {
    if (key === TRANSCRIPT_TEXT) this.#text += text
  }

  refusal(): string {
    return `data: ${JSON.stringify({ type: 'transcript.text.done', text: this.#text })}\n\n`
  }
}

/** The error at the end of a stream of images. */
const REFUSED = {
  message: 'a guard refused the answer',
  type: 'invalid_request_error',
  code: 'guard_blocked',
  param: null,
}
class BegunImages implements RefusableStream {
  note(): void {}

  refusal(): string {
    return `event: error\ndata: ${JSON.stringify({ error: REFUSED })}\n\n`
  }
}

const STREAMS: Readonly<Record<StreamKind, () => RefusableStream>> = {
  chat: () => new BegunChat(),
  messages: () => new BegunMessage(),
  responses: () => new BegunResponse(),
  gemini: () => new BegunCandidates(),
  images: () => new BegunImages(),
  transcript: () => new BegunTranscript(),
}

/** Returns an object that follows a stream of this kind, so that it can be ended by a refusal. */
export function refusableStream(dialect: StreamKind): RefusableStream {
  return STREAMS[dialect]()
}
