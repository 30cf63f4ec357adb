import { applyEdits } from './json/json-edit.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'
import type { ClientProtocol } from './protocols.ts'
import { promptTokens, type Usage } from './usage.ts'

/**
 * A whole answer without its content, which ends as its dialect's refusals do: `content_filter`, `refusal`, an
 * incomplete response, `SAFETY`. All other members stay as they are.
 */
export function refusedAnswer(scan: ScannedObject): Buffer {
  const replace = new Map<string, string>()
  if (scan.kind('choices') === 'array') replace.set('choices', refusedChoices(scan))
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

/** What the events of a stream have begun, so that it can be ended by a refusal. */
export class BegunAnswer {
  readonly #dialect: ClientProtocol
  /** Members that all chunks of a chat stream have, as JSON. */
  #head = ''
  #isText = false
  readonly #indexes = new Set<number>()
  readonly #openBlocks = new Set<number>()
  /** The response object of the first event. */
  #response: string | undefined
  /** The next number of an event. */
  sequence = 0

  constructor(dialect: ClientProtocol) {
    this.#dialect = dialect
  }

  /** Takes an event that is sent. */
  note(scan: ScannedObject): void {
    NOTES[this.#dialect].call(this, scan)
  }

  /** Takes an event that is not sent, because a guard blocks it: the choices that it would have begun end too. */
  noteBlocked(scan: ScannedObject): void {
    if (HAS_CHOICES[this.#dialect]) this.note(scan)
  }

  /** The events that end the stream as a refusal. */
  refusal(usage: Usage): string {
    return REFUSALS[this.#dialect].call(this, usage)
  }

  /** @internal */
  noteChat(scan: ScannedObject): void {
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

  /** @internal */
  refuseChat(): string {
    const content = this.#isText ? '"text":""' : '"delta":{}'
    const choices = [...this.#indexes].map(
      (index) => `{"index":${index},${content},"logprobs":null,"finish_reason":"content_filter"}`,
    )
    return `data: {${this.#head}"choices":[${choices.join(',')}]}\n\ndata: [DONE]\n\n`
  }

  /** @internal */
  noteMessages(scan: ScannedObject): void {
    const index = Number(scan.value('index'))
    if (scan.value('type') === 'content_block_start') this.#openBlocks.add(index)
    if (scan.value('type') === 'content_block_stop') this.#openBlocks.delete(index)
  }

  /** @internal */
  refuseMessages({ output }: Usage): string {
    const stops = [...this.#openBlocks].map(
      (index) => `event: content_block_stop\ndata: {"type":"content_block_stop","index":${index}}\n\n`,
    )
    return (
      stops.join('') +
      `event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"refusal","stop_sequence":null},"usage":{"output_tokens":${output}}}\n\n` +
      'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    )
  }

  /** @internal */
  noteResponses(scan: ScannedObject): void {
    const response = scan.span('response')
    if (response && this.#response === undefined) this.#response = scan.textOf(response.node)
    const number = scan.value('sequence_number')
    if (typeof number === 'number') this.sequence = number + 1
  }

  /** @internal */
  refuseResponses(usage: Usage): string {
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
    const event = { type: 'response.incomplete', sequence_number: this.sequence, response }
    return `event: response.incomplete\ndata: ${JSON.stringify(event)}\n\n`
  }

  /** @internal */
  noteGemini(scan: ScannedObject): void {
    for (const one of elementsOf(scan, 'candidates')) this.#indexes.add(indexOf(scan, one, 0))
  }

  /** @internal */
  refuseGemini(usage: Usage): string {
    const candidates = [...this.#indexes].map((index) => ({ index, finishReason: 'SAFETY' }))
    const prompt = promptTokens(usage)
    const usageMetadata = {
      promptTokenCount: prompt,
      candidatesTokenCount: usage.output,
      totalTokenCount: prompt + usage.output,
    }
    return `data: ${JSON.stringify({ candidates, usageMetadata })}\n\n`
  }
}

/** Whether the end of a stream names the choices that end. */
const HAS_CHOICES: Readonly<Record<ClientProtocol, boolean>> = {
  chat: true,
  messages: false,
  responses: false,
  gemini: true,
}

const NOTES: Readonly<Record<ClientProtocol, (this: BegunAnswer, scan: ScannedObject) => void>> = {
  chat: BegunAnswer.prototype.noteChat,
  messages: BegunAnswer.prototype.noteMessages,
  responses: BegunAnswer.prototype.noteResponses,
  gemini: BegunAnswer.prototype.noteGemini,
}

const REFUSALS: Readonly<Record<ClientProtocol, (this: BegunAnswer, usage: Usage) => string>> = {
  chat: BegunAnswer.prototype.refuseChat,
  messages: BegunAnswer.prototype.refuseMessages,
  responses: BegunAnswer.prototype.refuseResponses,
  gemini: BegunAnswer.prototype.refuseGemini,
}
