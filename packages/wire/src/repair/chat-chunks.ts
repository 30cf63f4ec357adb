import type { Fields } from '../field.ts'
import { isJsonText, parseExactRecord } from '../json/exact-json.ts'
import { asRecord } from '../json/record.ts'
import { frameData } from '../sse/frame-splitter.ts'

/** Members of a chunk, of a choice and of a delta that the codec of chat reads and writes. */
const KNOWN = {
  chunk: new Set(['id', 'object', 'created', 'model', 'choices', 'usage']),
  choice: new Set(['index', 'delta', 'finish_reason', 'logprobs']),
  delta: new Set([
    'role',
    'content',
    'refusal',
    'reasoning_content',
    'annotations',
    'tool_calls',
    'function_call',
  ]),
} as const
const MAX_STATED = 32

/** What the chunks of a stream have said so far that its codec does not write. */
export class ChatChunks {
  /** The last value of each member of a chunk that the codec does not know. */
  readonly #stated = new Map<string, unknown>()
  /** The usage as the provider wrote it. */
  #usage: Fields | undefined

  /**
   * Returns the frames in place of a chunk: those that the codec wrote for it, with the members that the codec does not
   * know. `given`: the chunk; undefined for the end of the stream, whose frames stand for earlier chunks.
   */
  frames(given: Fields | undefined, written: string): string {
    const more = given ? this.#note(given) : { members: this.#constants(), isNew: false }
    const frames = written.split(/(?<=\n\n)/).filter((frame) => frame !== '')
    if (frames.length === 0)
      return given && more.isNew ? frameOf({ ...envelope(given), ...more.members }) : ''
    const constants = this.#constants()
    // What was said once stands in one frame.
    return frames
      .map((frame, at) => this.#withMembers(frame, at === frames.length - 1 ? more.members : constants))
      .join('')
  }

  /** Notes the members of a chunk. Returns those that the codec does not know, and whether any is new. */
  #note(given: Fields): { readonly members: Fields; readonly isNew: boolean } {
    this.#usage = asRecord(given['usage']) ?? this.#usage
    let isNew = false
    const rest = others(given, KNOWN.chunk)
    for (const [name, value] of Object.entries(rest)) {
      if (value === null || this.#stated.get(name) === value) continue
      isNew = true
      if (this.#stated.size < MAX_STATED) this.#stated.set(name, value)
    }
    const choices = listOf(given['choices']).map((one) => {
      const { message, ...rest } = asRecord(one) ?? {}
      // A message in place of a delta is content, beside one a repetition.
      const choice: Fields =
        rest['delta'] === undefined || message === undefined ? rest : { ...rest, message }
      const [members, delta] = [
        others(choice, KNOWN.choice),
        others(asRecord(choice['delta']) ?? {}, KNOWN.delta),
      ]
      if ([...Object.values(members), ...Object.values(delta)].some((value) => value !== null)) isNew = true
      return { index: choice['index'] ?? 0, delta, logprobs: null, finish_reason: null, ...members }
    })
    return { members: { ...rest, choices }, isNew }
  }

  /** Members such as `system_fingerprint`, which each chunk repeats. */
  #constants(): Fields {
    return Object.fromEntries(
      [...this.#stated].filter(
        ([, value]) => typeof value !== 'object' || (value !== null && isJsonText(value)),
      ),
    )
  }

  #withMembers(frame: string, more: Fields): string {
    const chunk = parseExactRecord(frameData(frame) ?? '')
    if (!chunk) return frame
    const usage = asRecord(chunk['usage'])
    return frameOf({ ...withMembers(chunk, more), ...(usage && { usage: { ...usage, ...this.#usage } }) })
  }
}

function envelope({ id, object, created, model }: Fields): Fields {
  return { id, object, created, model }
}

function others(fields: Fields, known: ReadonlySet<string>): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !known.has(name)))
}

/** Adds the members that a chunk lacks, to choices of the same index too. */
function withMembers(chunk: Fields, more: Fields): Fields {
  const added = new Map(listOf(more['choices']).map((one) => [asRecord(one)?.['index'], asRecord(one)]))
  const choices = listOf(chunk['choices']).map((one) => {
    const choice = asRecord(one) ?? {}
    const from = added.get(choice['index'])
    return { ...from, ...choice, delta: { ...asRecord(from?.['delta']), ...asRecord(choice['delta']) } }
  })
  return { ...more, ...chunk, choices }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function frameOf(chunk: Fields): string {
  return `data: ${JSON.stringify(chunk)}\n\n`
}
